//! Checks who else may use the files of a store.

use std::path::Path;

/// Warnings about the store's files and their folder, each with advice.
#[cfg(unix)]
pub(crate) fn warnings(store: &Path) -> Vec<String> {
    use crate::file::beside;
    use std::os::unix::fs::PermissionsExt;
    const OTHERS: u32 = 0o007;
    const OTHERS_WRITE: u32 = 0o002;
    const STICKY: u32 = 0o1000;
    let mode = |path: &Path| std::fs::metadata(path).map_or(0, |there| there.permissions().mode());
    let mut warnings = Vec::new();
    let open: Vec<String> = ["", "-wal", "-shm"]
        .map(|ending| beside(store, ending))
        .into_iter()
        .filter(|path| mode(path) & OTHERS != 0)
        .map(|path| path.display().to_string())
        .collect();
    if !open.is_empty() {
        let (first, all) = (&open[0], open.join(" "));
        warnings.push(format!(
            "`{first}` may be used by every user of this machine, and all that flows were given is in it: `chmod 600 {all}`"
        ));
    }
    let folder = store.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // In a folder with the sticky bit, others can't move or delete the files.
    if mode(folder) & (OTHERS_WRITE | STICKY) == OTHERS_WRITE {
        let folder = folder.display();
        warnings.push(format!(
            "every user of this machine may put another store in the place of this one: `chmod o-w {folder}`"
        ));
    }
    warnings
}

/// Other systems have no file modes.
#[cfg(not(unix))]
pub(crate) fn warnings(_: &Path) -> Vec<String> {
    Vec::new()
}
