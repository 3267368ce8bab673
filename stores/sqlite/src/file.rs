//! The files of a store: their names, their permissions, their identities, and their locks.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The path of a file beside the store: its name with this ending.
pub(crate) fn beside(store: &Path, ending: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Options to open a file for writing. If the file is created, only its owner may use it. SQLite
/// gives the same mode to the files that it creates beside the store.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Distinguishes a file from any other; `None` if the system does not tell.
pub(crate) type Identity = Option<(u64, u64)>;

#[cfg(unix)]
pub(crate) fn identity(there: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Some((there.dev(), there.ino()))
}

/// On other systems an open file can't be deleted or moved.
#[cfg(not(unix))]
pub(crate) fn identity(_: &Metadata) -> Identity {
    None
}

/// How often a lock that is being released is tried again, and the pause between.
const TRIES: u32 = 100;
const BETWEEN: Duration = Duration::from_millis(10);

/// Locks a file for this process, without waiting for another one. `holder` is asked for the process that has the lock. If that
/// is this process or is not known, the lock is tried for a second: a child that this process has just forked keeps all
/// its files open until it runs its own program.
#[expect(clippy::disallowed_methods, reason = "nothing tells when a lock is free")]
pub(crate) fn lock(file: &File, holder: impl Fn() -> Option<u32>) -> Result<(), TryLockError> {
    let may_be_ours = || holder().is_none_or(|process| process == std::process::id());
    let mut tries = TRIES;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if tries > 0 && may_be_ours() => {
                tries -= 1;
                std::thread::sleep(BETWEEN);
            }
            ended => return ended,
        }
    }
}
