//! Appending: a batch is one transaction.

use crate::admission;
use crate::audit;
use crate::head::{Head, MAX_EVENTS, head_of, place};
use crate::load::STDERR;
use crate::notices;
use crate::queueing;
use crate::record::{self, Filled};
use crate::retention;
use crate::write::Work;
use rusqlite::{Connection, OptionalExtension, params};
use rustc_hash::FxHashSet;
use starbridge_flow::value::Text;
use starbridge_ports::{
    Append, AttemptLog, AuditEntry, ExecutionRecord, Mark, Message, MessageId, Refusal, RequestChange, Turn, code_of,
    is_ended_code,
};

pub(crate) fn append(work: &mut Work<'_>, batch: &[Append]) -> rusqlite::Result<Vec<(usize, Refusal)>> {
    let mut refusals = Vec::new();
    let mut refused: FxHashSet<&Text> = FxHashSet::default();
    for (position, append) in batch.iter().enumerate() {
        let refusal = if !append.is_of_owner(work.epochs) {
            Some(Refusal::Fenced)
        } else if refused.contains(&append.execution) {
            Some(Refusal::Conflict)
        } else {
            one(work, append)?
        };
        if let Some(refusal) = refusal {
            refused.insert(&append.execution);
            refusals.push((position, refusal));
        }
    }
    Ok(refusals)
}

/// INVARIANT: every refusal is found before the first write, so a refusal leaves nothing behind.
fn one(work: &mut Work<'_>, append: &Append) -> rusqlite::Result<Option<Refusal>> {
    if append.execution.is_empty() {
        beside_executions(work, append)?;
        return Ok(None);
    }
    if !append.continues(MAX_EVENTS) {
        return Ok(Some(Refusal::Conflict));
    }
    let head = head_of(work.heads, work.connection, &append.execution)?;
    if append.deleted {
        let fits = |head: &Head| head.last == append.expected.0 && is_ended_code(head.status);
        let Some(head) = head.filter(fits) else {
            return Ok(Some(Refusal::Conflict));
        };
        retention::delete_one(work, head, &append.execution)?;
        audit::add(work.connection, &append.audit)?;
        return Ok(None);
    }
    let head = match (head, &append.turn) {
        (None, _) if append.is_start() => match start(work, append)? {
            Ok(head) => Some(head),
            Err(refusal) => return Ok(Some(refusal)),
        },
        (Some(_), _) if append.is_start() => {
            return exists(work.connection, &append.execution).map(Some);
        }
        (Some(head), _) if head.last == append.expected.0 => Some(append_existing(work, append, head)?),
        (None, None) if append.expected.0 == 0 && append.record.is_none() && append.checkpoint.is_none() => None,
        _ => return Ok(Some(Refusal::Conflict)),
    };
    if let (Some(head), Some(state)) = (head, &append.checkpoint) {
        work.connection
            .prepare_cached("INSERT OR REPLACE INTO checkpoints VALUES (?1, ?2, ?3)")?
            .execute(params![head.number, head.last, state])?;
    }
    if let Some(head) = head {
        queueing::change(work.connection, head, append)?;
        add_logs(work.connection, head, &append.logs)?;
        notices::keep(work.connection, append)?;
    }
    beside_executions(work, append)?;
    Ok(None)
}

/// Writes the parts that do not belong to a single execution.
fn beside_executions(work: &mut Work<'_>, append: &Append) -> rusqlite::Result<()> {
    queueing::lease(work, &append.leases)?;
    admission::change(work.connection, &append.admission)?;
    audit::add(work.connection, &append.audit)?;
    for message in &append.received {
        discard(work.connection, message)?;
    }
    for message in &append.sent {
        send(work.connection, message)?;
    }
    Ok(())
}

