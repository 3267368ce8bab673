//! Reads histories, and finds the executions to load.

use crate::fault::no_json;
use crate::head::{MAX_EVENTS, event_at, place};
use crate::record;
use rusqlite::{Connection, OptionalExtension, Row, params};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{
    ADMISSION, AttemptLog, Message, MessageId, Receivers, ShardSet, StoredHistory, Turn, TurnHead, TurnPage,
};

pub(crate) fn load(
    connection: &Connection,
    execution: &str,
    shortcut: bool,
) -> rusqlite::Result<Option<StoredHistory>> {
    let Some((number, record)) = record::read(connection, execution)? else {
        return Ok(None);
    };
    let checkpoint: Option<(u64, Vec<u8>)> = if shortcut {
        connection
            .prepare_cached("SELECT event, state FROM checkpoints WHERE number = ?1")?
            .query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?
    } else {
        None
    };
    let after = checkpoint.as_ref().map_or(0, |(event, _)| *event);
    let turns = connection
        .prepare_cached("SELECT place, events, time, text FROM turns WHERE place > ?1 AND place <= ?2 ORDER BY place")?
        .query_map([place(number, after), place(number, MAX_EVENTS)], turn)?
        .collect::<Result<_, _>>()?;
    let request = match record.status.is_before_start() {
        true => request(connection, number)?,
        false => None,
    };
    Ok(Some(StoredHistory {
        record,
        request,
        checkpoint: checkpoint.map(|(event, state)| (EventId(event), state)),
        turns,
        messages: Vec::new(),
    }))
}

/// How a waiting execution begins.
fn request(connection: &Connection, number: i64) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT text FROM requests WHERE number = ?1")?
        .query_row([number], |row| row.get(0))
        .optional()
}

fn turn(row: &Row<'_>) -> rusqlite::Result<Turn> {
    Ok(Turn {
        first: event_at(row.get(0)?),
        events: row.get(1)?,
        time: Timestamp(row.get(2)?),
        text: row.get(3)?,
    })
}

fn turn_head(row: &Row<'_>) -> rusqlite::Result<TurnHead> {
    Ok(TurnHead {
        first: event_at(row.get(0)?),
        events: row.get(1)?,
        time: Timestamp(row.get(2)?),
        bytes: row.get(3)?,
    })
}

fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Text> {
    Ok(Text::from(row.get_ref(column)?.as_str()?))
}

pub(crate) fn parent_of(connection: &Connection, execution: &str) -> rusqlite::Result<Option<Text>> {
    let parent: Option<Option<String>> = connection
        .prepare_cached("SELECT parent_execution FROM executions WHERE id = ?1")?
        .query_row([execution], |row| row.get(0))
        .optional()?;
    Ok(parent.flatten().map(Text::from))
}

pub(crate) fn awake(connection: &Connection, shards: &ShardSet) -> rusqlite::Result<Vec<Text>> {
    let mut statement = connection.prepare_cached("SELECT shard, id FROM executions WHERE awake = 1")?;
    let mut rows = statement.query([])?;
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        if shards.has(row.get(0)?) {
            ids.push(text(row, 1)?);
        }
    }
    ids.sort();
    Ok(ids)
}

/// Rows are read one by one in the order of the index, until there are enough of these shards.
pub(crate) fn due(
    connection: &Connection,
    shards: &ShardSet,
    before: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<(Timestamp, Text)>> {
    let mut statement = connection.prepare_cached(
        "SELECT shard, wake_at, id FROM executions WHERE ended IS NULL AND wake_at IS NOT NULL AND awake = 0 AND wake_at < ?1
         ORDER BY wake_at, number",
    )?;
    let mut rows = statement.query([before.0])?;
    let mut due = Vec::new();
    while due.len() < limit
        && let Some(row) = rows.next()?
    {
        if shards.has(row.get(0)?) {
            due.push((Timestamp(row.get(1)?), text(row, 2)?));
        }
    }
    Ok(due)
}

/// The messages to these receivers. A receiver has no column for its shard, so the texts of others' messages are passed over. For
/// executions the index leads past those of admission, of which there may be a million.
pub(crate) fn messages(connection: &Connection, to: &Receivers) -> rusqlite::Result<Vec<Message>> {
    let which = match to {
        Receivers::All => "?1 IS NOT NULL",
        Receivers::Admission => "receiver = ?1",
        Receivers::Executions(_) => {
            "place IN (SELECT place FROM messages WHERE receiver < ?1
                UNION ALL SELECT place FROM messages WHERE receiver > ?1)"
        }
    };
    let sql = format!("SELECT sender, event, receiver, body FROM messages WHERE {which} ORDER BY place");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([ADMISSION])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        if to.have(row.get_ref(2)?.as_str()?) {
            messages.push(message(row)?);
        }
    }
    Ok(messages)
}

/// The first messages to admission. The rows are walked in their order, since there may be a million to sort.
pub(crate) fn first_messages(connection: &Connection, limit: usize) -> rusqlite::Result<Vec<Message>> {
    connection
        .prepare_cached(
            "SELECT sender, event, receiver, body FROM messages WHERE +receiver = ?1 ORDER BY place LIMIT ?2",
        )?
        .query_map(params![ADMISSION, i64::try_from(limit).unwrap_or(i64::MAX)], message)?
        .collect()
}

/// The messages of an execution to admission.
pub(crate) fn messages_of(connection: &Connection, execution: &str) -> rusqlite::Result<Vec<Message>> {
    connection
        .prepare_cached(
            "SELECT sender, event, receiver, body FROM messages
                WHERE receiver = ?1 AND sender = ?2 ORDER BY event, part",
        )?
        .query_map(params![ADMISSION, execution], message)?
        .collect()
}

