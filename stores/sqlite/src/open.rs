//! Opening or creating a store.

use crate::SqliteStore;
use crate::fault::{io_error, store_error};
use crate::file::{beside, private};
use crate::lock_file::{self, LockFile, Log, Moment, NotLocked, Said};
use crate::log_file::{Files, leave_as_it_is};
use crate::migrate::{self, APPLICATION_ID, MigrateError};
use crate::modes;
use crate::owner::{NotOwner, Owner};
use crate::readers::Readers;
use crate::write::Writer;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use starbridge_ports::StoreError;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Until it is on the disk. Acknowledged data is never lost.
    Each,
    /// Only for moving the log into the file. A power failure may lose the last commits, but does not damage the
    /// store.
    Seldom,
    /// For nothing. A power failure may damage the store; the end of the process does not. For tests.
    Never,
}

/// Options of a store. The defaults were the best in measurements: see the page on the store.
#[derive(Clone, Debug)]
pub struct Options {
    /// The size of a page, in bytes. It only applies to a new store.
    pub page_bytes: u32,
    /// How many bytes of pages the writer keeps in memory.
    pub cache_bytes: u64,
    /// How many bytes of the file each reader may map into memory; 0: none.
    pub mapped_bytes: u64,
    /// The number of pages after which the log is moved into the file.
    pub log_pages: u32,
    /// The event that a commit waits for.
    pub flush: Flush,
    /// The number of connections that read.
    pub readers: usize,
    /// The maximum number of pages of the file; 0: as many as the disk holds.
    pub most_pages: u32,
    /// Whether to open a store whose log was lost, with only the content of its file.
    pub accept_lost_log: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            page_bytes: 8192,
            cache_bytes: 16 * 1024 * 1024,
            mapped_bytes: 0,
            log_pages: 2048,
            flush: Flush::Each,
            readers: 8,
            most_pages: 0,
            accept_lost_log: false,
        }
    }
}

