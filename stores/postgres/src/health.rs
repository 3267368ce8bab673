//! Whether the database answers, and waiting until it does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What is known of the database, for all who use it.
#[derive(Default)]
pub(crate) struct Health {
    /// Why it does not answer. The flag is the same, to be looked at often.
    why: Mutex<Option<String>>,
    away: AtomicBool,
    /// Whether nobody waits any more, because the store is closed.
    closed: AtomicBool,
    changed: Condvar,
}

impl Health {
    pub(crate) fn is_away(&self) -> bool {
        self.away.load(Ordering::Acquire)
    }

    /// Why the database does not answer; `None` while it does.
    pub(crate) fn why(&self) -> Option<String> {
        self.lock().clone()
    }

    /// Notes that it does not answer. Returns whether that is news.
    pub(crate) fn went(&self, why: &str) -> bool {
        let mut kept = self.lock();
        let news = kept.is_none();
        if news {
            *kept = Some(why.to_owned());
            self.away.store(true, Ordering::Release);
            self.changed.notify_all();
        }
        news
    }

    /// Notes that it answers again. Returns whether that is news.
    pub(crate) fn came_back(&self) -> bool {
        let news = self.lock().take().is_some();
        self.away.store(false, Ordering::Release);
        self.changed.notify_all();
        news
    }

    /// Lets everybody go who waits.
    pub(crate) fn close(&self) {
        let _kept = self.lock();
        self.closed.store(true, Ordering::Release);
        self.changed.notify_all();
    }

    /// Waits until it answers. Returns whether it does: not if the store is closed first.
    pub(crate) fn wait(&self) -> bool {
        let mut kept = self.lock();
        while kept.is_some() && !self.closed.load(Ordering::Acquire) {
            kept = self.changed.wait(kept).unwrap_or_else(PoisonError::into_inner);
        }
        !self.closed.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
