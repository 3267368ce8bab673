//! What this process knows of the executions it has.

use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{Append, Record};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

/// Where an execution stands, as far as the next write needs it.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// The order of its start, by which its turns are known.
    pub life: String,
    /// Number of the next item of turns.
    pub next: u64,
    /// The last event.
    pub last: EventId,
    /// Number of the lease.
    pub epoch: u64,
    /// Whether the lease is ours.
    pub held: bool,
    /// Messages left for it so far, as far as its holder has seen them.
    pub mail: u64,
    /// What is known of it.
    pub record: Record,
}

/// The sessions of executions that are held.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<Text, Session>>);

impl Sessions {
    fn with<T>(&self, work: impl FnOnce(&mut HashMap<Text, Session>) -> T) -> T {
        // Nothing panics while the lock is held, so what a poisoned one guards is whole.
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

    /// The holder has seen its mail up to this count.
    pub(crate) fn seen(&self, execution: &str, mail: u64) {
        self.with(|all| {
            if let Some(session) = all.get_mut(execution) {
                session.mail = mail;
            }
        });
    }
}

/// An append of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub append: &'a Append,
    /// Its position in the batch.
    pub place: usize,
    /// What it begins and sends is in the order of these.
    pub order: u64,
}

impl Deref for Entry<'_> {
    type Target = Append;

    fn deref(&self) -> &Append {
        self.append
    }
}

/// How many of these appends follow each other from that event on.
pub(crate) fn following(last: EventId, appends: &[Entry<'_>]) -> usize {
    let mut last = last;
    let fits = |append: &&Entry<'_>| {
        let fits = append.expected == last && sound(append);
        if let (true, Some(turn)) = (fits, &append.turn) {
            last = turn.last();
        }
        fits
    };
    appends.iter().take_while(fits).count()
}

/// Whether an append's turn is what it says it follows on.
pub(crate) fn sound(append: &Append) -> bool {
    let turn = append.turn.as_ref();
    turn.is_none_or(|turn| turn.events > 0 && turn.first == append.expected.next())
}
