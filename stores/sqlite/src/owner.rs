//! One owner at a time, by a lock beside the file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// Ownership of a store. The system ends it with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Owner {
    _file: File,
}

/// Why it was not had.
#[derive(Debug)]
pub(crate) enum NotOwner {
    /// Another process has it, the one with this id, if it could be read.
    Taken(Option<u32>),
    /// The lock file could not be used.
    Io(PathBuf, io::Error),
}

impl Owner {
    /// Takes ownership of the store in that file. The lock file stays when it ends: removing it would race with who comes next.
    pub(crate) fn take(store: &Path) -> Result<Self, NotOwner> {
        let mut name = store.as_os_str().to_owned();
        name.push(".lock");
        let path = PathBuf::from(name);
        let io = |error| NotOwner::Io(path.clone(), error);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = file.read_to_string(&mut text);
                return Err(NotOwner::Taken(read.ok().and_then(|_| text.trim().parse().ok())));
            }
            Err(TryLockError::Error(error)) => return Err(io(error)),
        }
        let write = file
            .set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| writeln!(file, "{}", std::process::id()));
        write.map_err(io)?;
        Ok(Self { _file: file })
    }
}
