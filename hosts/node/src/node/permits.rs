//! Limits of requests that wait or follow.

use super::Node;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many queues of one poll count as one permit.
const QUEUES_PER_PERMIT: usize = 10;

/// Permits of requests that are kept open.
pub(super) struct WaitPermits {
    semaphore: Arc<Semaphore>,
    most: usize,
    setting: &'static str,
}

/// A permit. Dropping it returns it.
#[derive(Debug)]
pub struct WaitPermit(#[expect(dead_code, reason = "what counts is that it is kept")] OwnedSemaphorePermit);

/// All permits are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoWaitPermit {
    /// How many permits there are.
    pub most: usize,
    /// The setting for their number.
    pub setting: &'static str,
}

impl WaitPermits {
    pub(super) fn new(most: usize, setting: &'static str) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self {
            semaphore: Arc::new(Semaphore::new(most)),
            most,
            setting,
        }
    }

    pub(super) fn take(&self, count: usize) -> Result<WaitPermit, NoWaitPermit> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let permit = self.semaphore.clone().try_acquire_many_owned(count);
        permit.map(WaitPermit).map_err(|_| NoWaitPermit {
            most: self.most,
            setting: self.setting,
        })
    }

    fn taken(&self) -> usize {
        self.most - self.semaphore.available_permits()
    }
}

impl Node {
    /// Takes a permit to wait for the end of an execution.
    ///
    /// # Errors
    ///
    /// [`NoWaitPermit`] if all are taken.
    pub fn wait_permit(&self) -> Result<WaitPermit, NoWaitPermit> {
        self.waiters.take(1)
    }

    /// Takes a permit to wait for tasks of this many queues.
    ///
    /// # Errors
    ///
    /// [`NoWaitPermit`] if all are taken.
    pub fn poll_permit(&self, queues: usize) -> Result<WaitPermit, NoWaitPermit> {
        self.waiters.take(queues.div_ceil(QUEUES_PER_PERMIT))
    }

    /// Takes a permit to follow what happens.
    ///
    /// # Errors
    ///
    /// [`NoWaitPermit`] if all are taken.
    pub fn follow_permit(&self) -> Result<WaitPermit, NoWaitPermit> {
        self.followers.take(1)
    }

    /// How many permits of requests that wait are taken.
    pub fn waiting(&self) -> usize {
        self.waiters.taken()
    }

    /// How many requests follow histories.
    pub fn followed(&self) -> usize {
        self.followers.taken()
    }
}