fn message(row: &Row<'_>) -> rusqlite::Result<Message> {
    let body = serde_json::from_str(row.get_ref(3)?.as_str()?).map_err(|error| no_json(3, error))?;
    let id = MessageId {
        from: text(row, 0)?,
        event: EventId(row.get(1)?),
        to: text(row, 2)?,
    };
    Ok(Message { id, body })
}

fn number_of(connection: &Connection, execution: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT number FROM executions WHERE id = ?1")?
        .query_row([execution], |row| row.get(0))
        .optional()
}

/// The last turn that begins at this event or before it.
fn turn_before(connection: &Connection, number: i64, event: u64) -> rusqlite::Result<Option<Turn>> {
    connection
        .prepare_cached(
            "SELECT place, events, time, text FROM turns WHERE place BETWEEN ?1 AND ?2 ORDER BY place DESC LIMIT 1",
        )?
        .query_row([place(number, 0), place(number, event)], turn)
        .optional()
}

pub(crate) fn turn_of(connection: &Connection, execution: &str, event: EventId) -> rusqlite::Result<Option<Turn>> {
    let Some(number) = number_of(connection, execution)? else {
        return Ok(None);
    };
    let turn = turn_before(connection, number, event.0)?;
    Ok(turn.filter(|turn| event.0 < turn.first.0 + u64::from(turn.events)))
}

pub(crate) fn last_turn(connection: &Connection, execution: &str) -> rusqlite::Result<Option<Turn>> {
    match number_of(connection, execution)? {
        Some(number) => turn_before(connection, number, MAX_EVENTS),
        None => Ok(None),
    }
}

/// The only stream that is kept.
pub(crate) const STDERR: &str = "stderr";

pub(crate) fn logs(
    connection: &Connection,
    execution: &str,
    from: EventId,
    limit: usize,
) -> rusqlite::Result<Vec<AttemptLog>> {
    let Some(number) = number_of(connection, execution)? else {
        return Ok(Vec::new());
    };
    let sql = "SELECT event, text FROM logs WHERE number = ?1 AND event >= ?2 AND stream = ?3 ORDER BY event LIMIT ?4";
    let bounds = [from.0, limit as u64].map(|bound| i64::try_from(bound).unwrap_or(i64::MAX));
    connection
        .prepare_cached(sql)?
        .query_map(params![number, bounds[0], STDERR, bounds[1]], |row| {
            Ok(AttemptLog {
                event: EventId(row.get(0)?),
                text: row.get(1)?,
            })
        })?
        .collect()
}

/// The places from the turn with this event on, or down from it.
fn places(connection: &Connection, number: i64, from: EventId, backwards: bool) -> rusqlite::Result<[i64; 2]> {
    if backwards {
        return Ok([place(number, 0), place(number, from.0.max(1))]);
    }
    let before: Option<(i64, u64)> = connection
        .prepare_cached("SELECT place, events FROM turns WHERE place BETWEEN ?1 AND ?2 ORDER BY place DESC LIMIT 1")?
        .query_row([place(number, 0), place(number, from.0)], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let before = before.map(|(place, events)| (event_at(place).0, events));
    let before = before.filter(|(first, events)| from.0 < first + events);
    let from = before.map_or(from.0, |(first, _)| first);
    Ok([place(number, from), place(number, MAX_EVENTS)])
}

pub(crate) fn turns(
    connection: &Connection,
    execution: &str,
    from: EventId,
    events: u32,
    backwards: bool,
) -> rusqlite::Result<Vec<Turn>> {
    let sql = if backwards {
        "SELECT place, events, time, text FROM turns WHERE place BETWEEN ?1 AND ?2 ORDER BY place DESC"
    } else {
        "SELECT place, events, time, text FROM turns WHERE place BETWEEN ?1 AND ?2 ORDER BY place"
    };
    let Some(number) = number_of(connection, execution)? else {
        return Ok(Vec::new());
    };
    let places = places(connection, number, from, backwards)?;
    let page = TurnPage::new(from, events, backwards).bounded();
    taken(connection, sql, places, page, turn, Turn::head)
}

/// The length of a text stands in front of it: the text is not read.
pub(crate) fn turn_heads(
    connection: &Connection,
    execution: &str,
    from: EventId,
    events: u32,
    backwards: bool,
) -> rusqlite::Result<Vec<TurnHead>> {
    let sql = if backwards {
        "SELECT place, events, time, octet_length(text) FROM turns WHERE place BETWEEN ?1 AND ?2 ORDER BY place DESC"
    } else {
        "SELECT place, events, time, octet_length(text) FROM turns WHERE place BETWEEN ?1 AND ?2 ORDER BY place"
    };
    let Some(number) = number_of(connection, execution)? else {
        return Ok(Vec::new());
    };
    let places = places(connection, number, from, backwards)?;
    let page = TurnPage::new(from, events, backwards);
    taken(connection, sql, places, page, turn_head, |head| *head)
}

/// The rows between two places, up to the first one that the page does not take.
fn taken<T>(
    connection: &Connection,
    sql: &str,
    places: [i64; 2],
    mut page: TurnPage,
    read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    head: impl Fn(&T) -> TurnHead,
) -> rusqlite::Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(places)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let one = read(row)?;
        if !page.takes(&head(&one)) {
            break;
        }
        found.push(one);
    }
    Ok(found)
}
