//! Room in memory for large executions. What runs can't be left to the store, so where that takes all there is, nothing large
//! begins, and nothing that has ended goes on again. Small executions are not held up.

use super::{Command, Engine, Reply, StartFailure};
use crate::shard::LARGE_BYTES;
use starbridge_machine::Signal;

impl Engine {
    /// Gives a command back if there is room for what it begins; otherwise answers it.
    pub(super) fn with_room(&mut self, command: Command) -> Option<Command> {
        // An engine that leases executions has few of them, and gives them back.
        if self.shard.loaded_bytes() <= self.settings.hot_bytes || self.leased.is_some() {
            return Some(command);
        }
        match command {
            Command::Start { request, reply, .. } if request.input.json_len() >= LARGE_BYTES => {
                drop(reply.send(Err(StartFailure::NoRoom)));
            }
            Command::Fork { reply, .. } => drop(reply.send(Err(StartFailure::NoRoom))),
            Command::Redefine { reply, .. } => drop(reply.send(Reply::NoRoom)),
            // How large it is is not known before it is read, and reading takes the memory.
            Command::Signal { signal, reply, .. } if matches!(*signal, Signal::Redrive { .. }) => {
                reply.map(|reply| reply.send(Reply::NoRoom));
            }
            command => return Some(command),
        }
        None
    }
}
