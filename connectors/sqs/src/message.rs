//! Makes a message from a call: body, attributes, group and deduplication id.
//!
//! A message that the service would refuse is refused here, under the name of the service's own
//! error.

use crate::params::{self, Params};
use crate::queue::Queue;
use sha2::{Digest, Sha256};
use starbridge_flow::hex;
use starbridge_flow::value::{Object, Value};
use starbridge_ports::{CallField, CallMetadata, Outcome, Request};

/// The largest message with its attributes, in bytes, and the largest sum of all messages in one request.
pub(crate) const MESSAGE_BYTES: usize = 1 << 20;
/// How many attributes a message has at most.
const MAX_ATTRIBUTES: usize = 10;
/// How many characters the id of a group or for deduplication has at most.
const ID_CHARACTERS: usize = 128;
/// How many characters the name of an attribute has at most.
const NAME_CHARACTERS: usize = 256;
/// The longest delay, in seconds.
const MAX_DELAY_SECONDS: i32 = 900;

/// The attributes of every message. If a flow's own attributes need the room, the last ones are left out first.
const OURS: [CallField; 8] = [
    CallField::IdempotencyKey,
    CallField::Type,
    CallField::StepKey,
    CallField::Execution,
    CallField::Traceparent,
    CallField::Attempt,
    CallField::Flow,
    CallField::Step,
];
/// How many of these are never left out.
const NEVER_LEFT_OUT: usize = 2;

/// A message that is ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub body: String,
    pub attributes: Vec<Attribute>,
    pub delay: Option<i32>,
    pub group: Option<String>,
    pub deduplication: Option<String>,
}

/// An attribute of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub name: String,
    /// `String`, `Number` or `Binary`, and anything after a dot.
    pub data_type: String,
    pub content: Content,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Text(String),
    Bytes(Vec<u8>),
}

impl Attribute {
    pub(crate) fn text(name: &str, data_type: &str, text: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            data_type: data_type.to_owned(),
            content: Content::Text(text.into()),
        }
    }

    fn bytes(&self) -> usize {
        let content = match &self.content {
            Content::Text(text) => text.len(),
            Content::Bytes(bytes) => bytes.len(),
        };
        self.name.len() + self.data_type.len() + content
    }
}

impl Message {
    /// How many bytes the service counts for it.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len() + self.attributes.iter().map(Attribute::bytes).sum::<usize>()
    }
}

/// The message for a call.
pub(crate) fn compose(request: &Request, queue: &Queue) -> Result<Message, Outcome> {
    let mut params = params::read(request)?;
    let body = match params.body.take() {
        Some(Value::String(text)) => text.as_str().to_owned(),
        Some(other) => other.to_json(),
        None => request.input.to_json(),
    };
    let metadata = CallMetadata::of(request, params.step_key);
    let delay = delay(&params, queue)?;
    let (group, deduplication) = ids(&params, queue, request, metadata.idempotency_key())?;
    let message = Message {
        body,
        attributes: attributes(&params.attributes, metadata)?,
        delay,
        group,
        deduplication,
    };
    check(&message, queue)?;
    Ok(message)
}

/// The outcome of a call whose message the service would refuse. It is not sent.
fn refused(name: &str, queue: &Queue, cause: &str) -> Outcome {
    Outcome::NotSent {
        error: format!("SQS.{name}").into(),
        cause: format!("{}: {cause}", queue.shown()),
    }
}

fn delay(params: &Params, queue: &Queue) -> Result<Option<i32>, Outcome> {
    let Some(value) = &params.delay else {
        return Ok(None);
    };
    let seconds = value.to_plain_text().parse::<i32>().ok();
    let seconds = seconds.filter(|seconds| (0..=MAX_DELAY_SECONDS).contains(seconds));
    let refuse = |cause: String| refused("InvalidParameterValue", queue, &cause);
    match seconds {
        None => Err(refuse(format!(
            "`DelaySeconds` must be a whole number from 0 to {MAX_DELAY_SECONDS}, not {value}"
        ))),
        Some(1..) if queue.is_fifo() => Err(refuse(
            "a FIFO queue knows no delay of single messages; set it for the queue".to_owned(),
        )),
        Some(0) => Ok(None),
        seconds => Ok(seconds),
    }
}

/// The ids of group and deduplication: for a FIFO queue those of the call, otherwise as given.
fn ids(
    params: &Params,
    queue: &Queue,
    request: &Request,
    key: &str,
) -> Result<(Option<String>, Option<String>), Outcome> {
    let given = |name: &str, id: &Option<String>| match id {
        Some(id) if !is_id(id) => Err(refused(
            "InvalidParameterValue",
            queue,
            &format!("`{name}` must be 1 to {ID_CHARACTERS} ASCII letters, digits and punctuation marks"),
        )),
        other => Ok(other.clone()),
    };
    let group = given("MessageGroupId", &params.group)?;
    let deduplication = given("MessageDeduplicationId", &params.deduplication)?;
    if !queue.is_fifo() {
        return Ok((group, deduplication));
    }
    Ok((
        Some(group.unwrap_or_else(|| id(&request.keys.execution))),
        Some(deduplication.unwrap_or_else(|| id(key))),
    ))
}

