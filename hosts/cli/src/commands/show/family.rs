//! The executions that an execution started.

use crate::client::Client;
use crate::views::{name_of, plain, text};
use starbridge_flow::value::{Object, Value};

/// How many events are looked at.
const PAGE_EVENTS: &str = "1000";
/// How many children are named.
const MAX_CHILDREN: usize = 20;

/// An execution that an event mentions.
struct Named {
    id: String,
    /// The step of the event.
    step: String,
    /// Whether the event says that the step started it. The answer of a call may name any
    /// execution.
    started: bool,
}

/// The children, as FLOW/NAME with their steps; empty if there are none or they can't be found out.
pub(super) fn children(client: &Client, execution: &Object) -> Option<String> {
    let id = plain(execution, "id");
    let query = [("limit", PAGE_EVENTS.to_owned())];
    let page = client.look(&["executions", &id, "history"], &query)?;
    let events = page.get("items").and_then(Value::as_array)?;
    let named: Vec<Named> = events.values().iter().filter_map(named).collect();
    let looked_at = named.iter().take(MAX_CHILDREN);
    let mut children: Vec<String> = looked_at.filter_map(|named| child(client, &id, named)).collect();
    let more = page.get("next").is_some_and(|next| *next != Value::Null);
    if !children.is_empty() && (more || named.len() > MAX_CHILDREN) {
        children.push("maybe more (`starbridge history`)".to_owned());
    }
    (!children.is_empty()).then(|| children.join(", "))
}

/// An execution that an event reports as started.
fn named(event: &Value) -> Option<Named> {
    let event = event.as_object()?;
    let detail = event.get("detail")?.as_object()?;
    let (id, started) = match text(event, "type")? {
        "TaskSubmitted" => (text(detail, "executionId")?, true),
        "TaskSucceeded" => (text(detail.get("result")?.as_object()?, "executionId")?, false),
        _ => return None,
    };
    Some(Named {
        id: id.to_owned(),
        step: plain(event, "step"),
        started,
    })
}

/// A child with its step, if the execution with this id is its parent.
fn child(client: &Client, parent: &str, named: &Named) -> Option<String> {
    let is_child = || {
        let child = client.look(&["executions", &named.id], &[])?;
        let told = child.get("parent")?.as_object()?;
        (text(told, "execution") == Some(parent)).then_some(())
    };
    if !named.started {
        is_child()?;
    }
    let name = name_of(client, &named.id).unwrap_or_else(|| named.id.clone());
    Some(format!("{name} (step `{}`)", named.step))
}
