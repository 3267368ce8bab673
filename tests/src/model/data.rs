//! Data: paths, mappings, templates, numbers of seconds.

use super::{Fault, Object};
use serde_json::{Value, json};

/// The roots of paths.
pub struct Roots<'a> {
    pub input: &'a Value,
    pub local: &'a Value,
    pub context: &'a Value,
}

/// An object, or none.
pub fn object(value: &Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

/// `over` laid over `base`.
pub fn merged(base: &Object, over: &Object) -> Object {
    let mut merged = base.clone();
    merged.extend(over.clone());
    merged
}

/// Milliseconds of so many seconds, rounded up; parts smaller than a nanosecond are of the number's spelling.
pub fn millis(seconds: &Value) -> Option<u64> {
    seconds.as_f64().map(ceil_millis)
}

pub fn ceil_millis(seconds: f64) -> u64 {
    (seconds * 1000.0 - 1e-6).ceil().max(0.0) as u64
}

/// The segments of a path after its root.
enum Segment {
    Key(String),
    Item(i64),
    All,
    From(usize),
}

fn segments(path: &str) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            segments.push(Segment::Key(after[..end].to_owned()));
            rest = &after[end..];
        } else {
            let end = rest.find(']').unwrap_or_else(|| panic!("no path: {path}"));
            let inside = &rest[1..end];
            segments.push(match (inside, inside.strip_suffix(':')) {
                ("*", _) => Segment::All,
                (_, Some(from)) => Segment::From(from.parse().unwrap_or(0)),
                _ => Segment::Item(inside.parse().unwrap_or(0)),
            });
            rest = &rest[end + 1..];
        }
    }
    segments
}

fn step<'v>(value: &'v Value, segment: &Segment) -> Vec<&'v Value> {
    match (segment, value) {
        (Segment::Key(key), Value::Object(members)) => members.get(key).into_iter().collect(),
        (Segment::Item(index), Value::Array(items)) => {
            let from_end = usize::try_from(-index)
                .ok()
                .and_then(|back| items.len().checked_sub(back));
            let index = usize::try_from(*index).ok().or(from_end);
            index.and_then(|index| items.get(index)).into_iter().collect()
        }
        (Segment::All, Value::Array(items)) => items.iter().collect(),
        (Segment::All, Value::Object(members)) => members.values().collect(),
        (Segment::From(from), Value::Array(items)) => items.iter().skip(*from).collect(),
        _ => Vec::new(),
    }
}

/// The match of `path` (the part after the root): a value, or an array of all matches if there may
/// be several.
pub fn find(value: &Value, path: &str) -> Option<Value> {
    let segments = segments(path);
    let mut found = vec![value];
    for segment in &segments {
        found = found.into_iter().flat_map(|value| step(value, segment)).collect();
    }
    let singular = segments
        .iter()
        .all(|segment| matches!(segment, Segment::Key(_) | Segment::Item(_)));
    if singular {
        found.first().copied().cloned()
    } else {
        Some(json!(found))
    }
}

/// Whether a string is a path with a root, and what it finds.
pub fn rooted(text: &str, roots: &Roots<'_>) -> Option<Option<Value>> {
    for (root, value) in [
        ("$input", roots.input),
        ("$local", roots.local),
        ("$context", roots.context),
    ] {
        if let Some(rest) = text.strip_prefix(root)
            && (rest.is_empty() || rest.starts_with(['.', '[']))
        {
            return Some(find(value, rest));
        }
    }
    None
}

/// The result of mappings; a required mapping that finds nothing is the error of that name.
pub fn mapped(mappings: &Value, roots: &Roots<'_>, error: &str) -> Result<Object, Fault> {
    let mut made = Object::new();
    for mapping in mappings.as_array().into_iter().flatten() {
        let found = match (mapping["template"].as_str(), &mapping["source"]) {
            (Some(template), _) => filled(template, roots).map(Value::String),
            (None, Value::String(text)) => rooted(text, roots).unwrap_or_else(|| Some(json!(text))),
            (None, constant) => Some(constant.clone()),
        };
        match found {
            Some(value) => {
                made.insert(mapping["target"].as_str().unwrap_or_default().to_owned(), value);
            }
            None if mapping["required"] == true => return Err(Fault::of_engine(error)),
            None => {}
        }
    }
    Ok(made)
}

/// A template with its parts filled in.
fn filled(template: &str, roots: &Roots<'_>) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{$") {
        let (path, behind) = after.split_once('}')?;
        text.push_str(before);
        text.push_str(&plain(&rooted(&format!("${path}"), roots)??));
        rest = behind;
    }
    Some(text + rest)
}

/// A string as it is, anything else as compact JSON.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Milliseconds since 1970 of `2024-01-01T00:00:00Z` and the like.
pub fn instant(text: &str) -> Option<i64> {
    let part = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (part(0, 4)?, part(5, 7)?, part(8, 10)?);
    let seconds = part(11, 13)? * 3600 + part(14, 16)? * 60 + part(17, 19)?;
    let offset = match text.get(19..)? {
        "Z" => 0,
        zone => {
            let minutes = zone.get(1..3)?.parse::<i64>().ok()? * 60 + zone.get(4..6)?.parse::<i64>().ok()?;
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    // Days since the first of March of the year 0, which puts the leap day last.
    let (years, months) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1 - 719_468;
    Some((days * 86_400 + seconds - offset * 60) * 1000)
}
