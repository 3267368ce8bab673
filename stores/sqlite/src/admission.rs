//! The data of admission: waiters, their dependencies, keys, and the holders of their slots.

use crate::fault::no_json;
use rusqlite::{Connection, OptionalExtension, Params, Row, params};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{
    AdmissionChange, EndedHolders, KeptKey, KeyPause, KeyView, LinePlace, MessageId, OpenDependency, PoolKey,
    STATUS_CODES, Waiter, Waiters,
};

/// Makes the changes of an append.
pub(crate) fn change(connection: &Connection, changes: &[AdmissionChange]) -> rusqlite::Result<()> {
    for change in changes {
        match change {
            AdmissionChange::TakeSlots { execution, keys } => {
                for PoolKey { pool, key } in keys {
                    connection
                        .prepare_cached("INSERT INTO slots VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?
                        .execute([pool.as_str(), key.as_str(), execution.as_str()])?;
                }
            }
            AdmissionChange::ReleaseSlots { execution } => {
                connection
                    .prepare_cached("DELETE FROM slots WHERE execution = ?1")?
                    .execute([execution.as_str()])?;
            }
            AdmissionChange::PutWaiter(waiter) => put_waiter(connection, waiter)?,
            AdmissionChange::RemoveWaiter { execution } => remove_waiter(connection, execution)?,
            AdmissionChange::PutKey(key) => put_key(connection, key)?,
            AdmissionChange::RemoveKey(PoolKey { pool, key }) => {
                connection
                    .prepare_cached("DELETE FROM keys WHERE pool = ?1 AND key = ?2")?
                    .execute([pool.as_str(), key.as_str()])?;
            }
        }
    }
    Ok(())
}

fn put_waiter(connection: &Connection, waiter: &Waiter) -> rusqlite::Result<()> {
    let before: Option<bool> = connection
        .prepare_cached("SELECT open IS NOT NULL FROM waiters WHERE number = ?1")?
        .query_row([waiter.number], |row| row.get(0))
        .optional()?;
    let open = (!waiter.open.is_empty()).then(|| to_json(&waiter.open)).transpose()?;
    let place = waiter.place();
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO waiters
                (number, execution, event, ask, open, pool, key, rank, ordered, requested, moves, claim)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            waiter.number,
            waiter.execution.as_str(),
            waiter.event.0,
            to_json(&waiter.ask)?,
            open,
            waiter.parked.as_ref().map(|key| key.pool.as_str()),
            waiter.parked.as_ref().map(|key| key.key.as_str()),
            place.rank,
            place.order,
            waiter.ask.requested.0,
            waiter.moves,
            waiter.claim,
        ])?;
    if before == Some(true) {
        connection
            .prepare_cached("DELETE FROM dependencies WHERE waiter = ?1")?
            .execute([waiter.number])?;
    }
    for OpenDependency { dependency, bound } in &waiter.open {
        connection
            .prepare_cached("INSERT INTO dependencies VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?
            .execute(params![
                waiter.number,
                dependency.flow.as_deref().unwrap_or_default(),
                dependency.execution.as_str(),
                bound.as_ref().map(Text::as_str),
            ])?;
    }
    // The executions that wait for it never change.
    if before.is_none() {
        for ancestor in &waiter.ask.ancestors {
            connection
                .prepare_cached("INSERT INTO waiter_ancestors VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
                .execute(params![ancestor.as_str(), waiter.number])?;
        }
    }
    Ok(())
}

fn remove_waiter(connection: &Connection, execution: &str) -> rusqlite::Result<()> {
    // Most waiters have neither open dependencies nor ancestors.
    let removed: Option<(i64, bool, bool)> = connection
        .prepare_cached(
            "DELETE FROM waiters WHERE execution = ?1
             RETURNING number, open IS NOT NULL, json_array_length(ask, '$.ancestors') > 0",
        )?
        .query_row([execution], |row| {
            Ok((
                row.get(0)?,
                row.get(1)?,
                row.get::<_, Option<bool>>(2)?.unwrap_or(false),
            ))
        })
        .optional()?;
    let Some((number, depends, is_child)) = removed else {
        return Ok(());
    };
    if depends {
        connection
            .prepare_cached("DELETE FROM dependencies WHERE waiter = ?1")?
            .execute([number])?;
    }
    if is_child {
        connection
            .prepare_cached("DELETE FROM waiter_ancestors WHERE waiter = ?1")?
            .execute([number])?;
    }
    Ok(())
}

fn put_key(connection: &Connection, kept: &KeptKey) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO keys (pool, key, defined, \"limit\", set_by, paused_by, paused_since, stale)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            kept.key.pool.as_str(),
            kept.key.key.as_str(),
            kept.defined.map(limit),
            kept.set.map(limit),
            kept.set_by.as_ref().map(Text::as_str),
            kept.paused.as_ref().map(|paused| paused.by.as_str()),
            kept.paused.as_ref().map(|paused| paused.since.0),
            kept.stale,
        ])
        .map(drop)
}

