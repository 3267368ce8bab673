//! Giving executions back. If several processes share a store, an engine has executions only for a time, and gives
//! back those that only wait. At the end of its own time it gives back everything as it stands, and another process
//! goes on.

use super::Engine;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{Beat, ExecutionLeases, Message, MessageId, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::oneshot;

/// How often to look for messages that others left for loaded executions, in milliseconds.
const MAIL_MS: u64 = 2_000;
/// How many executions are looked after at once.
const LOOKED_AFTER: usize = 16;
/// When to try again after another process was in the way, in milliseconds.
const IN_THE_WAY_MS: u64 = 5_000;

/// An execution that was given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspendedExecution {
    /// The id of the execution.
    pub execution: Text,
    /// The status of the execution.
    pub status: Status,
    /// When to go on with it, as far as nothing is arranged for that yet; empty if it has ended or only others can
    /// make it go on.
    pub again: Vec<Timestamp>,
}

/// A pending [`Command::Rest`](super::Command::Rest).
pub(super) struct Rest {
    pub(super) until: Timestamp,
    pub(super) linger: u64,
    pub(super) reply: oneshot::Sender<Vec<SuspendedExecution>>,
}

/// What an engine knows of executions that it has only for a time.
pub(super) struct LeasedMode {
    leases: Arc<dyn ExecutionLeases>,
    /// Messages that were delivered here.
    seen: BTreeSet<MessageId>,
    /// When loaded executions were to be woken.
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
        self.leases.leave(message)
    }

    /// Records that an execution was loaded that was to be woken at that time.
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
    pub(super) fn hands_over(&self) -> bool {
        self.still || self.resting.as_ref().is_some_and(|rest| self.now() >= rest.until)
    }

    /// The latest time at which to try to give everything back.
    pub(super) fn rests_at(&self) -> Option<Timestamp> {
        let busy = self.writing.is_busy();
        let until = self.resting.as_ref().map(|rest| rest.until).filter(|_| !busy);
        let mail = self.visiting.as_ref().map(|visiting| visiting.look_again);
        until.into_iter().chain(mail.filter(|_| !self.shard.is_empty())).min()
    }

    /// Gives everything back if nothing more can be done here now or the time is over. Returns whether there is more
    /// to do after all.
    pub(super) fn come_to_rest(&mut self) -> Result<bool, StoreError> {
        let Some(rest) = &self.resting else {
            return Ok(false);
        };
        let over = self.hands_over();
        if over {
            self.calls.give_up();
        }
        if self.writing.is_busy() || self.shard.has_batch() {
            return Ok(false);
        }
        if !over && self.shard.next_aside().is_some() {
            return Ok(false);
        }
        if !over && (!self.calls.is_empty() || self.is_woken_before(self.now().plus_millis(rest.linger))) {
            return Ok(false);
        }
        if !over && self.take_mail_of_all()? {
            return Ok(true);
        }
        let resting = self.give_back(over)?;
        self.still = false;
        if let Some(rest) = self.resting.take() {
            // The sender of the command may have gone.
            let _ = rest.reply.send(resting);
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
    fn take_mail_of_all(&mut self) -> Result<bool, StoreError> {
        let Some(visiting) = &mut self.visiting else {
            return Ok(false);
        };
        let mut mail = Vec::new();
        for execution in self.shard.executions() {
            if !visiting.leases.release(execution)? {
                let messages = visiting.leases.mail(execution)?;
                mail.extend(visiting.unseen(messages));
            }
        }
        let any = !mail.is_empty();
        self.shard.redeliver(mail);
        Ok(any)
    }

    fn give_back(&mut self, over: bool) -> Result<Vec<SuspendedExecution>, StoreError> {
        let now = self.now();
        let mut resting = Vec::new();
        let executions: Vec<Text> = self.shard.executions().cloned().collect();
        for execution in executions {
            let mut free = true;
            if let Some(visiting) = &self.visiting {
                free = visiting.leases.release(&execution)?;
            }
            if let Some(record) = self.shard.record(&execution) {
                let again = match (record.status.is_ended(), record.awake) {
                    (true, _) => Vec::new(),
                    (false, false) if free => {
                        let silence = self.record_heartbeat_deadlines(&execution)?;
                        record.wake_at.into_iter().chain(silence).collect()
                    }
                    (false, _) if over || !free => vec![now],
                    (false, _) => vec![now.plus_millis(IN_THE_WAY_MS)],
                };
                let known = self.visiting.as_ref().and_then(|visiting| visiting.slept(&execution));
                resting.push(SuspendedExecution {
                    execution: execution.clone(),
                    status: record.status,
                    // A check for the time known before is already arranged, unless that time has come.
                    again: again
                        .into_iter()
                        .filter(|at| known != Some(*at) || *at <= now)
                        .collect(),
                });
            }
            self.heartbeats.forget_all_of(&execution);
            self.answers.forget(&execution);
            self.shard.forget(&execution);
        }
        for execution in self.shard.forget_aside() {
            self.let_go(&execution)?;
            resting.push(SuspendedExecution {
                execution,
                status: Status::Running,
                again: vec![now.plus_millis(IN_THE_WAY_MS)],
            });
        }
        if let Some(visiting) = &mut self.visiting {
            visiting.seen.clear();
            visiting.slept_until.clear();
            visiting.told.clear();
        }
        Ok(resting)
    }

    /// Stores the last heartbeats on calls of an execution. Returns the deadlines for which no check is arranged yet.
    fn record_heartbeat_deadlines(&mut self, execution: &Text) -> Result<Vec<Timestamp>, StoreError> {
        let Some(visiting) = &self.visiting else {
            return Ok(Vec::new());
        };
        let mut ends = Vec::new();
        for (call, deadline, millis) in self.heartbeats.of(execution) {
            // A heartbeat exactly at the deadline is in time.
            let end = deadline.plus_millis(1);
            if visiting.told.get(&(execution.clone(), call)) == Some(&end) {
                continue;
            }
            let millis = i64::try_from(millis).unwrap_or(i64::MAX);
            let seen = Timestamp(deadline.0.saturating_sub(millis));
            let told = Some(end);
            visiting.leases.beat(execution, &Beat { call, seen, told })?;
            ends.push(end);
        }
        Ok(ends)
    }

    /// The last heartbeats on calls of an execution, as far as they are stored.
    pub(super) fn heard_of(&mut self, execution: &str) -> Result<BTreeMap<EventId, Timestamp>, StoreError> {
        let mut heard = BTreeMap::new();
        if let Some(visiting) = &mut self.visiting {
            for beat in visiting.leases.beats(execution)? {
                heard.insert(beat.call, beat.seen);
                let told = beat.told.map(|told| ((execution.into(), beat.call), told));
                visiting.told.extend(told);
            }
        }
        Ok(heard)
    }

    /// Whether another process took a heartbeat for a call. The deadline then begins anew.
    pub(super) fn was_heard_elsewhere(&mut self, execution: &Text, call: EventId, now: Timestamp) -> bool {
        if self.visiting.is_none() {
            return false;
        }
        let every = self
            .shard
            .state(execution)
            .zip(self.shard.flow(execution))
            .and_then(|(state, flow)| state.call_to_send(flow, call)?.heartbeat_ms);
        let heard = self.heard_of(execution).unwrap_or_default().get(&call).copied();
        match (heard, every) {
            (Some(seen), Some(millis)) if seen.plus_millis(millis) >= now => {
                self.heartbeats.expect(execution, call, millis, seen);
                true
            }
            _ => false,
        }
    }

    /// Stores a heartbeat for the process that has the execution.
    pub(super) fn hear(&self, execution: &str, call: EventId, now: Timestamp) -> Result<(), StoreError> {
        let beat = Beat {
            call,
            seen: now,
            told: None,
        };
        match &self.visiting {
            Some(visiting) => visiting.leases.beat(execution, &beat),
            None => Ok(()),
        }
    }

    /// Delivers what others left for loaded executions. Messages from executions that are loaded here were delivered
    /// already.
    pub(super) fn look_for_mail(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let Some(visiting) = &mut self.visiting else {
            return Ok(());
        };
        if now < visiting.look_again || self.shard.is_empty() {
            return Ok(());
        }
        visiting.look_again = now.plus_millis(MAIL_MS);
        let after = |execution: &&Text| visiting.looked_after.as_ref().is_none_or(|last| *execution > last);
        let next: Vec<Text> = self
            .shard
            .executions()
            .filter(after)
            .take(LOOKED_AFTER)
            .cloned()
            .collect();
        visiting.looked_after = next.last().filter(|_| next.len() == LOOKED_AFTER).cloned();
        for execution in next {
            if self
                .shard
                .state(&execution)
                .is_none_or(|state| state.status().is_ended())
            {
                continue;
            }
            let mut mail = visiting.leases.mail(&execution)?;
            mail.retain(|message| message.id.from == execution || self.shard.state(&message.id.from).is_none());
            let mail = visiting.unseen(mail);
            self.shard.redeliver(mail);
        }
        Ok(())
    }

    /// Looks for messages from now on.
    pub(super) fn expect_mail(&mut self) {
        let now = self.now();
        if let Some(visiting) = self.visiting.as_mut().filter(|_| self.shard.is_empty()) {
            visiting.look_again = now.plus_millis(MAIL_MS);
        }
    }

    /// Drops an execution that went on elsewhere: its state here is out of date.
    pub(super) fn lose(&mut self, execution: &Text) {
        tracing::info!(%execution, "somebody else goes on with it");
        self.calls.give_up_those_of(execution);
        self.heartbeats.forget_all_of(execution);
        self.answers.forget(execution);
        self.shard.forget(execution);
    }
}
