//! Bulk jobs and their items.

use crate::audit;
use crate::fault::no_json;
use crate::page;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{
    AuditEntry, BulkItem, BulkItemId, BulkItems, BulkJob, BulkPage, BulkResult, BulkState, OpenJob,
};

const COLUMNS: &str = "id, action, arguments, filter, by, created, state, items, done, skipped, failed, rate, ended";

pub(crate) fn put(
    connection: &Connection,
    job: &BulkJob,
    executions: &[Text],
    entry: Option<&AuditEntry>,
) -> rusqlite::Result<()> {
    let json = |object| serde_json::to_string(object).unwrap_or_default();
    connection
        .prepare_cached(
            "INSERT INTO bulk_jobs (id, action, arguments, filter, by, created, state, rate)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            job.id.as_str(),
            job.action.as_str(),
            json(&job.arguments),
            json(&job.filter),
            job.by.as_str(),
            job.created.0,
            job.state.code(),
            job.rate,
        ])?;
    insert(connection, &job.id, 1, executions)?;
    audit::add(connection, entry)
}

fn insert(connection: &Connection, job: &str, first: u64, executions: &[Text]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("INSERT INTO bulk_items (job, n, execution) VALUES (?1, ?2, ?3)")?;
    for (number, execution) in (first..).zip(executions) {
        statement.execute(params![job, number, execution.as_str()])?;
    }
    connection
        .prepare_cached("UPDATE bulk_jobs SET items = ?2 WHERE id = ?1")?
        .execute(params![job, first - 1 + executions.len() as u64])
        .map(drop)
}

pub(crate) fn add_items(
    connection: &Connection,
    job: &str,
    first: u64,
    executions: &[Text],
    last: bool,
) -> rusqlite::Result<bool> {
    if first == 1 {
        // The process ended while it collected executions.
        connection
            .prepare_cached(
                "DELETE FROM bulk_items WHERE job = (SELECT id FROM bulk_jobs WHERE id = ?1 AND state = ?2)",
            )?
            .execute(params![job, BulkState::Collecting.code()])?;
    }
    let to = if last {
        BulkState::Running
    } else {
        BulkState::Collecting
    };
    let collecting = connection
        .prepare_cached("UPDATE bulk_jobs SET state = ?3 WHERE id = ?1 AND state = ?2")?
        .execute(params![job, BulkState::Collecting.code(), to.code()])?;
    if collecting == 0 {
        return Ok(false);
    }
    insert(connection, job, first, executions)?;
    Ok(true)
}

pub(crate) fn job(connection: &Connection, job: &str) -> rusqlite::Result<Option<BulkJob>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM bulk_jobs WHERE id = ?1"))?
        .query_row([job], from_row)
        .optional()
}