fn is_id(text: &str) -> bool {
    (1..=ID_CHARACTERS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A text as an id: unchanged, or its hash if it is too long or has other characters.
pub(crate) fn id(text: &str) -> String {
    if is_id(text) {
        return text.to_owned();
    }
    hex::encode(&Sha256::digest(text.as_bytes()))
}

/// The flow's attributes, and as many of ours as there is room for.
fn attributes(given: &Object, metadata: CallMetadata<'_>) -> Result<Vec<Attribute>, Outcome> {
    let mut attributes = Vec::new();
    for (name, value) in given {
        let ours = OURS.into_iter().find(|field| field.header() == Some(name.as_str()));
        if ours.is_some_and(|field| field != CallField::IdempotencyKey) {
            return Err(Outcome::not_sent(format!(
                "the attribute `{name}` is not for `serviceParams` to set"
            )));
        }
        if value != &Value::Null {
            attributes.push(attribute(name, value)?);
        }
    }
    let given_key = |attribute: &Attribute| Some(attribute.name.as_str()) == CallField::IdempotencyKey.header();
    let own_key = attributes.iter().any(given_key);
    let most = MAX_ATTRIBUTES - NEVER_LEFT_OUT + usize::from(own_key);
    if attributes.len() > most {
        return Err(Outcome::not_sent(format!(
            "`MessageAttributes` has {} attributes; a message has {MAX_ATTRIBUTES}, of which {NEVER_LEFT_OUT} are taken",
            attributes.len()
        )));
    }
    for field in OURS {
        let (Some(name), Some(value)) = (field.header(), metadata.get(field)) else {
            continue;
        };
        let there = field == CallField::IdempotencyKey && own_key;
        if attributes.len() < MAX_ATTRIBUTES && !value.is_empty() && !there {
            let data_type = match field {
                CallField::Attempt => "Number",
                _ => "String",
            };
            // Steps may have any name.
            attributes.push(Attribute::text(name, data_type, legal(&value)));
        }
    }
    Ok(attributes)
}

/// A text without characters that a message can't have.
pub(crate) fn legal(text: &str) -> String {
    let legal = |c: char| if is_legal(c) { c } else { char::REPLACEMENT_CHARACTER };
    text.chars().map(legal).collect()
}

/// An attribute from a flow: its value, or the form of the service's own API.
fn attribute(name: &str, value: &Value) -> Result<Attribute, Outcome> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let lower = name.to_ascii_lowercase();
    let reserved = lower.starts_with("aws.") || lower.starts_with("amazon.");
    let dots = name.starts_with('.') || name.ends_with('.') || name.contains("..");
    if name.is_empty() || name.len() > NAME_CHARACTERS || reserved || dots || !name.chars().all(plain) {
        return Err(Outcome::not_sent(format!(
            "`{name}` is no name of an attribute of a message"
        )));
    }
    let object = match value {
        Value::Object(object) => object,
        Value::Array(_) => {
            return Err(Outcome::not_sent(format!(
                "the attribute `{name}` must not be an array"
            )));
        }
        Value::Number(number) => return Ok(Attribute::text(name, "Number", number.to_string())),
        scalar => return Ok(Attribute::text(name, "String", scalar.to_plain_text())),
    };
    let wrong = |what: &str| Outcome::not_sent(format!("the attribute `{name}` {what}"));
    let member = |member: &str| object.get(member).map(Value::to_plain_text);
    let data_type = member("DataType").ok_or_else(|| wrong("has no `DataType`"))?;
    let content = match data_type.split('.').next() {
        Some("String" | "Number") => Content::Text(member("StringValue").ok_or_else(|| wrong("has no `StringValue`"))?),
        Some("Binary") => {
            let text = member("BinaryValue").ok_or_else(|| wrong("has no `BinaryValue`"))?;
            let bytes = starbridge_aws::base64::decode(text);
            Content::Bytes(bytes.map_err(|_| wrong("must have its `BinaryValue` in base64"))?)
        }
        _ => return Err(wrong("must have as `DataType` `String`, `Number` or `Binary`")),
    };
    Ok(Attribute {
        name: name.to_owned(),
        data_type,
        content,
    })
}

/// Refuses a message that the service would refuse.
fn check(message: &Message, queue: &Queue) -> Result<(), Outcome> {
    if message.body.is_empty() {
        return Err(refused("InvalidMessageContents", queue, "a message must not be empty"));
    }
    if let Some(c) = message.body.chars().find(|c| !is_legal(*c)) {
        let cause = format!(
            "the message has U+{:04X}, a character no message can have",
            u32::from(c)
        );
        return Err(refused("InvalidMessageContents", queue, &cause));
    }
    for Attribute { name, content, .. } in &message.attributes {
        let legal = match content {
            Content::Text(text) => !text.is_empty() && text.chars().all(is_legal),
            Content::Bytes(bytes) => !bytes.is_empty(),
        };
        if !legal {
            let cause = format!("the attribute `{name}` is empty, or has characters no message can have");
            return Err(refused("InvalidMessageContents", queue, &cause));
        }
    }
    let bytes = message.bytes();
    if bytes > MESSAGE_BYTES {
        let cause =
            format!("the message has {bytes} bytes with its attributes, more than the {MESSAGE_BYTES} it may have");
        return Err(refused("MessageTooLarge", queue, &cause));
    }
    Ok(())
}

/// Whether a message may have this character: those of XML 1.0.
fn is_legal(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests;
