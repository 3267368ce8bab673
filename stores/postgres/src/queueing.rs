//! Queues: waiting tasks and dead tasks.

use crate::codec::{Str, Whole, big, event, rows};
use crate::fault::Failure;
use crate::load::event_at;
use crate::record::{long_text, optional_text, text, time};
use crate::session::{Param, Session};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{DeadTask, Depth, QueuedTask, ShardSet, TaskLease};
use tokio_postgres::Row;

const TASK: &str =
    "t.call, e.id, t.queue, t.priority, t.round, t.ordered, t.since, t.wait_until, t.timeout_ms, t.heartbeat_ms,
    t.message";

fn span(row: &Row, column: usize) -> Option<Millis> {
    row.get::<_, Option<i64>>(column)
        .map(|span| Millis(span.unsigned_abs()))
}

fn priority(row: &Row, column: usize) -> u8 {
    u8::try_from(row.get::<_, i16>(column)).unwrap_or_default()
}

fn task(row: &Row) -> Result<QueuedTask, Failure> {
    Ok(QueuedTask {
        call: event_at(row, 0),
        execution: text(row, 1),
        queue: text(row, 2),
        priority: priority(row, 3),
        virtual_time: row.get::<_, i64>(4).unsigned_abs(),
        order: Timestamp(row.get(5)),
        since: Timestamp(row.get(6)),
        wait_until: time(row, 7),
        timeout: span(row, 8),
        heartbeat: span(row, 9),
        message: long_text(row, 10)?,
    })
}

/// Tasks with their executions. Whatever is known of the tables, the tasks lead.
const TASKS: &str =
    "tasks t cross join lateral (select x.id from executions x where x.number = t.number offset 0) as e";

async fn tasks(session: &Session, rest: &str, values: &[Param<'_>]) -> Result<Vec<QueuedTask>, Failure> {
    let sql = format!("select {TASK} from {TASKS} where {rest}");
    session.query(&sql, values).await?.iter().map(task).collect()
}

pub(crate) async fn next(session: &Session, queue: &str, limit: usize) -> Result<Vec<QueuedTask>, Failure> {
    let rest =
        "t.queue = $1 and t.worker is null order by t.priority desc, t.round, t.ordered, t.number, t.call limit $2";
    tasks(session, rest, &[&Str(queue), &rows(limit)]).await
}

/// The first tasks of each priority below `below`: an index gives those of one priority in order.
pub(crate) async fn first(session: &Session, queue: &str, below: u8, each: usize) -> Result<Vec<QueuedTask>, Failure> {
    let sql = format!(
        "select {TASK} from generate_series($2::integer - 1, 0, -1) as p (priority)
            cross join lateral (select * from tasks x where x.queue = $1 and x.worker is null
                and x.priority = p.priority::smallint order by x.round, x.ordered, x.number, x.call limit $3) as t
            cross join lateral (select x.id from executions x where x.number = t.number offset 0) as e
            order by t.priority desc, t.round, t.ordered, t.number, t.call"
    );
    let found = session
        .query(&sql, &[&Str(queue), &i32::from(below), &rows(each)])
        .await?;
    found.iter().map(task).collect()
}

pub(crate) async fn leased(session: &Session, shards: &ShardSet) -> Result<Vec<(QueuedTask, TaskLease)>, Failure> {
    let queues = queues_of(session, shards, HELD_QUEUES).await?;
    let of = if queues.is_some() { "and t.queue = any ($1)" } else { "" };
    let sql = format!(
        "select {TASK}, t.worker, t.held, t.lease_ms from {TASKS}
            where t.worker is not null {of} order by t.number, t.call"
    );
    let values: Vec<Param<'_>> = queues.iter().map(|queues| -> Param<'_> { queues }).collect();
    let rows = session.query(&sql, &values).await?;
    let held = rows.iter().filter_map(|row| lease(row).map(|lease| (row, lease)));
    held.map(|(row, lease)| Ok((task(row)?, lease))).collect()
}

/// The queues that have tasks which workers hold.
const HELD_QUEUES: &str = "select distinct queue from tasks where worker is not null";
/// The queues in which tasks wait. They are found one after the other, because the index begins with them.
const WAITING_QUEUES: &str = "with recursive queues (queue) as (
        (select queue from tasks where worker is null order by queue limit 1)
        union all
        select (select t.queue from tasks t where t.worker is null and t.queue > queues.queue order by t.queue limit 1)
            from queues where queues.queue is not null)
    select queue from queues where queue is not null";

/// The queues of these shards among those that a query finds; `None` if all are wanted.
async fn queues_of(session: &Session, shards: &ShardSet, asked: &str) -> Result<Option<Vec<Whole>>, Failure> {
    if shards.is_all() {
        return Ok(None);
    }
    let found = session.query(asked, &[]).await?;
    let queues = found.iter().map(|row| text(row, 0));
    let queues = queues.filter(|queue| shards.has_queue(queue));
    Ok(Some(queues.map(|queue| Whole(queue.to_string())).collect()))
}

/// The lease of a task, after the columns of [`TASK`].
fn lease(row: &Row) -> Option<TaskLease> {
    optional_text(row, 11).map(|worker| TaskLease {
        worker,
        held: time(row, 12).unwrap_or_default(),
        heartbeat: span(row, 13).unwrap_or_default(),
    })
}

