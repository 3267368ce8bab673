//! The files of a store: their names, their permissions, and their identities.

use std::fs::{Metadata, OpenOptions};
use std::path::{Path, PathBuf};

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