/// A limit in its stored form. All larger limits have the same effect.
fn limit(limit: u64) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn to_json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Text> {
    Ok(Text::from(row.get_ref(column)?.as_str()?))
}

fn optional_text(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Text>> {
    Ok(row.get_ref(column)?.as_str_or_null()?.map(Text::from))
}

/// The columns of a waiter, for [`waiter_of`].
const COLUMNS: &str = "w.number, w.execution, w.event, w.ask, w.open, w.pool, w.key, w.moves, w.claim";

fn waiter_of(row: &Row<'_>) -> rusqlite::Result<Waiter> {
    let ask = serde_json::from_str(row.get_ref(3)?.as_str()?).map_err(|error| no_json(3, error))?;
    let open = row.get_ref(4)?.as_str_or_null()?.map(serde_json::from_str).transpose();
    let parked = optional_text(row, 5)?.zip(optional_text(row, 6)?);
    Ok(Waiter {
        number: row.get(0)?,
        execution: text(row, 1)?,
        event: EventId(row.get(2)?),
        ask,
        open: open.map_err(|error| no_json(4, error))?.unwrap_or_default(),
        parked: parked.map(|(pool, key)| PoolKey { pool, key }),
        moves: row.get(7)?,
        claim: row.get(8)?,
    })
}

/// What is read of each waiter.
struct Selected<T> {
    columns: &'static str,
    read: fn(&Row<'_>) -> rusqlite::Result<T>,
}

const WAITERS: Selected<Waiter> = Selected {
    columns: COLUMNS,
    read: waiter_of,
};
const IDS: Selected<(u64, Text)> = Selected {
    columns: "w.number, w.execution",
    read: |row| Ok((row.get(0)?, text(row, 1)?)),
};

impl<T> Selected<T> {
    fn select(&self, connection: &Connection, rest: &str, values: impl Params) -> rusqlite::Result<Vec<T>> {
        let sql = format!("SELECT {} FROM waiters w WHERE {rest}", self.columns);
        connection.prepare_cached(&sql)?.query_map(values, self.read)?.collect()
    }
}

pub(crate) fn waiter(connection: &Connection, execution: &str) -> rusqlite::Result<Option<Waiter>> {
    Ok(WAITERS.select(connection, "w.execution = ?1", [execution])?.pop())
}

pub(crate) fn waiters(connection: &Connection, which: Waiters<'_>, limit: usize) -> rusqlite::Result<Vec<Waiter>> {
    find(connection, &WAITERS, which, limit)
}

/// Nothing of what they ask for is read.
pub(crate) fn waiter_ids(
    connection: &Connection,
    which: Waiters<'_>,
    limit: usize,
) -> rusqlite::Result<Vec<(u64, Text)>> {
    find(connection, &IDS, which, limit)
}

fn find<T>(
    connection: &Connection,
    selected: &Selected<T>,
    which: Waiters<'_>,
    limit: usize,
) -> rusqlite::Result<Vec<T>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    match which {
        Waiters::InLine(key, after) => {
            let after = after.map_or((-1, i64::MIN, 0), |after| {
                (i64::from(after.rank), after.order, wide(after.number))
            });
            selected.select(
                connection,
                "w.pool = ?1 AND w.key = ?2 AND (w.rank, w.ordered, w.number) > (?3, ?4, ?5)
                 ORDER BY w.rank, w.ordered, w.number LIMIT ?6",
                params![key.pool.as_str(), key.key.as_str(), after.0, after.1, after.2, limit],
            )
        }
        Waiters::ByAge(key, after) => {
            let after = after.map_or((i64::MIN, 0), |after| (after.requested.0, wide(after.number)));
            selected.select(
                connection,
                "w.pool = ?1 AND w.key = ?2 AND (w.requested, w.number) > (?3, ?4)
                 ORDER BY w.requested, w.number LIMIT ?5",
                params![key.pool.as_str(), key.key.as_str(), after.0, after.1, limit],
            )
        }
        Waiters::Claimed(after) => selected.select(
            connection,
            "w.claim IS NOT NULL AND w.number > ?1 ORDER BY w.number LIMIT ?2",
            params![after, limit],
        ),
        Waiters::BoundTo(execution, after) => selected.select(
            connection,
            "w.number IN (SELECT DISTINCT waiter FROM dependencies WHERE bound = ?1 AND waiter > ?2
                ORDER BY waiter LIMIT ?3) ORDER BY w.number",
            params![execution, after, limit],
        ),
        Waiters::Named(flow, name, after) => selected.select(
            connection,
            "w.number IN (SELECT waiter FROM dependencies WHERE flow = ?1 AND name = ?2 AND bound IS NULL
                AND waiter > ?3 ORDER BY waiter LIMIT ?4) ORDER BY w.number",
            params![flow, name, after, limit],
        ),
        Waiters::Unbound(after) => selected.select(
            connection,
            "w.number IN (SELECT DISTINCT waiter FROM dependencies WHERE bound IS NULL AND waiter > ?1
                ORDER BY waiter LIMIT ?2) ORDER BY w.number",
            params![after, limit],
        ),
        Waiters::Below(ancestor, after) => selected.select(
            connection,
            "w.number IN (SELECT waiter FROM waiter_ancestors WHERE execution = ?1 AND waiter > ?2
                ORDER BY waiter LIMIT ?3) ORDER BY w.number",
            params![ancestor, after, limit],
        ),
    }
}