/// A task of an execution without its message: the first that nobody holds, or else the first.
pub(crate) async fn of_execution(
    session: &Session,
    execution: &str,
    call: Option<EventId>,
) -> Result<Option<(QueuedTask, Option<TaskLease>)>, Failure> {
    let columns = TASK.replace("t.message", "''::bytea");
    let sql = format!(
        "select {columns}, t.worker, t.held, t.lease_ms from executions e join tasks t on t.number = e.number
            where e.id = $1 and ($2::integer is null or t.call = $2)
            order by t.worker is not null, t.call limit 1"
    );
    let call = call.map(|call| event(call.0));
    let Some(row) = session.first(&sql, &[&Str(execution), &call]).await? else {
        return Ok(None);
    };
    Ok(Some((task(&row)?, lease(&row))))
}

/// How many tasks are taken before this one, counted up to `most`.
pub(crate) async fn before(session: &Session, task: &QueuedTask, most: u64) -> Result<u64, Failure> {
    // The larger priority goes first. So each term is a range of the index of what waits.
    let asked = "select count(*) from (
            (select 1 from tasks where worker is null and queue = $1 and priority > $2 limit $7)
            union all
            (select 1 from tasks where worker is null and queue = $1 and priority = $2
                and (round, ordered, number, call)
                    < ($3, $4, coalesce((select number from executions where id = $5), 0), $6) limit $7)
            limit $7) as before";
    let values: [Param<'_>; 7] = [
        &Str(&task.queue),
        &i16::from(task.priority),
        &big(task.virtual_time),
        &task.order.0,
        &Str(&task.execution),
        &event(task.call.0),
        &big(most),
    ];
    Ok(session.only(asked, &values).await?.get::<_, i64>(0).unsigned_abs())
}

pub(crate) async fn depths(session: &Session, shards: &ShardSet) -> Result<Vec<Depth>, Failure> {
    let queues = queues_of(session, shards, WAITING_QUEUES).await?;
    let of = if queues.is_some() { "and queue = any ($1)" } else { "" };
    let asked = format!(
        "select queue, priority, count(*), min(round) from tasks where worker is null {of}
        group by queue, priority order by queue, priority"
    );
    let depth = |row: &Row| Depth {
        queue: text(row, 0),
        priority: priority(row, 1),
        waiting: row.get::<_, i64>(2).unsigned_abs(),
        virtual_time: row.get::<_, i64>(3).unsigned_abs(),
    };
    let values: Vec<Param<'_>> = queues.iter().map(|queues| -> Param<'_> { queues }).collect();
    Ok(session.query(&asked, &values).await?.iter().map(depth).collect())
}

pub(crate) async fn overdue(
    session: &Session,
    shards: &ShardSet,
    before: Timestamp,
    limit: usize,
) -> Result<Vec<QueuedTask>, Failure> {
    let queues = queues_of(session, shards, WAITING_QUEUES).await?;
    let of = if queues.is_some() { "and t.queue = any ($3)" } else { "" };
    let rest = format!(
        "t.wait_until is not null and t.worker is null and t.wait_until < $1 {of}
        order by t.wait_until, t.number, t.call limit $2"
    );
    let limit = rows(limit);
    let mut values: Vec<Param<'_>> = vec![&before.0, &limit];
    values.extend(queues.iter().map(|queues| -> Param<'_> { queues }));
    tasks(session, &rest, &values).await
}

pub(crate) async fn dead(
    session: &Session,
    queue: &str,
    after: Option<(&str, EventId)>,
    limit: usize,
) -> Result<Vec<DeadTask>, Failure> {
    let (execution, call) = after.map_or(("", EventId(0)), |after| after);
    let asked = "select d.call, e.id, d.queue, d.step, d.attempt, d.error, d.cause, d.time
        from dead_tasks d join executions e on e.number = d.number
        where d.queue = $1 and (d.number, d.call) > (coalesce((select number from executions where id = $2), -1), $3)
        order by d.number, d.call limit $4";
    let values: [Param<'_>; 4] = [&Str(queue), &Str(execution), &event(call.0), &rows(limit)];
    let dead = |row: &Row| DeadTask {
        call: event_at(row, 0),
        execution: text(row, 1),
        queue: text(row, 2),
        step: text(row, 3),
        attempt: row.get::<_, i32>(4).unsigned_abs(),
        error: text(row, 5),
        cause: text(row, 6),
        time: Timestamp(row.get(7)),
    };
    Ok(session.query(asked, &values).await?.iter().map(dead).collect())
}

pub(crate) async fn dead_counts(session: &Session) -> Result<Vec<(Text, u64)>, Failure> {
    let asked = "select queue, count(*) from dead_tasks group by queue order by queue";
    Ok(counted(&session.query(asked, &[]).await?))
}

/// Rows of a name and a number.
pub(crate) fn counted(rows: &[Row]) -> Vec<(Text, u64)> {
    let count = |row: &Row| (text(row, 0), row.get::<_, i64>(1).unsigned_abs());
    rows.iter().map(count).collect()
}
