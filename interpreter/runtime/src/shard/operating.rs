//! What operators do to executions. The append that carries it out also adds it to the audit list.

use super::Shard;
use starbridge_flow::time::Timestamp;
use starbridge_machine::{EventId, Rejection, Signal};
use starbridge_ports::{Append, AttemptLog, AuditEntry};

/// Why an execution is not deleted: it has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotEnded;

impl Shard {
    /// Gives an operator's signal to an execution, as [`Shard::signal`] does. If it is taken,
    /// `audit` is added to the audit list.
    ///
    /// # Errors
    ///
    /// As [`Shard::signal`].
    pub fn signal_audited(
        &mut self,
        execution: &str,
        signal: Signal,
        audit: Option<AuditEntry>,
        now: Timestamp,
    ) -> Result<(), Rejection> {
        self.audited = audit;
        let given = self.signal(execution, signal, now);
        self.audited = None;
        given
    }

    /// Gives a signal to an execution, as [`Shard::signal`] does. Where it is taken, its turn also stores what the attempt
    /// that it ends has logged, and adds the entry to the audit list.
    ///
    /// # Errors
    ///
    /// As [`Shard::signal`].
    pub fn signal_reported(
        &mut self,
        execution: &str,
        signal: Signal,
        (log, audit): (Option<String>, Option<AuditEntry>),
        now: Timestamp,
    ) -> Result<(), Rejection> {
        self.logged = log.filter(|log| !log.is_empty());
        let given = self.signal_audited(execution, signal, audit, now);
        self.logged = None;
        given
    }

    /// Keeps the log of a call that did not end by itself, under the number of the call. Nothing is
    /// kept if its execution is not loaded any more.
    pub fn keep_log(&mut self, execution: &str, call: EventId, log: String) {
        let Some((id, live)) = self.live_mut(execution).filter(|(_, live)| !live.deleted) else {
            return;
        };
        live.unsettled += 1;
        let expected = live.state.last_event();
        self.pending.push(Append {
            execution: id,
            expected,
            logs: vec![AttemptLog::of(call, log)],
            ..Append::default()
        });
    }

    /// Deletes a loaded execution that has ended. From now on it takes no signal, and once that is durable nothing is left
    /// of it.
    ///
    /// # Errors
    ///
    /// [`NotEnded`] if it has not ended.
    pub fn delete(&mut self, execution: &str, audit: Option<AuditEntry>) -> Result<(), NotEnded> {
        let Some((id, live)) = self.live_mut(execution) else {
            return Err(NotEnded);
        };
        if !live.state.status().is_ended() || live.asking.is_some() {
            return Err(NotEnded);
        }
        // INVARIANT: it stays in memory until the deletion is durable. If it were loaded again meanwhile, its next append would
        // be a conflict.
        live.deleted = true;
        live.unsettled += 1;
        let expected = live.state.last_event();
        // The id can't be looked up any more. An execution without a name of its own has the id as its name.
        let started = live.state.started();
        let audit = audit.map(|entry| match started {
            Some(started) if started.name == id => entry.with("flow", started.flow.clone()),
            Some(started) => entry
                .with("flow", started.flow.clone())
                .with("name", started.name.clone()),
            None => entry,
        });
        self.pending.push(Append {
            execution: id,
            expected,
            audit: audit.into_iter().collect(),
            deleted: true,
            ..Append::default()
        });
        Ok(())
    }

    /// Whether an execution is being deleted.
    pub(crate) fn is_deleted(&self, execution: &str) -> bool {
        self.executions.get(execution).is_some_and(|live| live.deleted)
    }

    /// Forgets an execution whose deletion is durable.
    pub(super) fn forget_deleted(&mut self, execution: &str) {
        let durable = self
            .executions
            .get(execution)
            .is_some_and(|live| live.deleted && live.unsettled == 0);
        if durable {
            self.forget(execution);
        }
    }
}
