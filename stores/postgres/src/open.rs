//! Opening a store: is this a database to keep it in, is it ours, and has nobody else it?

use crate::PostgresStore;
use crate::checks;
use crate::fault::{Failure, said};
use crate::link::Link;
use crate::migrate;
use crate::owner;
use crate::readers::Readers;
use crate::session::Session;
use crate::settings::PostgresSettings;
use crate::shared::Shared;
use crate::wait::wait;
use crate::write::Writer;
use starbridge_ports::StoreError;
use std::sync::{Arc, Mutex};

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
    Foreign(String),
    /// A newer version of the program has written it.
    Newer {
        /// The version of its format.
        found: i64,
        /// The latest format that this program knows.
        known: i64,
    },
    /// A program that differs from all released ones made it: the number of the migration that differs.
    Altered(i64),
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
            Self::Foreign(schema) => write!(
                f,
                "the schema `{schema}` has tables that are not of a store: name another one with `store.schema`"
            ),
            Self::Newer { found, known } => write!(
                f,
                "the store has format {found}, this program knows formats up to {known}: use a later version of it"
            ),
            Self::Altered(migration) => write!(
                f,
                "the store was made by an unreleased program: its step {migration} to the present format is another one"
            ),
            Self::Taken { place, who } => write!(
                f,
                "the store in {place} is in use by {who}: a store has one owner; stop that one first"
            ),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

pub(crate) fn open(settings: &PostgresSettings) -> Result<PostgresStore, OpenError> {
    let target = settings.target().map_err(OpenError::Settings)?;
    let link = Link::new(target, &settings.schema, &settings.node).map_err(OpenError::Settings)?;
    let link = Arc::new(link);
    let session = link.connect().map_err(|failure| unreached(link.place(), failure))?;
    let (warnings, is_new, seat) = wait(take(&session, &link, settings))?;
    let writer = wait(Writer::new(session, seat, settings.node.clone())).map_err(OpenError::from)?;
    let counts = writer.counts();
    let shared = Shared {
        readers: Readers::new(link.clone(), settings.readers),
        writer: Mutex::new(writer),
        next: Mutex::default(),
        counts: Mutex::new(counts),
        link,
        warnings,
        is_new,
    };
    Ok(PostgresStore::of(shared))
}

async fn take(
    session: &Session,
    link: &Link,
    settings: &PostgresSettings,
) -> Result<(Vec<String>, bool, owner::Seat), OpenError> {
    let schema = &settings.schema;
    let warnings = checks::check(session, link.place(), settings).await?;
    if let Some(who) = owner::lock(session, schema).await? {
        return Err(OpenError::Taken {
            place: link.place().to_owned(),
            who,
        });
    }
    let is_new = migrate::bring_up(session, schema).await?;
    let seat = owner::join(session, &settings.node, None).await?;
    Ok((warnings, is_new, seat))
}

/// What to do about a connection that is not made.
fn unreached(place: &str, failure: Failure) -> OpenError {
    let error = match failure {
        Failure::Database(error) => error,
        Failure::Store(error) => return OpenError::Store(error),
    };
    let what = match error.code().map(tokio_postgres::error::SqlState::code) {
        Some("28P01") => "the password is wrong: `store.password`, `PGPASSWORD` or the URL has it".to_owned(),
        Some("28000") => "the role may not come in from here: look at pg_hba.conf".to_owned(),
        Some("3D000") => "there is no such database: `createdb` makes one".to_owned(),
        Some("53300") => "it has no connection left: raise `max_connections`, or use fewer".to_owned(),
        Some("57P03") => "it begins or ends just now: try again in a moment".to_owned(),
        Some("0A000" | "08P01") => "it does not take this protocol: is a pooler in between?".to_owned(),
        _ if said(&error).contains("password missing") => {
            "it wants a password, and there is none: set `store.password` or `PGPASSWORD`".to_owned()
        }
        _ if said(&error).contains("not support TLS") => {
            "`sslmode=require` in the URL wants encryption, and the server has none".to_owned()
        }
        _ if said(&error).contains("ertificate") => {
            "its certificate is not trusted: name one that is with `sslrootcert=FILE` in the URL".to_owned()
        }
        _ => "is it running, and are host and port right?".to_owned(),
    };
    OpenError::Unreached {
        place: place.to_owned(),
        why: format!("{} ({what})", said(&error)),
    }
}
