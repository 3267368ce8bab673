//! How many may wait or follow at a time.

use super::Node;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Queues of one poll that count as one place.
const QUEUES: usize = 10;

/// Places for those who keep a request open.
pub(super) struct Places {
    semaphore: Arc<Semaphore>,
    most: usize,
    setting: &'static str,
}

/// A place, free again when this is dropped.
#[derive(Debug)]
pub struct Place(#[expect(dead_code, reason = "what counts is that it is kept")] OwnedSemaphorePermit);

/// All places are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace {
    /// How many there are.
    pub most: usize,
    /// What sets that.
    pub setting: &'static str,
}

impl Places {
    pub(super) fn new(most: usize, setting: &'static str) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self {
            semaphore: Arc::new(Semaphore::new(most)),
            most,
            setting,
        }
    }

    pub(super) fn take(&self, count: usize) -> Result<Place, NoPlace> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let permit = self.semaphore.clone().try_acquire_many_owned(count);
        permit.map(Place).map_err(|_| NoPlace {
            most: self.most,
            setting: self.setting,
        })
    }

    fn taken(&self) -> usize {
        self.most - self.semaphore.available_permits()
    }
}

impl Node {
    /// A place to wait for the end of an execution.
    pub fn place_to_wait(&self) -> Result<Place, NoPlace> {
        self.waiters.take(1)
    }

    /// A place to wait for tasks of so many queues.
    pub fn place_to_poll(&self, queues: usize) -> Result<Place, NoPlace> {
        self.waiters.take(queues.div_ceil(QUEUES))
    }

    /// How many places of those who wait are taken.
    pub fn waiting(&self) -> usize {
        self.waiters.taken()
    }

    /// How many follow histories.
    pub fn followed(&self) -> usize {
        self.followers.taken()
    }
}
