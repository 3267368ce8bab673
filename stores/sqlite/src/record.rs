//! Records as rows.

use crate::fault::no_json;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::{EventId, Parent, Status};
use starbridge_ports::{Broken, ExecutionRecord, RecordedFailure, RecordedWait, STATUS_CODES, code_of, shard_of};

/// The code that the index of statuses leaves out.
pub(crate) const SUCCEEDED_CODE: usize = 4;
const _: () = assert!(matches!(STATUS_CODES[SUCCEEDED_CODE], Status::Succeeded));

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

/// The value of a JSON column, if it has one.
fn json<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let text = row.get_ref(column)?.as_str_or_null()?;
    text.map(|text| serde_json::from_str(text).map_err(|error| no_json(column, error)))
        .transpose()
}

/// The text of a JSON column.
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

/// The rarely used columns that a row may fill, of those that [`update`] writes. An update leaves
/// out columns that are empty before and after, because each one costs time, and some are in an
/// index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filled {
    /// A failure, a pause, its own order and similar data.
    rare: bool,
    /// What the execution waits for.
    reason: bool,
}

impl Filled {
    /// It is not known.
    pub(crate) const UNKNOWN: Self = Self {
        rare: true,
        reason: true,
    };

    /// The filled columns of a record.
    pub(crate) fn of(record: &ExecutionRecord) -> Self {
        let ExecutionRecord {
            failure,
            attempts,
            broken,
            rollback,
            paused,
            priority,
            order_time,
            ..
        } = record;
        let rare = failure.is_some()
            || *attempts > 0
            || broken.is_some()
            || rollback.is_some()
            || paused.is_some()
            || priority.is_some()
            || order_time.is_some();
        let reason = record.stored_reason().is_some();
        Self { rare, reason }
    }

    fn or(self, other: Self) -> Self {
        Self {
            rare: self.rare || other.rare,
            reason: self.reason || other.reason,
        }
    }

    fn is_nothing(self) -> bool {
        !self.rare && !self.reason
    }
}

/// Whether the row fills only the columns that every row fills.
fn is_bare(record: &ExecutionRecord) -> bool {
    let ExecutionRecord {
        labels,
        parent,
        root,
        forked,
        requested,
        once_key,
        ..
    } = record;
    Filled::of(record).is_nothing()
        && labels.as_ref().is_none_or(Object::is_empty)
        && parent.is_none()
        && root.is_none()
        && forked.is_none()
        && requested.is_none()
        && once_key.is_none()
}

/// Adds the row of a new execution. `name`: `None` if it equals the id.
pub(crate) fn insert(
    connection: &Connection,
    number: i64,
    id: &str,
    name: Option<&str>,
    record: &ExecutionRecord,
) -> rusqlite::Result<()> {
    if !is_bare(record) {
        return insert_whole(connection, number, id, name, record);
    }
    connection
        .prepare_cached(
            "INSERT INTO executions (number, id, shard, flow, version, name, status, awake, wake_at, started, ended, depth,
                awaited, watched)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(params![
            number,
            id,
            shard_of(id),
            record.flow.as_str(),
            record.version,
            name,
            code_of(record.status),
            record.awake,
            record.wake_at.map(|at| at.0),
            record.started.0,
            record.ended.map(|at| at.0),
            record.depth,
            record.awaited,
            record.watched,
        ])
        .map(drop)
}

fn insert_whole(
    connection: &Connection,
    number: i64,
    id: &str,
    name: Option<&str>,
    record: &ExecutionRecord,
) -> rusqlite::Result<()> {
    let labels = record.labels.as_ref().filter(|labels| !labels.is_empty());
    let failure = record.failure.as_ref();
    let stored = record.stored_reason();
    connection
        .prepare_cached(
            "INSERT INTO executions (number, id, shard, flow, version, name, status, awake, wake_at, started, ended, labels,
                parent_execution, parent_event, root, depth, awaited, error, cause, step, failed_undo, forked,
                requested, once_key, priority, order_time, paused, reason, watched, reason_of)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22,
                ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30)",
        )?
        .execute(params![
            number,
            id,
            shard_of(id),
            record.flow.as_str(),
            record.version,
            name,
            code_of(record.status),
            record.awake,
            record.wake_at.map(|at| at.0),
            record.started.0,
            record.ended.map(|at| at.0),
            labels.map(|labels| serde_json::to_string(labels).unwrap_or_default()),
            record.parent.as_ref().map(|parent| parent.execution.as_str()),
            record.parent.as_ref().map(|parent| parent.event.0),
            record.root.as_ref().map(Text::as_str),
            record.depth,
            record.awaited,
            failure.map(|failure| failure.error.as_str()),
            failure.map(|failure| failure.cause.as_str()),
            failure.map(|failure| failure.step.as_str()),
            to_json(record.rollback.as_ref()),
            to_json(record.forked.as_ref()),
            record.requested.map(|at| at.0),
            record.once_key.as_ref().map(Text::as_str),
            record.priority,
            record.order_time,
            to_json(record.paused.as_ref()),
            stored.map(|(reason, _)| reason.number()),
            record.watched,
            stored.and_then(|(_, of)| of).map(Text::as_str),
        ])
        .map(drop)
}

