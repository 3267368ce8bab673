//! The counters of a node.

use starbridge_machine::{EventKind, Status};
use starbridge_runtime::Outgoing;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that only grow, from the start of the process.
#[derive(Debug, Default)]
pub struct Counters {
    /// Executions that were started.
    pub started: AtomicU64,
    /// Starts that were kept until they can be carried out.
    pub kept: AtomicU64,
    /// Turns that were appended.
    pub turns: AtomicU64,
    /// Events that were appended.
    pub events: AtomicU64,
    /// Calls handed to their connectors. A call that is sent again counts again.
    pub calls: AtomicU64,
    /// Attempts that failed.
    pub failures: AtomicU64,
    /// Retries that were scheduled.
    pub retries: AtomicU64,
    /// Tasks given to workers.
    pub held: AtomicU64,
    /// Tasks whose worker missed its heartbeat.
    pub leases_ended: AtomicU64,
    /// Reports taken from reply queues.
    pub replies: AtomicU64,
    /// Messages of reply queues that could not be handled.
    pub replies_rejected: AtomicU64,
    /// Triggers of schedules whose flow could not be started.
    pub schedule_refusals: AtomicU64,
    /// Late reports that were ignored.
    pub late: AtomicU64,
    /// By the position of the status in [`Status::ALL`].
    ended: [AtomicU64; Status::ALL.len()],
}

/// How many executions ended with each status.
pub type TotalsByStatus = Vec<(Status, u64)>;

impl Counters {
    pub(super) fn see(&self, outgoing: &Outgoing) {
        let add = |counter: &AtomicU64, count: u64| {
            counter.fetch_add(count, Ordering::Relaxed);
        };
        match outgoing {
            Outgoing::Started { .. } => add(&self.started, 1),
            Outgoing::Requested { .. } => add(&self.kept, 1),
            Outgoing::Send { .. } => add(&self.calls, 1),
            Outgoing::Turn { events, .. } => {
                add(&self.turns, 1);
                add(&self.events, events.len() as u64);
                for event in events {
                    match &event.detail {
                        EventKind::StepFailed { .. } => add(&self.failures, 1),
                        EventKind::RetryScheduled { .. } => add(&self.retries, 1),
                        EventKind::LateResultIgnored { .. } => add(&self.late, 1),
                        EventKind::TaskTimedOut { redeliver: Some(_), .. } => add(&self.leases_ended, 1),
                        _ => {}
                    }
                }
            }
            Outgoing::Ended { status, .. } => {
                let place = Status::ALL.iter().position(|known| known == status);
                if let Some(counter) = place.and_then(|place| self.ended.get(place)) {
                    add(counter, 1);
                }
            }
            _ => {}
        }
    }

    /// How many executions ended with each status.
    pub fn ended(&self) -> TotalsByStatus {
        let counts = self.ended.iter().map(|count| count.load(Ordering::Relaxed));
        let all = Status::ALL.into_iter().zip(counts);
        all.filter(|(status, _)| status.is_ended()).collect()
    }
}
