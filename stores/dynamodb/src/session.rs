//! Sessions: the data that this process has about the executions it holds.

use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{Append, ExecutionRecord};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

/// The data that the next write to an execution needs.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The order of its start, which is part of the keys of its turns.
    pub run_id: String,
    /// The number of the next item of turns.
    pub next: u64,
    /// The number of the last event.
    pub last: EventId,
    /// The number of the lease.
    pub epoch: u64,
    /// Whether this process has the lease.
    pub held: bool,
    /// How many messages its holder has seen.
    pub mail: u64,
    /// The record of the execution.
    pub record: ExecutionRecord,
}

/// The sessions of the executions that this process holds.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<Text, Session>>);

impl Sessions {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<Text, Session>) -> T) -> T {
        // Nothing panics while the lock is held, so the value of a poisoned lock is intact.
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn get(&self, execution: &str) -> Option<Session> {
        self.with(|all| all.get(execution).cloned())
    }

    pub(crate) fn put(&self, execution: &Text, session: Session) {
        self.with(|all| all.insert(execution.clone(), session));
    }

    pub(crate) fn forget(&self, execution: &str) -> Option<Session> {
        self.with(|all| all.remove(execution))
    }

    /// Records that the holder has seen its messages up to this count.
    pub(crate) fn seen(&self, execution: &str, mail: u64) {
        self.with(|all| {
            if let Some(session) = all.get_mut(execution) {
                session.mail = mail;
            }
        });
    }
}

/// One append of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub append: &'a Append,
    /// Its position in the batch.
    pub place: usize,
    /// The order number of the execution that it starts and of the messages that it sends.
    pub order: u64,
}

impl Deref for Entry<'_> {
    type Target = Append;

    fn deref(&self) -> &Append {
        self.append
    }
}

/// How many of these appends, one after the other, continue the history after event `last`.
pub(crate) fn following(last: EventId, appends: &[Entry<'_>]) -> usize {
    let mut last = last;
    let fits = |append: &&Entry<'_>| {
        let fits = append.expected == last && append.continues(u64::MAX);
        if let (true, Some(turn)) = (fits, &append.turn) {
            last = turn.last();
        }
        fits
    };
    appends.iter().take_while(fits).count()
}
