//! The message to a worker about a task it holds (section "worker queues").

use starbridge_flow::graph::Pointer;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::Reference;
use starbridge_ports::QueuedTask;
use starbridge_runtime::{HeldTask, Revealing, TokenKeys, Vault, read_references};
use std::borrow::Cow;

/// The task as JSON: the members that are known only now, and the stored message with its
/// references replaced.
pub(super) fn task_message(held: &HeldTask, tokens: &TokenKeys, vault: &Vault) -> String {
    let HeldTask { task, lease } = held;
    let seconds = lease.heartbeat.as_secs_rounded_up();
    let until = lease.held.plus(lease.heartbeat);
    let ends = task.timeout.map(|longest| {
        let (seconds, deadline) = (longest.as_secs_rounded_up(), lease.held.plus(longest));
        format!(r#","timeoutSeconds":{seconds},"deadline":"{deadline}""#)
    });
    let ends = ends.unwrap_or_default();
    let token = tokens.sign(&task.execution, task.call);
    let members = members(task, tokens, vault);
    // INVARIANT: tokens and times need no escapes, and the stored message is an object with members.
    format!(r#"{{"token":"{token}","leaseSeconds":{seconds},"leaseUntil":"{until}"{ends},{members}"#)
}

/// The beginning of a message with references. Its first member says where they are. No member that a worker or a
/// function made comes before it.
const REFERENCES: &str = r#"{"references":["#;
/// The beginning of a message without references.
const NO_REFERENCES: &str = r#"{"references":[],"#;

/// The members of a task's message. Most have no references and are used as they are stored.
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
    // A reference that can't be replaced stays, so the worker sees which secret is missing.
    let input = revealing.reveal(input.clone(), places).unwrap_or(input);
    let shown = message.iter().filter(|(key, _)| key.as_str() != "references");
    let mut shown: Object = shown.map(|(key, value)| (key.clone(), value.clone())).collect();
    shown.insert("input".into(), input);
    let text = Value::from(shown).to_json();
    Cow::Owned(text.strip_prefix('{').unwrap_or_default().to_owned())
}

/// The references in an old message, without their places: every string with the form of a secret's reference, or of
/// the task's own token. The server that queued such a task would have replaced them.
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
