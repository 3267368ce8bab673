//! Opening a store: is this a database to keep it in, is it ours, and has nobody else it?

use crate::PostgresStore;
use crate::checks;
use crate::fault::{Failure, said};
use crate::link::Link;
use crate::migrate;
use crate::open_error::OpenError;
use crate::owner;
use crate::readers::Readers;
use crate::session::Session;
use crate::session_lock;
use crate::settings::PostgresSettings;
use crate::shared::Shared;
use crate::wait::wait;
use crate::write::Writer;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// How a process of a cluster takes a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taking {
    /// What the stays of this process have in common.
    pub process: Option<String>,
    /// The process whose stay is ended first, because it is silent.
    pub silent: Option<String>,
}

pub(crate) fn open(settings: &PostgresSettings, taking: &Taking) -> Result<PostgresStore, OpenError> {
    let target = settings.target().map_err(OpenError::Settings)?;
    let link = Link::new(target, &settings.schema, &settings.node).map_err(OpenError::Settings)?;
    let link = Arc::new(link);
    let session = link.connect().map_err(|failure| unreached(link.place(), failure))?;
    let (warnings, is_new, seat) = wait(take(&session, &link, settings, taking))?;
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
        refused: AtomicU64::new(0),
    };
    Ok(PostgresStore::of(shared))
}

async fn take(
    session: &Session,
    link: &Link,
    settings: &PostgresSettings,
    taking: &Taking,
) -> Result<(Vec<String>, bool, owner::Seat), OpenError> {
    let schema = &settings.schema;
    let warnings = checks::check(session, link.place(), settings).await?;
    if let Some(silent) = &taking.silent {
        owner::evict(session, schema, silent).await?;
    }
    if let Some(who) = session_lock::take(session, schema).await? {
        return Err(OpenError::Taken {
            place: link.place().to_owned(),
            who,
        });
    }
    let is_new = migrate::bring_up(session, schema).await?;
    let seat = owner::join(session, &settings.node, taking.process.as_deref()).await?;
    Ok((warnings, is_new, seat))
}

/// What to do about a connection that is not made.
pub(crate) fn unreached(place: &str, failure: Failure) -> OpenError {
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
