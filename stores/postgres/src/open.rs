//! Opening a store: is this a database to keep it in, is it ours, and has nobody else it?

use crate::PostgresStore;
use crate::checks::{self, Look};
use crate::fault::{Failure, said};
use crate::link::Link;
use crate::migrate;
use crate::open_error::OpenError;
use crate::owner::{self, FENCE, Shards};
use crate::readers::Readers;
use crate::session::Session;
use crate::session_lock;
use crate::settings::PostgresSettings;
use crate::shared::Shared;
use crate::wait::wait;
use crate::write::Writer;
use starbridge_ports::StoreError;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

/// How many connections that read are there when a node that was named takes the store.
const WARM_READERS: usize = 4;

/// How a process of a cluster takes a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taking {
    /// What the stays of this process have in common.
    pub process: Option<String>,
    /// The process whose stay is ended first, because it is silent.
    pub silent: Option<String>,
}

/// All that can be done before a store is taken: connections, and a look at the database.
pub(crate) struct Readied {
    link: Arc<Link>,
    session: Session,
    readers: Readers,
    warnings: Vec<String>,
}

impl Readied {
    /// Also does beforehand what the first moments of an owner would otherwise wait for.
    pub(crate) fn warm(&self) -> Result<(), OpenError> {
        wait(async {
            // A later format is found now, and not once others wait.
            migrate::lack(&self.session, &self.link).await?;
            session_lock::prepare(&self.session, self.link.schema()).await?;
            self.session.prepare([FENCE]).await.map_err(Failure::from)?;
            Ok::<(), OpenError>(())
        })?;
        let warmed = self.readers.warm(WARM_READERS);
        warmed.map_err(|failure| unreached(self.link.place(), failure))
    }
}

pub(crate) fn open(settings: &PostgresSettings, taking: &Taking) -> Result<PostgresStore, OpenError> {
    enter(ready(settings, taking)?, settings, taking)
}

/// Connects, and looks whether the database is fit.
pub(crate) fn ready(settings: &PostgresSettings, taking: &Taking) -> Result<Readied, OpenError> {
    let target = settings.target().map_err(OpenError::Settings)?;
    let link = Link::new(target, &settings.schema, &settings.node).map_err(OpenError::Settings)?;
    let link = Arc::new(link);
    let at = |failure| unreached(link.place(), failure);
    let (session, warnings) = match taking.process {
        // A process of a cluster has looked when it joined, and others wait for it now.
        Some(_) => {
            let session = link.connect().map_err(at)?;
            let warnings = wait(checks::check(&session, Look::Again, &link, settings))?;
            (session, warnings)
        }
        None => look(&link, settings, settings.readers + 1)?,
    };
    Ok(Readied {
        readers: Readers::new(link.clone(), settings.readers),
        link,
        session,
        warnings,
    })
}

/// Two connections that have a session each. A pooler that gives each transaction another one is found before anything is set
/// on a session that others use, too.
pub(crate) fn first_connections(link: &Link) -> Result<(Session, Session), OpenError> {
    let at = |failure| unreached(link.place(), failure);
    let (first, second) = (link.connect_bare(1), link.connect_bare(1));
    let (Some(first), Some(second)) = (first.map_err(at)?.pop(), second.map_err(at)?.pop()) else {
        return Err(OpenError::Store(StoreError::Unavailable(
            "no connection was made".to_owned(),
        )));
    };
    if !wait(checks::keeps_sessions(&first, &second)).map_err(at)? {
        return Err(OpenError::Unfit {
            place: link.place().to_owned(),
            why: vec![checks::POOLED.to_owned()],
        });
    }
    Ok((link.set_up(first).map_err(at)?, second))
}

/// The first look at a database: a connection to it, and warnings. `more`: how many further connections the process will need;
/// what the server says of those that are left is not what a pooler gives.
pub(crate) fn look(link: &Link, settings: &PostgresSettings, more: usize) -> Result<(Session, Vec<String>), OpenError> {
    let (session, other) = first_connections(link)?;
    let warnings = wait(checks::check(&session, Look::First, link, settings))?;
    drop(other);
    match link.connect_bare(more) {
        Ok(_) => Ok((session, warnings)),
        Err(failure) => Err(OpenError::Unfit {
            place: link.place().to_owned(),
            why: vec![format!(
                "it does not give {} connections at once: {}; raise `max_connections`, or `default_pool_size` of a pooler in \
                 between",
                more + 1,
                failure.said()
            )],
        }),
    }
}

