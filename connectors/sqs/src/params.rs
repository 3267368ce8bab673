//! `serviceParams` of messages to queues.

use starbridge_flow::value::{Object, Value};
use starbridge_ports::{Outcome, ParamsTable, ReadParam, Request, ResourceFamily, param_names, step_key};

/// A member of flows that were written for Message Service. Queues of SQS have no priority, and it is ignored.
const PRIORITY: &str = "Priority";

/// The content of `serviceParams` for a message.
#[derive(Default)]
pub(crate) struct Params {
    /// The body; the input if `None`.
    pub body: Option<Value>,
    /// How long the queue delays the message.
    pub delay: Option<Value>,
    /// The group in which order is kept.
    pub group: Option<String>,
    /// The deduplication id.
    pub deduplication: Option<String>,
    /// Attributes to add.
    pub attributes: Object,
    /// Whether the step's key replaces the call's.
    pub step_key: bool,
}

/// The members of `serviceParams` that these messages know. A member that is `null` counts as missing.
const MEMBERS: [(&str, ReadParam<Params>); 6] = [
    ("MessageBody", |params, value| {
        params.body = given(value).cloned();
        Ok(())
    }),
    ("DelaySeconds", |params, value| {
        params.delay = given(value).cloned();
        Ok(())
    }),
    ("MessageGroupId", |params, value| {
        params.group = text("MessageGroupId", value)?;
        Ok(())
    }),
    ("MessageDeduplicationId", |params, value| {
        params.deduplication = text("MessageDeduplicationId", value)?;
        Ok(())
    }),
    ("MessageAttributes", |params, value| {
        params.attributes = object("MessageAttributes", value)?;
        Ok(())
    }),
    ("idempotency", |params, value| {
        params.step_key = given(value).map_or(Ok(false), step_key)?;
        Ok(())
    }),
];

/// The names of these members.
pub(crate) const KNOWN: [&str; 6] = param_names(&MEMBERS);

/// Reads `serviceParams`. On failure the call ends with this outcome.
pub(crate) fn read(request: &Request) -> Result<Params, Outcome> {
    let table = ParamsTable {
        knower: "a queue knows",
        members: &MEMBERS,
        ignored: match request.via {
            ResourceFamily::MessageService => &[PRIORITY],
            _ => &[],
        },
        body: Some(|params, whole| {
            params.body = Some(whole.clone());
            Ok(())
        }),
    };
    table.read(request.params.as_ref())
}

fn given(value: &Value) -> Option<&Value> {
    Some(value).filter(|value| **value != Value::Null)
}

fn object(name: &str, value: &Value) -> Result<Object, Outcome> {
    match value {
        Value::Null => Ok(Object::new()),
        Value::Object(members) => Ok(members.clone()),
        other => Err(Outcome::not_sent(format!(
            "`{name}` must be an object, not {}",
            other.kind()
        ))),
    }
}

fn text(name: &str, value: &Value) -> Result<Option<String>, Outcome> {
    match value {
        Value::Null => Ok(None),
        Value::Array(_) | Value::Object(_) => Err(Outcome::not_sent(format!(
            "`{name}` must be text, not {}",
            value.kind()
        ))),
        scalar => Ok(Some(scalar.to_plain_text())),
    }
}
