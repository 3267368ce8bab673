//! Deleting old executions, a few at a time.

use crate::head::{Head, MAX_EVENTS, place};
use crate::notices;
use crate::queueing;
use crate::write::Work;
use rusqlite::{Connection, params};
use starbridge_flow::time::Timestamp;

/// How many turns one call deletes at most: about a megabyte, which takes the writer some milliseconds.
const DELETE_BATCH: usize = 1_000;

pub(crate) fn clear(work: &mut Work<'_>, before: Timestamp, limit: usize) -> rusqlite::Result<usize> {
    let connection = work.connection;
    // What earlier calls left gets half of it, so that neither waits for the other for ever.
    let (turns, mut cleared) = delete_left(connection, DELETE_BATCH / 2)?;
    let mut budget = DELETE_BATCH - turns;
    let ended: Vec<(i64, String, usize, bool)> = connection
        .prepare_cached(
            "SELECT number, id, status, labels IS NOT NULL FROM executions WHERE ended IS NOT NULL AND ended < ?1
             ORDER BY ended, number LIMIT ?2",
        )?
        .query_map(params![before.0, i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?
        .collect::<Result<_, _>>()?;
    for (number, id, status, labelled) in ended {
        if budget == 0 {
            break;
        }
        budget -= remove(work, number, &id, status, labelled, budget)?;
        cleared += 1;
    }
    Ok(cleared)
}

/// Deletes an execution that has ended, and what targets are still to be told of it. Of a long history the rest goes with
/// later calls of [`clear`].
pub(crate) fn delete_one(work: &mut Work<'_>, head: Head, id: &str) -> rusqlite::Result<()> {
    remove(work, head.number, id, head.status, true, DELETE_BATCH)?;
    notices::forget_all_of(work.connection, id)
}

/// Deletes an execution, and at most `most` of its turns. Returns how many; if there may be more, the others are noted.
fn remove(
    work: &mut Work<'_>,
    number: i64,
    id: &str,
    status: usize,
    labelled: bool,
    most: usize,
) -> rusqlite::Result<usize> {
    let connection = work.connection;
    delete(connection, number, id, labelled)?;
    let turns = delete_turns(connection, number, most)?;
    if turns == most {
        connection
            .prepare_cached("INSERT INTO cleared VALUES (?1)")?
            .execute([number])?;
    }
    work.heads.forget(id);
    work.counts[status] -= 1;
    Ok(turns)
}

/// Deletes an execution except its turns. Messages it sent belong to their receivers and stay.
fn delete(connection: &Connection, number: i64, id: &str, labelled: bool) -> rusqlite::Result<()> {
    if labelled {
        connection
            .prepare_cached(
                "DELETE FROM labels WHERE number = ?1 AND (label, value) IN
                 (SELECT key, value FROM json_each((SELECT labels FROM executions WHERE number = ?1)))",
            )?
            .execute([number])?;
    }
    queueing::clear(connection, number)?;
    for sql in [
        "DELETE FROM checkpoints WHERE number = ?1",
        "DELETE FROM logs WHERE number = ?1",
        "DELETE FROM executions WHERE number = ?1",
    ] {
        connection.prepare_cached(sql)?.execute([number])?;
    }
    connection
        .prepare_cached("DELETE FROM messages WHERE receiver = ?1")?
        .execute([id])
        .map(drop)
}

/// Deletes at most `most` turns of one execution. Returns how many.
fn delete_turns(connection: &Connection, number: i64, most: usize) -> rusqlite::Result<usize> {
    connection
        .prepare_cached(
            "DELETE FROM turns WHERE place IN (SELECT place FROM turns WHERE place BETWEEN ?1 AND ?2 ORDER BY place LIMIT ?3)",
        )?
        .execute(params![place(number, 0), place(number, MAX_EVENTS), most])
}

/// Deletes turns of executions that are already gone. Returns how many turns, and of how many executions.
fn delete_left(connection: &Connection, most: usize) -> rusqlite::Result<(usize, usize)> {
    let (mut deleted, mut executions) = (0, 0);
    while deleted < most {
        let mut statement = connection.prepare_cached("SELECT min(number) FROM cleared")?;
        let Some(number) = statement.query_row([], |row| row.get::<_, Option<i64>>(0))? else {
            break;
        };
        executions += 1;
        deleted += delete_turns(connection, number, most - deleted)?;
        if deleted < most {
            connection
                .prepare_cached("DELETE FROM cleared WHERE number = ?1")?
                .execute([number])?;
        }
    }
    Ok((deleted, executions))
}
