//! Connections that read. Each is used by one caller at a time. A caller waits if none is free.

use rusqlite::Connection;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A bounded pool that is filled on demand.
pub(crate) struct Readers {
    open: Box<dyn Fn() -> rusqlite::Result<Connection> + Send + Sync>,
    most: usize,
    pool: Mutex<Pool>,
    returned: Condvar,
}

#[derive(Default)]
struct Pool {
    idle: Vec<Connection>,
    /// How many connections are open, idle or in use.
    all: usize,
}

impl Readers {
    pub(crate) fn new(most: usize, open: impl Fn() -> rusqlite::Result<Connection> + Send + Sync + 'static) -> Self {
        Self {
            open: Box::new(open),
            most: most.max(1),
            pool: Mutex::default(),
            returned: Condvar::new(),
        }
    }

    /// Reads within one transaction, so that everything read belongs to one state of the store.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let lent = Lent {
            readers: self,
            connection: Some(self.take()?),
        };
        let Some(connection) = &lent.connection else {
            return Err(rusqlite::Error::InvalidQuery);
        };
        let reading = Reading::begin(connection)?;
        work(reading.0)
    }

    fn take(&self) -> rusqlite::Result<Connection> {
        let mut pool = self.pool();
        loop {
            if let Some(connection) = pool.idle.pop() {
                return Ok(connection);
            }
            if pool.all < self.most {
                pool.all += 1;
                break;
            }
            pool = self.returned.wait(pool).unwrap_or_else(PoisonError::into_inner);
        }
        drop(pool);
        (self.open)().inspect_err(|_| self.give_back(None))
    }

    fn give_back(&self, connection: Option<Connection>) {
        let mut pool = self.pool();
        match connection {
            Some(connection) => pool.idle.push(connection),
            None => pool.all -= 1,
        }
        drop(pool);
        self.returned.notify_one();
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transaction that reads. It is rolled back when it is dropped, also in a panic, because there
/// is nothing to commit.
struct Reading<'a>(&'a Connection);

impl<'a> Reading<'a> {
    fn begin(connection: &'a Connection) -> rusqlite::Result<Self> {
        // A connection whose last transaction could not be ended is still in that transaction, and
        // would read old data.
        if !connection.is_autocommit() {
            connection.prepare_cached("ROLLBACK")?.execute([])?;
        }
        connection.prepare_cached("BEGIN")?.execute([])?;
        Ok(Self(connection))
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if !self.0.is_autocommit() {
            // If it fails, the next user of the connection tries again.
            let _ = self
                .0
                .prepare_cached("ROLLBACK")
                .and_then(|mut statement| statement.execute([]));
        }
    }
}

struct Lent<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.readers.give_back(self.connection.take());
    }
}