/// Why a store was not opened.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has it open.
    Taken {
        /// The path of the store's file.
        path: PathBuf,
        /// The id of the other process, if it is known.
        process: Option<u32>,
    },
    /// The file is not a store.
    Foreign {
        /// The path of the file.
        path: PathBuf,
    },
    /// A newer version of the program has written it.
    Newer {
        /// The path of the store's file.
        path: PathBuf,
        /// The version of its format.
        found: u32,
        /// The latest format that this program knows.
        known: u32,
    },
    /// It was created by a program that differs from all released ones.
    Altered {
        /// The path of the store's file.
        path: PathBuf,
        /// The number of the migration that differs.
        migration: u32,
    },
    /// The lock file beside it is a link or has other content.
    NoLock {
        /// The path of the lock file.
        path: PathBuf,
    },
    /// There is a log without the file it belongs to.
    OnlyLog {
        /// The path of the store's file.
        path: PathBuf,
        /// The path of the log.
        log: PathBuf,
    },
    /// The store was not closed, and its log is missing or was cut, so commits are lost.
    LostLog {
        /// The path of the store's file.
        path: PathBuf,
        /// The path where the log should be.
        log: PathBuf,
    },
    /// The file or its disk can't be used.
    Store(StoreError),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Taken { path, process } => {
                let file = path.display();
                match process {
                    Some(process) => write!(
                        f,
                        "{file} is in use by process {process}: a store has one owner; stop that one first"
                    ),
                    None => write!(
                        f,
                        "{file} is in use by another process: a store has one owner; stop that one first"
                    ),
                }
            }
            Self::Foreign { path } => write!(f, "{} is not a starbridge store", path.display()),
            Self::Newer { path, found, known } => write!(
                f,
                "{} has format {found}, this program knows formats up to {known}: use a later version of it",
                path.display()
            ),
            Self::Altered { path, migration } => write!(
                f,
                "{} was made by an unreleased program: its step {migration} to the present format is another one",
                path.display()
            ),
            Self::NoLock { path } => write!(
                f,
                "{} is a link or has something else in it, where the store says who has it open: move it away",
                path.display()
            ),
            Self::OnlyLog { path, log } => write!(
                f,
                "there is a log `{}`, but nothing in `{}`, which it is of: put the file back, or move the log away to begin \
                 a new store",
                log.display(),
                path.display()
            ),
            Self::LostLog { path, log } => write!(
                f,
                "{} was not closed, and its log `{}` is gone or was cut, with what was acknowledged last: put the log back, \
                 go on from a backup, or accept the loss with `starbridge serve --accept-lost-log`",
                path.display(),
                log.display()
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

pub(crate) fn open(path: &Path, options: &Options) -> Result<SqliteStore, OpenError> {
    // The lock and the log are beside the file itself, even if a link led there.
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let path = real(path);
    let owner = Owner::take(&path).map_err(|why| not_owner(&path, why))?;
    // The file may just have been created.
    let path = &*real(&path);
    let failed = |error: rusqlite::Error| OpenError::Store(store_error(path, &error));
    let left = left_behind(path, options)?;
    let mut connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(failed)?;
    leave_as_it_is(&connection, true).map_err(failed)?;
    if !is_ours(&connection).map_err(failed)? {
        return Err(OpenError::Foreign {
            path: path.to_path_buf(),
        });
    }
    let lock = LockFile::take(&beside(path, ".lock"), left).map_err(|why| not_locked(path, why))?;
    leave_as_it_is(&connection, false).map_err(failed)?;
    let journal = set_up(&connection, options).map_err(failed)?;
    if journal != "wal" {
        // On file systems without shared memory there is no log.
        return Err(OpenError::Store(StoreError::Unavailable(format!(
            "the file system of {} allows no write-ahead log: use a local disk",
            path.display()
        ))));
    }
    migrate::bring_up(&mut connection).map_err(|error| match error {
        MigrateError::Sqlite(error) => failed(error),
        MigrateError::Newer { found, known } => OpenError::Newer {
            path: path.to_path_buf(),
            found,
            known,
        },
        MigrateError::Altered(migration) => OpenError::Altered {
            path: path.to_path_buf(),
            migration,
        },
    })?;
    let files = Files::of(path, lock).map_err(|error| OpenError::Store(io_error(path, &error)))?;
    let writer = Writer::new(connection, path.to_path_buf(), files).map_err(failed)?;
    let (file, mapped) = (path.to_path_buf(), options.mapped_bytes);
    Ok(SqliteStore {
        path: path.to_path_buf(),
        readers: Readers::new(options.readers, move || reader(&file, mapped)),
        writer: Mutex::new(writer),
        next: Mutex::default(),
        warnings: modes::warnings(path),
        owner,
    })
}

fn not_owner(path: &Path, why: NotOwner) -> OpenError {
    let path = path.to_path_buf();
    match why {
        NotOwner::Taken(process) => OpenError::Taken { path, process },
        NotOwner::NoFile => OpenError::Foreign { path },
        NotOwner::OnlyLog(log) => OpenError::OnlyLog { path, log },
        NotOwner::Io(error) => OpenError::Store(io_error(&path, &error)),
    }
}

fn not_locked(path: &Path, why: NotLocked) -> OpenError {
    match why {
        NotLocked::Taken(process) => OpenError::Taken {
            path: path.to_path_buf(),
            process,
        },
        NotLocked::Foreign(path) => OpenError::NoLock { path },
        NotLocked::Io(path, error) => OpenError::Store(io_error(&path, &error)),
    }
}

/// The record of the last process about the log; an error if the log is needed and missing.
fn left_behind(path: &Path, options: &Options) -> Result<Option<Said>, OpenError> {
    let said = lock_file::read(&beside(path, ".lock")).map_err(|why| not_locked(path, why))?;
    let log = beside(path, "-wal");
    let there = std::fs::metadata(&log).is_ok_and(|log| log.len() > 0);
    let now = std::fs::metadata(path).map_err(|error| OpenError::Store(io_error(path, &error)))?;
    let of = Moment::of(&now);
    let lost = said.is_some_and(|said| match said.log {
        Log::Moved => false,
        Log::Needed => !there && said.of.is_still(of),
        Log::Cut => said.of.is_still(of),
    });
    if lost && !options.accept_lost_log {
        return Err(OpenError::LostLog {
            path: path.to_path_buf(),
            log,
        });
    }
    Ok(there.then_some(Said { log: Log::Needed, of }))
}

/// Whether the file is a store, or empty and can become one.
fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let tables = match number("SELECT count(*) FROM sqlite_schema") {
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => return Ok(false),
        tables => tables?,
    };
    let application = number("PRAGMA application_id")?;
    Ok(application == i64::from(APPLICATION_ID) || (application == 0 && tables == 0))
}

