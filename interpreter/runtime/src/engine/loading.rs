//! Loading executions from the store.

use super::{Engine, Reply};
use crate::shard::{ForkRequest, LARGE_BYTES, fold_up, kept_fork};
use starbridge_flow::time::Millis;
use starbridge_flow::value::Text;
use starbridge_machine::{Event, EventId, EventKind};
use starbridge_ports::{CULPRIT, Epochs, Loading, Receivers, SUSPECT, StoreError, StoredHistory};
use std::collections::BTreeSet;

/// How many executions are loaded together, and before requests are looked at again.
pub(super) const LOADED_AT_ONCE: usize = 16;

impl Engine {
    /// Whether an execution belongs to this engine.
    pub(super) fn is_mine(&self, execution: &str) -> bool {
        self.shard.owns(execution)
    }

    /// Loads an execution for which there is something, or records that it does not exist. One that
    /// can't be read is skipped, so that the others go on.
    pub(super) fn fetch(&mut self, execution: &str) -> Result<(), StoreError> {
        if self.shard.is_held_off(execution) {
            return Ok(());
        }
        let loading = self.deps.history.load(execution);
        self.fetched(execution, loading)
    }

    /// Loads several executions, in their order. One that is loaded by then is left alone.
    pub(super) fn fetch_many(&mut self, executions: &[Text]) -> Result<(), StoreError> {
        let mut rest = executions;
        while !rest.is_empty() {
            let answers = self.deps.history.load_many(rest)?;
            let (answered, others) = rest.split_at(answers.len().clamp(1, rest.len()));
            for (execution, loading) in answered.iter().zip(answers) {
                if !self.is_known(execution) {
                    self.fetched(execution, loading)?;
                }
            }
            rest = others;
        }
        Ok(())
    }

    /// Loads an execution as [`Engine::fetch`] does, and others together with it that will be wanted next.
    pub(super) fn fetch_wanted(&mut self, execution: &Text) -> Result<(), StoreError> {
        let mut wanted = self.shard.wanted(LOADED_AT_ONCE);
        wanted.retain(|other| other != execution);
        if wanted.is_empty() {
            return self.fetch(execution);
        }
        wanted.insert(0, execution.clone());
        let mut answers = self.deps.history.load_many(&wanted)?.into_iter();
        let next = answers.next();
        for (other, loading) in wanted[1..].iter().zip(answers) {
            // Whether one does not exist is found out again when its turn comes: the shard knows that of one at a time.
            if !self.is_known(other) && matches!(loading, Ok(Some(_))) {
                self.fetched(other, loading)?;
            }
        }
        next.map_or(Ok(()), |loading| self.fetched(execution, loading))
    }

