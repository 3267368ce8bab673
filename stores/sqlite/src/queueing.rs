//! Queues: waiting tasks and dead tasks.

use crate::head::{Head, event_at, head_of, place};
use crate::write::Work;
use rusqlite::{Connection, OptionalExtension, Row, params};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{Append, DeadTask, DeadTasksCleared, Depth, QueuedTask, ShardSet, TaskLease, TaskLeaseChange};

/// Makes the changes of an append to tasks of its execution.
pub(crate) fn change(connection: &Connection, head: Head, append: &Append) -> rusqlite::Result<()> {
    for call in &append.unqueued {
        connection
            .prepare_cached("DELETE FROM tasks WHERE place = ?1")?
            .execute([place(head.number, call.0)])?;
    }
    for call in &append.withdrawn {
        connection
            .prepare_cached("DELETE FROM tasks WHERE place = ?1 AND worker IS NULL")?
            .execute([place(head.number, call.0)])?;
    }
    for task in &append.queued {
        queue(connection, head.number, task)?;
    }
    match &append.dead_cleared {
        DeadTasksCleared::None => {}
        DeadTasksCleared::Calls(calls) => {
            for call in calls {
                connection
                    .prepare_cached("DELETE FROM dead_tasks WHERE place = ?1")?
                    .execute([place(head.number, call.0)])?;
            }
        }
        DeadTasksCleared::All => discard_all_dead(connection, head.number, head.number)?,
    }
    for dead in &append.dead {
        connection
            .prepare_cached("INSERT OR REPLACE INTO dead_tasks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?
            .execute(params![
                place(head.number, dead.call.0),
                dead.queue.as_str(),
                dead.step.as_str(),
                dead.attempt,
                dead.error.as_str(),
                dead.cause.as_str(),
                dead.time.0,
            ])?;
    }
    Ok(())
}

fn discard_all_dead(connection: &Connection, first: i64, last: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM dead_tasks WHERE place BETWEEN ?1 AND ?2")?
        .execute([place(first, 0), place(last + 1, 0) - 1])
        .map(drop)
}

/// Removes all tasks of the executions from the first to the last number.
pub(crate) fn clear(connection: &Connection, first: i64, last: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM tasks WHERE place BETWEEN ?1 AND ?2")?
        .execute([place(first, 0), place(last + 1, 0) - 1])?;
    discard_all_dead(connection, first, last)
}

fn queue(connection: &Connection, number: i64, task: &QueuedTask) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO tasks (place, queue, priority, round, ordered, since, wait_until, timeout_ms, heartbeat_ms, message)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING",
        )?
        .execute(params![
            place(number, task.call.0),
            task.queue.as_str(),
            task.priority,
            task.virtual_time,
            task.order.0,
            task.since.0,
            task.wait_until.map(|until| until.0),
            task.timeout.map(|span| span.0),
            task.heartbeat.map(|span| span.0),
            task.message,
        ])
        .map(drop)
}

/// Stores which tasks were taken and given back. Those that are gone are skipped.
pub(crate) fn lease(work: &mut Work<'_>, changes: &[TaskLeaseChange]) -> rusqlite::Result<()> {
    for change in changes {
        let Some(head) = head_of(work.heads, work.connection, &change.execution)? else {
            continue;
        };
        let lease = change.lease.as_ref();
        work.connection
            .prepare_cached("UPDATE tasks SET worker = ?2, held = ?3, lease_ms = ?4 WHERE place = ?1")?
            .execute(params![
                place(head.number, change.call.0),
                lease.map(|lease| lease.worker.as_str()),
                lease.map(|lease| lease.held.0),
                lease.map(|lease| lease.heartbeat.0),
            ])?;
    }
    Ok(())
}

const TASK: &str = "t.place, e.id, t.queue, t.priority, t.round, t.ordered, t.since, t.wait_until, t.timeout_ms, t.heartbeat_ms, t.message";

/// The column of the queue among them.
const QUEUE: usize = 2;

pub(crate) fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<Text> {
    Ok(Text::from(row.get_ref(column)?.as_str()?))
}

fn task(row: &Row<'_>) -> rusqlite::Result<QueuedTask> {
    Ok(QueuedTask {
        call: event_at(row.get(0)?),
        execution: text(row, 1)?,
        queue: text(row, 2)?,
        priority: row.get(3)?,
        virtual_time: row.get(4)?,
        order: Timestamp(row.get(5)?),
        since: Timestamp(row.get(6)?),
        wait_until: row.get::<_, Option<i64>>(7)?.map(Timestamp),
        timeout: row.get::<_, Option<u64>>(8)?.map(Millis),
        heartbeat: row.get::<_, Option<u64>>(9)?.map(Millis),
        message: row.get(10)?,
    })
}

