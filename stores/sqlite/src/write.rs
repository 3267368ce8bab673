//! The connection that writes.

use crate::fault::store_error;
use crate::head::Heads;
use crate::log_file::{Files, Loss, leave_as_it_is};
use rusqlite::Connection;
use starbridge_ports::{Epochs, Incarnation, STATUS_CODES, ShardOwners, StoreError};
use std::path::PathBuf;

/// The context of one transaction.
pub(crate) struct Work<'a> {
    pub connection: &'a Connection,
    pub heads: &'a mut Heads,
    /// The number of the next execution. It only grows while the store is open, so that a cursor
    /// never points to another execution.
    pub next: &'a mut i64,
    /// Under which epochs appends are taken.
    pub epochs: &'a Epochs,
    /// The change in the number of executions in each status.
    pub counts: [i64; STATUS_CODES.len()],
}

/// The connection that writes, and its knowledge of what it wrote.
pub(crate) struct Writer {
    // INVARIANT: closed before the files are.
    connection: Connection,
    path: PathBuf,
    files: Files,
    heads: Heads,
    next: i64,
    owners: ShardOwners,
    /// Why nothing is written any more.
    broken: Option<StoreError>,
}

impl Writer {
    pub(crate) fn new(connection: Connection, path: PathBuf, files: Files) -> rusqlite::Result<Self> {
        // The numbers of executions whose turns are still to be deleted must not be reused.
        let next = connection.query_row(
            "SELECT coalesce(max(number), 0) + 1 FROM (SELECT max(number) AS number FROM executions UNION ALL SELECT max(number) FROM cleared)",
            [],
            |row| row.get(0),
        )?;
        let last: i64 = connection.query_row("SELECT last FROM incarnations", [], |row| row.get(0))?;
        Ok(Self {
            connection,
            path,
            files,
            heads: Heads::default(),
            next,
            owners: ShardOwners::after(last.unsigned_abs()),
            broken: None,
        })
    }

    /// The next incarnation joins. That there was one is durable before it claims anything.
    pub(crate) fn join(&mut self, name: &str) -> Result<Incarnation, StoreError> {
        let next = self.owners.next();
        self.transaction(|work| {
            work.connection
                .execute("UPDATE incarnations SET last = ?1", [next.0])
                .map(drop)
        })?;
        Ok(self.owners.join(name))
    }

    /// Who has which shard, unless nothing is written any more.
    pub(crate) fn owners(&mut self) -> Result<&mut ShardOwners, StoreError> {
        match &self.broken {
            Some(broken) => Err(broken.clone()),
            None => Ok(&mut self.owners),
        }
    }

    /// Does some work atomically: its writes are durable when this returns, or were not made at
    /// all.
    ///
    /// After a failed commit, the state of the disk is unknown. A repeated flush may succeed
    /// without having written the data that the first one lost. So nothing is written until the
    /// store is opened again.
    pub(crate) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Work<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        if !self.connection.is_autocommit() {
            // A panic left the transaction open.
            self.undo();
        }
        let error = match self.attempt(work) {
            Ok(done) => match self.commit() {
                Ok(()) => return Ok(done),
                Err(error) => {
                    self.broken = Some(error.clone());
                    error
                }
            },
            Err(error) => self.cause(&error),
        };
        self.undo();
        Err(error)
    }

    /// The cause of an error: a log with a hole looks like a disk that fails.
    pub(crate) fn cause(&mut self, error: &rusqlite::Error) -> StoreError {
        let Err(loss) = self.files.look() else {
            return store_error(&self.path, error);
        };
        let lost = self.lost(loss);
        self.broken = Some(lost.clone());
        lost
    }

    /// Makes sure that the last writes are durable: the next process to open the store must find
    /// them.
    fn commit(&mut self) -> Result<(), StoreError> {
        if let Err(loss) = self.files.look() {
            return Err(self.lost(loss));
        }
        self.run("COMMIT").map_err(|error| store_error(&self.path, &error))?;
        let seen = self.files.look_again();
        seen.map_err(|loss| self.lost(loss))
    }

    fn lost(&self, loss: Loss) -> StoreError {
        match loss {
            Loss::Taken(file) => {
                let why = "was taken away while it was in use: what was kept is in it, wherever it is now";
                StoreError::Unavailable(format!("{} {why}", file.display()))
            }
            Loss::Cut(file) => {
                // If this fails, the rest of the log is moved into the file, and the next start says that it was cut.
                let _ = leave_as_it_is(&self.connection, true);
                let why = "became shorter while it was in use, and something that was acknowledged may be lost: go on from \
                           a backup, or with what is left by `starbridge serve --accept-lost-log`";
                StoreError::Corrupt(format!("{} {why}", file.display()))
            }
            Loss::Unsaid(why) => StoreError::Unavailable(why),
        }
    }

    fn attempt<T>(&mut self, work: impl FnOnce(&mut Work<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        self.run("BEGIN IMMEDIATE")?;
        let mut with = Work {
            connection: &self.connection,
            heads: &mut self.heads,
            next: &mut self.next,
            epochs: self.owners.epochs(),
            counts: [0; STATUS_CODES.len()],
        };
        let done = work(&mut with)?;
        let counts = with.counts;
        for (status, change) in (0_i64..).zip(counts).filter(|(_, change)| *change != 0) {
            self.connection
                .prepare_cached("UPDATE statuses SET executions = executions + ?2 WHERE status = ?1")?
                .execute([status, change])?;
        }
        Ok(done)
    }

    /// Rolls back and drops the cached data. SQLite may have rolled back by itself, for example on
    /// a full disk.
    fn undo(&mut self) {
        self.heads.clear();
        if !self.connection.is_autocommit() {
            // If even this fails, the next operation fails, too.
            let _ = self.run("ROLLBACK");
        }
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }
}

impl Drop for Writer {
    /// A log that was cut since the last commit must not be moved into the file.
    fn drop(&mut self) {
        if let Err(loss) = self.files.look() {
            self.lost(loss);
        }
    }
}