/// Sets up a connection. Returns the kind of journal that the file then has.
fn set_up(connection: &Connection, options: &Options) -> rusqlite::Result<String> {
    keep_statements(connection)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "page_size", options.page_bytes)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    let flush = match options.flush {
        Flush::Each => "FULL",
        Flush::Seldom => "NORMAL",
        Flush::Never => "OFF",
    };
    connection.pragma_update(None, "synchronous", flush)?;
    connection.pragma_update(None, "foreign_keys", false)?;
    connection.pragma_update(None, "cache_size", kibibytes(options.cache_bytes))?;
    connection.pragma_update(None, "wal_autocheckpoint", options.log_pages)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    if options.most_pages > 0 {
        connection.pragma_update(None, "max_page_count", options.most_pages)?;
    }
    // A log that grew during a long read becomes short again.
    let log = u64::from(options.log_pages) * u64::from(options.page_bytes) * 2;
    connection.pragma_update(None, "journal_size_limit", i64::try_from(log).unwrap_or(i64::MAX))?;
    Ok(mode)
}

/// The number of statements that a connection keeps prepared: enough for all.
const STATEMENTS: usize = 256;

/// Statements are prepared once. Without a guarantee of stable plans, SQLite prepares a statement
/// again whenever a value that could affect its plan changes. The value of a `LIMIT` is such a
/// value. This would be most of the cost of a small query.
pub(crate) fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map(drop)
}

/// A cache size in bytes as SQLite takes it: in kibibytes, as a negative number.
fn kibibytes(bytes: u64) -> i64 {
    -i64::try_from(bytes / 1024).unwrap_or(i64::MAX)
}

fn reader(path: &Path, mapped: u64) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    keep_statements(&connection)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "query_only", true)?;
    connection.pragma_update(None, "cache_size", kibibytes(8 * 1024 * 1024))?;
    connection.pragma_update(None, "mmap_size", i64::try_from(mapped).unwrap_or(i64::MAX))?;
    Ok(connection)
}

/// Copies a store over a separate connection, so that all readers stay available. Only the owner
/// may use the copy, as with the store.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    let failed = |error: rusqlite::Error| store_error(to, &error);
    let made = private().create_new(true).open(to);
    made.map_err(|error| io_error(to, &error))?;
    let copied = copy_into(from, to).map_err(failed);
    if copied.is_err() {
        // The file is ours, and was empty. An incomplete copy would look like a store.
        let _ = std::fs::remove_file(to);
    }
    copied
}

fn copy_into(from: &Path, to: &Path) -> rusqlite::Result<()> {
    let connection = Connection::open_with_flags(
        from,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(Duration::from_secs(5))?;
    let to = to.to_string_lossy();
    connection.execute("VACUUM INTO ?1", [to.as_ref()]).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statement_is_prepared_once_whatever_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.db");
        let writer = Connection::open(&path).unwrap();
        set_up(&writer, &Options::default()).unwrap();
        writer.execute_batch("CREATE TABLE t (a INTEGER)").unwrap();
        for connection in [&writer, &reader(&path, 0).unwrap()] {
            let mut statement = connection
                .prepare("SELECT a FROM t WHERE a > ?1 ORDER BY a LIMIT ?2")
                .unwrap();
            for limit in 1..10 {
                assert!(!statement.exists([0, limit]).unwrap());
            }
            assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
        }
    }

    #[test]
    fn durability_pragmas_are_set() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("store.db")).unwrap();
        let said = |pragma: &str| {
            let sql = format!("PRAGMA {pragma}");
            let asked =
                |connection: &Connection| connection.query_row(&sql, [], |row| row.get::<_, rusqlite::types::Value>(0));
            let value = store.writer().transaction(|work| asked(work.connection));
            format!("{:?}", value.unwrap())
        };
        assert_eq!(said("journal_mode"), "Text(\"wal\")");
        // FULL.
        assert_eq!(said("synchronous"), "Integer(2)");
        assert_eq!(said("page_size"), "Integer(8192)");
        assert_eq!(said("wal_autocheckpoint"), "Integer(2048)");
        assert_eq!(said("application_id"), format!("Integer({APPLICATION_ID})"));
        let written = store.read(|connection| connection.execute("DELETE FROM turns", []));
        assert!(matches!(written, Err(StoreError::Unavailable(_))));
    }
}
