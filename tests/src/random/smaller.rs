//! Making a test file that fails smaller while it still fails.

use serde_json::Value;

/// Attempts after which it is small enough.
const ATTEMPTS: usize = 4_000;

/// One step on the way to a part of a value.
#[derive(Clone)]
enum Key {
    Member(String),
    Item(usize),
}

/// Removes from the file all that can be removed while `fails` still answers yes: steps, fields,
/// answers, data. An invalid file must not fail.
pub fn smaller(file: &Value, fails: &mut dyn FnMut(&Value) -> bool) -> Value {
    let mut best = file.clone();
    let mut left = ATTEMPTS;
    loop {
        let before = best.clone();
        let mut index = 0;
        while let Some(path) = paths(&best).get(index).cloned() {
            let found = candidates(&best, &path).into_iter().find(|candidate| {
                left = left.saturating_sub(1);
                left > 0 && fails(candidate)
            });
            match found {
                Some(candidate) => best = candidate,
                None => index += 1,
            }
            if left == 0 {
                return best;
            }
        }
        if best == before {
            return best;
        }
    }
}

/// The ways to everything inside, outer things first.
fn paths(value: &Value) -> Vec<Vec<Key>> {
    let mut found = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(path) = open.pop() {
        let Some(here) = at(value, &path) else { continue };
        let keys: Vec<Key> = match here {
            Value::Object(members) => members.keys().cloned().map(Key::Member).collect(),
            Value::Array(items) => (0..items.len()).map(Key::Item).collect(),
            _ => Vec::new(),
        };
        let inside = keys.into_iter().map(|key| path.iter().cloned().chain([key]).collect());
        open.extend(inside);
        found.push(path);
    }
    found
}

fn at<'v>(value: &'v Value, path: &[Key]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, key| match key {
        Key::Member(name) => value.get(name),
        Key::Item(index) => value.get(index),
    })
}

fn at_mut<'v>(value: &'v mut Value, path: &[Key]) -> Option<&'v mut Value> {
    path.iter().try_fold(value, |value, key| match key {
        Key::Member(name) => value.get_mut(name),
        Key::Item(index) => value.get_mut(index),
    })
}

/// The file without what is there, and with what is inside a composite in its place.
fn candidates(file: &Value, path: &[Key]) -> Vec<Value> {
    let Some((last, outer)) = path.split_last() else {
        return Vec::new();
    };
    let mut without = file.clone();
    match (at_mut(&mut without, outer), last) {
        (Some(Value::Object(members)), Key::Member(name)) => {
            members.remove(name);
        }
        (Some(Value::Array(items)), Key::Item(index)) => {
            items.remove(*index);
        }
        _ => return Vec::new(),
    }
    let mut list = vec![without];
    let inner = at(file, path).map(inner_lists).unwrap_or_default();
    for steps in inner {
        let mut hoisted = file.clone();
        if let (Some(Value::Array(items)), Key::Item(index)) = (at_mut(&mut hoisted, outer), last) {
            items.splice(index..=index, steps);
            list.push(hoisted);
        }
    }
    list
}

/// The lists of steps right inside a composite.
fn inner_lists(step: &Value) -> Vec<Vec<Value>> {
    let lists = |of: &Value| of.get("steps").and_then(Value::as_array).cloned();
    let many = ["branches", "choices"]
        .into_iter()
        .filter_map(|name| step.get(name)?.as_array())
        .flatten();
    many.filter_map(lists).chain(lists(step)).collect()
}
