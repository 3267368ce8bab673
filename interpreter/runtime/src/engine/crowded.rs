//! Commands for an execution of which much waits to be durable. Each of them leads to a turn, and what a turn sends may be large:
//! the commands of one execution would fill a round, and those of all others would wait for all of it. They are taken in their
//! order, as what was decided before becomes durable.

use super::moving::take_those_of;
use super::{Command, Engine};
use starbridge_flow::value::Text;
use starbridge_machine::Signal;
use starbridge_ports::{ShardSet, StoreError};
use std::collections::VecDeque;

/// About how many bytes of one execution may wait to be durable before its next command is taken.
const BYTES: usize = 2 << 20;

/// Commands that wait, in the order in which they came.
#[derive(Default)]
pub(super) struct Crowded {
    commands: VecDeque<Command>,
}

impl Crowded {
    /// Takes those for executions of these shards.
    pub(super) fn take_those_of(&mut self, shards: &ShardSet) -> Vec<Command> {
        take_those_of(&mut self.commands, shards)
    }

    fn has_one_of(&self, execution: &Text) -> bool {
        self.commands.iter().any(|command| of(command) == Some(execution))
    }
}

/// The execution whose turn a command leads to. A stop and a pause wait for nothing: they are what helps against too many turns.
fn of(command: &Command) -> Option<&Text> {
    match command {
        Command::Signal { signal, .. } if matches!(**signal, Signal::Stop { .. } | Signal::Pause { .. }) => None,
        Command::Signal { execution, .. } | Command::Report { execution, .. } => Some(execution),
        _ => None,
    }
}

impl Engine {
    /// Keeps a command whose execution is crowded, or that is to come after one that is kept; gives back any other.
    pub(super) fn uncrowded(&mut self, command: Command) -> Option<Command> {
        let waits = match (&command, of(&command)) {
            (Command::AwaitDurable { kept, .. }, _) => *kept && !self.crowded.commands.is_empty(),
            (_, Some(execution)) => {
                self.is_crowded(execution) || !self.crowded.commands.is_empty() && self.crowded.has_one_of(execution)
            }
            (_, None) => false,
        };
        match waits {
            true => self.crowded.commands.push_back(command),
            false => return Some(command),
        }
        None
    }

    fn is_crowded(&mut self, execution: &Text) -> bool {
        // Whoever shares executions with others gives them back at any time, and a run that skips time waits for nobody.
        let shares = self.leased.is_some() || self.quiescence.is_some();
        let at_once = shares || self.settings.fast_forward || self.draining.is_some();
        !at_once && self.shard.undurable_bytes(execution) >= BYTES
    }

    /// Takes what waited for room that there is now. What waits still has bytes that will be durable, so it is asked for again.
    pub(super) fn take_crowded(&mut self) -> Result<(), StoreError> {
        let waiting = std::mem::take(&mut self.crowded.commands);
        let mut kept = Crowded::default();
        for command in waiting {
            let waits = match of(&command) {
                Some(execution) => self.is_crowded(execution) || kept.has_one_of(execution),
                None => !kept.commands.is_empty(),
            };
            match waits {
                true => kept.commands.push_back(command),
                false => self.carry_out_command(command)?,
            }
        }
        // What came meanwhile came later.
        kept.commands.append(&mut self.crowded.commands);
        self.crowded = kept;
        Ok(())
    }
}
