//! Clearing away, a little at a time.

use crate::head::{MOST_EVENTS, place};
use crate::write::Work;
use rusqlite::{Connection, params};
use starbridge_fdl::time::Timestamp;

/// Turns one call deletes, and those of the execution with which it passes that: about a megabyte, some milliseconds of the writer.
const TURNS: usize = 1_000;

pub(crate) fn clear(work: &mut Work<'_>, before: Timestamp, limit: usize) -> rusqlite::Result<usize> {
    let connection = work.connection;
    let ended: Vec<(i64, String, usize, bool)> = connection
        .prepare_cached(
            "SELECT number, id, status, labels IS NOT NULL FROM executions WHERE ended IS NOT NULL AND ended < ?1
             ORDER BY ended, number LIMIT ?2",
        )?
        .query_map(params![before.0, i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect::<Result<_, _>>()?;
    let (mut cleared, mut turns) = (0, 0);
    for (number, id, status, labelled) in ended {
        if turns >= TURNS {
            break;
        }
        turns += delete(connection, number, &id, labelled)?;
        work.heads.forget(&id);
        work.counts[status] -= 1;
        cleared += 1;
    }
    Ok(cleared)
}

/// Messages it sent belong to who is to receive them, and stay.
fn delete(connection: &Connection, number: i64, id: &str, labelled: bool) -> rusqlite::Result<usize> {
    if labelled {
        connection
            .prepare_cached(
                "DELETE FROM labels WHERE number = ?1 AND (label, value) IN
                 (SELECT key, value FROM json_each((SELECT labels FROM executions WHERE number = ?1)))",
            )?
            .execute([number])?;
    }
    for sql in [
        "DELETE FROM checkpoints WHERE number = ?1",
        "DELETE FROM executions WHERE number = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([number])?;
    }
    connection
        .prepare_cached("DELETE FROM messages WHERE receiver = ?1")?
        .execute([id])?;
    connection
        .prepare_cached("DELETE FROM turns WHERE place BETWEEN ?1 AND ?2")?
        .execute([place(number, 0), place(number, MOST_EVENTS)])
}
