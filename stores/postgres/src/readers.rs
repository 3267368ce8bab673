//! Connections that read. Each is used by one caller at a time; a caller that finds none free waits.

use crate::fault::Failure;
use crate::link::Link;
use crate::session::Session;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A bounded pool that is filled on demand.
pub(crate) struct Readers {
    link: Arc<Link>,
    most: usize,
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Session>,
    /// How many connections are open, idle or in use.
    all: usize,
}

impl Readers {
    pub(crate) fn new(link: Arc<Link>, most: usize) -> Self {
        Self {
            link,
            most: most.max(1),
            pool: Mutex::default(),
            returned: Condvar::new(),
        }
    }

    /// Opens this many connections ahead of their use.
    pub(crate) fn warm(&self, count: usize) -> Result<(), Failure> {
        for _ in 0..count.min(self.most) {
            let session = self.link.connect()?;
            let mut pool = self.pool();
            pool.all += 1;
            pool.idle.push(session);
        }
        Ok(())
    }

    /// Lends a connection. It is closed afterwards unless it is given back.
    pub(crate) fn take(&self) -> Result<Lent<'_>, Failure> {
        let mut pool = self.pool();
        loop {
            match pool.idle.pop() {
                // It may have ended since.
                Some(session) if session.is_closed() => pool.all -= 1,
                Some(session) => {
                    return Ok(Lent {
                        readers: self,
                        session: Some(session),
                        whole: false,
                    });
                }
                None if pool.all < self.most => break,
                None => pool = self.returned.wait(pool).unwrap_or_else(PoisonError::into_inner),
            }
        }
        pool.all += 1;
        drop(pool);
        let session = self.link.connect().inspect_err(|_| self.give_back(None))?;
        Ok(Lent {
            readers: self,
            session: Some(session),
            whole: false,
        })
    }

    fn give_back(&self, session: Option<Session>) {
        let mut pool = self.pool();
        match session {
            Some(session) => pool.idle.push(session),
            None => pool.all -= 1,
        }
        drop(pool);
        self.returned.notify_one();
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that was lent.
pub(crate) struct Lent<'a> {
    readers: &'a Readers,
    session: Option<Session>,
    /// Whether the next one may use it.
    whole: bool,
}

impl Lent<'_> {
    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Says that all went well with it.
    pub(crate) fn is_whole(&mut self) {
        self.whole = true;
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let session = self.session.take();
        self.readers.give_back(session.filter(|_| self.whole));
    }
}
