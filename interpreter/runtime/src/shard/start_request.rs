//! The terms of a start, and the reasons why it fails.

use starbridge_flow::graph::SchemaViolation;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{Parent, Rejection, StartTerms, TokenGrant};
use starbridge_ports::{Dependency, NeededKey};

/// The terms of a start.
#[derive(Clone, Debug)]
pub struct StartRequest {
    /// The id of the execution, where whoever asks has made it; `None`: a new one.
    pub id: Option<Text>,
    /// The name of the flow.
    pub flow: Text,
    /// The version of the flow; `None`: the latest.
    pub version: Option<u64>,
    /// The execution's input.
    pub input: Value,
    /// The name of the execution; `None`: its id.
    pub name: Option<Text>,
    /// Labels, string to string.
    pub labels: Option<Object>,
    /// The call that starts it, if it is a child.
    pub parent: Option<Parent>,
    /// Task tokens that the parent hands down, each with its place in the input.
    pub tokens: Vec<TokenGrant>,
    /// Whether the parent waits for its end.
    pub awaited: bool,
    /// How many executions, one above the other, wait for this one.
    pub depth: u32,
    /// Who asks for it, as its history says; `None`: the history does not say.
    pub by: Option<Text>,
    /// No second execution of the flow is started with this key.
    pub once_key: Option<Text>,
    /// The priority of its tasks that have none of their own: from 0 to 9; 9 goes first.
    pub priority: Option<u8>,
    /// Within a priority, its tasks go before those with a larger number; a time counts as milliseconds since 1970.
    pub order_time: Option<i64>,
    /// W3C trace context, which its calls carry.
    pub traceparent: Option<Text>,
    /// The execution and call to which its end is reported.
    pub report_to: Option<Parent>,
    /// When it may begin.
    pub time: StartTime,
    /// How long after this request it may begin at the latest.
    pub deadline: Option<Millis>,
    /// The executions that have to end first.
    pub after: Vec<Dependency>,
    /// Concurrency keys of which it needs a slot, in addition to those of the flow.
    pub keys: Vec<NeededKey>,
}

/// An execution of a flow without a name, with an empty object as input, that begins at once.
impl Default for StartRequest {
    fn default() -> Self {
        Self {
            id: None,
            flow: Text::default(),
            version: None,
            input: Value::empty_object(),
            name: None,
            labels: None,
            parent: None,
            tokens: Vec::new(),
            awaited: false,
            depth: 0,
            by: None,
            once_key: None,
            priority: None,
            order_time: None,
            traceparent: None,
            report_to: None,
            time: StartTime::Now,
            deadline: None,
            after: Vec::new(),
            keys: Vec::new(),
        }
    }
}

impl StartRequest {
    /// What its history says of its order, its time and of what belongs to it elsewhere.
    pub(super) fn take_terms(&mut self) -> StartTerms {
        StartTerms {
            by: self.by.take(),
            once_key: self.once_key.take(),
            priority: self.priority,
            order_time: self.order_time,
            traceparent: self.traceparent.take(),
            report_to: self.report_to.take(),
            waited: None,
        }
    }
}

/// When an execution may begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartTime {
    /// At once.
    #[default]
    Now,
    /// Not before this time.
    At(Timestamp),
    /// This long after the request.
    After(Millis),
}

impl StartTime {
    /// The time for a request that comes now.
    pub(super) fn from(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Now => now,
            Self::At(time) => time,
            Self::After(delay) => now.plus(delay),
        }
    }
}

/// Why no execution was started.
#[derive(Clone, Debug, PartialEq)]
pub enum StartError {
    /// The flow does not exist, or has no such version.
    NoSuchFlow,
    /// The input does not match the flow's `inputSchema`.
    InvalidInput(Vec<SchemaViolation>),
    /// A concurrency key of the flow can't be made of the input. The text says why.
    InvalidKey(String),
    /// It asks for something that does not exist here. The text says what it is, and what to do.
    NotSupported(&'static str),
    /// Too many executions already wait to be admitted. The number is the limit.
    TooManyWaiting(u64),
    /// The machine rejected the start for another reason.
    Refused(Rejection),
    /// The first turn panicked, and nothing of it was kept. The text is what the panic said.
    Panicked(Text),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSuchFlow => f.write_str("there is no such flow"),
            Self::InvalidInput(violations) => Rejection::InvalidInput(violations.clone()).fmt(f),
            Self::InvalidKey(why) => f.write_str(why),
            Self::NotSupported(what) => f.write_str(what),
            Self::TooManyWaiting(most) => write!(
                f,
                "{most} executions wait to be admitted (`admission.max_waiting`): try again when some have begun"
            ),
            Self::Refused(rejection) => rejection.fmt(f),
            Self::Panicked(cause) => write!(f, "its first turn panicked, and nothing of it was kept: {cause}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<Rejection> for StartError {
    fn from(rejection: Rejection) -> Self {
        match rejection {
            Rejection::InvalidInput(violations) => Self::InvalidInput(violations),
            other => Self::Refused(other),
        }
    }
}
