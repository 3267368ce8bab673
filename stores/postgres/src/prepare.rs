//! Making a store, or bringing it up to the current format, for nodes whose role may not make tables.

use crate::checks::{Look, check};
use crate::fault::Failure;
use crate::link::Link;
use crate::migrate::{self, FORMAT, Lack};
use crate::open::first_connections;
use crate::open_error::OpenError;
use crate::rights::grants;
use crate::session::Session;
use crate::session_lock;
use crate::settings::PostgresSettings;
use crate::wait::wait;

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparing {
    /// A store is made where there is none.
    Init,
    /// A store is brought up to the current format.
    Upgrade,
}

/// What was done, or is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Where the database is, for people.
    pub place: String,
    /// The format that the store had; 0 if there was none.
    pub had: usize,
    /// The format that it has now, or will have.
    pub has: usize,
    /// The statements; empty if the store lacks nothing.
    pub sql: String,
    /// What may go wrong with this database, each with what to do.
    pub warnings: Vec<String>,
    /// What a role that may not make tables needs: statements with `ROLE` in place of its name.
    pub rights: Vec<String>,
}

/// Makes a store or brings it up. `changes`: otherwise nothing is done, and the statements say what would be.
///
/// # Errors
///
/// [`OpenError`]: each says what to do.
pub fn prepare(settings: &PostgresSettings, wanted: Preparing, changes: bool) -> Result<Prepared, OpenError> {
    let target = settings.target().map_err(OpenError::Settings)?;
    let link = Link::new(target, &settings.schema, &settings.node).map_err(OpenError::Settings)?;
    let (session, other) = first_connections(&link)?;
    drop(other);
    wait(prepare_on(&session, &link, settings, wanted, changes))
}

async fn prepare_on(
    session: &Session,
    link: &Link,
    settings: &PostgresSettings,
    wanted: Preparing,
    changes: bool,
) -> Result<Prepared, OpenError> {
    let (schema, place) = (link.schema(), link.place());
    // Whoever only prints may not be the one who makes it.
    let warnings = match changes {
        true => check(session, Look::First, link, settings).await?,
        false => Vec::new(),
    };
    // One at a time: nodes that join make tables, too.
    let joining = format!("{schema}/join");
    if let Some(who) = session_lock::take(session, &joining).await? {
        return Err(OpenError::Taken {
            place: place.to_owned(),
            who,
        });
    }
    let done = change(session, link, wanted, changes).await;
    session_lock::give_back(session, &joining).await;
    let lack = done?;
    let had = lack.as_ref().map_or(FORMAT, |lack| lack.has);
    let is_brought = changes && (wanted == Preparing::Upgrade || had == 0);
    Ok(Prepared {
        place: place.to_owned(),
        had,
        has: if is_brought || !changes { FORMAT } else { had },
        sql: lack.map(|lack| script(schema, &lack)).unwrap_or_default(),
        warnings,
        rights: grants(schema),
    })
}

async fn change(session: &Session, link: &Link, wanted: Preparing, changes: bool) -> Result<Option<Lack>, OpenError> {
    let lack = migrate::lack(session, link).await?;
    let Some(found) = &lack else {
        return Ok(None);
    };
    if wanted == Preparing::Upgrade && found.is_new {
        return Err(OpenError::Settings(format!(
            "there is no store in {}, schema {}: `starbridge store init` makes one",
            link.place(),
            link.schema()
        )));
    }
    // A store that is there is upgraded only by whoever asks for that.
    if changes && (found.is_new || wanted == Preparing::Upgrade) {
        migrate::fill(session, found).await.map_err(refused)?;
    }
    Ok(lack)
}

/// What the database says when somebody else's table is to be changed.
fn refused(failure: Failure) -> OpenError {
    match failure {
        Failure::Database(error) if error.code().is_some_and(|code| code.code() == "42501") => {
            OpenError::Settings(format!(
                "the role may not change this store ({}): whoever made it may",
                crate::fault::said(&error)
            ))
        }
        other => other.into(),
    }
}

/// The statements as a script of their own.
fn script(schema: &str, lack: &Lack) -> String {
    let sql = &lack.sql;
    // The schema has to be there before it is named.
    let (first, rest) = match sql.strip_prefix("create schema ") {
        Some(after) => {
            let end = after.find('\n').map_or(after.len(), |end| end + 1);
            let (name, rest) = after.split_at(end);
            (format!("create schema {name}"), rest)
        }
        None => (String::new(), sql.as_str()),
    };
    format!("begin;\n{first}set local search_path = {schema}, pg_temp;\n{rest}commit;\n")
}
