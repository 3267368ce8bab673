//! Giving executions back. If several processes share a store, an engine has executions only for a time, and gives
//! back those that only wait. At the end of its own time it gives back everything as it is, and
//! another process goes on.

use super::Engine;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{ExecutionLeases, Heartbeat, Message, MessageId, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::oneshot;

/// How often to look for messages that others left for loaded executions.
const MESSAGE_POLL: Millis = Millis(2_000);
/// How many executions are looked after at once.
const EXECUTIONS_PER_POLL: usize = 16;
/// When to try again after another process was in the way.
const CONTENTION_RETRY: Millis = Millis(5_000);

/// An execution that was given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspendedExecution {
    /// The id of the execution.
    pub execution: Text,
    /// The status of the execution.
    pub status: Status,
    /// When to go on with it, where no wake-up is arranged yet; empty if it has ended or only
    /// others can make it go on.
    pub resume_at: Vec<Timestamp>,
}

/// A pending [`Command::Quiesce`](super::Command::Quiesce).
pub(super) struct Quiesce {
    pub(super) until: Timestamp,
    pub(super) grace: Millis,
    pub(super) reply: oneshot::Sender<Vec<SuspendedExecution>>,
}

/// The state that an engine keeps of executions it has only for a time.
pub(super) struct LeasedMode {
    leases: Arc<dyn ExecutionLeases>,
    /// Messages that were delivered here.
    seen: BTreeSet<MessageId>,
    /// When loaded executions had to be woken.
    slept_until: BTreeMap<Text, Timestamp>,
    look_again: Timestamp,
    /// The execution that was looked after last.
    looked_after: Option<Text>,
    /// Heartbeat deadlines for which a check is arranged, by call.
    told: BTreeMap<(Text, EventId), Timestamp>,
}

impl LeasedMode {
    pub(super) fn new(leases: Arc<dyn ExecutionLeases>) -> Self {
        Self {
            leases,
            seen: BTreeSet::new(),
            slept_until: BTreeMap::new(),
            look_again: Timestamp::default(),
            looked_after: None,
            told: BTreeMap::new(),
        }
    }

    /// Leaves a message for the process that has an execution. Returns whether any has it.
    pub(super) fn leave(&self, message: &Message) -> Result<bool, StoreError> {
        self.leases.leave_message(message)
    }

    /// Records that an execution that had to be woken at this time was loaded.
    pub(super) fn woke(&mut self, execution: &Text, wake_at: Option<Timestamp>) {
        self.slept_until.extend(wake_at.map(|due| (execution.clone(), due)));
    }

    fn slept(&self, execution: &Text) -> Option<Timestamp> {
        self.slept_until.get(execution).copied()
    }

    /// The messages that were not delivered yet.
    pub(super) fn unseen(&mut self, mut mail: Vec<Message>) -> Vec<Message> {
        mail.retain(|message| self.seen.insert(message.id.clone()));
        mail
    }
}

impl Engine {
    /// Whether everything is being given back as it stands.
    pub(super) fn is_handing_over(&self) -> bool {
        self.paused || self.quiescence.as_ref().is_some_and(|rest| self.now() >= rest.until)
    }

    /// The latest time at which to try to give everything back.
    pub(super) fn quiesces_at(&self) -> Option<Timestamp> {
        let busy = self.writing.is_busy();
        let until = self.quiescence.as_ref().map(|rest| rest.until).filter(|_| !busy);
        let mail = self.leased.as_ref().map(|leased| leased.look_again);
        until.into_iter().chain(mail.filter(|_| !self.shard.is_empty())).min()
    }

