//! The port through which admission reads what it keeps.

use crate::admission::{KeptKey, KeyView, LinePlace, PoolKey, Waiter, Waiters};
use crate::error::StoreError;
use crate::listing::Listing;
use crate::message::{Message, MessageId};
use starbridge_flow::value::Text;
use starbridge_machine::Status;

/// Executions that hold slots although they have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedHolders {
    /// Their ids, each with how it ended.
    pub ended: Vec<(Text, Status)>,
    /// The last holder that was looked at, if there may be more.
    pub looked: Option<Text>,
}

impl EndedHolders {
    /// Those of a page of holders, each with its status, that have ended. A page with less than `limit` is the last one.
    pub fn of(page: Vec<(Text, Status)>, limit: usize) -> Self {
        let last = page.last().filter(|_| page.len() >= limit);
        Self {
            looked: last.map(|(execution, _)| execution.clone()),
            ended: page
                .into_iter()
                .filter(|(_, status)| *status == Status::New || status.is_ended())
                .collect(),
        }
    }
}

/// Reads what admission keeps, and looks up executions. Everything it returns is durable. A store that keeps nothing of admission needs none of these
/// methods.
pub trait Admissions: Listing {
    /// Whether this store keeps what admission writes. A store that does not has none of it.
    fn keeps_admission(&self) -> bool {
        false
    }

    /// An execution that waits; `None` if it does not.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn waiter(&self, execution: &str) -> Result<Option<Waiter>, StoreError> {
        let _ = execution;
        Ok(None)
    }

    /// At most `limit` waiters.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn waiters(&self, which: Waiters<'_>, limit: usize) -> Result<Vec<Waiter>, StoreError> {
        let _ = (which, limit);
        Ok(Vec::new())
    }

    /// The numbers of the requests and the ids of at most `limit` waiters, in the order of [`Admissions::waiters`]. What they
    /// ask for is not read.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn waiter_ids(&self, which: Waiters<'_>, limit: usize) -> Result<Vec<(u64, Text)>, StoreError> {
        let waiters = self.waiters(which, limit)?.into_iter();
        Ok(waiters.map(|waiter| (waiter.number, waiter.execution)).collect())
    }

    /// How many waiters stand in the line of a key before a place, counted up to `most`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn waiters_before(&self, key: &PoolKey, place: LinePlace, most: u64) -> Result<u64, StoreError> {
        let _ = (key, place, most);
        Ok(0)
    }

    /// The largest number of a waiter and the largest number of a claim; 0 if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn last_waiter(&self) -> Result<(u64, u64), StoreError> {
        Ok((0, 0))
    }

    /// How many executions wait to be admitted.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn count_waiters(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// The keys of which an execution holds a slot, in order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn slots_of(&self, execution: &str) -> Result<Vec<PoolKey>, StoreError> {
        let _ = execution;
        Ok(Vec::new())
    }

    /// The ids of at most `limit` executions that hold a slot of a key, in order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn holders(&self, key: &PoolKey, limit: usize) -> Result<Vec<Text>, StoreError> {
        let _ = (key, limit);
        Ok(Vec::new())
    }

    /// Of the next `limit` executions that hold slots, after this id in the order of ids, those that have ended, each with how it
    /// ended; `New` for one that is not there. The word of their end is on its way, or was never sent.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn ended_holders(&self, after: &str, limit: usize) -> Result<EndedHolders, StoreError> {
        let _ = (after, limit);
        Ok(EndedHolders::default())
    }

    /// The state of a key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn key(&self, key: &PoolKey) -> Result<KeyView, StoreError> {
        let kept = KeptKey::of(key.clone());
        Ok(KeyView {
            kept,
            held: 0,
            waiting: 0,
        })
    }

    /// What is kept of a key, and how many hold it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn kept_key(&self, key: &PoolKey) -> Result<(KeptKey, u64), StoreError> {
        let view = self.key(key)?;
        Ok((view.kept, view.held))
    }

    /// At most `limit` keys that admission keeps, after this one, in order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn kept_keys(&self, after: Option<&PoolKey>, limit: usize) -> Result<Vec<KeptKey>, StoreError> {
        let _ = (after, limit);
        Ok(Vec::new())
    }

    /// The keys whose lines are still to be looked at.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn stale_keys(&self) -> Result<Vec<PoolKey>, StoreError> {
        Ok(Vec::new())
    }

    /// All slots, each with its holder, if there are at most so many; `None` if there are more, or if the store does not say.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn all_slots(&self, most: usize) -> Result<Option<Vec<(Text, PoolKey)>>, StoreError> {
        let _ = most;
        Ok(None)
    }

    /// Whether a waiter may wait for an execution that is there. True if the store does not say.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn anyone_depends(&self) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// The first `limit` messages to admission that are not handled yet, in the order in which they were sent.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn first_messages(&self, limit: usize) -> Result<Vec<Message>, StoreError> {
        let _ = limit;
        Ok(Vec::new())
    }

    /// The messages of an execution to admission that are not handled yet, in the order of their events.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn messages_of(&self, execution: &str) -> Result<Vec<Message>, StoreError> {
        let _ = execution;
        Ok(Vec::new())
    }

    /// Of these messages, those that are not handled yet. A store that can read them together reads them faster.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn pending_of(&self, messages: &[MessageId]) -> Result<Vec<MessageId>, StoreError> {
        let mut pending = Vec::with_capacity(messages.len());
        for message in messages {
            if self.is_pending(message)? {
                pending.push(message.clone());
            }
        }
        Ok(pending)
    }

    /// Whether a message is not handled yet.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn is_pending(&self, message: &MessageId) -> Result<bool, StoreError> {
        let _ = message;
        Ok(false)
    }
}
