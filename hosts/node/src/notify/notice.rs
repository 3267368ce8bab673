//! The content of a notice.

use crate::json::object;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Array, Object, Value};
use starbridge_machine::history::type_name;
use starbridge_machine::{EventId, EventKind, Status};
use starbridge_ports::{FailedUndo, RecordedFailure};
use starbridge_runtime::{StatusChange, StepEvent};

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
    /// What could not be undone, if the execution ended for that reason.
    pub rollback: Option<FailedUndo>,
    /// The event of a step that it reports instead of a change of status.
    pub of_step: Option<StepNotice>,
    /// When the change happened.
    pub time: Timestamp,
}

/// The content of a notice about a step, in addition to the failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepNotice {
    /// The type of the event.
    pub event: String,
    /// The name of the step.
    pub step: String,
    /// The attempt, if the event has one.
    pub attempt: Option<u32>,
    /// Whether it belongs to an undo.
    pub undo: bool,
}

/// The types of events of steps that can be told.
pub const STEP_EVENTS: [&str; 9] = [
    "StepEntered",
    "StepSucceeded",
    "StepFailed",
    "StepExited",
    "RetryScheduled",
    "ManualRequested",
    "RollbackStarted",
    "RollbackSucceeded",
    "RollbackFailed",
];

/// What could not be undone, in the form of notifications and the API: `{step, error, cause,
/// left}`.
pub fn failed_undo(undo: &FailedUndo) -> Value {
    let left: Array = undo.left.iter().cloned().map(Value::from).collect();
    object([
        ("step", undo.step.clone().into()),
        ("error", undo.error.clone().into()),
        ("cause", undo.cause.clone().into()),
        ("left", left.into()),
    ])
}