pub(crate) fn row_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

pub(crate) fn next(connection: &Connection, queue: &str, limit: usize) -> rusqlite::Result<Vec<QueuedTask>> {
    connection
        .prepare_cached(&format!(
            "SELECT {TASK} FROM tasks AS t JOIN executions AS e ON e.number = t.place >> 24
             WHERE t.held IS NULL AND t.queue = ?1 ORDER BY t.priority DESC, t.round, t.ordered, t.place LIMIT ?2"
        ))?
        .query_map(params![queue, row_limit(limit)], task)?
        .collect()
}

pub(crate) fn first(connection: &Connection, queue: &str, below: u8, each: usize) -> rusqlite::Result<Vec<QueuedTask>> {
    let mut found = Vec::new();
    for priority in (0..below).rev() {
        let mut of_one = connection.prepare_cached(&format!(
            "SELECT {TASK} FROM tasks AS t JOIN executions AS e ON e.number = t.place >> 24
             WHERE t.held IS NULL AND t.queue = ?1 AND t.priority = ?2 ORDER BY t.round, t.ordered, t.place LIMIT ?3"
        ))?;
        for row in of_one.query_map(params![queue, priority, row_limit(each)], task)? {
            found.push(row?);
        }
    }
    Ok(found)
}

pub(crate) fn leased(connection: &Connection, shards: &ShardSet) -> rusqlite::Result<Vec<(QueuedTask, TaskLease)>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {TASK}, t.worker, t.held, t.lease_ms FROM tasks AS t JOIN executions AS e ON e.number = t.place >> 24
         WHERE t.held >= ?1 ORDER BY +t.place"
    ))?;
    let mut rows = statement.query([i64::MIN])?;
    let mut leased = Vec::new();
    while let Some(row) = rows.next()? {
        if !shards.has_queue(row.get_ref(QUEUE)?.as_str()?) {
            continue;
        }
        let lease = TaskLease {
            worker: text(row, 11)?,
            held: Timestamp(row.get(12)?),
            heartbeat: Millis(row.get(13)?),
        };
        leased.push((task(row)?, lease));
    }
    Ok(leased)
}

/// A task of an execution without its message: the first that no worker holds, or else the first.
pub(crate) fn of_execution(
    connection: &Connection,
    execution: &str,
    call: Option<EventId>,
) -> rusqlite::Result<Option<(QueuedTask, Option<TaskLease>)>> {
    let number = connection
        .prepare_cached("SELECT number FROM executions WHERE id = ?1")?
        .query_row([execution], |row| row.get::<_, i64>(0))
        .optional()?;
    let Some(number) = number else {
        return Ok(None);
    };
    let (first, last) = match call {
        Some(call) => (place(number, call.0), place(number, call.0)),
        None => (place(number, 0), place(number + 1, 0) - 1),
    };
    let columns = TASK.replace("t.message", "''");
    connection
        .prepare_cached(&format!(
            "SELECT {columns}, t.worker, t.held, t.lease_ms FROM tasks AS t JOIN executions AS e ON e.number = t.place >> 24
             WHERE t.place BETWEEN ?1 AND ?2 ORDER BY t.worker IS NOT NULL, t.place LIMIT 1"
        ))?
        .query_row([first, last], |row| {
            let lease = match row.get_ref(11)?.as_str_or_null()? {
                None => None,
                Some(worker) => Some(TaskLease {
                    worker: Text::from(worker),
                    held: Timestamp(row.get(12)?),
                    heartbeat: Millis(row.get(13)?),
                }),
            };
            Ok((task(row)?, lease))
        })
        .optional()
}

/// How many tasks are taken before this one, counted up to `most`.
pub(crate) fn before(connection: &Connection, task: &QueuedTask, most: u64) -> rusqlite::Result<u64> {
    let number = connection
        .prepare_cached("SELECT number FROM executions WHERE id = ?1")?
        .query_row([task.execution.as_str()], |row| row.get::<_, i64>(0))
        .optional()?;
    // The larger priority goes first. So each term is a range of the index of waiting tasks.
    let higher = "SELECT 1 FROM tasks WHERE held IS NULL AND queue = ?1 AND priority > ?2";
    let same = "SELECT 1 FROM tasks WHERE held IS NULL AND queue = ?1 AND priority = ?2 AND (round, ordered, place) < (?3, ?4, ?5)";
    connection
        .prepare_cached(&format!(
            "SELECT count(*) FROM (SELECT * FROM ({higher}) UNION ALL SELECT * FROM ({same}) LIMIT ?6)"
        ))?
        .query_row(
            params![
                task.queue.as_str(),
                task.priority,
                task.virtual_time,
                task.order.0,
                number.map_or(0, |number| place(number, task.call.0)),
                most,
            ],
            |row| row.get(0),
        )
}

