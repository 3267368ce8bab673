//! Coming to rest: where processes come and go, an engine has executions only for a time, and gives back what only waits. What
//! is under way when its own time is over is given back as it stands; it goes on elsewhere.

use super::Engine;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{Beat, ExecutionLeases, Message, MessageId, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Time between looks for what others have left for executions that are here, in milliseconds.
const MAIL_MS: u64 = 2_000;
/// Executions looked after in one go.
const LOOKED_AFTER: usize = 16;
/// When to try again what somebody else is in the way of, in milliseconds.
const IN_THE_WAY_MS: u64 = 5_000;

/// An execution that was given back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuspendedExecution {
    /// The execution.
    pub execution: Text,
    /// Where it stands.
    pub status: Status,
    /// When it is to be gone on with, as far as nobody knows that yet; never, if it has ended or only others can bring it on.
    pub again: Vec<Timestamp>,
}

/// That somebody waits for the engine to come to rest.
pub(super) struct Rest {
    pub(super) until: Timestamp,
    pub(super) linger: u64,
    pub(super) reply: oneshot::Sender<Vec<SuspendedExecution>>,
}

/// What an engine knows of executions that are its own for a time only.
pub(super) struct LeasedMode {
    leases: Arc<dyn ExecutionLeases>,
    /// Messages that were delivered here.
    seen: BTreeSet<MessageId>,
    /// When executions that slept were to be woken.
    slept_until: BTreeMap<Text, Timestamp>,
    look_again: Timestamp,
    /// The execution looked after last.
    looked_after: Option<Text>,
    /// Ends of silence that somebody will come and look at, by call.
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

    /// Leaves a message for whoever has an execution. Answers whether anybody has it.
    pub(super) fn leave(&self, message: &Message) -> Result<bool, StoreError> {
        self.leases.leave(message)
    }

    /// An execution was taken that was to be woken then.
    pub(super) fn woke(&mut self, execution: &Text, wake_at: Option<Timestamp>) {
        self.slept_until.extend(wake_at.map(|due| (execution.clone(), due)));
    }

    fn slept(&self, execution: &Text) -> Option<Timestamp> {
        self.slept_until.get(execution).copied()
    }

    /// Those of these messages that were not delivered yet.
    pub(super) fn unseen(&mut self, mut mail: Vec<Message>) -> Vec<Message> {
        mail.retain(|message| self.seen.insert(message.id.clone()));
        mail
    }
}

impl Engine {
    /// Whether what is under way is being given back as it stands.
    pub(super) fn hands_over(&self) -> bool {
        self.still || self.resting.as_ref().is_some_and(|rest| self.now() >= rest.until)
    }

    /// When to see whether the engine has come to rest, at the latest.
    pub(super) fn rests_at(&self) -> Option<Timestamp> {
        let busy = self.writing.is_busy();
        let until = self.resting.as_ref().map(|rest| rest.until).filter(|_| !busy);
        let mail = self.visiting.as_ref().map(|visiting| visiting.look_again);
        until.into_iter().chain(mail.filter(|_| !self.shard.is_empty())).min()
    }

    /// Gives everything back if nothing is left to be done here for now, or time is over. Answers whether there is more to do
    /// after all.
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
            // Whoever asked may have gone.
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

    /// Gives executions back for which no mail has come, and delivers the mail of the others. Answers whether there was any.
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
                    // Word for what was known before is out already, unless that time has come.
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

    /// Takes down when calls of an execution were heard of last. Answers the ends of silence nobody will look at yet.
    fn record_heartbeat_deadlines(&mut self, execution: &Text) -> Result<Vec<Timestamp>, StoreError> {
        let Some(visiting) = &self.visiting else {
            return Ok(Vec::new());
        };
        let mut ends = Vec::new();
        for (call, deadline, millis) in self.heartbeats.of(execution) {
            // A sign of life at exactly the deadline counts.
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

    /// When calls of an execution were heard of last, as far as that was taken down.
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

    /// Whether who works on a call was heard of by somebody else; it is waited for anew then.
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

    /// Takes down a sign of life for whoever has the execution.
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

    /// Delivers what others have left for executions that are here. What comes from one that is here was delivered already.
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

    /// From now on there may be mail for what is here.
    pub(super) fn expect_mail(&mut self) {
        let now = self.now();
        if let Some(visiting) = self.visiting.as_mut().filter(|_| self.shard.is_empty()) {
            visiting.look_again = now.plus_millis(MAIL_MS);
        }
    }

    /// An execution went on elsewhere: what is known of it here is not true any more.
    pub(super) fn lose(&mut self, execution: &Text) {
        tracing::info!(%execution, "somebody else goes on with it");
        self.calls.give_up_those_of(execution);
        self.heartbeats.forget_all_of(execution);
        self.answers.forget(execution);
        self.shard.forget(execution);
    }
}