/// Reads this form.
fn read_undo(undo: &Object) -> Option<FailedUndo> {
    let text = |name: &str| undo.get(name).and_then(Value::as_text).cloned();
    let left = undo.get("left")?.as_array()?;
    Some(FailedUndo {
        step: text("step")?,
        error: text("error")?,
        cause: text("cause")?,
        left: left.values().iter().filter_map(Value::as_text).cloned().collect(),
    })
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
            rollback: record.rollback.clone(),
            of_step: None,
            time: change.time,
        }
    }

    /// The notice about an event of a step; `None` if it is of none of [`STEP_EVENTS`].
    pub fn of_step(told: &StepEvent<'_>) -> Option<Self> {
        let (record, event) = (told.record, told.event);
        let name = type_name(&event.detail);
        if !STEP_EVENTS.contains(&name) {
            return None;
        }
        let (failure, attempt) = match &event.detail {
            EventKind::StepFailed { failure, attempt } => (Some(failure), Some((*attempt).max(1))),
            EventKind::ManualRequested(failure) | EventKind::RollbackFailed { failure, .. } => (Some(failure), None),
            EventKind::RetryScheduled { attempt, .. } => (None, Some(*attempt)),
            _ => (None, None),
        };
        Some(Self {
            execution: told.execution.to_string(),
            event: event.id,
            flow: record.flow.to_string(),
            version: record.version,
            name: record.name.to_string(),
            status: record.status,
            failure: failure.map(|failure| RecordedFailure {
                error: failure.error.clone(),
                cause: failure.cause.clone(),
                step: told.step.clone(),
            }),
            // A target that wants both gets one notice, with the event and with the members of the
            // status change.
            rollback: match &event.detail {
                EventKind::RollbackFailed { .. } => record.rollback.clone(),
                _ => None,
            },
            of_step: Some(StepNotice {
                event: name.to_owned(),
                step: told.step.to_string(),
                attempt,
                undo: event.rollback,
            }),
            time: event.time,
        })
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
            rollback: message.get("rollback").and_then(Value::as_object).and_then(read_undo),
            of_step: text("event").map(|event| StepNotice {
                event: event.to_string(),
                step: text("step").map(ToString::to_string).unwrap_or_default(),
                attempt: message
                    .get("attempt")
                    .and_then(Value::as_number)
                    .and_then(|attempt| u32::try_from(attempt.as_u64()?).ok()),
                undo: message.get("undo") == Some(&Value::Bool(true)),
            }),
            time: Timestamp::parse(text("time")?)?,
        })
    }

    /// The id of the notice. It is the same in each delivery, so that a receiver can recognize repetitions.
    pub fn id(&self) -> String {
        format!("{}/{}", self.execution, self.event)
    }

    /// The message: `{id, execution, flow, name, version, status, event?, step?, attempt?, undo?, error?, cause?, rollback?,
    /// time}`.
    pub fn message(&self) -> Object {
        let mut message = Object::new();
        let mut put = |name: &str, value: Value| _ = message.insert(name.into(), value);
        put("id", self.id().as_str().into());
        put("execution", self.execution.as_str().into());
        put("flow", self.flow.as_str().into());
        put("name", self.name.as_str().into());
        put("version", self.version.into());
        put("status", self.status.as_str().into());
        if let Some(told) = &self.of_step {
            put("event", told.event.as_str().into());
            put("step", told.step.as_str().into());
            if let Some(attempt) = told.attempt {
                put("attempt", attempt.into());
            }
            if told.undo {
                put("undo", true.into());
            }
        }
        if let Some(failure) = &self.failure {
            put("error", failure.error.as_str().into());
            put("cause", failure.cause.as_str().into());
            if !failure.step.is_empty() {
                put("step", failure.step.as_str().into());
            }
        }
        if let Some(undo) = &self.rollback {
            put("rollback", failed_undo(undo));
        }
        put("time", self.time.to_string().as_str().into());
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notice_message_says_what_happened() {
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
            rollback: None,
            of_step: None,
            time: Timestamp(1_704_067_200_000),
        };
        let failed = r#"{"id":"e/7","execution":"e","flow":"order","name":"order-7","version":2,"status":"Failed","error":"Card.Declined","cause":"limit","step":"pay","time":"2024-01-01T00:00:00.000Z"}"#;
        assert_eq!(Value::from(notice.message()).to_json(), failed);
        assert_eq!(Notice::read("e", EventId(7), &notice.message()), Some(notice.clone()));
        notice.status = Status::RollbackFailed;
        notice.rollback = Some(FailedUndo {
            step: "reserve".into(),
            error: "HTTP.503".into(),
            cause: "closed".into(),
            left: vec!["reserve".into(), "note".into()],
        });
        let told = Value::from(notice.message()).to_json();
        let undo = r#""rollback":{"step":"reserve","error":"HTTP.503","cause":"closed","left":["reserve","note"]}"#;
        assert!(told.contains(undo), "{told}");
        assert_eq!(Notice::read("e", EventId(7), &notice.message()), Some(notice.clone()));
        notice.rollback = None;
        notice.failure = None;
        notice.status = Status::Succeeded;
        let succeeded = r#"{"id":"e/7","execution":"e","flow":"order","name":"order-7","version":2,"status":"Succeeded","time":"2024-01-01T00:00:00.000Z"}"#;
        assert_eq!(Value::from(notice.message()).to_json(), succeeded);
        assert_eq!(Notice::read("e", EventId(7), &notice.message()), Some(notice.clone()));
        notice.of_step = Some(StepNotice {
            event: "StepFailed".to_owned(),
            step: "pay".to_owned(),
            attempt: Some(2),
            undo: true,
        });
        let told = Value::from(notice.message()).to_json();
        assert!(
            told.contains(r#""event":"StepFailed","step":"pay","attempt":2,"undo":true"#),
            "{told}"
        );
        assert_eq!(Notice::read("e", EventId(7), &notice.message()), Some(notice));
        assert_eq!(Notice::read("e", EventId(7), &Object::new()), None);
    }
}