pub(crate) fn depths(connection: &Connection, shards: &ShardSet) -> rusqlite::Result<Vec<Depth>> {
    let mut depths = Vec::new();
    let mut statement = connection.prepare_cached(
        "SELECT queue, priority, count(*), min(round) FROM tasks WHERE held IS NULL AND queue = ?1
         GROUP BY queue, priority ORDER BY queue, priority",
    )?;
    for queue in waiting_queues(connection)? {
        if !shards.has_queue(&queue) {
            continue;
        }
        let found = statement.query_map([queue.as_str()], |row| {
            Ok(Depth {
                queue: text(row, 0)?,
                priority: row.get(1)?,
                waiting: row.get(2)?,
                virtual_time: row.get(3)?,
            })
        })?;
        for depth in found {
            depths.push(depth?);
        }
    }
    Ok(depths)
}

/// The queues in which tasks wait, in order. They are found one after the other, because the index begins with them.
fn waiting_queues(connection: &Connection) -> rusqlite::Result<Vec<Text>> {
    connection
        .prepare_cached(
            "WITH RECURSIVE queues (queue) AS (SELECT min(queue) FROM tasks WHERE held IS NULL
                UNION ALL SELECT (SELECT min(queue) FROM tasks WHERE held IS NULL AND queue > queues.queue) FROM queues
                WHERE queues.queue IS NOT NULL)
             SELECT queue FROM queues WHERE queue IS NOT NULL",
        )?
        .query_map([], |row| text(row, 0))?
        .collect()
}

/// Rows are read one by one in their order, until there are enough of the queues of these shards.
pub(crate) fn overdue(
    connection: &Connection,
    shards: &ShardSet,
    before: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<QueuedTask>> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {TASK} FROM tasks AS t JOIN executions AS e ON e.number = t.place >> 24
         WHERE t.wait_until IS NOT NULL AND t.worker IS NULL AND t.wait_until < ?1 ORDER BY t.wait_until, t.place"
    ))?;
    let mut rows = statement.query([before.0])?;
    let mut overdue = Vec::new();
    while overdue.len() < limit
        && let Some(row) = rows.next()?
    {
        if shards.has_queue(row.get_ref(QUEUE)?.as_str()?) {
            overdue.push(task(row)?);
        }
    }
    Ok(overdue)
}

pub(crate) fn dead(
    connection: &Connection,
    queue: &str,
    after: Option<(&str, EventId)>,
    limit: usize,
) -> rusqlite::Result<Vec<DeadTask>> {
    let after = match after {
        None => -1,
        Some((execution, call)) => connection
            .prepare_cached("SELECT number FROM executions WHERE id = ?1")?
            .query_row([execution], |row| row.get(0))
            .optional()?
            .map_or(-1, |number| place(number, call.0)),
    };
    connection
        .prepare_cached(
            "SELECT d.place, e.id, d.queue, d.step, d.attempt, d.error, d.cause, d.time
             FROM dead_tasks AS d JOIN executions AS e ON e.number = d.place >> 24
             WHERE d.queue = ?1 AND d.place > ?2 ORDER BY d.place LIMIT ?3",
        )?
        .query_map(params![queue, after, row_limit(limit)], |row| {
            Ok(DeadTask {
                call: event_at(row.get(0)?),
                execution: text(row, 1)?,
                queue: text(row, 2)?,
                step: text(row, 3)?,
                attempt: row.get(4)?,
                error: text(row, 5)?,
                cause: text(row, 6)?,
                time: Timestamp(row.get(7)?),
            })
        })?
        .collect()
}

pub(crate) fn dead_counts(connection: &Connection) -> rusqlite::Result<Vec<(Text, u64)>> {
    connection
        .prepare_cached("SELECT queue, count(*) FROM dead_tasks GROUP BY queue ORDER BY queue")?
        .query_map([], |row| Ok((text(row, 0)?, row.get(1)?)))?
        .collect()
}