    fn fetched(&mut self, execution: &str, loading: Loading) -> Result<(), StoreError> {
        let limit = if self.has_room() { None } else { Some(LARGE_BYTES) };
        match loading.and_then(|stored| self.take_up_found(execution, stored, limit)) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(StoreError::Held(_)) => {
                self.shard.elsewhere(execution);
                return Ok(());
            }
            Err(StoreError::Corrupt(why)) => tracing::error!(execution, why, "an execution can't be taken up"),
            Err(error) => return Err(error),
        }
        self.shard.absent(execution.into());
        Ok(())
    }

    /// Whether nothing is to be loaded of an execution, because it is here or held off.
    fn is_known(&self, execution: &str) -> bool {
        self.shard.state(execution).is_some()
            || self.shard.is_aside(execution)
            || self.shard.waits_to_begin(execution)
            || self.shard.is_held_off(execution)
    }

    /// Loads an execution, however large it is. Returns whether it exists.
    fn load(&mut self, execution: &str) -> Result<bool, StoreError> {
        let stored = self.deps.history.load(execution)?;
        self.take_up_found(execution, stored, None)
    }

    /// Loads an execution from what was found. Returns whether it exists. One that is set aside is not run. One that holds as many
    /// bytes as `limit` is held off instead.
    fn take_up_found(
        &mut self,
        execution: &str,
        stored: Option<StoredHistory>,
        limit: Option<usize>,
    ) -> Result<bool, StoreError> {
        let Some(stored) = stored else {
            return Ok(false);
        };
        let record = &stored.record;
        if let Some(broken) = &record.broken {
            self.shard.set_aside(&execution.into(), broken);
            self.let_go(execution)?;
            return Ok(true);
        }
        if record.attempts >= CULPRIT && record.ended.is_none() {
            self.set_culprit_aside(execution, &stored)?;
            return Ok(true);
        }
        self.take_up_stored(execution, stored, limit)
    }

    /// Loads an execution from what was read of it, or holds it off. Returns whether it exists.
    pub(super) fn take_up_stored(
        &mut self,
        execution: &str,
        mut stored: StoredHistory,
        limit: Option<usize>,
    ) -> Result<bool, StoreError> {
        let id = Text::from(execution);
        let now = self.now();
        let mail = std::mem::take(&mut stored.messages);
        let wake_at = stored.record.wake_at;
        let alone = self.alone.clone();
        // One that waits to begin enters when it begins: the lock can't be taken twice.
        let is_suspect = stored.record.attempts >= SUSPECT && !stored.has_not_begun();
        let _alone = is_suspect.then(|| alone.enter(&id));
        self.expect_messages();
        let fork = self.fork_to_begin(execution, &stored)?;
        let (history, limits) = (self.deps.history.clone(), self.shard.shared_limits());
        let taken = self.shard.guarded(&id, now, |shard| {
            let is_too_large = |bytes: usize| limit.is_some_and(|limit| bytes >= limit);
            if stored.has_not_begun() {
                if is_too_large(stored.request.as_ref().map_or(0, String::len)) {
                    shard.hold_off(id.clone());
                    return Ok(());
                }
                return shard.take_up_waiting(&id, stored, fork, now);
            }
            let mut loaded = fold_up(history.as_ref(), shard.flows(), &limits, execution, stored)?;
            match is_too_large(loaded.state.held()) {
                true => shard.hold_off(id.clone()),
                false => shard.recover(loaded),
            }
            Ok(())
        });
        match taken {
            Some(taken) => taken?,
            None => return Ok(true),
        }
        if limit.is_some() && self.shard.is_held_off(execution) {
            return Ok(true);
        }
        self.shard.let_in(&id);
        self.know_secrets_of(execution);
        if let Some(leased) = &mut self.leased {
            leased.woke(&execution.into(), wake_at);
            let mail = leased.unseen(mail);
            self.shard.redeliver(mail);
        }
        self.expect_heartbeats(execution)?;
        Ok(true)
    }

    /// What a waiting fork that is not loaded yet goes on from.
    pub(super) fn fork_to_begin(
        &self,
        execution: &str,
        stored: &StoredHistory,
    ) -> Result<Option<ForkRequest>, StoreError> {
        if !stored.has_not_begun() || self.shard.waits_to_begin(execution) {
            return Ok(None);
        }
        kept_fork(self.deps.history.as_ref(), self.shard.flows(), stored)
    }

    /// Makes the secrets of an execution's flow known for redaction: an earlier process may have sent them with calls
    /// that are answered now.
    fn know_secrets_of(&self, execution: &str) {
        let started = self.shard.state(execution).and_then(|state| state.started());
        if let (Some(started), Some(flow)) = (started, self.shard.flow(execution)) {
            self.deps.vault.know(&started.flow, flow);
        }
    }

    /// Begins the deadlines of calls that workers had taken. Without a record of their last heartbeats, they begin
    /// now.
    fn expect_heartbeats(&mut self, execution: &str) -> Result<(), StoreError> {
        let expected = self.expected_heartbeats(execution);
        if expected.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let heard = self.heard_of(execution)?;
        for (call, every) in expected {
            let since = heard.get(&call).copied().unwrap_or(now);
            self.heartbeats.expect(&execution.into(), call, every, since);
        }
        Ok(())
    }

    /// The calls of an execution that were taken and must send heartbeats, and how often. None
    /// while it is paused.
    fn expected_heartbeats(&self, execution: &str) -> Vec<(EventId, Millis)> {
        let (Some(state), Some(flow)) = (self.shard.state(execution), self.shard.flow(execution)) else {
            return Vec::new();
        };
        let calls = state.calls_in_flight().filter(|_| state.paused().is_none());
        let taken = calls.filter(|call| !state.is_to_be_sent(*call));
        let calls = taken.filter_map(|call| state.call_to_send(flow, call));
        calls
            .filter_map(|call| call.heartbeat.map(|every| (call.call, every)))
            .collect()
    }

    /// Expects no heartbeats while an execution is paused. After the pause, the deadlines start
    /// again.
    pub(super) fn heed_pause(&mut self, execution: &Text, events: &[Event]) {
        let paused = |event: &Event| matches!(event.detail, EventKind::ExecutionPaused { .. });
        let resumed = |event: &Event| matches!(event.detail, EventKind::ExecutionResumed { .. });
        if events.iter().any(paused) {
            self.heartbeats.forget_all_of(execution);
        } else if events.iter().any(resumed) {
            let now = self.now();
            for (call, every) in self.expected_heartbeats(execution) {
                self.heartbeats.expect(execution, call, every, now);
            }
        }
    }

    /// Makes sure that an execution is loaded. Returns whether it exists. If another process has it, or it is about
    /// to be tried again, the error is [`StoreError::Held`].
    pub(super) fn bring(&mut self, execution: &str) -> Result<bool, StoreError> {
        if self.shard.state(execution).is_none() && !self.shard.is_aside(execution) && self.is_mine(execution) {
            match self.load(execution) {
                Err(StoreError::Corrupt(why)) => tracing::error!(execution, why, "an execution can't be taken up"),
                Ok(false) => return Ok(false),
                Err(error) => return Err(error),
                Ok(true) => {}
            }
        }
        if self.shard.is_aside(execution) {
            return Err(StoreError::Held(self.now()));
        }
        Ok(
            (self.shard.state(execution).is_some() && !self.shard.is_deleted(execution))
                || self.shard.waits_to_begin(execution),
        )
    }

    /// Loads an execution.
    pub(super) fn take_up_one(&mut self, execution: &str) -> Result<Reply, StoreError> {
        Ok(match self.bring(execution) {
            // It does nothing until an operator releases it.
            Err(StoreError::Held(_)) if self.shard.is_aside(execution) => Reply::Taken,
            Err(StoreError::Held(_)) => Reply::Held,
            Ok(true) => Reply::Taken,
            Ok(false) => Reply::NoSuchExecution,
            Err(error) => return Err(error),
        })
    }

    /// Loads these executions and no others, awake or not, and delivers the messages between them.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub fn take_up_only(&mut self, executions: &BTreeSet<Text>) -> Result<(), StoreError> {
        for execution in executions {
            match self.bring(execution) {
                Ok(_) | Err(StoreError::Held(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let mut messages = self
            .deps
            .history
            .messages(&Receivers::Executions(*self.shard.owned()))?;
        messages.retain(|message| executions.contains(&message.id.to) || executions.contains(&message.id.from));
        self.shard.redeliver(messages);
        Ok(())
    }

    /// Loads all executions that are awake, and delivers the messages of the store.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the store fails.
    pub fn take_up(&mut self) -> Result<(), StoreError> {
        self.begin_to_take_up()?;
        while !self.to_take_up.is_empty() {
            self.take_up_some()?;
        }
        Ok(())
    }

    /// Delivers the messages of the store, and finds out which executions are awake. Messages come first: an execution that is
    /// asked for something meanwhile must not be told newer ones before them.
    pub(super) fn begin_to_take_up(&mut self) -> Result<(), StoreError> {
        let shards = *self.shard.owned();
        self.take_in(&shards, &Epochs::default())
    }

    /// Loads some of the executions that are awake. Requests are taken in between, because each load may take a millisecond,
    /// and there may be thousands.
    pub(super) fn take_up_some(&mut self) -> Result<(), StoreError> {
        let mut wanted = Vec::with_capacity(LOADED_AT_ONCE);
        while wanted.len() < LOADED_AT_ONCE
            && let Some(execution) = self.to_take_up.pop_front()
        {
            // Somebody may have asked for it already.
            if !self.is_known(&execution) {
                wanted.push(execution);
            }
        }
        self.fetch_many(&wanted)
    }
}
