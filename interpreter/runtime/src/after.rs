//! Reading the executions that a start waits for.

use crate::admission::AdmissionHandle;
use starbridge_flow::limits::{DEPENDENCIES, is_execution_name, is_name};
use starbridge_flow::value::{Text, Value};
use starbridge_ports::{Admissions, Dependency, StoreError, Waiters};
use std::collections::BTreeSet;

/// Reads `after` of a start of this flow: a list of names, `FLOW/NAME`, ids, or objects with more
/// members.
///
/// # Errors
///
/// What is wrong with it, and what it should be.
pub fn read_after(value: &Value, flow: &Text) -> Result<Vec<Dependency>, String> {
    let list = value
        .as_array()
        .ok_or_else(|| "`after` must be a list of names, `FLOW/NAME` or ids of executions".to_owned())?;
    if list.len() > DEPENDENCIES {
        return Err(format!(
            "`after` has {} executions; {DEPENDENCIES} are the most",
            list.len()
        ));
    }
    let mut after: Vec<Dependency> = Vec::new();
    for item in list.values() {
        let dependency = one(item, flow)?;
        let same = |known: &Dependency| known.flow == dependency.flow && known.execution == dependency.execution;
        if after.iter().any(same) {
            return Err(format!("`after` has `{}` twice", dependency.execution));
        }
        after.push(dependency);
    }
    Ok(after)
}

/// How many dependencies are followed to find a cycle before a start. Admission follows more, and
/// declines a start that closes a cycle.
const FOLLOWED: usize = 1_000;

/// The cycle that a start of this flow under this name would close by waiting for `after`: the executions, as `FLOW/NAME` or
/// ids, each waiting for the next and the last for the first, which is the start. Starts that are
/// not durable are not seen; what admission has not decided yet is, if its handle is given.
///
/// # Errors
///
/// [`StoreError`] if the store can't be read.
pub fn find_cycle(
    rows: &dyn Admissions,
    admission: Option<&AdmissionHandle>,
    (flow, name): (&Text, &Text),
    after: &[Dependency],
) -> Result<Option<Vec<String>>, StoreError> {
    let is_start = |one: &Dependency| one.flow.as_ref() == Some(flow) && one.execution == *name;
    let start = format!("{flow}/{name}");
    if after.iter().any(is_start) {
        return Ok(Some(vec![start]));
    }
    if after.is_empty() {
        return Ok(None);
    }
    // What is decided meanwhile has its row before it is forgotten here.
    let awaited = admission.is_some_and(|admission| admission.awaits_undecided(flow, name));
    if !awaited && rows.waiter_ids(Waiters::Named(flow, name, 0), 1)?.is_empty() {
        return Ok(None);
    }
    let mut seen = BTreeSet::new();
    // Each of the found ones with the position of the one that waits for it.
    let mut found: Vec<(String, Option<usize>)> = vec![(start, None)];
    let mut next: Vec<(Dependency, usize)> = after.iter().map(|one| (one.clone(), 0)).collect();
    let mut followed = 0;
    while let Some((dependency, from)) = next.pop() {
        followed += 1;
        if followed > FOLLOWED {
            return Ok(None);
        }
        let id = match &dependency.flow {
            Some(flow) => rows.named(flow, &dependency.execution)?,
            None => Some(dependency.execution.clone()),
        };
        let Some(id) = id.filter(|id| !seen.contains(id)) else {
            continue;
        };
        let shown = match &dependency.flow {
            Some(flow) => format!("{flow}/{}", dependency.execution),
            None => id.to_string(),
        };
        let undecided = admission.map(|admission| admission.undecided_of(&id, rows));
        let mut open = undecided.transpose()?.unwrap_or_default();
        if open.is_empty() {
            let kept = rows.waiter(&id)?.map(|waiter| waiter.open).unwrap_or_default();
            open.extend(kept.into_iter().map(|one| one.dependency));
        }
        found.push((shown, Some(from)));
        let at = found.len() - 1;
        if open.iter().any(is_start) {
            return Ok(Some(way(&found, at)));
        }
        seen.insert(id);
        next.extend(open.into_iter().map(|one| (one, at)));
    }
    Ok(None)
}

