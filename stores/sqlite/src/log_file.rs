//! Checks whether the store's file and log are still the open ones, and have the length that was
//! written.
//!
//! A file that was deleted or moved accepts writes without an error, and the next one to open the store does not find
//! them. A log that was cut gets new writes after the hole, where the next start does not look.

use crate::file::{Identity, beside, identity};
use crate::lock_file::{LockFile, Log, Moment, Said};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// What happened to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Its path leads to no file, or to another one.
    Taken(PathBuf),
    /// It is shorter than what was written to it.
    Cut(PathBuf),
    /// A record about the log that the next start needs could not be written.
    Unsaid(String),
}

/// The files of an open store.
#[derive(Debug)]
pub(crate) struct Files {
    store: PathBuf,
    log: PathBuf,
    identities: [Identity; 2],
    /// How many bytes the store's file had when it was last checked.
    bytes: u64,
    /// The log and its index. They are read here because SQLite does not report how long the log
    /// should be.
    ///
    /// INVARIANT: the index is closed after SQLite has closed it, because closing it releases SQLite's locks on it.
    opened: Option<(File, File)>,
    lock: LockFile,
}

impl Files {
    /// The files of an open store. Its log exists.
    pub(crate) fn of(store: &Path, lock: LockFile) -> io::Result<Self> {
        let log = beside(store, "-wal");
        let (file, of_log) = (std::fs::metadata(store)?, std::fs::metadata(&log)?);
        let opened = match cfg!(unix) {
            true => Some((File::open(&log)?, File::open(beside(store, "-shm"))?)),
            false => None,
        };
        Ok(Self {
            identities: [identity(&file), identity(&of_log)],
            bytes: file.len(),
            store: store.to_path_buf(),
            log,
            opened,
            lock,
        })
    }

    /// Checks the files. Called before a commit, so that nothing is written after a hole, and after
    /// it.
    pub(crate) fn look(&mut self) -> Result<(), Loss> {
        self.state().map(drop)
    }

    /// The store's file, and whether it has everything that is in the log.
    fn state(&mut self) -> Result<(Metadata, bool), Loss> {
        let [of_store, of_log] = self.identities;
        let file = still(&self.store, of_store)?;
        let log = still(&self.log, of_log)?;
        let Some(index) = self.index() else {
            self.bytes = file.len();
            return Ok((file, false));
        };
        // A commit that makes the store smaller records that in the log.
        let least = match index.pages {
            0 => self.bytes,
            pages => self.bytes.min(u64::from(pages) * index.page_bytes),
        };
        if file.len() < least {
            return Err(self.cut(self.store.clone()));
        }
        if index.frames > 0 {
            let expected = LOG_HEAD_BYTES + u64::from(index.frames) * (index.page_bytes + FRAME_HEAD_BYTES);
            if log.len() < expected || self.salt().is_some_and(|salt| salt != index.salt) {
                return Err(self.cut(self.log.clone()));
            }
        }
        self.bytes = file.len();
        Ok((file, index.frames == index.moved))
    }

    /// Checks the files after a commit, and records whether the log is needed now.
    pub(crate) fn look_again(&mut self) -> Result<(), Loss> {
        let (file, is_moved) = self.state()?;
        let log = if is_moved { Log::Moved } else { Log::Needed };
        let of = Moment::of(&file);
        let said = Said { log, of };
        if self.lock.said() == Some(said) {
            return Ok(());
        }
        let unsaid = |error: io::Error| Loss::Unsaid(format!("{}: {error}", beside(&self.store, ".lock").display()));
        self.lock.say(said).map_err(unsaid)
    }

    fn cut(&mut self, which: PathBuf) -> Loss {
        if let Ok(there) = std::fs::metadata(&self.store) {
            let of = Moment::of(&there);
            // If it can't be written, the next start may not notice. This process ends in any case.
            let _ = self.lock.say(Said { log: Log::Cut, of });
        }
        Loss::Cut(which)
    }

    /// The index's state of the log; `None` while another program writes it.
    fn index(&self) -> Option<Index> {
        let (_, index) = self.opened.as_ref()?;
        let mut head = [0; 2 * INDEX_HEAD_BYTES + 4];
        read_at(index, &mut head).ok()?;
        let (first, rest) = head.split_at(INDEX_HEAD_BYTES);
        let (second, moved) = rest.split_at(INDEX_HEAD_BYTES);
        (first == second).then(|| Index::read(first, moved)).flatten()
    }

    /// What distinguishes this log from the one before: the salt at its beginning.
    fn salt(&self) -> Option<[u8; 8]> {
        let (log, _) = self.opened.as_ref()?;
        let mut head = [0; LOG_HEAD_BYTES as usize];
        read_at(log, &mut head).ok()?;
        head[16..24].try_into().ok()
    }
}

impl Drop for Files {
    /// The connection is closed. Unless another program has the store open, the log is in the file now.
    fn drop(&mut self) {
        let cut = self.lock.said().is_some_and(|said| said.log == Log::Cut);
        if cut || std::fs::metadata(&self.log).is_ok_and(|log| log.len() > 0) {
            return;
        }
        if let Ok(file) = still(&self.store, self.identities[0]) {
            let of = Moment::of(&file);
            // The next start then believes that the log is needed, and checks.
            let _ = self.lock.say(Said { log: Log::Moved, of });
        }
    }
}

/// Leaves the remaining store unchanged: moving a log with a hole into the file would damage the
/// file too.
pub(crate) fn leave_as_it_is(connection: &Connection, leave: bool) -> rusqlite::Result<()> {
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, leave)
        .map(drop)
}

fn still(path: &Path, known: Identity) -> Result<Metadata, Loss> {
    match std::fs::metadata(path) {
        Ok(there) if identity(&there) == known => Ok(there),
        _ => Err(Loss::Taken(path.to_path_buf())),
    }
}

/// The bytes at the beginning of a log, and before each page in it.
const LOG_HEAD_BYTES: u64 = 32;
const FRAME_HEAD_BYTES: u64 = 24;
/// The bytes of the head of an index, which has two copies of it.
const INDEX_HEAD_BYTES: usize = 48;

/// The head of a log's index (<https://www.sqlite.org/walformat.html>), in the byte order of the machine.
#[derive(Debug, PartialEq, Eq)]
struct Index {
    page_bytes: u64,
    /// How many pages the log has, up to the last commit.
    frames: u32,
    /// How many of them are in the store's file.
    moved: u32,
    /// The number of pages in the store since then; 0: nothing was written since the log began.
    pages: u32,
    salt: [u8; 8],
}

impl Index {
    fn read(head: &[u8], moved: &[u8]) -> Option<Self> {
        let number = |bytes: &[u8]| Some(u32::from_ne_bytes(bytes.try_into().ok()?));
        let is_ready = *head.get(12)? != 0;
        let size = u16::from_ne_bytes(head.get(14..16)?.try_into().ok()?);
        is_ready.then_some(Self {
            // 65,536 is written as 1.
            page_bytes: u64::from(size & 0xfe00) + (u64::from(size & 1) << 16),
            frames: number(head.get(16..20)?)?,
            moved: number(moved)?,
            pages: number(head.get(20..24)?)?,
            salt: head.get(32..40)?.try_into().ok()?,
        })
    }
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, 0)
}

#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
