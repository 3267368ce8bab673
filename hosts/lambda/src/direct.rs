//! Direct invocations: a flow runs until it ends or waits, and the answer shows it.

use crate::Failure;
use crate::environment::{Invocation, Running};
use axum::http::Method;
use starbridge_flow::diagnostics::nearest;
use starbridge_flow::limits::is_name;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::EventId;
use starbridge_node::aws;
use starbridge_node::leased_store::DURABILITY;
use starbridge_server::execution_shape;
use std::path::Path;

/// The members that a start also has.
const START: [&str; 12] = [
    "input",
    "name",
    "version",
    "labels",
    "onceKey",
    "priority",
    "orderTime",
    "startAt",
    "delaySeconds",
    "startDeadlineSeconds",
    "after",
    "traceparent",
];
/// The other members that a direct invocation may have.
const OWN: [&str; 5] = ["flow", "definition", "async", "durability", "history"];
/// The name of the flow if a definition comes without one.
const UNNAMED: &str = "inline";
/// How many events one page has.
const PAGE: usize = 1_000;

/// Runs a flow and returns the answer.
pub(crate) async fn take(running: &Running, event: &Value, invocation: Invocation) -> Result<Value, Failure> {
    let asked = read(event)?;
    if let Some(definition) = &asked.definition {
        let path = format!("/v1/flows/{}", asked.flow);
        running.api.ask(Method::PUT, &path, definition).await?;
    }
    if asked.later {
        if running.continuations.is_none() {
            let words = "`async` needs a table (`STARBRIDGE_LAMBDA_TABLE`): without one nothing is kept to go on with";
            return Err(Failure::new("NoTable", words));
        }
        running.node.pause_dispatch().await?;
    }
    let path = format!("/v1/flows/{}/executions", asked.flow);
    let begun = running.api.ask(Method::POST, &path, &asked.start.clone().into()).await;
    let begun = match begun {
        Ok(begun) => begun,
        Err(failure) => {
            running.quiesce(invocation.until).await?;
            // Lambda may bring an event twice. The second time, the answer is the same.
            return match before(running, &asked.flow, &asked.start)? {
                Some(id) if failure.kind == "ExecutionAlreadyExists" => answer(running, &id, asked.history),
                _ => Err(failure),
            };
        }
    };
    let id = text(&begun, "id").cloned().unwrap_or_default();
    if begun.as_object().is_some_and(|begun| begun.get("endedTime").is_none()) {
        // An execution that began earlier may need to be taken up. If another process has it, that process goes on
        // with it.
        running.node.take_up(&id).await?;
    }
    running.quiesce(invocation.until).await?;
    answer(running, &id, asked.history)
}

/// The execution that the same request has started before.
fn before(running: &Running, flow: &str, start: &Object) -> Result<Option<Text>, Failure> {
    let Some(name) = start.get("name").and_then(Value::as_str) else {
        return Ok(None);
    };
    let Some(id) = running.node.store().named(flow, name)? else {
        return Ok(None);
    };
    let Ok(known) = running.node.execution(&id) else {
        return Ok(None);
    };
    let input = start.get("input").and_then(Value::as_object).cloned();
    Ok((known.input == Value::from(input.unwrap_or_default())).then_some(id))
}

fn answer(running: &Running, id: &Text, history: bool) -> Result<Value, Failure> {
    let failed = |error: starbridge_node::node::QueryError| Failure::new("StoreFailed", error.to_string());
    let found = running.node.execution(id).map_err(failed)?;
    let mut shape = match execution_shape(&found) {
        Value::Object(shape) => shape,
        _ => Object::new(),
    };
    if running.continuations.is_none() && !found.record.status.is_ended() {
        let words = format!(
            "the execution {id} did not end within the invocation, and nothing is kept to go on with: give the function more \
             time, or a table (`STARBRIDGE_LAMBDA_TABLE`) and a queue (`STARBRIDGE_LAMBDA_QUEUE`)"
        );
        return Err(Failure::new("NotEnded", words));
    }
    if history || running.continuations.is_none() {
        let mut events = Vec::new();
        loop {
            let from = EventId(events.len() as u64 + 1);
            let page = running.node.events(id, from, PAGE, false).map_err(failed)?;
            let last = page.len() < PAGE;
            events.extend(page.into_iter().map(Value::Object));
            if last {
                break;
            }
        }
        shape.insert("history".into(), Value::from(events));
    }
    Ok(shape.into())
}

