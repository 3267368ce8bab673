//! The executions that an execution started.

use crate::client::Client;
use crate::commands::history::definition;
use crate::views::{name_of, plain, text};
use starbridge_flow::graph::{Flow, StepKind};
use starbridge_flow::value::{Object, Value};

/// So many events are looked at.
const PAGE_EVENTS: &str = "1000";
/// So many children are named.
const MAX_CHILDREN: usize = 20;

/// The children, as FLOW/NAME with their steps; nothing where there are none or it can't be told.
pub(super) fn children(client: &Client, execution: &Object) -> Option<String> {
    let flow = definition(client, execution).ok()?;
    if !starts_others(&flow) {
        return None;
    }
    let id = plain(execution, "id");
    let query = [("limit", PAGE_EVENTS.to_owned())];
    let page = client.look(&["executions", &id, "history"], &query)?;
    let events = page.get("items").and_then(Value::as_array)?;
    let started: Vec<(String, String)> = events.values().iter().filter_map(child).collect();
    let named = started.iter().take(MAX_CHILDREN).map(|(child, step)| {
        let name = name_of(client, child).unwrap_or_else(|| child.clone());
        format!("{name} (step `{step}`)")
    });
    let mut named: Vec<String> = named.collect();
    if started.len() > MAX_CHILDREN || page.get("next").is_some_and(|next| *next != Value::Null) {
        named.push("maybe more (`starbridge history`)".to_owned());
    }
    (!started.is_empty()).then(|| named.join(", "))
}

/// Whether a step of the flow may start another execution.
fn starts_others(flow: &Flow) -> bool {
    let resource = |kind: &StepKind| match kind {
        StepKind::Task(task) => Some(task.call.resource.to_string()),
        _ => None,
    };
    let mut resources = flow.steps.iter().filter_map(|step| resource(&step.kind));
    resources.any(|resource| resource.starts_with("flow:") || resource.contains("fnf"))
}

/// The execution that an event says was started, and the step it was started for.
fn child(event: &Value) -> Option<(String, String)> {
    let event = event.as_object()?;
    let detail = event.get("detail")?.as_object()?;
    let started = text(event, "type") == Some("TaskSubmitted");
    let child = text(detail, "executionId").filter(|_| started)?;
    Some((child.to_owned(), plain(event, "step")))
}
