//! Records as rows.

use crate::codec::{Read, Str, big, code};
use crate::fault::Failure;
use crate::session::{Owned, Sent, Session, column};
use serde::Serialize;
use serde::de::DeserializeOwned;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::{EventId, Parent};
use starbridge_ports::{Broken, ExecutionRecord, RecordedFailure, RecordedWait, STATUS_CODES, code_of, shard_of};
use std::borrow::Cow;
use tokio_postgres::Row;

/// The columns of a record, as [`from_row`] reads them, of the table `e`.
pub(crate) const COLUMNS: &str = "e.number, e.id, e.flow, e.version, e.name, e.status, e.awake, e.wake_at, e.started, e.ended,
    e.labels, e.parent_execution, e.parent_event, e.root, e.depth, e.awaited, e.error, e.cause, e.step, e.attempts,
    e.broken_since, e.broken, e.failed_undo, e.forked, e.requested, e.once_key, e.priority, e.order_time, e.paused, e.watched,
    e.reason, e.reason_of";

/// A text that is always there.
pub(crate) fn text(row: &Row, column: usize) -> Text {
    Text::from(row.get::<_, Read>(column).0)
}

/// A text that may be missing.
pub(crate) fn optional_text(row: &Row, column: usize) -> Option<Text> {
    row.get::<_, Option<Read>>(column).map(|text| Text::from(text.0))
}

/// A long text, kept as bytes.
pub(crate) fn long_text(row: &Row, column: usize) -> Result<String, Failure> {
    String::from_utf8(row.get(column)).map_err(|error| Failure::corrupt("a text", &error))
}

/// What a column of bytes has as JSON.
pub(crate) fn bytes_json<T: DeserializeOwned>(row: &Row, column: usize) -> Result<T, Failure> {
    serde_json::from_slice(row.get(column)).map_err(|error| Failure::corrupt("a row", &error))
}

/// What a column of text has as JSON, if it has something.
fn json<T: DeserializeOwned>(row: &Row, column: usize) -> Result<Option<T>, Failure> {
    let text: Option<&str> = row.get(column);
    text.map(|text| serde_json::from_str(text).map_err(|error| Failure::corrupt("a record", &error)))
        .transpose()
}

/// What a column has of something that is kept as JSON.
fn to_json<T: Serialize>(value: Option<&T>) -> Option<String> {
    value.map(|value| serde_json::to_string(value).unwrap_or_default())
}

pub(crate) fn time(row: &Row, column: usize) -> Option<Timestamp> {
    row.get::<_, Option<i64>>(column).map(Timestamp)
}

/// The number, id and record of an execution.
pub(crate) fn from_row(row: &Row) -> Result<(i64, Text, ExecutionRecord), Failure> {
    let id = text(row, 1);
    let parent = optional_text(row, 11).zip(row.get::<_, Option<i64>>(12));
    let failure = optional_text(row, 16).map(|error| RecordedFailure {
        error,
        cause: optional_text(row, 17).unwrap_or_default(),
        step: optional_text(row, 18).unwrap_or_default(),
    });
    let broken = optional_text(row, 21).map(|cause| Broken {
        since: time(row, 20).unwrap_or_default(),
        cause,
    });
    let status = usize::try_from(row.get::<_, i16>(5)).unwrap_or(usize::MAX);
    let record = ExecutionRecord {
        flow: text(row, 2),
        version: row.get::<_, i64>(3).unsigned_abs(),
        name: optional_text(row, 4).unwrap_or_else(|| id.clone()),
        status: STATUS_CODES.get(status).copied().unwrap_or_default(),
        awake: row.get(6),
        wake_at: time(row, 7),
        started: Timestamp(row.get(8)),
        requested: time(row, 24),
        ended: time(row, 9),
        labels: json::<Object>(row, 10)?,
        once_key: optional_text(row, 25),
        priority: row
            .get::<_, Option<i16>>(26)
            .and_then(|priority| u8::try_from(priority).ok()),
        order_time: row.get(27),
        parent: parent.map(|(execution, event)| Parent {
            execution,
            event: EventId(event.unsigned_abs()),
        }),
        root: optional_text(row, 13),
        depth: row.get::<_, i32>(14).unsigned_abs(),
        awaited: row.get(15),
        failure,
        rollback: json(row, 22)?,
        watched: row.get(29),
        forked: json(row, 23)?,
        attempts: row.get::<_, i32>(19).unsigned_abs(),
        broken,
        paused: json(row, 28)?,
        waits: RecordedWait::read(
            row.get::<_, Option<i16>>(30)
                .and_then(|reason| u8::try_from(reason).ok()),
            optional_text(row, 31),
        ),
    };
    Ok((row.get(0), id, record))
}