fn add_logs(connection: &Connection, head: Head, logs: &[AttemptLog]) -> rusqlite::Result<()> {
    for log in logs {
        connection
            .prepare_cached("INSERT OR REPLACE INTO logs (number, event, stream, text) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![head.number, log.event.0, STDERR, log.text])?;
    }
    Ok(())
}

/// INVARIANT: asked only if a head says that there is an execution. If there is none, the append would be lost
/// silently, so that is an error.
fn exists(connection: &Connection, execution: &str) -> rusqlite::Result<Refusal> {
    connection
        .prepare_cached("SELECT id, version FROM executions WHERE id = ?1")?
        .query_row([execution], existing)
}

fn existing(row: &rusqlite::Row<'_>) -> rusqlite::Result<Refusal> {
    Ok(Refusal::Exists {
        execution: Text::from(row.get_ref(0)?.as_str()?),
        version: row.get(1)?,
        keyed: None,
    })
}

/// The execution that has this name in this flow, if there is one.
///
/// The index of names leaves out names that are their execution's id. So both are checked: the
/// index, and the execution with that id.
fn holder(connection: &Connection, flow: &str, name: &str, is_id: bool) -> rusqlite::Result<Option<Refusal>> {
    let named = connection
        .prepare_cached("SELECT id, version FROM executions WHERE flow = ?1 AND name = ?2")?
        .query_row([flow, name], existing)
        .optional()?;
    if named.is_some() || is_id {
        return Ok(named);
    }
    connection
        .prepare_cached("SELECT id, version FROM executions WHERE id = ?2 AND flow = ?1 AND name IS NULL")?
        .query_row([flow, name], existing)
        .optional()
}

/// The execution that has the key of this record, or else its name.
fn taken(
    connection: &Connection,
    record: &ExecutionRecord,
    name: &str,
    is_id: bool,
) -> rusqlite::Result<Option<Refusal>> {
    match keyed(connection, record)? {
        None => holder(connection, &record.flow, name, is_id),
        keyed => Ok(keyed),
    }
}

/// The execution of this flow with this key, if there is one.
fn keyed(connection: &Connection, record: &ExecutionRecord) -> rusqlite::Result<Option<Refusal>> {
    let Some(key) = &record.once_key else {
        return Ok(None);
    };
    connection
        .prepare_cached("SELECT id, version, COALESCE(name, id) FROM executions WHERE flow = ?1 AND once_key = ?2")?
        .query_row([record.flow.as_str(), key.as_str()], |row| {
            Ok(Refusal::Exists {
                execution: queueing::text(row, 0)?,
                version: row.get(1)?,
                keyed: Some(queueing::text(row, 2)?),
            })
        })
        .optional()
}

fn start(work: &mut Work<'_>, append: &Append) -> rusqlite::Result<Result<Head, Refusal>> {
    let unknown = ExecutionRecord::default();
    let record = append.record.as_ref().unwrap_or(&unknown);
    let id = append.execution.as_str();
    let is_id = record.name.is_empty() || record.name == append.execution;
    let name = if is_id { id } else { record.name.as_str() };
    if let Some(refusal) = taken(work.connection, record, name, is_id)? {
        return Ok(Err(refusal));
    }
    let number = *work.next;
    let name = (!is_id).then_some(name);
    record::insert(work.connection, number, id, name, record)?;
    *work.next += 1;
    for (label, value) in record.labels.iter().flatten() {
        work.connection
            .prepare_cached("INSERT INTO labels VALUES (?1, ?2, ?3)")?
            .execute(params![label.as_str(), value.to_plain_text(), number])?;
    }
    let status = code_of(record.status);
    work.counts[status] += 1;
    let last = 0;
    let filled = Filled::of(record);
    let mut head = Head {
        number,
        last,
        status,
        filled,
    };
    if let Some(turn) = &append.turn {
        add_turn(work, &mut head, turn)?;
    }
    keep_request(work.connection, number, append)?;
    keep_head(work, append, head);
    Ok(Ok(head))
}

/// Stores how a waiting execution begins or goes on, or deletes that text.
fn keep_request(connection: &Connection, number: i64, append: &Append) -> rusqlite::Result<()> {
    let (kind, text) = match &append.request {
        RequestChange::Keep(text) => ("start", text),
        RequestChange::Replace(text) if append.expected.0 == 0 => ("start", text),
        RequestChange::Replace(text) => ("redrive", text),
        RequestChange::Begin | RequestChange::Drop => {
            return connection
                .prepare_cached("DELETE FROM requests WHERE number = ?1")?
                .execute([number])
                .map(drop);
        }
        RequestChange::None => return Ok(()),
    };
    connection
        .prepare_cached("INSERT OR REPLACE INTO requests (number, kind, text) VALUES (?1, ?2, ?3)")?
        .execute(params![number, kind, text])
        .map(drop)
}

fn append_existing(work: &mut Work<'_>, append: &Append, mut head: Head) -> rusqlite::Result<Head> {
    if let Some(turn) = &append.turn {
        add_turn(work, &mut head, turn)?;
    }
    if let Some(record) = &append.record {
        let status = code_of(record.status);
        record::update(work.connection, head.number, record, head.filled)?;
        head.filled = Filled::of(record);
        if append.request == RequestChange::Begin {
            work.connection
                .prepare_cached("UPDATE executions SET started = ?2 WHERE number = ?1")?
                .execute([head.number, record.started.0])?;
        }
        work.counts[head.status] -= 1;
        work.counts[status] += 1;
        head.status = status;
    }
    keep_request(work.connection, head.number, append)?;
    keep_head(work, append, head);
    Ok(head)
}

/// Keeps the head in memory. Executions that ended are left out, since they are rarely written again.
fn keep_head(work: &mut Work<'_>, append: &Append, head: Head) {
    let ended = append.record.as_ref().is_some_and(|record| record.ended.is_some());
    if ended {
        work.heads.forget(&append.execution);
    } else {
        work.heads.put(&append.execution, head);
    }
}

fn add_turn(work: &mut Work<'_>, head: &mut Head, turn: &Turn) -> rusqlite::Result<()> {
    work.connection
        .prepare_cached("INSERT INTO turns (place, events, time, text) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![
            place(head.number, turn.first.0),
            turn.events,
            turn.time.0,
            turn.text
        ])?;
    head.last = turn.last().0;
    Ok(())
}

/// Marks executions that have not ended.
pub(crate) fn mark(work: &mut Work<'_>, marks: &[(Text, Mark)], entry: Option<&AuditEntry>) -> rusqlite::Result<()> {
    let connection = work.connection;
    audit::add(connection, entry)?;
    for (execution, mark) in marks {
        let Some((number, mut record)) = record::read(connection, execution)? else {
            continue;
        };
        if record.ended.is_none() {
            mark.change(&mut record);
            record::update(connection, number, &record, Filled::UNKNOWN)?;
            // Its head in memory may be out of date.
            work.heads.forget(execution);
        }
    }
    Ok(())
}

fn discard(connection: &Connection, message: &MessageId) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM messages WHERE receiver = ?1 AND sender = ?2 AND event = ?3")?
        .execute(params![message.to.as_str(), message.from.as_str(), message.event.0])
        .map(drop)
}

fn send(connection: &Connection, message: &Message) -> rusqlite::Result<()> {
    let body = serde_json::to_string(&message.body)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let id = &message.id;
    connection
        .prepare_cached(
            "INSERT INTO messages (receiver, sender, event, body) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        )?
        .execute(params![id.to.as_str(), id.from.as_str(), id.event.0, body])
        .map(drop)
}