fn wide(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn waiters_before(
    connection: &Connection,
    key: &PoolKey,
    place: LinePlace,
    most: u64,
) -> rusqlite::Result<u64> {
    connection
        .prepare_cached(
            "SELECT count(*) FROM (SELECT 1 FROM waiters WHERE pool = ?1 AND key = ?2
                AND (rank, ordered, number) < (?3, ?4, ?5) LIMIT ?6)",
        )?
        .query_row(
            params![
                key.pool.as_str(),
                key.key.as_str(),
                place.rank,
                place.order,
                place.number,
                limit(most)
            ],
            |row| row.get(0),
        )
}

pub(crate) fn count_waiters(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("SELECT count(*) FROM waiters", [], |row| row.get(0))
}

pub(crate) fn last_waiter(connection: &Connection) -> rusqlite::Result<(u64, u64)> {
    connection.query_row(
        "SELECT coalesce((SELECT max(number) FROM waiters), 0),
            coalesce((SELECT max(claim) FROM waiters WHERE claim IS NOT NULL), 0)",
        [],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )
}

pub(crate) fn slots_of(connection: &Connection, execution: &str) -> rusqlite::Result<Vec<PoolKey>> {
    connection
        .prepare_cached("SELECT pool, key FROM slots WHERE execution = ?1 ORDER BY pool, key")?
        .query_map([execution], pool_key)?
        .collect()
}

fn pool_key(row: &Row<'_>) -> rusqlite::Result<PoolKey> {
    Ok(PoolKey {
        pool: text(row, 0)?,
        key: text(row, 1)?,
    })
}

pub(crate) fn holders(connection: &Connection, key: &PoolKey, limit: usize) -> rusqlite::Result<Vec<Text>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    connection
        .prepare_cached("SELECT execution FROM slots WHERE pool = ?1 AND key = ?2 ORDER BY execution LIMIT ?3")?
        .query_map(params![key.pool.as_str(), key.key.as_str(), limit], |row| text(row, 0))?
        .collect()
}