/// The number and record of an execution.
pub(crate) async fn read(session: &Session, execution: &str) -> Result<Option<(i64, ExecutionRecord)>, Failure> {
    let sql = format!("select {COLUMNS} from executions e where e.id = $1");
    let Some(row) = session.first(&sql, &[&Str(execution)]).await? else {
        return Ok(None);
    };
    let (number, _, record) = from_row(&row)?;
    Ok(Some((number, record)))
}

/// A new execution.
pub(crate) struct NewRow<'a> {
    pub number: i64,
    pub id: &'a str,
    pub record: Cow<'a, ExecutionRecord>,
}

/// A change of an execution that exists.
pub(crate) struct ChangedRow<'a> {
    pub number: i64,
    pub record: Cow<'a, ExecutionRecord>,
    /// When it began, if that changes.
    pub started: Option<i64>,
}

fn name_of<'r>(row: &'r NewRow<'_>) -> Option<&'r str> {
    let name = row.record.name.as_str();
    (!name.is_empty() && name != row.id).then_some(name)
}

fn number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// The columns that change, of all rows, in the order of [`CHANGE`].
fn changing<'a, R>(rows: &'a [R], of: impl Fn(&'a R) -> &'a ExecutionRecord) -> Vec<Owned<'a>> {
    let records: Vec<&'a ExecutionRecord> = rows.iter().map(of).collect();
    let failure = |of: fn(&RecordedFailure) -> &Text| -> Owned<'a> {
        column(&records, |record| {
            record.failure.as_ref().map(|failure| Str(of(failure)))
        })
    };
    vec![
        column(&records, |record| big(record.version)),
        column(&records, |record| code(code_of(record.status))),
        column(&records, |record| record.awake),
        column(&records, |record| record.wake_at.map(|at| at.0)),
        column(&records, |record| record.ended.map(|at| at.0)),
        column(&records, |record| record.awaited),
        failure(|failure| &failure.error),
        failure(|failure| &failure.cause),
        failure(|failure| &failure.step),
        column(&records, |record| number(record.attempts)),
        column(&records, |record| record.broken.as_ref().map(|broken| broken.since.0)),
        column(&records, |record| {
            record.broken.as_ref().map(|broken| Str(&broken.cause))
        }),
        column(&records, |record| to_json(record.rollback.as_ref())),
        column(&records, |record| to_json(record.paused.as_ref())),
        column(&records, |record| {
            record.stored_reason().map(|(reason, _)| i16::from(reason.number()))
        }),
        column(&records, |record| {
            let of = record.stored_reason().and_then(|(_, of)| of);
            of.map(|of| Str(of))
        }),
        column(&records, |record| record.watched),
        column(&records, |record| record.priority.map(i16::from)),
        column(&records, |record| record.order_time),
    ]
}

const CHANGE: &str = "update executions as e set version = c.version, status = c.status, awake = c.awake, wake_at = c.wake_at,
        ended = c.ended, awaited = c.awaited, error = c.error, cause = c.cause, step = c.step, attempts = c.attempts,
        broken_since = c.broken_since, broken = c.broken, failed_undo = c.failed_undo, paused = c.paused, reason = c.reason,
        reason_of = c.reason_of, watched = c.watched, priority = c.priority, order_time = c.order_time, started = coalesce(c.started, e.started)
    from unnest($1::bigint[], $2::smallint[], $3::boolean[], $4::bigint[], $5::bigint[], $6::boolean[], $7::text[], $8::text[],
        $9::text[], $10::integer[], $11::bigint[], $12::text[], $13::text[], $14::text[], $15::smallint[], $16::text[],
        $17::boolean[], $18::smallint[], $19::bigint[], $20::bigint[], $21::bigint[])
        as c (version, status, awake, wake_at, ended, awaited, error, cause, step, attempts, broken_since, broken, failed_undo,
            paused, reason, reason_of, watched, priority, order_time, number, started)
    where e.number = c.number";