/// Writes the changeable part of a record. `was`: the columns that the row may fill.
pub(crate) fn update(
    connection: &Connection,
    number: i64,
    record: &ExecutionRecord,
    was: Filled,
) -> rusqlite::Result<()> {
    let filled = was.or(Filled::of(record));
    let stored = record.stored_reason();
    if !filled.rare && filled.reason {
        return connection
            .prepare_cached(
                "UPDATE executions SET version = ?2, status = ?3, awake = ?4, wake_at = ?5, ended = ?6, awaited = ?7,
                    watched = ?8, reason = ?9, reason_of = ?10
                 WHERE number = ?1",
            )?
            .execute(params![
                number,
                record.version,
                code_of(record.status),
                record.awake,
                record.wake_at.map(|at| at.0),
                record.ended.map(|at| at.0),
                record.awaited,
                record.watched,
                stored.map(|(reason, _)| reason.number()),
                stored.and_then(|(_, of)| of).map(Text::as_str),
            ])
            .map(drop);
    }
    if filled.is_nothing() {
        return connection
            .prepare_cached(
                "UPDATE executions SET version = ?2, status = ?3, awake = ?4, wake_at = ?5, ended = ?6, awaited = ?7,
                    watched = ?8
                 WHERE number = ?1",
            )?
            .execute(params![
                number,
                record.version,
                code_of(record.status),
                record.awake,
                record.wake_at.map(|at| at.0),
                record.ended.map(|at| at.0),
                record.awaited,
                record.watched,
            ])
            .map(drop);
    }
    update_whole(connection, number, record)
}

fn update_whole(connection: &Connection, number: i64, record: &ExecutionRecord) -> rusqlite::Result<()> {
    let stored = record.stored_reason();
    let failure = record.failure.as_ref();
    connection
        .prepare_cached(
            "UPDATE executions SET version = ?2, status = ?3, awake = ?4, wake_at = ?5, ended = ?6, awaited = ?7, error = ?8,
                cause = ?9, step = ?10, attempts = ?11, broken_since = ?12, broken = ?13, failed_undo = ?14,
                paused = ?15, reason = ?16, watched = ?17, priority = ?18, order_time = ?19, reason_of = ?20
             WHERE number = ?1",
        )?
        .execute(params![
            number,
            record.version,
            code_of(record.status),
            record.awake,
            record.wake_at.map(|at| at.0),
            record.ended.map(|at| at.0),
            record.awaited,
            failure.map(|failure| failure.error.as_str()),
            failure.map(|failure| failure.cause.as_str()),
            failure.map(|failure| failure.step.as_str()),
            record.attempts,
            record.broken.as_ref().map(|broken| broken.since.0),
            record.broken.as_ref().map(|broken| broken.cause.as_str()),
            to_json(record.rollback.as_ref()),
            to_json(record.paused.as_ref()),
            stored.map(|(reason, _)| reason.number()),
            record.watched,
            record.priority,
            record.order_time,
            stored.and_then(|(_, of)| of).map(Text::as_str),
        ])
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_machine::Status;
    use starbridge_ports::WaitingReason;

    #[test]
    fn rows_have_their_records_whichever_columns_are_written() {
        let mut connection = Connection::open_in_memory().unwrap();
        assert!(crate::migrate::bring_up(&mut connection).is_ok());
        let plain = ExecutionRecord {
            flow: "f".into(),
            name: "e".into(),
            version: 1,
            status: Status::Running,
            awake: true,
            ..ExecutionRecord::default()
        };
        let failed = ExecutionRecord {
            status: Status::Failed,
            ended: Some(Timestamp(9)),
            awake: false,
            priority: Some(7),
            failure: Some(RecordedFailure {
                error: "E".into(),
                cause: "why".into(),
                step: "s".into(),
            }),
            ..plain.clone()
        };
        let asleep = ExecutionRecord {
            awake: false,
            wake_at: Some(Timestamp(70)),
            version: 2,
            watched: true,
            ..plain.clone()
        };
        let is = |record: &ExecutionRecord| {
            let (number, read) = read(&connection, "e").unwrap().unwrap();
            assert_eq!((number, &read), (7, record));
        };
        insert(&connection, 7, "e", None, &plain).unwrap();
        is(&plain);
        let waiting = ExecutionRecord {
            waits: Some(RecordedWait {
                reason: WaitingReason::Queue,
                of: "mail".into(),
            }),
            ..asleep.clone()
        };
        let mut was = Filled::of(&plain);
        for next in [
            &asleep, &waiting, &plain, &waiting, &failed, &waiting, &plain, &asleep, &failed,
        ] {
            update(&connection, 7, next, was).unwrap();
            was = Filled::of(next);
            is(next);
        }
        insert(&connection, 8, "other", Some("name"), &failed).unwrap();
        let (_, read) = read(&connection, "other").unwrap().unwrap();
        assert_eq!((read.name.as_str(), read.failure), ("name", failed.failure));
    }
}
