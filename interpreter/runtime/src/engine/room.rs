//! Room in memory for large executions. What runs can't be left to the store, so where that takes all there is, nothing large
//! begins, nothing that has ended goes on again, and large ones that were left to the store are held off. Small executions are
//! not held up.

use super::{Command, Engine, Reply, Report, StartFailure};
use crate::shard::LARGE_BYTES;
use starbridge_flow::value::Text;
use starbridge_machine::Signal;
use starbridge_ports::StoreError;

impl Engine {
    /// Gives a command back if there is room for what it begins; otherwise answers it.
    pub(super) fn with_room(&mut self, command: Command) -> Result<Option<Command>, StoreError> {
        // An engine that leases executions has few of them, and gives them back. Executions that are held off came first.
        let has_room = self.shard.loaded_bytes() <= self.settings.hot_bytes && !self.shard.holds_any_off();
        if has_room || self.leased.is_some() {
            return Ok(Some(command));
        }
        match command {
            Command::Start { request, reply, .. } if request.input.json_len() >= LARGE_BYTES => {
                drop(reply.send(Err(StartFailure::NoRoom)));
            }
            Command::Fork { reply, .. } => drop(reply.send(Err(StartFailure::NoRoom))),
            Command::Redefine { reply, .. } => drop(reply.send(Reply::NoRoom)),
            Command::Signal {
                execution,
                signal,
                reply,
                ..
            } if matches!(*signal, Signal::Redrive { .. }) && self.has_no_room_for(&execution)? => {
                reply.map(|reply| reply.send(Reply::NoRoom));
            }
            // Queues send this only once.
            Command::Signal {
                execution,
                signal,
                reply,
                ..
            } if matches!(*signal, Signal::LeaseEnded { .. } | Signal::TimedOut { .. })
                && self.has_no_room_for(&execution)? =>
            {
                self.shard.retain_signal(&execution, *signal);
                reply.map(|reply| reply.send(Reply::Held));
            }
            Command::Report {
                execution,
                report,
                reply,
                ..
            } if ends(&report) && self.has_no_room_for(&execution)? => drop(reply.send(Reply::NoRoom)),
            command => return Ok(Some(command)),
        }
        Ok(None)
    }

    /// Whether a large execution may be loaded, so that it goes on.
    pub(super) fn has_room(&self) -> bool {
        !self.holds_off || self.shard.loaded_bytes() <= self.settings.hot_bytes
    }

    /// Leaves large executions that only wait to the store if there is no room.
    pub(super) fn make_room(&mut self) {
        if !self.has_room() {
            self.leave_large();
        }
    }

    /// Loads executions that were held off, as long as there is room, and fires their timers: before that they only wait. Returns
    /// whether there were any.
    pub(super) fn let_in_held_off(&mut self) -> Result<bool, StoreError> {
        let mut any = false;
        while let Some(execution) = self.shard.first_held_off()
            && !self.decides_nothing_new()
            && self.has_room()
        {
            any = true;
            self.shard.let_in(&execution);
            if self.shard.state(&execution).is_none() {
                self.fetch(&execution)?;
            }
        }
        if any {
            self.fire_timers(self.now());
        }
        Ok(any)
    }

    /// Whether an execution is large, not loaded, and there is no room for it. It is held off then.
    fn has_no_room_for(&mut self, execution: &Text) -> Result<bool, StoreError> {
        if self.shard.state(execution).is_some() || !self.is_mine(execution) {
            return Ok(false);
        }
        self.make_room();
        self.fetch(execution)?;
        Ok(self.shard.is_held_off(execution))
    }
}

/// Whether a report ends its task, so that the execution goes on.
fn ends(report: &Report) -> bool {
    match report {
        Report::Succeed(_) | Report::Fail { .. } => true,
        Report::Logged { report, .. } => ends(report),
        Report::Heartbeat | Report::Log(_) => false,
    }
}
