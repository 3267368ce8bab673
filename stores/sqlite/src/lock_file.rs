//! The file `NAME.lock` beside a store. It records which process has the store, and whether its log
//! is needed to open it.
//!
//! To SQLite, a missing log looks like one that was moved into the file. So this file records that there is a log,
//! with the identity of the store's file and the time of its last change. Every program that moves the log into the
//! file, as the last one to close it does, changes the file afterwards.

use crate::file::{self, private};
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The file, locked by this process.
#[derive(Debug)]
pub(crate) struct LockFile {
    file: File,
    said: Option<Said>,
}

/// Why the file could not be locked.
#[derive(Debug)]
pub(crate) enum NotLocked {
    /// Another process has locked it; its id, if that could be read.
    Taken(Option<u32>),
    /// It is a link or has other content. It is left unchanged.
    Foreign(PathBuf),
    /// It could not be used.
    Io(PathBuf, io::Error),
}

/// The state of the log, for the next process that opens the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// Everything is in the file.
    Moved,
    /// The log has committed data.
    Needed,
    /// The log was cut while it was in use.
    Cut,
}

/// A record about a log, and the state of the file to which it applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub log: Log,
    pub of: Moment,
}

/// The identity of a file, and the time of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    inode: u64,
    /// The number of a deleted file may be reused.
    born: u128,
    changed: u128,
}

impl Moment {
    pub(crate) fn of(file: &Metadata) -> Self {
        let nanos = |time: io::Result<std::time::SystemTime>| {
            let since = time.ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            since.map_or(0, |since| since.as_nanos())
        };
        Self {
            inode: inode(file),
            born: nanos(file.created()),
            changed: nanos(file.modified()),
        }
    }

    /// Whether it is the same file, unchanged since then.
    pub(crate) fn is_still(self, now: Self) -> bool {
        (self.inode, self.born) == (now.inode, now.born) && now.changed <= self.changed
    }
}

#[cfg(unix)]
fn inode(file: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(file)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

/// More than is ever written to it, in bytes.
const MAX_BYTES: u64 = 256;

/// What the file at this path says, if it exists.
pub(crate) fn read(path: &Path) -> Result<Option<Said>, NotLocked> {
    let mut options = OpenOptions::new();
    options.read(true);
    match open(path, options) {
        Ok(file) => Ok(contents(path, &file)?.1),
        Err(NotLocked::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl LockFile {
    /// Locks the file for this process, and creates it if it does not exist. It stays when the process ends: removing
    /// it would race with the next process.
    pub(crate) fn take(path: &Path, said: Option<Said>) -> Result<Self, NotLocked> {
        let mut options = private();
        options.create(true).truncate(false);
        let file = open(path, options)?;
        match file::lock(&file, || contents(path, &file).ok()?.0) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(NotLocked::Taken(contents(path, &file)?.0)),
            Err(TryLockError::Error(error)) => return Err(NotLocked::Io(path.to_path_buf(), error)),
        }
        let mut mark = Self { file, said: None };
        let written = mark.write(said);
        written.map_err(|error| NotLocked::Io(path.to_path_buf(), error))?;
        Ok(mark)
    }

    pub(crate) fn said(&self) -> Option<Said> {
        self.said
    }

    /// Records something about the log. If it is worse than what was recorded before, it is flushed to the disk.
    pub(crate) fn say(&mut self, said: Said) -> io::Result<()> {
        let worse = self.said.is_none_or(|before| before.log != said.log) && said.log != Log::Moved;
        self.write(Some(said))?;
        if worse { self.file.sync_data() } else { Ok(()) }
    }

    /// The length is always the same and the record is written at once, so the file never has half
    /// a record.
    fn write(&mut self, said: Option<Said>) -> io::Result<()> {
        let text = text(said);
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.set_len(text.len() as u64)?;
        self.said = said;
        Ok(())
    }
}

fn text(said: Option<Said>) -> String {
    let process = std::process::id();
    let word = match said.map(|said| said.log) {
        None | Some(Log::Moved) => "moved",
        Some(Log::Needed) => "needed",
        Some(Log::Cut) => "cut",
    };
    let (inode, born, changed) = said.map_or((0, 0, 0), |said| (said.of.inode, said.of.born, said.of.changed));
    format!("{process:<10}\nlog {word:<6} {inode:>20} {born:>20} {changed:>20}\n")
}

fn open(path: &Path, mut options: OpenOptions) -> Result<File, NotLocked> {
    let io = |error| NotLocked::Io(path.to_path_buf(), error);
    // A link may lead anywhere, and its target would be overwritten.
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    if std::fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
        return Err(NotLocked::Foreign(path.to_path_buf()));
    }
    let file = options.open(path).map_err(io)?;
    let there = file.metadata().map_err(io)?;
    if !there.is_file() || is_linked(&there) || there.len() > MAX_BYTES {
        return Err(NotLocked::Foreign(path.to_path_buf()));
    }
    Ok(file)
}

#[cfg(unix)]
fn is_linked(there: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(there) > 1
}

#[cfg(not(unix))]
fn is_linked(_: &Metadata) -> bool {
    false
}

/// The process that wrote the file, and what it recorded.
fn contents(path: &Path, mut file: &File) -> Result<(Option<u32>, Option<Said>), NotLocked> {
    let mut text = String::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(MAX_BYTES).read_to_string(&mut text));
    match read {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(NotLocked::Foreign(path.to_path_buf())),
        Err(error) => Err(NotLocked::Io(path.to_path_buf(), error)),
        Ok(_) => {
            let mut lines = text.lines();
            let process = lines.next().map(str::trim).unwrap_or_default();
            if !process.is_empty() && process.parse::<u32>().is_err() {
                return Err(NotLocked::Foreign(path.to_path_buf()));
            }
            Ok((process.parse().ok(), lines.next().and_then(parse)))
        }
    }
}

fn parse(line: &str) -> Option<Said> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let ["log", word, inode, born, changed] = words[..] else {
        return None;
    };
    let log = match word {
        "moved" => Log::Moved,
        "needed" => Log::Needed,
        "cut" => Log::Cut,
        _ => return None,
    };
    let of = Moment {
        inode: inode.parse().ok()?,
        born: born.parse().ok()?,
        changed: changed.parse().ok()?,
    };
    Some(Said { log, of })
}
