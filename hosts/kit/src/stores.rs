//! Which store a place means.

use starbridge_ports::Store;
use std::path::Path;
use std::sync::Arc;

/// A store that is gone with the process.
pub fn in_memory() -> Arc<dyn Store> {
    Arc::new(starbridge_memory::MemoryStore::new())
}

/// Opens the store in a file, or makes one there. Answers it, or why not and what to do.
#[cfg(feature = "sqlite")]
pub fn open_store(path: &Path) -> Result<Arc<dyn Store>, String> {
    if let Some((scheme, _)) = path.to_str().and_then(|text| text.split_once("://")) {
        return Err(format!("a store is a file, and `{scheme}://…` is none"));
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
    match starbridge_sqlite::SqliteStore::open(path) {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(error.to_string()),
    }
}

/// This program was built without stores in files.
#[cfg(not(feature = "sqlite"))]
pub fn open_store(path: &Path) -> Result<Arc<dyn Store>, String> {
    Err(format!(
        "`{}` can't be opened: this program was built without the feature `sqlite`",
        path.display()
    ))
}