pub(crate) fn ended_holders(connection: &Connection, after: &str, limit: usize) -> rusqlite::Result<EndedHolders> {
    let holders = connection
        .prepare_cached(
            "SELECT h.execution, coalesce(e.status, 0)
                FROM (SELECT DISTINCT execution FROM slots WHERE execution > ?1 ORDER BY execution LIMIT ?2) h
                LEFT JOIN executions e ON e.id = h.execution ORDER BY h.execution",
        )?
        .query_map(params![after, limit], |row| {
            let status = STATUS_CODES.get(row.get::<_, usize>(1)?).copied();
            Ok((text(row, 0)?, status.unwrap_or_default()))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(EndedHolders::of(holders, limit))
}

const KEY_COLUMNS: &str = "pool, key, defined, \"limit\", set_by, paused_by, paused_since, stale";

fn key_of(row: &Row<'_>) -> rusqlite::Result<KeptKey> {
    let paused = optional_text(row, 5)?.zip(row.get::<_, Option<i64>>(6)?);
    Ok(KeptKey {
        key: pool_key(row)?,
        defined: row.get(2)?,
        set: row.get(3)?,
        set_by: optional_text(row, 4)?,
        paused: paused.map(|(by, since)| KeyPause {
            by,
            since: Timestamp(since),
        }),
        stale: row.get(7)?,
    })
}

pub(crate) fn kept_key(connection: &Connection, key: &PoolKey) -> rusqlite::Result<(KeptKey, u64)> {
    let sql = format!("SELECT {KEY_COLUMNS} FROM keys WHERE pool = ?1 AND key = ?2");
    let kept = connection
        .prepare_cached(&sql)?
        .query_row([key.pool.as_str(), key.key.as_str()], key_of)
        .optional()?;
    let held = connection
        .prepare_cached("SELECT count(*) FROM slots WHERE pool = ?1 AND key = ?2")?
        .query_row([key.pool.as_str(), key.key.as_str()], |row| row.get(0))?;
    Ok((kept.unwrap_or_else(|| KeptKey::of(key.clone())), held))
}

pub(crate) fn key(connection: &Connection, key: &PoolKey) -> rusqlite::Result<KeyView> {
    let (kept, held) = kept_key(connection, key)?;
    let waiting = connection
        .prepare_cached("SELECT count(*) FROM waiters WHERE pool = ?1 AND key = ?2")?
        .query_row([key.pool.as_str(), key.key.as_str()], |row| row.get(0))?;
    Ok(KeyView { kept, held, waiting })
}

pub(crate) fn kept_keys(
    connection: &Connection,
    after: Option<&PoolKey>,
    limit: usize,
) -> rusqlite::Result<Vec<KeptKey>> {
    let sql = format!("SELECT {KEY_COLUMNS} FROM keys WHERE (pool, key) > (?1, ?2) ORDER BY pool, key LIMIT ?3");
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let (pool, key) = after.map_or(("", ""), |after| (after.pool.as_str(), after.key.as_str()));
    connection
        .prepare_cached(&sql)?
        .query_map(params![pool, key, limit], key_of)?
        .collect()
}

pub(crate) fn stale_keys(connection: &Connection) -> rusqlite::Result<Vec<PoolKey>> {
    connection
        .prepare_cached("SELECT pool, key FROM keys WHERE stale = 1 ORDER BY pool, key")?
        .query_map([], pool_key)?
        .collect()
}

pub(crate) fn is_pending(connection: &Connection, message: &MessageId) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM messages WHERE receiver = ?1 AND sender = ?2 AND event = ?3")?
        .exists(params![message.to.as_str(), message.from.as_str(), message.event.0])
}

pub(crate) fn pending_of(connection: &Connection, messages: &[MessageId]) -> rusqlite::Result<Vec<MessageId>> {
    let mut pending = Vec::with_capacity(messages.len());
    for message in messages {
        if is_pending(connection, message)? {
            pending.push(message.clone());
        }
    }
    Ok(pending)
}

pub(crate) fn all_slots(connection: &Connection, most: usize) -> rusqlite::Result<Option<Vec<(Text, PoolKey)>>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    // Where there are too many, none is read.
    if connection
        .prepare_cached("SELECT 1 FROM slots LIMIT 1 OFFSET ?1")?
        .exists([most])?
    {
        return Ok(None);
    }
    let slots = connection
        .prepare_cached("SELECT pool, key, execution FROM slots")?
        .query_map([], |row| Ok((text(row, 2)?, pool_key(row)?)))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    Ok(Some(slots))
}

pub(crate) fn anyone_depends(connection: &Connection) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM dependencies WHERE bound IS NOT NULL LIMIT 1")?
        .exists([])
}
