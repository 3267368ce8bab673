//! The connection that writes.

use crate::fault::store_error;
use crate::head::Heads;
use crate::whereabouts::Whereabouts;
use rusqlite::Connection;
use starbridge_ports::STATUSES;
use starbridge_ports::StoreError;
use std::path::PathBuf;

/// What one transaction works with.
pub(crate) struct Work<'a> {
    pub connection: &'a Connection,
    pub heads: &'a mut Heads,
    /// Number of the next execution. It only grows while the store is open, so that no cursor meets another execution.
    pub next: &'a mut i64,
    /// By how much the number of executions in each status changes.
    pub counts: [i64; STATUSES.len()],
}

/// The connection that writes, and what it knows of what it wrote.
pub(crate) struct Writer {
    connection: Connection,
    path: PathBuf,
    whereabouts: Whereabouts,
    heads: Heads,
    next: i64,
    /// Why nothing is written any more.
    broken: Option<StoreError>,
}

impl Writer {
    pub(crate) fn new(connection: Connection, path: PathBuf) -> rusqlite::Result<Self> {
        // What is still to be deleted must not become somebody else's.
        let next = connection.query_row(
            "SELECT coalesce(max(number), 0) + 1 FROM (SELECT max(number) AS number FROM executions UNION ALL SELECT max(number) FROM cleared)",
            [],
            |row| row.get(0),
        )?;
        Ok(Self {
            connection,
            whereabouts: Whereabouts::of(&path),
            path,
            heads: Heads::default(),
            next,
            broken: None,
        })
    }

    /// Does the work as a whole: what it wrote is durable when this returns, or was not written at all.
    ///
    /// After a failed commit nobody knows what the disk holds. A flush that is tried again may succeed without having
    /// written what the first one lost, so nothing is written any more until the store is opened anew.
    pub(crate) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Work<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        if !self.connection.is_autocommit() {
            // A panic left it open.
            self.undo();
        }
        let error = match self.attempt(work) {
            Ok(done) => match self.run("COMMIT") {
                Ok(()) => return self.still_there().map(|()| done),
                Err(error) => {
                    let error = store_error(&self.path, &error);
                    self.broken = Some(error.clone());
                    error
                }
            },
            Err(error) => store_error(&self.path, &error),
        };
        self.undo();
        Err(error)
    }

    /// What was just written is durable only if the next to open the store will find it.
    fn still_there(&mut self) -> Result<(), StoreError> {
        let Some(missing) = self.whereabouts.missing() else {
            return Ok(());
        };
        let why = "was taken away while it was in use: what was kept is in it, wherever it is now";
        let error = StoreError::Unavailable(format!("{} {why}", missing.display()));
        self.broken = Some(error.clone());
        Err(error)
    }

    fn attempt<T>(&mut self, work: impl FnOnce(&mut Work<'_>) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        self.run("BEGIN IMMEDIATE")?;
        let mut with = Work {
            connection: &self.connection,
            heads: &mut self.heads,
            next: &mut self.next,
            counts: [0; STATUSES.len()],
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

    /// Rolls back, and forgets what was learnt. SQLite may have rolled back by itself: on a full disk it does.
    fn undo(&mut self) {
        self.heads.clear();
        if !self.connection.is_autocommit() {
            // Where even this fails, so will whatever comes next.
            let _ = self.run("ROLLBACK");
        }
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.connection.prepare_cached(sql)?.execute([]).map(drop)
    }
}
