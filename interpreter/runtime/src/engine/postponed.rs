//! Commands that take too long for one round of the engine. They are prepared in slices, and others go on between them.
//! Nothing of a slice is durable, and none changes a state: a crash between two of them loses a command that nobody was told of.

use super::moving::take_those_of;
use super::{Command, Engine};
use starbridge_flow::value::Text;
use starbridge_machine::Signal;
use starbridge_ports::{ShardSet, StoreError};
use std::collections::VecDeque;

/// About how many bytes of tasks one slice prepares.
const SLICE_BYTES: usize = 1 << 20;

/// Commands that are prepared, in the order in which they came.
#[derive(Default)]
pub(super) struct Postponed {
    commands: VecDeque<Command>,
}

impl Postponed {
    /// Takes those for executions of these shards.
    pub(super) fn take_those_of(&mut self, shards: &ShardSet) -> Vec<Command> {
        take_those_of(&mut self.commands, shards)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }
}

impl Engine {
    /// Prepares a part of what a command needs. Gives it back if nothing is left to prepare; otherwise it comes again.
    pub(super) fn prepared(&mut self, command: Command) -> Option<Command> {
        if let Command::Signal { execution, signal, .. } = &command
            && self.must_prepare(execution, signal)
        {
            self.postponed.commands.push_back(command);
            return None;
        }
        Some(command)
    }

    fn must_prepare(&mut self, execution: &Text, signal: &Signal) -> bool {
        // Whoever shares executions with others gives them back at any time, and a run that skips time waits for nobody.
        let shares = self.leased.is_some() || self.quiescence.is_some();
        let at_once = shares || self.settings.fast_forward || self.draining.is_some();
        if at_once || !matches!(signal, Signal::Resume { .. }) {
            return false;
        }
        // What can't be loaded is told of when the signal is given.
        matches!(self.bring(execution), Ok(true)) && !self.shard.prepare_tasks(execution, SLICE_BYTES)
    }

    /// Takes the command that has waited longest once more.
    pub(super) fn take_postponed(&mut self) -> Result<(), StoreError> {
        match self.postponed.commands.pop_front() {
            Some(command) if self.draining.is_none() => self.take_command(command),
            // Its sender learns that the engine ends.
            _ => Ok(()),
        }
    }
}