pub(crate) fn change<'a>(rows: &'a [ChangedRow<'_>]) -> Sent<'a> {
    let mut values = changing(rows, |row| &row.record);
    values.push(column(rows, |row| row.number));
    values.push(column(rows, |row| row.started));
    Sent::new(CHANGE, values)
}

const START: &str = "insert into executions (version, status, awake, wake_at, ended, awaited, error, cause, step, attempts,
        broken_since, broken, failed_undo, paused, reason, reason_of, watched, priority, order_time, number, id, shard, flow, name, started,
        requested, labels, parent_execution, parent_event, root, depth, forked, once_key)
    select * from unnest($1::bigint[], $2::smallint[], $3::boolean[], $4::bigint[], $5::bigint[], $6::boolean[], $7::text[],
        $8::text[], $9::text[], $10::integer[], $11::bigint[], $12::text[], $13::text[], $14::text[], $15::smallint[],
        $16::text[], $17::boolean[], $18::smallint[], $19::bigint[], $20::bigint[], $21::text[], $22::smallint[], $23::text[],
        $24::text[], $25::bigint[], $26::bigint[], $27::text[], $28::text[], $29::bigint[], $30::text[], $31::integer[],
        $32::text[], $33::text[])";

pub(crate) fn start<'a>(rows: &'a [NewRow<'_>]) -> Sent<'a> {
    let mut values = changing(rows, |row| &row.record);
    let records: Vec<&'a ExecutionRecord> = rows.iter().map(|row| &*row.record).collect();
    let names: Vec<Option<&'a str>> = rows.iter().map(|row| name_of(row)).collect();
    let more: [Owned<'a>; 14] = [
        column(rows, |row| row.number),
        column(&rows.iter().map(|row| row.id).collect::<Vec<&'a str>>(), |id| Str(id)),
        column(rows, |row| i16::from(shard_of(row.id))),
        column(&records, |record| Str(&record.flow)),
        column(&names, |name| name.map(Str)),
        column(&records, |record| record.started.0),
        column(&records, |record| record.requested.map(|at| at.0)),
        column(&records, |record| {
            to_json(record.labels.as_ref().filter(|labels| !labels.is_empty()))
        }),
        column(&records, |record| {
            record.parent.as_ref().map(|parent| Str(&parent.execution))
        }),
        column(&records, |record| {
            record.parent.as_ref().map(|parent| big(parent.event.0))
        }),
        column(&records, |record| record.root.as_ref().map(|root| Str(root))),
        column(&records, |record| number(record.depth)),
        column(&records, |record| to_json(record.forked.as_ref())),
        column(&records, |record| record.once_key.as_ref().map(|key| Str(key))),
    ];
    values.extend(more);
    Sent::new(START, values)
}

/// The labels of new executions: each with its value and the number of its execution.
pub(crate) fn label<'a>(rows: &'a [NewRow<'_>]) -> Option<Sent<'a>> {
    let mut labels: Vec<(&'a str, String, i64)> = Vec::new();
    for row in rows {
        for (label, value) in row.record.labels.iter().flat_map(|labels| labels.iter()) {
            labels.push((label.as_str(), value.to_plain_text().to_string(), row.number));
        }
    }
    if labels.is_empty() {
        return None;
    }
    let names: Vec<&'a str> = labels.iter().map(|(label, _, _)| *label).collect();
    let values: Vec<String> = labels.iter().map(|(_, value, _)| value.clone()).collect();
    Some(Sent::new(
        "insert into labels select * from unnest($1::text[], $2::text[], $3::bigint[]) on conflict do nothing",
        vec![
            column(&names, |name| Str(name)),
            column(&values, |value| crate::codec::Whole(value.clone())),
            column(&labels, |(_, _, number)| *number),
        ],
    ))
}