/// A request to run a flow.
struct Asked {
    flow: String,
    definition: Option<Value>,
    /// The body of the request that starts it.
    start: Object,
    /// Whether to only begin it and leave the rest for later.
    later: bool,
    history: bool,
}

fn read(event: &Value) -> Result<Asked, Failure> {
    let bad = |words: String| Failure::new("BadEvent", words);
    let empty = Object::new();
    let members = event.as_object().unwrap_or(&empty);
    for (key, _) in members {
        let known = || START.into_iter().chain(OWN);
        if !known().any(|known| known == key.as_str()) {
            let hint = nearest(key.as_str(), known()).map(|meant| format!(": did you mean `{meant}`?"));
            return Err(bad(format!(
                "an event has no member `{key}`{}",
                hint.unwrap_or_default()
            )));
        }
    }
    let flag = |key: &str| match members.get(key) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(bad(format!("`{key}` must be true or false, not {}", other.kind()))),
    };
    let flow = match members.get("flow") {
        None => UNNAMED.to_owned(),
        Some(Value::String(name)) if is_name(name) => name.to_string(),
        Some(other) => {
            return Err(bad(format!(
                "`flow` must be the name of a flow, not {}",
                other.to_json()
            )));
        }
    };
    let express = match members.get("durability").map(Value::as_str) {
        None => None,
        Some(Some("express")) => Some(true),
        Some(Some("standard")) => Some(false),
        Some(_) => return Err(bad("`durability` must be `standard` or `express`".to_owned())),
    };
    let mut start = Object::new();
    for key in START {
        if let Some(value) = members.get(key) {
            start.insert(key.into(), value.clone());
        }
    }
    if let Some(express) = express {
        let mut labels = start
            .get("labels")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        labels.insert(DURABILITY.into(), if express { "express" } else { "standard" }.into());
        start.insert("labels".into(), labels.into());
    }
    Ok(Asked {
        flow,
        definition: members.get("definition").cloned(),
        start,
        later: flag("async")?,
        history: flag("history")?,
    })
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a Text> {
    value.as_object()?.get(key)?.as_text()
}

/// Stores the flows of the package, or of a bucket.
pub(crate) async fn put_flows(running: &Running, package: &Path) -> Result<(), Failure> {
    let flows = &running.settings.flows;
    let found = match flows.starts_with("s3://") {
        true => aws::definitions(flows).map_err(|words| Failure::new("BadFlow", words))?,
        false => crate::settings::flows_in(&package.join(flows))?,
    };
    for (name, text) in found {
        let put = running.node.put_flow(&name, text, None);
        put.map_err(|error| Failure::new("BadFlow", format!("{}: {}", name, crate::settings::why_not_put(&error))))?;
    }
    Ok(())
}

impl Running {
    /// Loads the latest versions of all flows.
    pub(crate) fn know_all(&self) -> Result<(), Failure> {
        match self.continuations {
            Some(_) => Ok(self.node.refresh_flows()?),
            None => Ok(()),
        }
    }

    /// Loads the latest version of a flow.
    pub(crate) fn know(&self, flow: &str) -> Result<(), Failure> {
        match self.continuations {
            Some(_) => Ok(self.node.refresh_flow(flow)?),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_of_a_start_reaches_it() {
        let event = r#"{"flow": "order", "history": true, "input": {"id": 7}, "name": "o-7", "version": 2, "labels": {"a": "b"},
            "onceKey": "k", "priority": 9, "orderTime": 3, "startAt": "2030-01-01T00:00:00Z", "delaySeconds": 5,
            "startDeadlineSeconds": 60, "after": ["o-6"],
            "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}"#;
        let event: Value = serde_json::from_str(event).unwrap();
        let asked = read(&event).map_err(|failure| failure.kind).unwrap();
        for member in START {
            assert_eq!(
                asked.start.get(member),
                event.as_object().unwrap().get(member),
                "{member}"
            );
        }
        assert!(asked.history && asked.start.get("history").is_none());
        assert!(read(&serde_json::from_str(r#"{"flow": "order", "prioritty": 9}"#).unwrap()).is_err());
    }
}
