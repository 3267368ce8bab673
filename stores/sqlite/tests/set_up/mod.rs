//! Appends for tests.

use starbridge_flow::time::Timestamp;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{Append, ExecutionRecord, Turn};

/// The first turn of an execution.
pub(crate) fn start(id: &str) -> Append {
    Append {
        execution: id.into(),
        turn: Some(Turn {
            first: EventId(1),
            events: 2,
            time: Timestamp(1_000),
            text: "[{},{}]".to_owned(),
        }),
        record: Some(ExecutionRecord {
            flow: "order".into(),
            version: 1,
            name: id.into(),
            status: Status::Running,
            awake: true,
            started: Timestamp(1_000),
            ..ExecutionRecord::default()
        }),
        ..Append::default()
    }
}
