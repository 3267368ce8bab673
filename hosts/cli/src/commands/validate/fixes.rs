//! `validate --fix`: applies mechanical fixes to the file.

use crate::exit::Exit;
use crate::output::Output;
use starbridge_fdl::fixes::{FixedText, apply_fixes};
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::{LineColumn, Source};
use starbridge_node::system::reason;
use std::fs;
use std::io::Write;
use std::path::Path;

/// Applies all fixes that are sure, writes the file if that changed it, and prints the changes.
pub fn fix_file(file: &Path, source: Source, output: Output) -> Result<Source, Exit> {
    let FixedText {
        source: fixed, changes, ..
    } = apply_fixes(source, &Limits::default());
    if !changes.is_empty() {
        replace(file, fixed.text()).map_err(|error| {
            let message = format!("can't write `{}`: {}", fixed.name(), reason(&error));
            output.fail(Exit::Fault, &message, None)
        })?;
    }
    for change in &changes {
        let LineColumn { line, column } = change.place;
        output.note(&format!(
            "fixed {}:{line}:{column} [{}]: {}",
            fixed.name(),
            change.code,
            change.title
        ));
    }
    Ok(fixed)
}

/// Replaces a file's text atomically, and keeps the file's permissions.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    // The target of a link is replaced, not the link.
    let file = fs::canonicalize(file)?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut fresh = tempfile::NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    fresh.as_file().set_permissions(fs::metadata(&file)?.permissions())?;
    fresh.as_file().sync_all()?;
    fresh.persist(&file).map_err(|error| error.error)?;
    Ok(())
}
