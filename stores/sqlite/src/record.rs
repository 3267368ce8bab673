//! Records as rows.

use crate::fault::no_json;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::{EventId, Parent};
use starbridge_ports::{Broken, ExecutionRecord, RecordedFailure, RecordedWait, STATUS_CODES};

/// The code that the index of statuses leaves out.
pub(crate) const SUCCEEDED_CODE: usize = 4;

/// The columns of a record, as [`from_row`] reads them.
pub(crate) const COLUMNS: &str = "number, id, flow, version, name, status, awake, wake_at, started, ended, labels, parent_execution, parent_event, root, depth, awaited, error, cause, step, attempts, broken_since, broken, failed_undo, forked, requested, once_key, priority, order_time, paused, watched, reason, reason_of";

/// The number, id and record of an execution.
pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<(i64, Text, ExecutionRecord)> {
    let text = |column: usize| -> rusqlite::Result<_> { Ok(row.get_ref(column)?.as_str_or_null()?.map(Text::from)) };
    let id = text(1)?.unwrap_or_default();
    let labels = row.get_ref(10)?.as_str_or_null()?;
    let labels: Option<Object> = labels
        .map(|labels| serde_json::from_str(labels).map_err(|error| no_json(10, error)))
        .transpose()?;
    let parent = match (text(11)?, row.get::<_, Option<u64>>(12)?) {
        (Some(execution), Some(event)) => Some(Parent {
            execution,
            event: EventId(event),
        }),
        _ => None,
    };
    let failure = text(16)?.map(|error| -> rusqlite::Result<_> {
        Ok(RecordedFailure {
            error,
            cause: text(17)?.unwrap_or_default(),
            step: text(18)?.unwrap_or_default(),
        })
    });
    let record = ExecutionRecord {
        flow: text(2)?.unwrap_or_default(),
        version: row.get(3)?,
        name: text(4)?.unwrap_or_else(|| id.clone()),
        status: STATUS_CODES.get(row.get::<_, usize>(5)?).copied().unwrap_or_default(),
        awake: row.get(6)?,
        wake_at: row.get::<_, Option<i64>>(7)?.map(Timestamp),
        started: Timestamp(row.get(8)?),
        requested: row.get::<_, Option<i64>>(24)?.map(Timestamp),
        ended: row.get::<_, Option<i64>>(9)?.map(Timestamp),
        labels,
        once_key: text(25)?,
        priority: row.get(26)?,
        order_time: row.get(27)?,
        parent,
        root: text(13)?,
        depth: row.get(14)?,
        awaited: row.get(15)?,
        failure: failure.transpose()?,
        rollback: json(row, 22)?,
        watched: row.get(29)?,
        forked: json(row, 23)?,
        attempts: row.get(19)?,
        broken: text(21)?
            .map(|cause| -> rusqlite::Result<_> {
                let since = Timestamp(row.get(20)?);
                Ok(Broken { since, cause })
            })
            .transpose()?,
        paused: json(row, 28)?,
        waits: RecordedWait::read(row.get(30)?, text(31)?),
    };
    Ok((row.get(0)?, id, record))
}

/// What a column has as JSON, if it has something.
fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let text = row.get_ref(column)?.as_str_or_null()?;
    text.map(|text| serde_json::from_str(text).map_err(|error| no_json(column, error)))
        .transpose()
}

/// What a column has of something that is kept as JSON.
pub(crate) fn to_json<T: Serialize>(value: Option<&T>) -> Option<String> {
    value.map(|value| serde_json::to_string(value).unwrap_or_default())
}

/// The number and record of an execution.
pub(crate) fn read(connection: &Connection, execution: &str) -> rusqlite::Result<Option<(i64, ExecutionRecord)>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM executions WHERE id = ?1"))?
        .query_row([execution], |row| {
            let (number, _, record) = from_row(row)?;
            Ok((number, record))
        })
        .optional()
}
