//! Notices.

use crate::queueing::{row_limit, text};
use rusqlite::{Connection, params};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{Append, NextNotice, NoticeChange, ShardSet};

/// Stores the notices of an append. INVARIANT: of the notices for each execution and target, the one with the lowest
/// event is marked as the next, and no other.
pub(crate) fn keep(connection: &Connection, append: &Append) -> rusqlite::Result<()> {
    for notice in &append.notices {
        connection
            .prepare_cached(
                "INSERT INTO notices (target, execution, event, due, next, failures, text)
                 VALUES (?1, ?2, ?3, ?4, NOT EXISTS (SELECT 1 FROM notices WHERE target = ?1 AND execution = ?2), 0, ?5)
                 ON CONFLICT DO NOTHING",
            )?
            .execute(params![
                notice.target.as_str(),
                append.execution.as_str(),
                notice.event.0,
                notice.time.0,
                notice.text,
            ])?;
    }
    Ok(())
}

/// Deletes all notices of an execution. The targets are found one after the other, because the key begins with them.
pub(crate) fn forget_all_of(connection: &Connection, execution: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "WITH RECURSIVE targets (target) AS (SELECT min(target) FROM notices
                UNION ALL SELECT (SELECT min(target) FROM notices WHERE target > targets.target) FROM targets
                WHERE targets.target IS NOT NULL)
             DELETE FROM notices WHERE target IN (SELECT target FROM targets WHERE target IS NOT NULL) AND execution = ?1",
        )?
        .execute([execution])
        .map(drop)
}

/// An execution may be gone before its notices, so its shard follows from its id. Rows are read one by one in the order of the
/// index, until there are enough.
pub(crate) fn next(
    connection: &Connection,
    shards: &ShardSet,
    target: &str,
    limit: usize,
) -> rusqlite::Result<Vec<NextNotice>> {
    let mut statement = connection.prepare_cached(
        "SELECT execution, event, due, failures, text FROM notices WHERE target = ?1 AND next = 1 ORDER BY due, execution",
    )?;
    let mut rows = statement.query([target])?;
    let mut notices = Vec::new();
    while notices.len() < limit
        && let Some(row) = rows.next()?
    {
        if !shards.has_execution(row.get_ref(0)?.as_str()?) {
            continue;
        }
        notices.push(NextNotice {
            execution: text(row, 0)?,
            event: EventId(row.get(1)?),
            due: Timestamp(row.get(2)?),
            failures: row.get(3)?,
            text: row.get(4)?,
        });
    }
    Ok(notices)
}

pub(crate) fn change(connection: &Connection, changes: &[NoticeChange]) -> rusqlite::Result<()> {
    for change in changes {
        let (target, execution) = (change.target.as_str(), change.execution.as_str());
        match change.again {
            Some((due, failures)) => {
                connection
                    .prepare_cached(
                        "UPDATE notices SET due = ?4, failures = ?5 WHERE target = ?1 AND execution = ?2 AND event = ?3",
                    )?
                    .execute(params![target, execution, change.event.0, due.0, failures])?;
            }
            None => {
                connection
                    .prepare_cached("DELETE FROM notices WHERE target = ?1 AND execution = ?2 AND event = ?3")?
                    .execute(params![target, execution, change.event.0])?;
                mark_next(connection, target, execution)?;
            }
        }
    }
    Ok(())
}

fn mark_next(connection: &Connection, target: &str, execution: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "UPDATE notices SET next = 1
             WHERE target = ?1 AND execution = ?2 AND next = 0
               AND event = (SELECT min(event) FROM notices WHERE target = ?1 AND execution = ?2)",
        )?
        .execute([target, execution])
        .map(drop)
}

/// Deletes notices in the order of the key, so that each call costs the same. If some of an execution's are left, the
/// next one is marked again.
pub(crate) fn forget(connection: &Connection, target: &str, limit: usize) -> rusqlite::Result<usize> {
    let gone: Vec<(Text, u64)> = connection
        .prepare_cached("SELECT execution, event FROM notices WHERE target = ?1 ORDER BY execution, event LIMIT ?2")?
        .query_map(params![target, row_limit(limit)], |row| {
            Ok((text(row, 0)?, row.get(1)?))
        })?
        .collect::<Result<_, _>>()?;
    for (execution, event) in &gone {
        connection
            .prepare_cached("DELETE FROM notices WHERE target = ?1 AND execution = ?2 AND event = ?3")?
            .execute(params![target, execution.as_str(), event])?;
        mark_next(connection, target, execution)?;
    }
    Ok(gone.len())
}

pub(crate) fn counts(connection: &Connection) -> rusqlite::Result<Vec<(Text, u64)>> {
    connection
        .prepare_cached("SELECT target, count(*) FROM notices GROUP BY target ORDER BY target")?
        .query_map([], |row| Ok((text(row, 0)?, row.get(1)?)))?
        .collect()
}