    /// Gives everything back if nothing more can be done here now or the time is over. Returns
    /// whether more work turned up.
    pub(super) fn quiesce(&mut self) -> Result<bool, StoreError> {
        let Some(rest) = &self.quiescence else {
            return Ok(false);
        };
        let over = self.is_handing_over();
        if over {
            self.calls.give_up();
        }
        if self.writing.is_busy() || self.shard.has_batch() {
            return Ok(false);
        }
        if !over && self.shard.next_aside().is_some() {
            return Ok(false);
        }
        if !over && (!self.calls.is_empty() || self.is_woken_before(self.now().plus(rest.grace))) {
            return Ok(false);
        }
        if !over && self.take_all_messages()? {
            return Ok(true);
        }
        let suspended = self.give_back(over)?;
        self.paused = false;
        if let Some(rest) = self.quiescence.take() {
            // The sender of the command may have gone.
            let _ = rest.reply.send(suspended);
        }
        Ok(false)
    }

    fn is_woken_before(&self, then: Timestamp) -> bool {
        let timers = [
            self.shard.next_wakeup(),
            self.heartbeats.next(),
            self.sleepers.soonest(),
        ];
        timers.into_iter().flatten().any(|due| due <= then)
    }

    /// Gives back executions for which there are no messages, and delivers the messages of the others. Returns
    /// whether there were any.
    fn take_all_messages(&mut self) -> Result<bool, StoreError> {
        let Some(leased) = &mut self.leased else {
            return Ok(false);
        };
        let mut mail = Vec::new();
        for execution in self.shard.executions() {
            if !leased.leases.release(execution)? {
                let messages = leased.leases.messages_for(execution)?;
                mail.extend(leased.unseen(messages));
            }
        }
        let any = !mail.is_empty();
        self.shard.redeliver(mail);
        Ok(any)
    }

    fn give_back(&mut self, over: bool) -> Result<Vec<SuspendedExecution>, StoreError> {
        let now = self.now();
        let mut suspended = Vec::new();
        let executions: Vec<Text> = self.shard.executions().cloned().collect();
        for execution in executions {
            let mut free = true;
            if let Some(leased) = &self.leased {
                free = leased.leases.release(&execution)?;
            }
            if let Some(record) = self.shard.record(&execution) {
                let again = match (record.status.is_ended(), record.awake) {
                    (true, _) => Vec::new(),
                    (false, false) if free => {
                        let silence = self.record_heartbeat_deadlines(&execution)?;
                        record.wake_at.into_iter().chain(silence).collect()
                    }
                    (false, _) if over || !free => vec![now],
                    (false, _) => vec![now.plus(CONTENTION_RETRY)],
                };
                let known = self.leased.as_ref().and_then(|leased| leased.slept(&execution));
                suspended.push(SuspendedExecution {
                    execution: execution.clone(),
                    status: record.status,
                    // A check for the time known before is already arranged, unless that time has come.
                    resume_at: again
                        .into_iter()
                        .filter(|at| known != Some(*at) || *at <= now)
                        .collect(),
                });
            }
            self.heartbeats.forget_all_of(&execution);
            self.waiters.forget(&execution);
            self.shard.forget(&execution);
        }
        for (execution, due) in self.shard.leave_waiting() {
            let free = match &self.leased {
                Some(leased) => leased.leases.release(&execution)?,
                None => true,
            };
            let known = self.leased.as_ref().and_then(|leased| leased.slept(&execution));
            let again = if free { due } else { Some(now) };
            self.waiters.forget(&execution);
            suspended.push(SuspendedExecution {
                execution,
                status: Status::Delayed,
                resume_at: again
                    .into_iter()
                    .filter(|at| known != Some(*at) || *at <= now)
                    .collect(),
            });
        }
        for execution in self.shard.forget_aside() {
            self.let_go(&execution)?;
            suspended.push(SuspendedExecution {
                execution,
                status: Status::Running,
                resume_at: vec![now.plus(CONTENTION_RETRY)],
            });
        }
        if let Some(leased) = &mut self.leased {
            leased.seen.clear();
            leased.slept_until.clear();
            leased.told.clear();
        }
        Ok(suspended)
    }

