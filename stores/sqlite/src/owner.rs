//! One owner at a time, by a lock on the store's file itself. All names of the file lead to the
//! same lock.
//!
//! INVARIANT: the file with the lock is opened before SQLite opens it, and closed after SQLite has
//! closed it. Closing any handle of a file releases all locks that SQLite took on it in this
//! process.

use crate::file::{Identity, beside, identity, private};
use std::collections::BTreeSet;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ownership of a store. The system releases it when the process ends in any way.
#[derive(Debug)]
pub(crate) struct Owner {
    _file: File,
    identity: Identity,
    /// Whether the file was empty.
    pub(crate) made: bool,
}

/// Why ownership was not possible.
#[derive(Debug)]
pub(crate) enum NotOwner {
    /// Another process has it: the one with this id, if that could be found out.
    Taken(Option<u32>),
    /// The path leads to something that is not a regular file.
    NoFile,
    /// There is a log without the file it belongs to.
    OnlyLog(PathBuf),
    /// The file could not be used.
    Io(io::Error),
}

impl From<io::Error> for NotOwner {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The files that this process owns. A second owner is refused before it opens the file.
static OWNED: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

fn owned() -> MutexGuard<'static, BTreeSet<(u64, u64)>> {
    OWNED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Owner {
    /// Takes ownership of the store in this file. If the file does not exist, it is created for its owner only,
    /// regardless of the umask.
    pub(crate) fn take(path: &Path) -> Result<Self, NotOwner> {
        let mut owned = owned();
        match std::fs::metadata(path) {
            Ok(there) if !there.is_file() => return Err(NotOwner::NoFile),
            Ok(there) if identity(&there).is_some_and(|identity| owned.contains(&identity)) => {
                return Err(NotOwner::Taken(Some(std::process::id())));
            }
            Ok(there) if there.len() == 0 => not_only_log(path)?,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                not_only_log(path)?;
                make(path)?;
            }
            Err(error) => return Err(error.into()),
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let there = file.metadata()?;
        lock(&file, &there)?;
        let identity = identity(&there);
        owned.extend(identity);
        Ok(Self {
            _file: file,
            identity,
            made: there.len() == 0,
        })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(identity) = &self.identity {
            owned().remove(identity);
        }
    }
}

/// Refuses if there is only a log: SQLite deletes a log whose file is empty or missing.
fn not_only_log(path: &Path) -> Result<(), NotOwner> {
    let log = beside(path, "-wal");
    match std::fs::metadata(&log) {
        Ok(there) if there.len() > 0 => Err(NotOwner::OnlyLog(log)),
        _ => Ok(()),
    }
}

fn make(path: &Path) -> io::Result<()> {
    match private().create_new(true).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// On systems other than Linux such a lock could be one of those that SQLite takes, so only the lock file protects
/// the store there.
#[cfg(target_os = "linux")]
fn lock(file: &File, there: &Metadata) -> Result<(), NotOwner> {
    use std::fs::TryLockError;
    match crate::file::lock(file, || holder(there)) {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(NotOwner::Taken(holder(there))),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn lock(_: &File, _: &Metadata) -> Result<(), NotOwner> {
    Ok(())
}

/// The process that has locked this file. A line of `/proc/locks`: `7: FLOCK  ADVISORY  WRITE 4711 08:02:393220 0
/// EOF`.
#[cfg(target_os = "linux")]
fn holder(there: &Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let inode = there.ino().to_string();
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let holder = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", process, place, ..] = words[..] else {
            return None;
        };
        let same = place.rsplit(':').next() == Some(&inode);
        same.then(|| process.parse().ok()).flatten()
    };
    locks.lines().find_map(holder).filter(|process| *process > 0)
}