/// The page after this place, in the order in which jobs were made.
pub(crate) fn jobs(connection: &Connection, before: Option<i64>, limit: usize) -> rusqlite::Result<BulkPage> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut items = connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS}, rowid FROM bulk_jobs WHERE rowid < ?1 ORDER BY rowid DESC LIMIT ?2"
        ))?
        .query_map(params![before.unwrap_or(i64::MAX), most], |row| {
            Ok((row.get::<_, i64>(13)?, from_row(row)?))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let next = page::cut(&mut items, limit, |(place, _)| *place);
    Ok(BulkPage {
        next,
        items: items.into_iter().map(|(_, job)| job).collect(),
    })
}

pub(crate) fn to_run(connection: &Connection) -> rusqlite::Result<Vec<OpenJob>> {
    // The index has the states below 3.
    connection
        .prepare_cached("SELECT id, state, rate FROM bulk_jobs WHERE state < 3 AND state < ?1 ORDER BY rowid")?
        .query_map([BulkState::Suspended.code()], |row| {
            Ok(OpenJob {
                id: Text::from(row.get_ref(0)?.as_str()?),
                state: state_of(row.get(1)?),
                rate: row.get(2)?,
            })
        })?
        .collect()
}

pub(crate) fn items(
    connection: &Connection,
    job: &str,
    which: BulkItems,
    after: u64,
    limit: usize,
) -> rusqlite::Result<Vec<BulkItem>> {
    let text = |text: &str| Value::Text(text.to_owned());
    let number = |number: u64| Value::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let mut values = vec![text(job), number(after), number(limit as u64)];
    let wanted = match which {
        BulkItems::All => "",
        BulkItems::Open => " AND result IS NULL",
        BulkItems::With(word) => {
            values.push(text(word));
            " AND (result = ?4 OR result > ?4 || ' ' AND result < ?4 || '!')"
        }
    };
    connection
        .prepare_cached(&format!(
            "SELECT n, execution, result FROM bulk_items WHERE job = ?1 AND n > ?2{wanted} ORDER BY n LIMIT ?3"
        ))?
        .query_map(params_from_iter(values), |row| {
            Ok(BulkItem {
                number: row.get(0)?,
                execution: Text::from(row.get_ref(1)?.as_str()?),
                result: row.get_ref(2)?.as_str_or_null()?.and_then(BulkResult::parse),
            })
        })?
        .collect()
}

pub(crate) fn set_results(connection: &Connection, results: &[(BulkItemId, BulkResult)]) -> rusqlite::Result<()> {
    results
        .iter()
        .try_for_each(|(item, result)| audit::set_result(connection, item, result))
}

pub(crate) fn change(
    connection: &Connection,
    job: &str,
    from: &[BulkState],
    to: BulkState,
    now: Timestamp,
    entry: Option<&AuditEntry>,
) -> rusqlite::Result<bool> {
    let mut changed = 0;
    for state in from {
        changed += connection
            .prepare_cached("UPDATE bulk_jobs SET state = ?3, ended = ?4 WHERE id = ?1 AND state = ?2")?
            .execute(params![job, state.code(), to.code(), to.is_over().then_some(now.0)])?;
        if changed > 0 {
            break;
        }
    }
    if changed > 0 {
        audit::add(connection, entry)?;
    }
    Ok(changed > 0)
}

pub(crate) fn clear(connection: &Connection, before: Timestamp, limit: usize) -> rusqlite::Result<usize> {
    let mut cleared = 0;
    while cleared < limit {
        let job: Option<String> = connection
            .prepare_cached("SELECT id FROM bulk_jobs WHERE ended < ?1 ORDER BY rowid LIMIT 1")?
            .query_row([before.0], |row| row.get(0))
            .optional()?;
        let Some(job) = job else {
            break;
        };
        let left = limit - cleared;
        let items = connection
            .prepare_cached(
                "DELETE FROM bulk_items WHERE job = ?1 AND n IN (SELECT n FROM bulk_items WHERE job = ?1 ORDER BY n LIMIT ?2)",
            )?
            .execute(params![job, left])?;
        cleared += items;
        if items < left {
            cleared += connection
                .prepare_cached("DELETE FROM bulk_jobs WHERE id = ?1")?
                .execute([&job])?;
        }
    }
    Ok(cleared)
}

fn state_of(code: usize) -> BulkState {
    BulkState::ALL.get(code).copied().unwrap_or_default()
}

fn from_row(row: &Row<'_>) -> rusqlite::Result<BulkJob> {
    let text = |column: usize| -> rusqlite::Result<Text> { Ok(Text::from(row.get_ref(column)?.as_str()?)) };
    let json = |column: usize| {
        let text = row.get_ref(column)?.as_str()?;
        serde_json::from_str(text).map_err(|error| no_json(column, error))
    };
    Ok(BulkJob {
        id: text(0)?,
        action: text(1)?,
        arguments: json(2)?,
        filter: json(3)?,
        by: text(4)?,
        created: Timestamp(row.get(5)?),
        state: state_of(row.get(6)?),
        items: row.get(7)?,
        done: row.get(8)?,
        skipped: row.get(9)?,
        failed: row.get(10)?,
        rate: row.get(11)?,
        ended: row.get::<_, Option<i64>>(12)?.map(Timestamp),
    })
}
