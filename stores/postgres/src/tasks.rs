//! Changes of tasks in queues and of dead tasks.

use crate::codec::{Str, big, event};
use crate::parts::by_bytes;
use crate::session::{Owned, Sent, column};
use starbridge_ports::{DeadTask, QueuedTask, TaskLease, TaskLeaseChange};

/// An execution and a call of it.
pub(crate) type Call = (i64, i32);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskChange {
    Queue,
    Remove,
    Withdraw,
    Lease,
}

pub(crate) enum TaskRow<'a> {
    Task(&'a QueuedTask),
    Lease(&'a TaskLeaseChange),
    Gone,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeadChange {
    Bury,
    Clear,
    ClearAll,
}

fn calls<'s, C: 's>(changes: &'s [(Call, C)]) -> Vec<Owned<'s>> {
    vec![
        column(changes, |change| change.0.0),
        column(changes, |change| change.0.1),
    ]
}

pub(crate) fn send<'s>(sent: &mut Vec<Sent<'s>>, kind: TaskChange, changes: &'s [(Call, TaskRow<'s>)]) {
    match kind {
        TaskChange::Queue => {
            let tasks: Vec<(Call, &'s QueuedTask)> = changes
                .iter()
                .filter_map(|(call, row)| match row {
                    TaskRow::Task(task) => Some((*call, *task)),
                    TaskRow::Lease(_) | TaskRow::Gone => None,
                })
                .collect();
            for some in by_bytes(&tasks, |(_, task)| task.message.len()) {
                sent.push(queue(some));
            }
        }
        TaskChange::Remove => sent.push(Sent::new(
            "delete from tasks t using unnest($1::bigint[], $2::integer[]) as d (number, call)
                where t.number = d.number and t.call = d.call",
            calls(changes),
        )),
        TaskChange::Withdraw => sent.push(Sent::new(
            "delete from tasks t using unnest($1::bigint[], $2::integer[]) as d (number, call)
                where t.number = d.number and t.call = d.call and t.worker is null",
            calls(changes),
        )),
        TaskChange::Lease => sent.push(lease(changes)),
    }
}

fn queue<'s>(tasks: &[(Call, &'s QueuedTask)]) -> Sent<'s> {
    let only: Vec<&'s QueuedTask> = tasks.iter().map(|(_, task)| *task).collect();
    Sent::new(
        "insert into tasks (number, call, queue, priority, round, ordered, since, wait_until, timeout_ms, heartbeat_ms, message)
            select * from unnest($1::bigint[], $2::integer[], $3::text[], $4::smallint[], $5::bigint[], $6::bigint[],
                $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bytea[])
            on conflict do nothing",
        vec![
            column(tasks, |(call, _)| call.0),
            column(tasks, |(call, _)| call.1),
            Box::new(only.iter().map(|task| Str(&task.queue)).collect::<Vec<Str<'s>>>()),
            column(&only, |task| i16::from(task.priority)),
            column(&only, |task| big(task.virtual_time)),
            column(&only, |task| task.order.0),
            column(&only, |task| task.since.0),
            column(&only, |task| task.wait_until.map(|until| until.0)),
            column(&only, |task| task.timeout.map(|span| big(span.0))),
            column(&only, |task| task.heartbeat.map(|span| big(span.0))),
            Box::new(only.iter().map(|task| task.message.as_bytes()).collect::<Vec<&'s [u8]>>()),
        ],
    )
}

fn lease<'s>(changes: &'s [(Call, TaskRow<'s>)]) -> Sent<'s> {
    let lease = |row: &'s TaskRow<'s>| -> Option<&'s TaskLease> {
        match row {
            TaskRow::Lease(change) => change.lease.as_ref(),
            TaskRow::Task(_) | TaskRow::Gone => None,
        }
    };
    let leases: Vec<Option<&'s TaskLease>> = changes.iter().map(|(_, row)| lease(row)).collect();
    let mut values = calls(changes);
    values.push(Box::new(
        leases
            .iter()
            .map(|lease| lease.map(|lease| Str(&lease.worker)))
            .collect::<Vec<Option<Str<'s>>>>(),
    ));
    values.push(column(&leases, |lease| lease.map(|lease| lease.held.0)));
    values.push(column(&leases, |lease| lease.map(|lease| big(lease.heartbeat.0))));
    Sent::new(
        "update tasks t set worker = l.worker, held = l.held, lease_ms = l.lease_ms
            from unnest($1::bigint[], $2::integer[], $3::text[], $4::bigint[], $5::bigint[])
                as l (number, call, worker, held, lease_ms)
            where t.number = l.number and t.call = l.call",
        values,
    )
}

pub(crate) fn send_dead<'s>(sent: &mut Vec<Sent<'s>>, kind: DeadChange, changes: &'s [(Call, Option<&'s DeadTask>)]) {
    match kind {
        DeadChange::Clear => sent.push(Sent::new(
            "delete from dead_tasks t using unnest($1::bigint[], $2::integer[]) as d (number, call)
                where t.number = d.number and t.call = d.call",
            calls(changes),
        )),
        DeadChange::ClearAll => sent.push(Sent::new(
            "delete from dead_tasks where number = any($1::bigint[])",
            vec![column(changes, |change| change.0.0)],
        )),
        DeadChange::Bury => {
            let dead: Vec<(Call, &'s DeadTask)> = changes
                .iter()
                .filter_map(|(call, dead)| Some((*call, (*dead)?)))
                .collect();
            sent.push(insert_dead(&dead));
        }
    }
}

fn insert_dead<'s>(dead: &[(Call, &'s DeadTask)]) -> Sent<'s> {
    let only: Vec<&'s DeadTask> = dead.iter().map(|(_, dead)| *dead).collect();
    let text = |of: fn(&'s DeadTask) -> &'s str| -> Owned<'s> {
        Box::new(only.iter().map(|dead| Str(of(dead))).collect::<Vec<Str<'s>>>())
    };
    Sent::new(
        "insert into dead_tasks select * from unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::integer[],
                $6::text[], $7::text[], $8::bigint[])
            on conflict (number, call) do update set queue = excluded.queue, step = excluded.step,
                attempt = excluded.attempt, error = excluded.error, cause = excluded.cause, time = excluded.time",
        vec![
            column(dead, |(call, _)| call.0),
            column(dead, |(call, _)| call.1),
            text(|dead| &dead.queue),
            text(|dead| &dead.step),
            column(&only, |dead| event(u64::from(dead.attempt))),
            text(|dead| &dead.error),
            text(|dead| &dead.cause),
            column(&only, |dead| dead.time.0),
        ],
    )
}
