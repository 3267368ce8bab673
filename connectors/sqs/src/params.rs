//! `serviceParams` as queues understand them.

use starbridge_fdl::value::{Object, Value};
use starbridge_ports::{Outcome, Request, Via};

/// The members of `serviceParams` that mean something to a queue.
const KNOWN: [&str; 6] = [
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
    let Some(params) = &request.params else {
        return Ok(Params::default());
    };
    match params.as_object() {
        Some(object) if object.iter().any(|(key, _)| known(key)) => of_object(object, known),
        _ => Ok(Params {
            body: Some(params.clone()),
            ..Params::default()
        }),
    }
}

fn of_object(object: &Object, known: impl Fn(&str) -> bool) -> Result<Params, Outcome> {
    let mut params = Params::default();
    for (key, value) in object {
        match (key.as_str(), value) {
            (other, _) if !known(other) => {
                return Err(bad(format!(
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
                return Err(bad(format!(
                    "`MessageAttributes` must be an object, not {}",
                    other.kind()
                )));
            }
            ("idempotency", value) => match value.as_str() {
                Some("step") => params.step_key = true,
                Some("call") => params.step_key = false,
                _ => return Err(bad(format!("`idempotency` must be `step` or `call`, not {value}"))),
            },
            _ => {}
        }
    }
    Ok(params)
}

fn text(name: &str, value: &Value) -> Result<String, Outcome> {
    match value {
        Value::Array(_) | Value::Object(_) => Err(bad(format!("`{name}` must be text, not {}", value.kind()))),
        scalar => Ok(scalar.to_plain_text()),
    }
}

/// The failure of a call that can't be put into a message. Its name tells the interpreter that nothing was sent, so that there
/// is nothing to undo.
pub(crate) fn bad(cause: String) -> Outcome {
    Outcome::failed("FnF.NoSuchResource", cause)
}
