//! `serviceParams` as queues understand them.

use starbridge_fdl::value::{Object, Value};
use starbridge_ports::{Outcome, Request, ServiceParams, Via, step_key};

/// The members of `serviceParams` that mean something to a queue.
pub(crate) const KNOWN: [&str; 6] = [
    "MessageBody",
    "DelaySeconds",
    "MessageGroupId",
    "MessageDeduplicationId",
    "MessageAttributes",
    "idempotency",
];

/// A member that flows written for Message Service have; a queue has no such thing, and it changes nothing.
const PRIORITY: &str = "Priority";

/// What `serviceParams` say about a message.
#[derive(Default)]
pub(crate) struct Params {
    /// The body, where it is not the input.
    pub body: Option<Value>,
    /// How long the queue is to keep it back.
    pub delay: Option<Value>,
    /// The group whose order is kept.
    pub group: Option<String>,
    /// What makes two messages one.
    pub deduplication: Option<String>,
    /// Further attributes.
    pub attributes: Object,
    /// Whether the step's key goes in the place of the call's.
    pub step_key: bool,
}

/// Reads `serviceParams`. The failure is what the call comes to then.
pub(crate) fn read(request: &Request) -> Result<Params, Outcome> {
    let of_message_service = request.via == Via::MessageService;
    let known = |key: &str| KNOWN.contains(&key) || (of_message_service && key == PRIORITY);
    match ServiceParams::of(request.params.as_ref(), known) {
        ServiceParams::None => Ok(Params::default()),
        ServiceParams::Members(members) => of_members(members, known),
        ServiceParams::Body(body) => Ok(Params {
            body: Some(body.clone()),
            ..Params::default()
        }),
    }
}

fn of_members(members: &Object, known: impl Fn(&str) -> bool) -> Result<Params, Outcome> {
    let mut params = Params::default();
    for (key, value) in members {
        match (key.as_str(), value) {
            (other, _) if !known(other) => {
                return Err(Outcome::not_sent(format!(
                    "`serviceParams` has `{other}` beside what a queue knows ({})",
                    KNOWN.map(|name| format!("`{name}`")).join(", ")
                )));
            }
            (_, Value::Null) => {}
            ("MessageBody", body) => params.body = Some(body.clone()),
            ("DelaySeconds", delay) => params.delay = Some(delay.clone()),
            ("MessageGroupId", id) => params.group = Some(text("MessageGroupId", id)?),
            ("MessageDeduplicationId", id) => params.deduplication = Some(text("MessageDeduplicationId", id)?),
            ("MessageAttributes", Value::Object(attributes)) => params.attributes = attributes.clone(),
            ("MessageAttributes", other) => {
                return Err(Outcome::not_sent(format!(
                    "`MessageAttributes` must be an object, not {}",
                    other.kind()
                )));
            }
            ("idempotency", value) => params.step_key = step_key(value)?,
            _ => {}
        }
    }
    Ok(params)
}

fn text(name: &str, value: &Value) -> Result<String, Outcome> {
    match value {
        Value::Array(_) | Value::Object(_) => Err(Outcome::not_sent(format!(
            "`{name}` must be text, not {}",
            value.kind()
        ))),
        scalar => Ok(scalar.to_plain_text()),
    }
}
