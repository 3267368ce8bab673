//! Senders that take turns: each has so many places, whatever it asks for at once.

use starbridge_flow::value::Text;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::Semaphore;

/// The places of senders, by the names of their tokens; all without a token are one sender. Those that use none have none here.
#[derive(Debug, Default)]
pub struct SenderTurns(Mutex<BTreeMap<Option<Text>, Weak<Semaphore>>>);

impl SenderTurns {
    /// Nobody has a place.
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// The places of a sender: `most`, if it uses none yet.
    pub fn of(&self, sender: Option<Text>, most: usize) -> Arc<Semaphore> {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turns| turns.strong_count() > 0);
        let known = turns.entry(sender).or_default();
        known.upgrade().unwrap_or_else(|| {
            let new = Arc::new(Semaphore::new(most));
            *known = Arc::downgrade(&new);
            new
        })
    }
}
