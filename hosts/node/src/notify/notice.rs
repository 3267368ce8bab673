//! The content of a notice.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::{EventId, Status};
use starbridge_ports::RecordedFailure;
use starbridge_runtime::StatusChange;

/// A change of an execution's status.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// The id of the execution.
    pub execution: String,
    /// The number of the event that made the change.
    pub event: EventId,
    /// The name of the flow.
    pub flow: String,
    /// The version of the flow.
    pub version: u64,
    /// The name of the execution.
    pub name: String,
    /// The new status.
    pub status: Status,
    /// The failure that is the reason, if there is one.
    pub failure: Option<RecordedFailure>,
    /// When the change happened.
    pub time: Timestamp,
}

impl Notice {
    /// The notice about a change.
    pub fn of(change: &StatusChange<'_>) -> Self {
        let record = change.record;
        Self {
            execution: change.execution.to_string(),
            event: change.event,
            flow: record.flow.to_string(),
            version: record.version,
            name: record.name.to_string(),
            status: record.status,
            failure: change.failure.cloned(),
            time: change.time,
        }
    }

    /// Reads the notice from a stored message; `None` if the message is not one.
    pub fn read(execution: &str, event: EventId, message: &Object) -> Option<Self> {
        let text = |name: &str| message.get(name).and_then(Value::as_text);
        Some(Self {
            execution: execution.to_owned(),
            event,
            flow: text("flow")?.to_string(),
            version: message.get("version")?.as_number()?.as_u64()?,
            name: text("name")?.to_string(),
            status: Status::parse(text("status")?)?,
            failure: text("error").map(|error| RecordedFailure {
                error: error.clone(),
                cause: text("cause").cloned().unwrap_or_default(),
                step: text("step").cloned().unwrap_or_default(),
            }),
            time: Timestamp::parse(text("time")?)?,
        })
    }

    /// The id of the notice. It is the same in each delivery, so that a receiver can recognize repetitions.
    pub fn id(&self) -> String {
        format!("{}/{}", self.execution, self.event)
    }

    /// The message: `{id, execution, flow, name, version, status, error?, cause?, step?, time}`.
    pub fn message(&self) -> Object {
        let mut message = Object::new();
        let mut put = |name: &str, value: Value| _ = message.insert(name.into(), value);
        put("id", self.id().as_str().into());
        put("execution", self.execution.as_str().into());
        put("flow", self.flow.as_str().into());
        put("name", self.name.as_str().into());
        put("version", self.version.into());
        put("status", self.status.as_str().into());
        if let Some(failure) = &self.failure {
            put("error", failure.error.as_str().into());
            put("cause", failure.cause.as_str().into());
            if !failure.step.is_empty() {
                put("step", failure.step.as_str().into());
            }
        }
        put("time", self.time.to_string().as_str().into());
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_happened() {
        let mut notice = Notice {
            execution: "e".to_owned(),
            event: EventId(7),
            flow: "order".to_owned(),
            version: 2,
            name: "order-7".to_owned(),
            status: Status::Failed,
            failure: Some(RecordedFailure {
                error: "Card.Declined".into(),
                cause: "limit".into(),
                step: "pay".into(),
            }),
            time: Timestamp(1_704_067_200_000),
        };
        let failed = r#"{"id":"e/7","execution":"e","flow":"order","name":"order-7","version":2,"status":"Failed","error":"Card.Declined","cause":"limit","step":"pay","time":"2024-01-01T00:00:00.000Z"}"#;
        assert_eq!(Value::from(notice.message()).to_json(), failed);
        assert_eq!(Notice::read("e", EventId(7), &notice.message()), Some(notice.clone()));
        notice.failure = None;
        notice.status = Status::Succeeded;
        let succeeded = r#"{"id":"e/7","execution":"e","flow":"order","name":"order-7","version":2,"status":"Succeeded","time":"2024-01-01T00:00:00.000Z"}"#;
        assert_eq!(Value::from(notice.message()).to_json(), succeeded);
        assert_eq!(Notice::read("e", EventId(7), &notice.message()), Some(notice));
        assert_eq!(Notice::read("e", EventId(7), &Object::new()), None);
    }
}
