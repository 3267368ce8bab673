//! The node's side: queues driven as their engine drives them, but for time and the disk, which are simulated.

use super::bug::Bug;
use super::disk::{Disk, Word, Write};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_ports::{Append, QueuedTask, Queueing, ShardSet, TaskLeaseChange};
use starbridge_runtime::{AdmissionSettings, FairQueue, QueueSettings, Queues, TaskExpiry, TaskGrant, TaskKey};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The queues of a process.
pub(super) struct Desk {
    pub(super) queues: Queues,
    pub(super) fair_queue: Arc<FairQueue>,
    /// When the process was started: its clock begins at 0 then.
    pub(super) began: u64,
    look_again: Millis,
    planted: Option<Bug>,
}

/// The result of a look at the queues.
#[derive(Default)]
pub(super) struct Settled {
    pub(super) expiries: Vec<TaskExpiry>,
    pub(super) empty: Vec<u64>,
    pub(super) grants: Vec<TaskGrant>,
}

const AHEAD: Millis = Millis(60_000);
const RENEWED: Millis = Millis(30_000);

impl Desk {
    /// A process starts.
    pub(super) fn start(disk: &Disk, settings: &BTreeMap<Text, QueueSettings>, now: u64, planted: Option<Bug>) -> Self {
        let fair_queue: Arc<FairQueue> = Arc::default();
        let mut queues = Queues::new(fair_queue.clone(), AdmissionSettings::default().fair_share);
        for (name, settings) in settings {
            queues.configure(name, settings.clone(), Millis::ZERO);
        }
        let depths = disk.store.depths(&ShardSet::ALL).unwrap_or_default();
        let mut leased = disk.store.leased_tasks(&ShardSet::ALL).unwrap_or_default();
        if planted == Some(Bug::LeasesForgotten) {
            leased.clear();
        }
        queues.resume(&depths, leased, Millis::ZERO);
        Self {
            queues,
            fair_queue,
            began: now,
            look_again: Millis::ZERO,
            planted,
        }
    }

    /// The process' clock, which only goes forward.
    pub(super) fn ticks(&self, now: u64, time: Timestamp) -> Millis {
        Millis(match self.planted {
            Some(Bug::LeasesByTheWall) => u64::try_from(time.0).unwrap_or(0),
            _ => now - self.began,
        })
    }

    /// Decides what can be decided now.
    pub(super) fn settle(&mut self, disk: &Disk, now: u64, time: Timestamp) -> Settled {
        let ticks = self.ticks(now, time);
        if ticks >= self.look_again {
            let horizon = time.plus(AHEAD);
            let tasks = disk
                .store
                .overdue_tasks(&ShardSet::ALL, horizon, usize::MAX)
                .unwrap_or_default();
            self.queues.look_ahead(horizon, &tasks);
            self.look_again = ticks.saturating_add(RENEWED);
        }
        let mut settled = Settled::default();
        for _ in 0..4 {
            let polled = self.queues.poll(ticks, time, &|_| true);
            settled.expiries.extend(polled.expiries);
            settled.empty.extend(polled.empty);
            settled.grants.extend(polled.grants);
            if polled.short.is_empty() {
                break;
            }
            for (name, asked) in polled.short {
                let tasks = asked.run(&disk.store, &name).unwrap_or_default();
                self.queues.refill(&name, tasks, asked);
            }
        }
        settled
    }

    /// When there is something to do by itself.
    pub(super) fn next(&self, time: Timestamp, now: u64) -> u64 {
        let ticks = self.ticks(now, time);
        let next = self.queues.next().unwrap_or(self.look_again).min(self.look_again);
        let overdue = self.queues.next_overdue().map(|at| now + at.since(time).0);
        (now + next.saturating_sub(ticks).0)
            .min(overdue.unwrap_or(u64::MAX))
            .max(now + 1)
    }
}

/// The write that begins and ends leases.
pub(super) fn leases(grants: Vec<TaskGrant>, returned: Vec<TaskKey>) -> Write {
    let granted = grants.iter().flat_map(|grant| &grant.tasks);
    let granted = granted.map(|(task, lease)| change(&key_of(task), Some(lease.clone())));
    let changes = granted.chain(returned.iter().map(|key| change(key, None))).collect();
    Write {
        append: Append::of_leases(changes),
        word: Word::ExecutionLeases(grants, returned),
    }
}

fn change(key: &TaskKey, lease: Option<starbridge_ports::TaskLease>) -> TaskLeaseChange {
    TaskLeaseChange {
        execution: key.0.clone(),
        call: key.1,
        lease,
    }
}

/// A task's key.
pub(super) fn key_of(task: &QueuedTask) -> TaskKey {
    (task.execution.clone(), task.call)
}
