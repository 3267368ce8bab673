//! Why a store is not opened, and what to do.

use crate::fault::Failure;
use starbridge_ports::StoreError;

/// Why a store was not opened.
#[derive(Debug)]
pub enum OpenError {
    /// The settings are no good.
    Settings(String),
    /// The database is not reached, or lets nobody in.
    Unreached {
        /// Where it is.
        place: String,
        /// Why not, and what to do.
        why: String,
    },
    /// The database, the role or their settings are not fit for a store: each reason a line.
    Unfit {
        /// Where it is.
        place: String,
        /// What to change.
        why: Vec<String>,
    },
    /// The schema has tables of somebody else.
    Foreign {
        /// Where it is.
        place: String,
        /// Its name.
        schema: String,
    },
    /// A newer version of the program has written it.
    Newer {
        /// Where it is.
        place: String,
        /// The version of its format.
        found: i64,
        /// The latest format that this program knows.
        known: i64,
    },
    /// A program that differs from all released ones made it.
    Altered {
        /// Where it is.
        place: String,
        /// The number of the migration that differs.
        migration: i64,
    },
    /// Another process has it.
    Taken {
        /// Where it is.
        place: String,
        /// Who, as far as the database says.
        who: String,
    },
    /// The store can't be used.
    Store(StoreError),
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        Self::Store(failure.into_store_error())
    }
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Settings(why) => f.write_str(why),
            Self::Unreached { place, why } => write!(f, "the database {place} can't be used: {why}"),
            Self::Unfit { place, why } => {
                write!(f, "the database {place} is not fit for a store: {}", why.join("; "))
            }
            Self::Foreign { place, schema } => write!(
                f,
                "in the database {place} the schema `{schema}` has tables that are not of a store: name another one with \
                 `store.schema`"
            ),
            Self::Newer { place, found, known } => write!(
                f,
                "the store in {place} has format {found}, this program knows formats up to {known}: use a later version of it"
            ),
            Self::Altered { place, migration } => write!(
                f,
                "the store in {place} was made by an unreleased program: its step {migration} to the present format is \
                 another one"
            ),
            Self::Taken { place, who } => write!(
                f,
                "the store in {place} is in use by {who}: a store has one owner; stop that one first"
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl OpenError {
    /// Whether another process has the store.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::Taken { .. })
    }
}

impl std::error::Error for OpenError {}
