//! Errors of PostgreSQL as errors of the port.

use starbridge_ports::StoreError;
use std::error::Error as _;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Why some work with the database was not done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What the database said, or that it said nothing any more.
    Database(Error),
    /// A connection is not answered.
    Silent(String),
    /// What was found in it, or is asked of it, is no good.
    Store(StoreError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// A row that has not the form in which it was written.
    pub(crate) fn corrupt(what: &str, why: &dyn std::fmt::Display) -> Self {
        Self::Store(StoreError::Corrupt(format!("{what}: {why}")))
    }

    /// Whether the connection is gone, or the database is about to be: another connection may do what this one did not.
    pub(crate) fn is_away(&self) -> bool {
        match self {
            Self::Database(error) => is_away(error),
            Self::Silent(_) => true,
            Self::Store(_) => false,
        }
    }

    /// What somebody may read.
    pub(crate) fn said(&self) -> String {
        match self {
            Self::Database(error) => said(error),
            Self::Silent(why) => why.clone(),
            Self::Store(error) => error.to_string(),
        }
    }

    pub(crate) fn into_store_error(self) -> StoreError {
        match self {
            Self::Database(error) => store_error(&error),
            Self::Silent(why) => StoreError::Unavailable(why),
            Self::Store(error) => error,
        }
    }
}

/// Whether nobody answers on this connection, now or soon.
pub(crate) fn is_away(error: &Error) -> bool {
    if let Some(code) = error.code() {
        // Those of class 57 are about shutting down; a statement that was cancelled is one of them, and no such thing.
        return (code.code().starts_with("57P") || code.code().starts_with("08"))
            || *code == SqlState::READ_ONLY_SQL_TRANSACTION
            || *code == SqlState::TOO_MANY_CONNECTIONS;
    }
    // A time that is over has no other mark.
    error.is_closed() || is_io(error) || error.to_string().starts_with("timeout")
}

fn is_io(error: &Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<std::io::Error>() {
            return true;
        }
        source = cause.source();
    }
    false
}

/// What somebody may read: never a password, which no error of the driver has.
pub(crate) fn said(error: &Error) -> String {
    if let Some(database) = error.as_db_error() {
        let code = database.code().code();
        let detail = database
            .detail()
            .map(|detail| format!(" ({detail})"))
            .unwrap_or_default();
        let message = database.message();
        // Statements are prepared once for a session. A pooler that gives each transaction another one does not have them.
        let hint = match *database.code() == SqlState::INVALID_SQL_STATEMENT_NAME || message.contains("pooling mode") {
            true => ": a pooler in between must keep sessions (`pool_mode = session`)",
            false => "",
        };
        return format!("{message}{detail} [{code}]{hint}");
    }
    let mut said = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        if !said.contains(&more) {
            said = format!("{said}: {more}");
        }
        source = cause.source();
    }
    said
}

pub(crate) fn store_error(error: &Error) -> StoreError {
    let why = said(error);
    match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => {
            StoreError::Unavailable(format!("the disk of the database is full: {why}"))
        }
        Some(code) if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            StoreError::Unavailable(format!("the role may not do that: {why}"))
        }
        Some(code) if code.code().starts_with("XX") => StoreError::Corrupt(why),
        _ => StoreError::Unavailable(why),
    }
}
