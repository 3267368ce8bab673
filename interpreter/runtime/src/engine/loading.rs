//! Taking up executions from the store.

use super::Engine;
use crate::shard::load;
use starbridge_fdl::value::Text;
use starbridge_ports::{StoreError, shard_of};
use std::collections::BTreeSet;

impl Engine {
    /// Whether an execution belongs to this engine.
    pub(super) fn is_mine(&self, execution: &str) -> bool {
        let (which, of) = self.settings.share;
        shard_of(execution) % of.max(1) == which
    }

    /// Takes up an execution that is wanted, or says that it is nowhere. One that can't be read is left alone: the others go
    /// on.
    pub(super) fn fetch(&mut self, execution: &str) -> Result<(), StoreError> {
        match self.load(execution) {
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

    /// Takes up an execution. Answers whether it is anywhere.
    fn load(&mut self, execution: &str) -> Result<bool, StoreError> {
        let limits = self.shard.shared_limits();
        let loaded = load(self.world.history.as_ref(), self.shard.flows(), &limits, execution)?;
        let Some(mut loaded) = loaded else {
            return Ok(false);
        };
        self.expect_mail();
        let mail = std::mem::take(&mut loaded.stored.mail);
        let wake_at = loaded.stored.record.wake_at;
        self.shard.recover(loaded);
        if let Some(visiting) = &mut self.visiting {
            visiting.woke(&execution.into(), wake_at);
            let mail = visiting.unseen(mail);
            self.shard.redeliver(mail);
        }
        self.expect_heartbeats(execution)?;
        Ok(true)
    }

    /// Where nobody knows when calls were last heard of, silence is counted from now on for those that were taken.
    fn expect_heartbeats(&mut self, execution: &str) -> Result<(), StoreError> {
        let (Some(state), Some(flow)) = (self.shard.state(execution), self.shard.flow(execution)) else {
            return Ok(());
        };
        let expected: Vec<_> = state
            .calls_in_flight()
            .filter(|call| !state.is_to_be_sent(*call))
            .filter_map(|call| state.call_to_send(flow, call))
            .filter_map(|call| call.heartbeat.map(|millis| (call.call, millis)))
            .collect();
        if expected.is_empty() {
            return Ok(());
        }
        let now = self.now();
        let heard = self.heard_of(execution)?;
        for (call, millis) in expected {
            let since = heard.get(&call).copied().unwrap_or(now);
            self.heartbeats.expect(&execution.into(), call, millis, since);
        }
        Ok(())
    }

    /// Makes sure that an execution is here. Answers whether it is anywhere; one that somebody else has is
    /// [`StoreError::Held`].
    pub(super) fn bring(&mut self, execution: &str) -> Result<bool, StoreError> {
        if self.shard.state(execution).is_none() && self.is_mine(execution) {
            match self.load(execution) {
                Err(StoreError::Corrupt(why)) => tracing::error!(execution, why, "an execution can't be taken up"),
                loaded => return loaded,
            }
        }
        Ok(self.shard.state(execution).is_some())
    }

    /// Takes up these executions and no others, asleep or not, and what they have to say to each other.
    pub fn take_up_only(&mut self, executions: &BTreeSet<Text>) -> Result<(), StoreError> {
        for execution in executions {
            self.bring(execution)?;
        }
        let mut messages = self.world.history.messages()?;
        messages.retain(|message| executions.contains(&message.id.to) || executions.contains(&message.id.from));
        self.shard.redeliver(messages);
        Ok(())
    }

    /// Takes up all that is awake, and what executions have said to each other.
    pub fn take_up(&mut self) -> Result<(), StoreError> {
        for execution in self.world.history.awake()? {
            if self.is_mine(&execution) {
                self.fetch(&execution)?;
            }
        }
        let mut messages = self.world.history.messages()?;
        messages.retain(|message| self.is_mine(&message.id.to));
        self.shard.redeliver(messages);
        let now = self.now();
        self.look_for_sleepers(now)
    }
}
