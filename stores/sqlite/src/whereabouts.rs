//! Whether the paths of a store still lead to the files that are open. A file that was deleted or moved takes what is
//! written to it as if nothing were, and whoever opens the store next does not find it.

use std::path::{Path, PathBuf};

/// The store's file and its log, as they were when it was opened.
#[derive(Debug)]
pub(crate) struct Whereabouts {
    files: [(PathBuf, Identity); 2],
}

/// What tells a file from any other; nothing, where there is none.
type Identity = Option<(u64, u64)>;

impl Whereabouts {
    /// Of a store that is open: its log is there.
    pub(crate) fn of(store: &Path) -> Self {
        let mut log = store.as_os_str().to_owned();
        log.push("-wal");
        let known = |path: PathBuf| {
            let identity = identity(&path);
            (path, identity)
        };
        Self {
            files: [known(store.to_path_buf()), known(log.into())],
        }
    }

    /// The file that is no longer where it was, if one is not.
    pub(crate) fn missing(&self) -> Option<&Path> {
        let moved = |(path, known): &&(PathBuf, Identity)| identity(path) != *known;
        self.files.iter().find(moved).map(|(path, _)| path.as_path())
    }
}

#[cfg(unix)]
fn identity(path: &Path) -> Identity {
    use std::os::unix::fs::MetadataExt;
    let file = std::fs::metadata(path).ok()?;
    Some((file.dev(), file.ino()))
}

/// Elsewhere nobody can take away a file that is open.
#[cfg(not(unix))]
fn identity(_: &Path) -> Identity {
    None
}