/// Takes the store.
pub(crate) fn enter(
    readied: Readied,
    settings: &PostgresSettings,
    taking: &Taking,
) -> Result<PostgresStore, OpenError> {
    let Readied {
        link,
        session,
        readers,
        warnings,
    } = readied;
    let (is_new, seat) = wait(take(&session, &link, settings, taking))?;
    let writer = wait(Writer::new(session, seat, settings.node.clone())).map_err(OpenError::from)?;
    let counts = writer.counts();
    let shared = Shared {
        readers,
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
) -> Result<(bool, owner::Seat), OpenError> {
    let schema = &settings.schema;
    if let Some(silent) = &taking.silent {
        owner::evict(session, schema, silent).await?;
    }
    if let Some(who) = session_lock::take(session, schema).await? {
        return Err(OpenError::Taken {
            place: link.place().to_owned(),
            who,
        });
    }
    let is_new = migrate::bring_up(session, link).await?;
    let seat = owner::join(session, &settings.node, taking.process.as_deref(), Shards::Free).await?;
    Ok((is_new, seat))
}

/// What to do about a connection that is not made.
pub(crate) fn unreached(place: &str, failure: Failure) -> OpenError {
    let error = match failure {
        Failure::Database(error) => error,
        Failure::Silent(why) => {
            return OpenError::Unreached {
                place: place.to_owned(),
                why: format!(
                    "{why} (does it stand still, or is a pooler in between that has no session left: `default_pool_size`?)"
                ),
            };
        }
        Failure::Store(error) => return OpenError::Store(error),
    };
    let what = match error.code().map(tokio_postgres::error::SqlState::code) {
        Some("28P01") => "the password is wrong: `store.password`, `PGPASSWORD` or the URL has it".to_owned(),
        Some("28000") if said(&error).contains("does not exist") => {
            "there is no such role: `createuser` makes one".to_owned()
        }
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
        _ => hint(&said(&error)).to_owned(),
    };
    OpenError::Unreached {
        place: place.to_owned(),
        why: format!("{} ({what})", said(&error)),
    }
}

/// What to do about a connection that is not made, as far as the words of TLS and of the driver say why.
fn hint(said: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    if has(&["not valid for name", "NotValidForName"]) {
        "its certificate is for another name: write a name that the certificate has as the host in the URL"
    } else if has(&["CaUsedAsEndEntity"]) {
        "its certificate is that of an authority, not of a server: let the server show one that the authority signed for \
         its name, and name the authority with `sslrootcert=FILE` in the URL"
    } else if has(&["ertificate expired", "not valid yet", "Expired"]) {
        "its certificate is not valid now: renew it, or look at the clock of this machine"
    } else if has(&["UnknownIssuer"]) {
        "nobody who is trusted signed its certificate: name the authority that did with `sslrootcert=FILE` in the URL"
    } else if has(&["ertificate"]) {
        "its certificate is not trusted: name the authority that signed it with `sslrootcert=FILE` in the URL"
    } else if has(&["does not allow writes"]) {
        "it is a standby, or read-only: name the primary, or all hosts with `target_session_attrs=read-write` in the URL"
    } else {
        "is it running, and are host and port right?"
    }
}

#[cfg(test)]
mod tests {
    use super::hint;

    #[test]
    fn each_fault_of_a_certificate_has_its_own_hint() {
        for (said, wanted) in [
            (
                "invalid peer certificate: certificate not valid for name \"10.0.0.1\"; certificate is only valid for DnsName(\"db\")",
                "for another name",
            ),
            ("invalid peer certificate: NotValidForName", "for another name"),
            (
                "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                "of an authority",
            ),
            ("invalid peer certificate: UnknownIssuer", "nobody who is trusted"),
            (
                "invalid peer certificate: certificate expired: verification time 9 (UNIX), but certificate is not valid after 8",
                "not valid now",
            ),
            ("invalid peer certificate: BadEncoding", "not trusted"),
            (
                "error connecting to server: database does not allow writes",
                "target_session_attrs=read-write",
            ),
            ("error connecting to server: Connection refused", "is it running"),
        ] {
            assert!(hint(said).contains(wanted), "{said}: {}", hint(said));
        }
    }
}