    /// Stores the last heartbeats on calls of an execution. Returns the deadlines for which no check is arranged yet.
    fn record_heartbeat_deadlines(&mut self, execution: &Text) -> Result<Vec<Timestamp>, StoreError> {
        let Some(leased) = &self.leased else {
            return Ok(Vec::new());
        };
        let mut ends = Vec::new();
        for (call, deadline, every) in self.heartbeats.of(execution) {
            // A heartbeat exactly at the deadline is in time.
            let end = deadline.plus(Millis(1));
            if leased.told.get(&(execution.clone(), call)) == Some(&end) {
                continue;
            }
            let seen = deadline.minus(every);
            let told = Some(end);
            leased.leases.heartbeat(execution, &Heartbeat { call, seen, told })?;
            ends.push(end);
        }
        Ok(ends)
    }

    /// The last heartbeats on calls of an execution, as far as they are stored.
    pub(super) fn heard_of(&mut self, execution: &str) -> Result<BTreeMap<EventId, Timestamp>, StoreError> {
        let mut heard = BTreeMap::new();
        if let Some(leased) = &mut self.leased {
            for beat in leased.leases.heartbeats(execution)? {
                heard.insert(beat.call, beat.seen);
                let told = beat.told.map(|told| ((execution.into(), beat.call), told));
                leased.told.extend(told);
            }
        }
        Ok(heard)
    }

    /// Whether another process took a heartbeat for a call. The deadline then starts again.
    pub(super) fn was_heard_elsewhere(&mut self, execution: &Text, call: EventId, now: Timestamp) -> bool {
        if self.leased.is_none() {
            return false;
        }
        let every = self
            .shard
            .state(execution)
            .zip(self.shard.flow(execution))
            .and_then(|(state, flow)| state.call_to_send(flow, call)?.heartbeat);
        let heard = self.heard_of(execution).unwrap_or_default().get(&call).copied();
        match (heard, every) {
            (Some(seen), Some(every)) if seen.plus(every) >= now => {
                self.heartbeats.expect(execution, call, every, seen);
                true
            }
            _ => false,
        }
    }

    /// Stores a heartbeat for the process that has the execution.
    pub(super) fn hear(&self, execution: &str, call: EventId, now: Timestamp) -> Result<(), StoreError> {
        let beat = Heartbeat {
            call,
            seen: now,
            told: None,
        };
        match &self.leased {
            Some(leased) => leased.leases.heartbeat(execution, &beat),
            None => Ok(()),
        }
    }

    /// Delivers the messages that others left for loaded executions. Messages from executions that
    /// are loaded here were delivered already.
    pub(super) fn poll_messages(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let Some(leased) = &mut self.leased else {
            return Ok(());
        };
        if now < leased.look_again || self.shard.is_empty() {
            return Ok(());
        }
        leased.look_again = now.plus(MESSAGE_POLL);
        let after = |execution: &&Text| leased.looked_after.as_ref().is_none_or(|last| *execution > last);
        let next: Vec<Text> = self
            .shard
            .executions()
            .filter(after)
            .take(EXECUTIONS_PER_POLL)
            .cloned()
            .collect();
        leased.looked_after = next.last().filter(|_| next.len() == EXECUTIONS_PER_POLL).cloned();
        for execution in next {
            if self
                .shard
                .state(&execution)
                .is_none_or(|state| state.status().is_ended())
            {
                continue;
            }
            let mut mail = leased.leases.messages_for(&execution)?;
            mail.retain(|message| message.id.from == execution || self.shard.state(&message.id.from).is_none());
            let mail = leased.unseen(mail);
            self.shard.redeliver(mail);
        }
        Ok(())
    }

    /// Looks for messages from now on.
    pub(super) fn expect_messages(&mut self) {
        let now = self.now();
        if let Some(leased) = self.leased.as_mut().filter(|_| self.shard.is_empty()) {
            leased.look_again = now.plus(MESSAGE_POLL);
        }
    }

    /// Drops an execution that another process extended: its state here is out of date.
    pub(super) fn lose(&mut self, execution: &Text) {
        tracing::info!(%execution, "somebody else goes on with it");
        self.calls.give_up_those_of(execution);
        self.heartbeats.forget_all_of(execution);
        self.waiters.lose(execution);
        self.shard.forget(execution);
    }
}
