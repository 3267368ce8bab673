//! What a worker is told of a task that it has (section "worker queues").

use starbridge_flow::graph::Pointer;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::Reference;
use starbridge_ports::QueuedTask;
use starbridge_runtime::{HeldTask, Revealing, TokenKeys, Vault, read_references};
use std::borrow::Cow;

/// The task as JSON: what is known only now, and the message as it was written down, with what its references stand for.
pub(super) fn task_message(held: &HeldTask, tokens: &TokenKeys, vault: &Vault) -> String {
    let HeldTask { task, lease } = held;
    let mut told: Object = [("token".into(), Value::from(tokens.sign(&task.execution, task.call)))]
        .into_iter()
        .collect();
    let seconds = |millis: u64| Value::from(millis.div_ceil(1000));
    told.insert("leaseSeconds".into(), seconds(lease.millis));
    told.insert("leaseUntil".into(), at(lease.held.plus_millis(lease.millis)));
    if let Some(millis) = task.timeout_ms {
        told.insert("timeoutSeconds".into(), seconds(millis));
        told.insert("deadline".into(), at(lease.held.plus_millis(millis)));
    }
    let head = Value::from(told).to_json();
    // INVARIANT: both are objects with members, so one goes on where the other ends.
    format!(
        "{},{}",
        head.strip_suffix('}').unwrap_or_default(),
        members(task, tokens, vault)
    )
}

/// What the message of a task with references begins with. Its first member says where they are; no member of a worker's
/// or a function's making comes before it.
const REFERENCES: &str = r#"{"references":["#;
/// The same where there is none.
const NO_REFERENCES: &str = r#"{"references":[],"#;

/// The members of a task's message. Nearly none refers to anything, and is as it was written down.
fn members<'a>(task: &'a QueuedTask, tokens: &TokenKeys, vault: &Vault) -> Cow<'a, str> {
    if let Some(members) = task.message.strip_prefix(NO_REFERENCES) {
        return Cow::Borrowed(members);
    }
    let knows_places = task.message.starts_with(REFERENCES);
    if !knows_places
        && !["task-token:", "secret://"]
            .iter()
            .any(|word| task.message.contains(word))
    {
        return Cow::Borrowed(task.message.strip_prefix('{').unwrap_or_default());
    }
    let message = serde_json::from_str::<Object>(&task.message).unwrap_or_default();
    let input = message.get("input").cloned().unwrap_or_default();
    let references = match message.get("references").filter(|_| knows_places) {
        Some(references) => read_references(references),
        None => references_by_form(&input, task),
    };
    let revealing = Revealing {
        vault,
        tokens,
        flow: message.get("flow").and_then(Value::as_str).unwrap_or_default(),
    };
    let places = references.iter().map(|(at, reference)| (at, reference));
    // What can't be revealed stays a reference: the worker sees which secret is missing.
    let input = revealing.reveal(input.clone(), places).unwrap_or(input);
    let shown = message.iter().filter(|(key, _)| key.as_str() != "references");
    let mut shown: Object = shown.map(|(key, value)| (key.clone(), value.clone())).collect();
    shown.insert("input".into(), input);
    let text = Value::from(shown).to_json();
    Cow::Owned(text.strip_prefix('{').unwrap_or_default().to_owned())
}

/// The references in a message of before places were written down: every string that has the form of a secret's, or is that
/// of the task's own token. Such a task was queued by a server that would have revealed them.
fn references_by_form(input: &Value, task: &QueuedTask) -> Vec<(Pointer, Reference)> {
    let own = Reference::Token {
        execution: task.execution.clone(),
        call: task.call,
    };
    let mut found = Vec::new();
    let mut left = vec![(Pointer::default(), input)];
    while let Some((at, value)) = left.pop() {
        let below = |key: String| at.join(&Pointer::of([key]));
        match value {
            Value::String(text) => match text.strip_prefix("secret://") {
                Some(name) => found.push((at, Reference::Secret(name.into()))),
                None if *text == own.text() => found.push((at, own.clone())),
                None => {}
            },
            Value::Array(array) => {
                let items = array.values().iter().enumerate();
                left.extend(items.map(|(index, item)| (below(index.to_string()), item)));
            }
            Value::Object(object) => left.extend(object.iter().map(|(key, member)| (below(key.to_string()), member))),
            _ => {}
        }
    }
    found
}

fn at(time: Timestamp) -> Value {
    time.to_string().into()
}
