//! Counts the executions that do not move, by reason.

use crate::list::AWAKE;
use rusqlite::Connection;
use starbridge_ports::{FLOW_POOL, WaitingReason};
use std::collections::BTreeMap;

/// Counts along indexes. Executions that have not ended are read, others are not.
pub(crate) fn counts(connection: &Connection) -> rusqlite::Result<Vec<(WaitingReason, u64)>> {
    let mut counts: BTreeMap<WaitingReason, u64> = BTreeMap::new();
    let mut told = connection.prepare_cached(
        "SELECT reason, count(*) FROM executions WHERE status <> 4 AND reason IS NOT NULL GROUP BY reason",
    )?;
    let rows = told.query_map([], |row| Ok((row.get::<_, u8>(0)?, row.get::<_, u64>(1)?)))?;
    for row in rows {
        let (number, count) = row?;
        let reason = WaitingReason::ALL.iter().find(|reason| reason.number() == number);
        if let Some(reason) = reason {
            *counts.entry(*reason).or_default() += count;
        }
    }
    let one = |sql: &str| {
        connection
            .prepare_cached(sql)?
            .query_row([], |row| row.get::<_, u64>(0))
    };
    let awake = format!("SELECT count(*) FROM executions AS e WHERE e.awake = 1 AND {AWAKE}");
    counts.insert(WaitingReason::Running, one(&awake)?);
    // A waiter that is paused counts as paused.
    let moves = "JOIN executions AS e ON e.id = w.execution AND e.reason IS NULL";
    let dependency = format!("SELECT count(*) FROM waiters AS w {moves} WHERE w.open IS NOT NULL");
    counts.insert(WaitingReason::Dependency, one(&dependency)?);
    // A waiter with a claim is in no line, and waits for one of its keys.
    let claims = format!(
        "SELECT count(*) FROM waiters AS w {moves} WHERE w.open IS NULL AND w.key IS NULL AND w.claim IS NOT NULL"
    );
    *counts.entry(WaitingReason::Key).or_default() += one(&claims)?;
    let lines = format!(
        "SELECT w.pool, k.paused_since IS NOT NULL, count(*) FROM waiters AS w {moves}
         LEFT JOIN keys AS k ON k.pool = w.pool AND k.key = w.key
         WHERE w.key IS NOT NULL GROUP BY 1, 2"
    );
    let mut lines = connection.prepare_cached(&lines)?;
    let rows = lines.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?, row.get::<_, u64>(2)?))
    })?;
    for row in rows {
        let (pool, paused, count) = row?;
        let reason = match (pool == FLOW_POOL, paused) {
            (true, true) => WaitingReason::FlowPaused,
            (true, false) => WaitingReason::FlowLimit,
            _ => WaitingReason::Key,
        };
        *counts.entry(reason).or_default() += count;
    }
    Ok(counts.into_iter().filter(|(_, count)| *count > 0).collect())
}
