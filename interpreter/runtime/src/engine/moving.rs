//! Shards that an engine takes in and gives up while it runs. Giving them up is like the end of a process for their executions:
//! what is not durable is dropped, and the next owner goes on from the store, as after a restart.

use super::{Command, Engine, Reply, StartFailure};
use starbridge_flow::value::Text;
use starbridge_ports::{Epochs, Receivers, ShardSet, StoreError};
use std::collections::VecDeque;
use tokio::sync::oneshot;

/// Shards that are being given up.
pub(super) struct LeavingShards {
    shards: ShardSet,
    /// Gets something once everything that was decided for their executions is durable.
    durable: oneshot::Receiver<Reply>,
    /// Commands for their executions that were not carried out.
    commands: Vec<Command>,
    reply: oneshot::Sender<Vec<Command>>,
}

impl Command {
    /// The execution that must be owned for it.
    pub(super) fn execution(&self) -> Option<&Text> {
        match self {
            Self::Start { request, .. } => request.id.as_ref(),
            Self::AwaitEnd { execution, .. }
            | Self::Report { execution, .. }
            | Self::Signal { execution, .. }
            | Self::DiscardDead { execution, .. }
            | Self::Delete { execution, .. }
            | Self::TakeUp { execution, .. } => Some(execution),
            Self::Redefine { request, .. } => Some(&request.execution),
            Self::Deliver(message) => Some(&message.id.to),
            Self::Fork { .. }
            | Self::AwaitDurable { .. }
            | Self::PauseDispatch
            | Self::Quiesce { .. }
            | Self::EndCalls { .. }
            | Self::TakeIn { .. }
            | Self::GiveUp { .. }
            | Self::Drain { .. } => None,
        }
    }

    /// Tells the sender to look for the owner anew. Whoever takes a message finds it in the store.
    fn refuse(self) {
        let held = |reply: oneshot::Sender<Reply>| drop(reply.send(Reply::Held));
        match self {
            Self::Start { reply, .. } | Self::Fork { reply, .. } => drop(reply.send(Err(StartFailure::Busy))),
            Self::Signal { reply: Some(reply), .. } => held(reply),
            Self::Report { reply, .. }
            | Self::Redefine { reply, .. }
            | Self::DiscardDead { reply, .. }
            | Self::Delete { reply, .. }
            | Self::TakeUp { reply, .. } => held(reply),
            _ => {}
        }
    }
}

impl Engine {
    /// Gives a command back if its execution belongs to this engine. Otherwise it is kept for the next owner, if its shard is being
    /// given up, or refused.
    pub(super) fn own_command(&mut self, command: Command) -> Option<Command> {
        let begins = matches!(command, Command::Start { .. } | Command::Fork { .. });
        let is_owned = match command.execution() {
            Some(execution) => self.is_mine(execution),
            None => !begins || !self.shard.owned().is_empty(),
        };
        if is_owned {
            return Some(command);
        }
        let of = command.execution();
        let has = |leaving: &&mut LeavingShards| of.is_some_and(|of| leaving.shards.has_execution(of));
        match self.leaving.iter_mut().find(has) {
            Some(leaving) => leaving.commands.push(command),
            None => command.refuse(),
        }
        None
    }

    /// Owns these shards too. Messages come before what is awake is loaded: an execution that is asked for something meanwhile must
    /// not be told newer ones before them.
    pub(super) fn take_in(&mut self, shards: &ShardSet, epochs: &Epochs) -> Result<(), StoreError> {
        self.shard.append_under(epochs);
        self.shard.own(self.shard.owned().with(shards));
        self.to_take_up.extend(self.deps.history.awake(shards)?);
        let messages = self.deps.history.messages(&Receivers::Executions(*shards))?;
        self.shard.redeliver(messages);
        let now = self.now();
        self.look_for_sleepers(now)
    }

    /// Owns these shards too, and says so.
    pub(super) fn take_in_for(
        &mut self,
        shards: &ShardSet,
        epochs: &Epochs,
        reply: oneshot::Sender<Reply>,
    ) -> Result<(), StoreError> {
        self.take_in(shards, epochs)?;
        self.answer_when_durable(reply, Reply::Taken, None);
        Ok(())
    }

    /// Begins to give shards up.
    pub(super) fn give_up(&mut self, shards: ShardSet, reply: oneshot::Sender<Vec<Command>>) {
        let commands = self.let_go_of(&shards);
        self.shard.leave(&shards);
        let (decided, durable) = oneshot::channel();
        self.answer_when_durable(decided, Reply::Taken, None);
        self.leaving.push(LeavingShards {
            shards,
            durable,
            commands,
            reply,
        });
    }

    /// Gives up the calls and all else that the engine has beside the states of executions. Returns the commands that wait for
    /// something of them.
    fn let_go_of(&mut self, shards: &ShardSet) -> Vec<Command> {
        self.calls.give_up_those_in(shards);
        self.to_take_up.retain(|execution| !shards.has_execution(execution));
        let loaded = self
            .shard
            .executions()
            .filter(|execution| shards.has_execution(execution));
        let loaded: Vec<Text> = loaded.cloned().collect();
        loaded
            .iter()
            .for_each(|execution| self.heartbeats.forget_all_of(execution));
        let mut commands = self.crowded.take_those_of(shards);
        commands.extend(self.postponed.take_those_of(shards));
        commands
    }

    /// Drops shards that another owner has, as the store said when it refused an append, and goes on with the others. Whoever waits
    /// for something of them is told to look for that owner.
    pub(super) fn drop_fenced(&mut self) {
        let shards = self.shard.take_fenced();
        if shards.is_empty() {
            return;
        }
        let count = shards.len();
        tracing::error!(
            shards = count,
            "another owner has taken shards: what was decided for them last was refused"
        );
        let commands = self.let_go_of(&shards);
        self.shard.drop_fenced(&shards);
        self.keeps_calls_of = self.keeps_calls_of.without(&shards);
        self.waiters.refuse_those_of(&shards);
        commands.into_iter().for_each(Command::refuse);
    }

    /// Drops executions of shards that were given up once everything that was decided for them is durable, and says so.
    pub(super) fn tell_of_left_shards(&mut self) {
        let is_durable = |leaving: &mut LeavingShards| leaving.durable.try_recv().is_ok();
        let left: Vec<LeavingShards> = self.leaving.extract_if(.., is_durable).collect();
        for mut left in left {
            self.shard.forget_left(&left.shards);
            self.keeps_calls_of = self.keeps_calls_of.without(&left.shards);
            let ends = self.waiters.take_ends_of(&left.shards).into_iter();
            left.commands
                .extend(ends.map(|(execution, reply)| Command::AwaitEnd { execution, reply }));
            if let Err(commands) = left.reply.send(left.commands) {
                commands.into_iter().for_each(Command::refuse);
            }
        }
    }
}

/// Takes the commands for executions of these shards out of a list.
pub(super) fn take_those_of(commands: &mut VecDeque<Command>, shards: &ShardSet) -> Vec<Command> {
    let of = |command: &Command| command.execution().is_some_and(|of| shards.has_execution(of));
    let (taken, kept): (VecDeque<Command>, VecDeque<Command>) = std::mem::take(commands).into_iter().partition(of);
    *commands = kept;
    taken.into()
}
