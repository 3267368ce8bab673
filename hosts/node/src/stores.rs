//! Opening stores.

use starbridge_ports::Store;
use std::path::Path;
use std::sync::Arc;

/// A store whose content is lost when the process ends.
pub fn in_memory() -> Arc<dyn Store> {
    Arc::new(starbridge_memory::MemoryStore::new())
}

/// A store that was opened for a server.
pub struct Opened {
    /// The store itself.
    pub store: Arc<dyn Store>,
    /// The handle for those who answer requests, where it is another one.
    pub asked: Option<Arc<dyn Store>>,
    /// A line for people: that it was made, or what is in it.
    pub said: String,
}

/// Opens the store in a file, or creates it.
///
/// # Errors
///
/// Why it can't be opened, and what to do.
#[cfg(feature = "sqlite")]
pub fn open_store(path: &Path) -> Result<Arc<dyn Store>, String> {
    Ok(Arc::new(open(path, false)?))
}

/// Opens the store in a file for a server, or creates it, and logs warnings. With `accept_lost_log`, it is opened
/// even if commits were lost with its log.
///
/// # Errors
///
/// Why it can't be opened, and what to do.
#[cfg(feature = "sqlite")]
pub fn open_to_serve(path: &Path, accept_lost_log: bool) -> Result<Opened, String> {
    use starbridge_ports::Listing;
    let store = open(path, accept_lost_log)?;
    for warning in store.warnings() {
        tracing::warn!("{warning}");
    }
    let at = path.display();
    let said = if store.is_new() {
        tracing::info!(path = %at, "new store made");
        format!("made a new store in {at}")
    } else {
        let counts = store.counts().map_err(|error| error.to_string())?;
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        let open = counts.iter().filter(|(status, _)| !status.is_ended());
        let open: u64 = open.map(|(_, count)| count).sum();
        tracing::info!(path = %at, executions = all, open, "store opened");
        format!("opened {at}; executions in it: {all}, not ended: {open}")
    };
    let store = Arc::new(store);
    Ok(Opened {
        store,
        asked: None,
        said,
    })
}

#[cfg(feature = "sqlite")]
pub(crate) fn open(path: &Path, accept_lost_log: bool) -> Result<starbridge_sqlite::SqliteStore, String> {
    if let Some((scheme, _)) = path.to_str().and_then(|text| text.split_once("://")) {
        return Err(format!(
            "a store is a file, and `{scheme}://…` is none: only `starbridge serve` takes a database, `postgres://…`; start the flow there"
        ));
    }
    if path.is_dir() {
        let example = path.join("starbridge.db");
        let (folder, example) = (path.display(), example.display());
        return Err(format!(
            "`{folder}` is a folder, but a store is a file: for example `{example}`"
        ));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(format!(
            "there is no folder `{}` for the store `{}`",
            folder.display(),
            path.display()
        ));
    }
    let options = starbridge_sqlite::Options {
        accept_lost_log,
        ..starbridge_sqlite::Options::default()
    };
    starbridge_sqlite::SqliteStore::open_with(path, &options).map_err(|error| error.to_string())
}

/// Fails: this program is built without stores in files.
///
/// # Errors
///
/// Always.
#[cfg(not(feature = "sqlite"))]
pub fn open_store(path: &Path) -> Result<Arc<dyn Store>, String> {
    Err(format!(
        "`{}` can't be opened: this program was built without the feature `sqlite`",
        path.display()
    ))
}

/// Fails: this program is built without stores in files.
///
/// # Errors
///
/// Always.
#[cfg(not(feature = "sqlite"))]
pub fn open_to_serve(path: &Path, _: bool) -> Result<Opened, String> {
    open_store(path).map(|store| Opened {
        store,
        asked: None,
        said: String::new(),
    })
}