/// The way from the first one to the one at this position.
fn way(found: &[(String, Option<usize>)], at: usize) -> Vec<String> {
    let mut way = Vec::new();
    let mut next = Some(at);
    while let Some((shown, from)) = next.and_then(|at| found.get(at)) {
        way.push(shown.clone());
        next = *from;
    }
    way.reverse();
    way
}

fn one(item: &Value, flow: &Text) -> Result<Dependency, String> {
    match item {
        Value::String(text) => named(text, flow),
        Value::Object(members) => {
            let known = ["execution", "when"];
            if let Some((other, _)) = members.iter().find(|(key, _)| !known.contains(&key.as_str())) {
                return Err(format!("an entry of `after` has `execution` and `when`, not `{other}`"));
            }
            let text = members.get("execution").and_then(Value::as_text);
            let text = text.ok_or_else(|| "`execution` of an entry of `after` must be a string".to_owned())?;
            let mut dependency = named(text, flow)?;
            dependency.any_end = match members.get("when").map(|when| when.as_str().unwrap_or_default()) {
                None | Some("succeeded") => false,
                Some("ended") => true,
                Some(_) => return Err("`when` of an entry of `after` must be `succeeded` or `ended`".to_owned()),
            };
            Ok(dependency)
        }
        other => Err(format!(
            "an entry of `after` is a string or an object, not {}",
            other.kind()
        )),
    }
}

/// An id is recognized by its form. To name an execution whose name looks like an id, write
/// `FLOW/NAME`.
fn named(text: &Text, flow: &Text) -> Result<Dependency, String> {
    let (flow, execution) = match text.split_once('/') {
        Some((flow, name)) => (Some(Text::from(flow)), Text::from(name)),
        None if is_id(text) => (None, text.clone()),
        None => (Some(flow.clone()), text.clone()),
    };
    if !is_execution_name(&execution) || flow.as_ref().is_some_and(|flow| !is_name(flow)) {
        return Err(format!(
            "`after` has `{}`, which is neither a name, nor `FLOW/NAME`, nor an id",
            text.chars().take(200).collect::<String>()
        ));
    }
    Ok(Dependency {
        flow,
        execution,
        any_end: false,
    })
}

fn is_id(text: &str) -> bool {
    let is_dash = |at: usize| [8, 13, 18, 23].contains(&at);
    let fits = |(at, byte): (usize, u8)| match is_dash(at) {
        true => byte == b'-',
        false => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Vec<Dependency>, String> {
        read_after(&serde_json::from_str(json).unwrap(), &"own".into())
    }

    #[test]
    fn names_ids_and_other_flows_are_told_apart() {
        let id = "0190b3e4-8c1d-7abc-9def-0123456789ab";
        let found = read(&format!(
            r#"["b", "other/b", "{id}", "own/{id}", {{"execution": "c", "when": "ended"}}]"#
        ))
        .unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|found| (found.flow.as_deref(), found.execution.as_str(), found.any_end))
            .collect();
        assert_eq!(
            found,
            [
                (Some("own"), "b", false),
                (Some("other"), "b", false),
                (None, id, false),
                (Some("own"), id, false),
                (Some("own"), "c", true),
            ]
        );
    }

    #[test]
    fn what_names_no_execution_is_refused() {
        for (json, says) in [
            (r#""a""#, "must be a list"),
            (r#"["a", "own/a"]"#, "`a` twice"),
            (r#"[""]"#, "neither a name"),
            (r#"["a/b/c"]"#, "neither a name"),
            (r#"["/a"]"#, "neither a name"),
            (r#"[7]"#, "not a number"),
            (r#"[{"when": "ended"}]"#, "`execution`"),
            (r#"[{"execution": "a", "when": "soon"}]"#, "`when`"),
            (r#"[{"execution": "a", "flow": "f"}]"#, "not `flow`"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(says), "{json}: {error}");
        }
        let many: Vec<String> = (0..101).map(|n| format!("\"n{n}\"")).collect();
        assert!(
            read(&format!("[{}]", many.join(",")))
                .unwrap_err()
                .contains("100 are the most")
        );
    }
}
