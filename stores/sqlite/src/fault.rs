//! Errors of SQLite as errors of the port.

use rusqlite::{Error, ErrorCode};
use starbridge_ports::StoreError;
use std::io;
use std::path::Path;

/// The error for a file operation outside of SQLite.
pub(crate) fn io_error(path: &Path, error: &io::Error) -> StoreError {
    let file = path.display();
    StoreError::Unavailable(match error.kind() {
        io::ErrorKind::NotFound => format!("{file} can't be opened: does its folder exist, and may it be read?"),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!("{file} can't be written: it, its folder and the files beside it must be writable")
        }
        io::ErrorKind::StorageFull => format!("no space is left for {file}: free some and start again"),
        io::ErrorKind::AlreadyExists => format!("{file} is there already, and is not written over"),
        _ => format!("{file}: {error}"),
    })
}

/// The error for a failure of SQLite, with advice.
pub(crate) fn store_error(path: &Path, error: &Error) -> StoreError {
    let file = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            StoreError::Unavailable(format!("no space is left for {file}: free some and start again"))
        }
        Some(ErrorCode::SystemIoFailure) => StoreError::Unavailable(format!(
            "the disk of {file} failed ({error}): look into the system's log before starting again"
        )),
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => StoreError::Unavailable(format!(
            "{file} can't be written: it, its folder and the files beside it must be writable"
        )),
        Some(ErrorCode::CannotOpen) => StoreError::Unavailable(format!(
            "{file} can't be opened: does its folder exist, and may it be read?"
        )),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Unavailable(format!(
            "another program holds {file} for long: close what has it open for writing"
        )),
        Some(ErrorCode::DatabaseCorrupt) => {
            StoreError::Corrupt(format!("{file} is damaged: keep it as it is, and go on from a backup"))
        }
        Some(ErrorCode::NotADatabase) => StoreError::Corrupt(format!("{file} is not a starbridge store")),
        Some(_) => StoreError::Unavailable(format!("{file}: {error}")),
        // Stored data does not have the form in which it was written.
        None => StoreError::Corrupt(format!("{file}: {error}")),
    }
}

/// Whether the error means that the file or the log is damaged.
pub(crate) fn is_damage(error: &Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::SystemIoFailure | ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
    )
}

/// An error for a text that should be JSON.
pub(crate) fn no_json(column: usize, error: serde_json::Error) -> Error {
    Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, Box::new(error))
}
