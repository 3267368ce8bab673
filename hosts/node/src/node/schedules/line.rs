//! Schedules whose triggers wait for one another. Each trigger starts an execution at once, which waits for the one slot of the
//! schedule's concurrency key.

use super::{Outcome, Scheduled, start_of};
use crate::node::Node;
use starbridge_flow::value::Text;
use starbridge_ports::{Dependency, KeyPause, NeededKey, PoolKey, SCHEDULE_POOL, StoreError};
use starbridge_runtime::schedule::{Overlap, Schedule, Trigger};
use starbridge_runtime::{AdmissionCommand, KeyChange, StartRequest};
use tokio::sync::oneshot;

fn key_of(schedule: &Schedule) -> PoolKey {
    PoolKey {
        pool: SCHEDULE_POOL.into(),
        key: schedule.name.clone(),
    }
}

/// Whether no execution in the schedule's line may begin.
fn holds_line(schedule: &Schedule) -> bool {
    schedule.paused && schedule.overlap == Overlap::Queue
}

impl Scheduled {
    /// The start request of a trigger in the line of the schedule.
    fn start_in_line(&self, trigger: &Trigger) -> StartRequest {
        let slot = NeededKey {
            key: key_of(&self.schedule),
            limit: 1,
        };
        let before = self.before.iter().map(|execution| Dependency {
            flow: None,
            execution: execution.clone(),
            any_end: true,
        });
        StartRequest {
            order_time: Some(trigger.time.0),
            keys: vec![slot],
            after: before.collect(),
            ..start_of(&self.schedule, trigger)
        }
    }
}

impl Node {
    /// Starts due triggers and those that an earlier process left in its own queue, in the order of
    /// the triggers. `running`: whether the execution that was started last has not ended. Returns whether that was possible.
    pub(super) async fn start_in_line(&self, mut scheduled: Scheduled, due: Vec<Trigger>, running: bool) -> bool {
        if running && !scheduled.keyed {
            scheduled.before.clone_from(&scheduled.latest);
        }
        let ended = |before: &Text| !self.has_not_ended(before);
        scheduled.before.take_if(|before| ended(before));
        let queued = std::mem::take(&mut scheduled.queued);
        let queued = queued.into_iter().map(|time| scheduled.schedule.trigger(time));
        for trigger in queued.chain(due).collect::<Vec<_>>() {
            let start = scheduled.start_in_line(&trigger);
            let error = match self.start_trigger(&scheduled.schedule, &trigger, start).await {
                Ok(Ok(execution)) => {
                    scheduled.latest = Some(execution);
                    scheduled.keyed = true;
                    None
                }
                Ok(Err(error)) => Some(error),
                // The next check starts the same.
                Err(()) => return false,
            };
            scheduled.outcome = Some(Outcome {
                time: trigger.time,
                error,
            });
        }
        self.keep_fired(scheduled)
    }

    /// Whether an execution exists that has not ended. If that is not known, it is assumed: two
    /// executions must not overlap.
    pub(super) fn has_not_ended(&self, execution: &str) -> bool {
        let record = self.store.record(execution);
        record.map_or(true, |record| record.is_some_and(|record| record.ended.is_none()))
    }

    /// While a schedule is paused, executions in its line wait.
    pub(super) fn hold_line(&self, schedule: &Schedule, by: &Text) {
        self.set_line(schedule, holds_line(schedule), by);
    }

    /// The schedule was deleted: executions in its line begin one after the other.
    pub(super) fn let_line_go(&self, schedule: &Schedule, by: &Text) {
        if holds_line(schedule) {
            self.set_line(schedule, false, by);
        }
    }

    /// After a start, makes sure that the line of a paused schedule is held. The process may have
    /// ended between the two changes.
    pub(super) fn hold_line_as_kept(&self, schedule: &Schedule) -> Result<(), StoreError> {
        if self.admission.is_none() {
            return Ok(());
        }
        let kept = self.store.key(&key_of(schedule))?.kept;
        if kept.paused.is_some() != holds_line(schedule) {
            let by = kept.paused.map(|pause| pause.by).unwrap_or_default();
            self.hold_line(schedule, &by);
        }
        Ok(())
    }

    fn set_line(&self, schedule: &Schedule, held: bool, by: &Text) {
        let Some(admission) = &self.admission else {
            return;
        };
        let pause = held.then(|| KeyPause {
            by: by.clone(),
            since: self.now(),
        });
        let change = Box::new(KeyChange {
            paused: Some(pause),
            by: by.clone(),
            ..KeyChange::default()
        });
        let key = key_of(schedule);
        // The schedule's pause is durable and the next start would do the same, so this does not
        // wait for the answer.
        let (reply, _) = oneshot::channel();
        admission.send(AdmissionCommand::Change {
            key,
            change,
            flow: None,
            reply,
        });
    }
}
