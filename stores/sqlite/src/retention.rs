//! Deleting old executions, a few at a time.
//!
//! Executions that ended one after the other mostly began one after the other, and their turns are
//! stored side by side. So they are deleted in runs: of numbers, and of rows. A statement for a run
//! costs little more than one for a single row.

use crate::head::{Head, MAX_EVENTS, place};
use crate::notices;
use crate::queueing;
use crate::write::Work;
use rusqlite::{Connection, params};
use starbridge_flow::time::Timestamp;
use std::time::{Duration, Instant};

/// How many turns are deleted at a time: about a megabyte, which takes the writer some milliseconds.
const DELETE_BATCH: usize = 1_000;
/// The longest duration of one call.
const LONGEST: Duration = Duration::from_millis(50);

/// An execution to delete.
struct Old {
    number: i64,
    id: String,
    status: usize,
    labelled: bool,
}

/// Goes on for as long as the call waited for the writer, because heavy appending leaves more to
/// delete.
pub(crate) fn clear_for(
    work: &mut Work<'_>,
    before: Timestamp,
    limit: usize,
    waited: Duration,
) -> rusqlite::Result<usize> {
    let begun = Instant::now();
    let mut cleared = clear(work, before, limit)?;
    while cleared < limit && begun.elapsed() < waited.min(LONGEST) {
        match clear(work, before, limit - cleared)? {
            0 => break,
            more => cleared += more,
        }
    }
    Ok(cleared)
}

fn clear(work: &mut Work<'_>, before: Timestamp, limit: usize) -> rusqlite::Result<usize> {
    let connection = work.connection;
    // Work left by earlier calls gets half of the time, so that neither waits for the other
    // forever.
    let (turns, cleared) = delete_left(connection, DELETE_BATCH / 2)?;
    let ended: Vec<Old> = connection
        .prepare_cached(
            "SELECT number, id, status, labels IS NOT NULL FROM executions WHERE ended IS NOT NULL AND ended < ?1
             ORDER BY ended, wake_at, number LIMIT ?2",
        )?
        .query_map(params![before.0, i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
            Ok(Old {
                number: row.get(0)?,
                id: row.get(1)?,
                status: row.get(2)?,
                labelled: row.get(3)?,
            })
        })?
        .collect::<Result<_, _>>()?;
    Ok(cleared + remove(work, ended, DELETE_BATCH - turns)?)
}

/// Deletes an execution that has ended, and its notices. The rest of a long history is deleted by
/// later calls of [`clear_for`].
pub(crate) fn delete_one(work: &mut Work<'_>, head: Head, id: &str) -> rusqlite::Result<()> {
    let old = Old {
        number: head.number,
        id: id.to_owned(),
        status: head.status,
        labelled: true,
    };
    remove(work, vec![old], DELETE_BATCH)?;
    notices::forget_all_of(work.connection, id)
}

/// Deletes executions as long as they have no more than `most` turns together. Of the first one
/// that exceeds this, the remaining turns are recorded for later. Returns the number of deleted
/// executions.
fn remove(work: &mut Work<'_>, mut old: Vec<Old>, most: usize) -> rusqlite::Result<usize> {
    let connection = work.connection;
    let mut rows = Vec::new();
    let mut fitting = 0;
    for execution in &old {
        if rows.len() >= most {
            break;
        }
        fitting += 1;
        find_turns(connection, execution.number, most, &mut rows)?;
        if rows.len() >= most {
            connection
                .prepare_cached("INSERT INTO cleared VALUES (?1)")?
                .execute([execution.number])?;
        }
    }
    old.truncate(fitting);
    delete_turns(connection, rows)?;
    delete(connection, &old)?;
    for execution in &old {
        work.heads.forget(&execution.id);
        work.counts[execution.status] -= 1;
    }
    Ok(fitting)
}

/// Deletes executions except their turns. Messages they sent belong to their receivers and stay.
fn delete(connection: &Connection, old: &[Old]) -> rusqlite::Result<()> {
    for execution in old.iter().filter(|execution| execution.labelled) {
        connection
            .prepare_cached(
                "DELETE FROM labels WHERE number = ?1 AND (label, value) IN
                 (SELECT key, value FROM json_each((SELECT labels FROM executions WHERE number = ?1)))",
            )?
            .execute([execution.number])?;
    }
    for (first, last) in runs(old.iter().map(|execution| execution.number).collect()) {
        queueing::clear(connection, first, last)?;
        for sql in [
            "DELETE FROM checkpoints WHERE number BETWEEN ?1 AND ?2",
            "DELETE FROM logs WHERE number BETWEEN ?1 AND ?2",
            "DELETE FROM executions WHERE number BETWEEN ?1 AND ?2",
        ] {
            connection.prepare_cached(sql)?.execute([first, last])?;
        }
    }
    let ids: Vec<&str> = old.iter().map(|execution| execution.id.as_str()).collect();
    connection
        .prepare_cached("DELETE FROM messages WHERE receiver IN (SELECT value FROM json_each(?1))")?
        .execute([serde_json::to_string(&ids).unwrap_or_default()])
        .map(drop)
}

/// Adds the rows of the first turns of an execution, until there are `most` of them.
fn find_turns(connection: &Connection, number: i64, most: usize, rows: &mut Vec<i64>) -> rusqlite::Result<()> {
    let mut statement =
        connection.prepare_cached("SELECT row FROM turns WHERE place BETWEEN ?1 AND ?2 ORDER BY place LIMIT ?3")?;
    let room = most.saturating_sub(rows.len());
    let mut found = statement.query(params![place(number, 0), place(number, MAX_EVENTS), room])?;
    while let Some(row) = found.next()? {
        rows.push(row.get(0)?);
    }
    Ok(())
}

fn delete_turns(connection: &Connection, rows: Vec<i64>) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("DELETE FROM turns WHERE row BETWEEN ?1 AND ?2")?;
    for (first, last) in runs(rows) {
        statement.execute([first, last])?;
    }
    Ok(())
}

/// Groups numbers into runs without gaps, each with its first and last number.
fn runs(mut numbers: Vec<i64>) -> Vec<(i64, i64)> {
    numbers.sort_unstable();
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    runs
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
        let mut rows = Vec::new();
        find_turns(connection, number, most - deleted, &mut rows)?;
        deleted += rows.len();
        delete_turns(connection, rows)?;
        if deleted < most {
            connection
                .prepare_cached("DELETE FROM cleared WHERE number = ?1")?
                .execute([number])?;
        }
    }
    Ok((deleted, executions))
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn runs_have_no_gap_and_leave_nothing_out() {
        assert_eq!(runs(vec![]), []);
        assert_eq!(runs(vec![7, 3, 4, 9, 5, 10]), [(3, 5), (7, 7), (9, 10)]);
    }
}
