//! Whether a database is one in which the server's role can be used.

use super::{VERSION, Way, sql};
use crate::session::Session;
use starbridge_ports::OutboxError;
use tokio_postgres::Error;

/// Checks the database and the installation in it. Nothing of it is used before its owners are known.
pub(super) async fn database(session: &Session, way: &Way) -> Result<(), OutboxError> {
    let said = |error: Error| way.error(&error);
    let place = &way.place;
    if let Some(row) = session.first(sql::FIT, &[]).await.map_err(said)? {
        let (encoding, owned): (&str, Option<&str>) = (row.get(0), row.get(1));
        if encoding != "UTF8" {
            return Err(OutboxError(format!(
                "the database {place} has the encoding {encoding}, and an outbox needs UTF8: use a database that has it"
            )));
        }
        if let Some(owned) = owned {
            return Err(OutboxError(format!(
                "the database {place}: {owned}, which could act there with the rights of others: all of an outbox must belong to one role, and to superusers if the server's role is one; install it into another database, or drop the schema and install it again"
            )));
        }
    }
    let row = session.first(sql::POWERS, &[]).await.map_err(said)?;
    if let Some(power) = row.as_ref().map(|row| row.get::<_, &str>(0)) {
        return Err(OutboxError(format!(
            "the database {place}: {power}, and whoever owns the outbox could use that: a role that takes where less than a superuser owns must have `starbridge_taker` and nothing else"
        )));
    }
    tables(session, way).await?;
    let row = session.first(sql::VERSION, &[]).await.map_err(said)?;
    let found: i32 = row.and_then(|row| row.get(0)).unwrap_or_default();
    if found < VERSION {
        return Err(OutboxError(format!(
            "the database {place}: its outbox has version {found}, this program needs {VERSION}: run `starbridge outbox install postgres://…` again"
        )));
    }
    if found > VERSION {
        return Err(OutboxError(format!(
            "the database {place}: its outbox has version {found}, this program knows {VERSION}: use a later version of it"
        )));
    }
    Ok(())
}

/// Checks that the tables only keep rows, before each use of them: their owner may change them at any time.
pub(super) async fn tables(session: &Session, way: &Way) -> Result<(), OutboxError> {
    let row = session.first(sql::CODE, &[]).await.map_err(|error| way.error(&error))?;
    row.map_or(Ok(()), |row| {
        let what: &str = row.get(0);
        Err(OutboxError(format!(
            "the database {}: {what}, which could act with the rights of the server's role: drop that, or install the outbox again",
            way.place
        )))
    })
}
