//! The files of a store: what they are called, who may use them, and what tells one from another.

use std::fs::{Metadata, OpenOptions};
use std::path::{Path, PathBuf};

/// The path of what stands beside a store under its name and that ending.
pub(crate) fn beside(store: &Path, ending: &str) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// For writing a file that, if it is made, only its owner may use. SQLite gives what it makes beside the store the same mode.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// What tells a file from any other: nothing, where the system does not say.
pub(crate) type Identity = Option<(u64, u64)>;

#[cfg(unix)]
pub(crate) fn identity(there: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Some((there.dev(), there.ino()))
}

/// Elsewhere nobody can take away a file that is open.
#[cfg(not(unix))]
pub(crate) fn identity(_: &Metadata) -> Identity {
    None
}
