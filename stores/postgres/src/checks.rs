//! Whether a database is fit for a store: looked at once, when it is opened.

use crate::fault::Failure;
use crate::link::Link;
use crate::migrate;
use crate::open_error::OpenError;
use crate::rights;
use crate::session::Session;
use crate::settings::PostgresSettings;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio_postgres::Row;

/// The oldest version that is supported.
const VERSION: i32 = 140_000;
/// Milliseconds by which clocks may differ before that is worth a word.
const CLOCKS: i64 = 1_000;
/// How often each connection is asked which process answers it.
const ASKED_AGAIN: usize = 3;

const ASKED: &str = "select current_setting('server_version_num')::integer, current_setting('server_encoding'),
    pg_is_in_recovery(), current_setting('transaction_read_only') = 'on', current_setting('fsync') = 'on',
    current_setting('full_page_writes') = 'on', current_setting('search_path'), current_setting('synchronous_commit'),
    least(current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint
        - (select count(*) from pg_catalog.pg_stat_activity where backend_type = 'client backend'),
        (select rolconnlimit - (select count(*) from pg_catalog.pg_stat_activity where usename = rolname)
            from pg_catalog.pg_roles where rolname = current_user and rolconnlimit >= 0),
        (select datconnlimit - (select count(*) from pg_catalog.pg_stat_activity a where a.datname = d.datname)
            from pg_catalog.pg_database d where d.datname = current_database() and datconnlimit >= 0)),
    (extract(epoch from clock_timestamp()) * 1000)::bigint,
    has_database_privilege(current_database(), 'create'),
    (select has_schema_privilege(oid, 'usage') and has_schema_privilege(oid, 'create')
        from pg_catalog.pg_namespace where nspname = $1),
    current_setting('server_version'), current_user::text, current_database()::text";

/// Whether no standby has to have a commit, whether there is one, and whether one is there that has to; who may see too little
/// gets no answer to that.
const STANDBYS: &str = "select current_setting('synchronous_standby_names') = '', count(*) > 0,
    case when count(*) = 0 then false else bool_or(sync_state in ('sync', 'quorum')) end from pg_catalog.pg_stat_replication";

/// What to do about a pooler that gives each transaction another session.
pub(crate) const POOLED: &str = "a pooler in between gives each transaction another session, and a store needs its own: connect \
     to the database itself, or let the pooler keep sessions (`pool_mode = session`)";

/// Which look at a database it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// The first one of a process, which has a second connection now, and ends it then.
    First,
    /// A later one of a process of a cluster, which has looked when it joined.
    Again,
}

/// Whether two connections have a session each, and keep it between transactions.
pub(crate) async fn keeps_sessions(first: &Session, second: &Session) -> Result<bool, Failure> {
    let (mut of_first, mut of_second) = (Vec::new(), Vec::new());
    for _ in 0..ASKED_AGAIN {
        of_first.push(first.backend().await?);
        of_second.push(second.backend().await?);
    }
    Ok(are_kept(&of_first, &of_second))
}

/// Whether each of two connections was always answered by the same process, and not by that of the other. A pooler gives out
/// the session that was used last, or all of them in turn.
fn are_kept(first: &[String], second: &[String]) -> bool {
    let same = |all: &[String]| all.windows(2).all(|two| two[0] == two[1]);
    same(first) && same(second) && first.first() != second.first()
}

/// Warnings; an error if the database is not fit.
pub(crate) async fn check(
    session: &Session,
    look: Look,
    link: &Link,
    settings: &PostgresSettings,
) -> Result<Vec<String>, OpenError> {
    let schema = &settings.schema;
    let before = now();
    let row = session.only(ASKED, &[&schema]).await.map_err(OpenError::from)?;
    let between = (before + now()) / 2;
    let mut why = unfit(&row, schema, settings.readers, usize::from(look == Look::First));
    why.extend(unusable(session, look, link, &row).await?);
    let standbys = standbys(session).await.map_err(OpenError::from)?;
    why.extend(standbys.unfit(settings.require_synchronous).map(str::to_owned));
    if !why.is_empty() {
        return Err(OpenError::Unfit {
            place: link.place().to_owned(),
            why,
        });
    }
    let mut warnings = Vec::new();
    let off = row.get::<_, i64>(9) - between;
    // A node of a cluster goes by the clock of the database, and says itself how far its own is off.
    if look == Look::First && off.abs() >= CLOCKS {
        warnings.push(format!(
            "the clock of the database is {} ms {} that of this machine: set both by a time server",
            off.abs(),
            if off > 0 { "before" } else { "behind" }
        ));
    }
    if standbys.may_lose() {
        warnings.push(
            "the database has standbys, and none of them is synchronous: what was acknowledged is lost if one takes over \
             before it has it; set `synchronous_standby_names`"
                .to_owned(),
        );
    }
    Ok(warnings)
}

/// What a database has of standbys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standbys {
    /// Whether none of them has to have a commit before it is answered.
    is_alone: bool,
    /// Whether there is one.
    some: bool,
    /// Whether one is there that has to have a commit, as far as the role may see that.
    has_synchronous: Option<bool>,
}

impl Standbys {
    /// Whether what was acknowledged may be lost, because one may take over that does not have it.
    pub(crate) fn may_lose(self) -> bool {
        self.is_alone && self.some
    }

    /// Why a store can't be kept there, and what to do.
    fn unfit(self, wanted: bool) -> Option<&'static str> {
        match self {
            Self { is_alone: true, .. } if wanted => Some(
                "no standby is synchronous, and `store.require_synchronous` wants one: set `synchronous_standby_names`",
            ),
            Self {
                is_alone: false,
                has_synchronous: Some(false),
                ..
            } => Some(
                "none of the standbys in `synchronous_standby_names` is connected, so no commit is answered: start one, or take \
                 it off the list",
            ),
            _ => None,
        }
    }
}

pub(crate) async fn standbys(session: &Session) -> Result<Standbys, Failure> {
    let row = session.only(STANDBYS, &[]).await?;
    Ok(Standbys {
        is_alone: row.get(0),
        some: row.get(1),
        has_synchronous: row.get(2),
    })
}

/// Why the role can't use what the schema has or is to have.
async fn unusable(session: &Session, look: Look, link: &Link, row: &Row) -> Result<Vec<String>, OpenError> {
    let (schema, role) = (link.schema(), row.get(13));
    let lacking = without_tables(row, schema);
    if look == Look::Again && lacking.is_none() {
        return Ok(Vec::new());
    }
    match (migrate::lack(session, link).await, lacking) {
        // A store that is there is used by whoever may.
        (Ok(None), _) if look == Look::First => rights::lacks(session, schema, role).await.map_err(OpenError::from),
        (Ok(Some(_)) | Err(OpenError::Store(_)), Some(lack)) => Ok(vec![lack]),
        // A store that can't be used at all is told of later.
        _ => Ok(Vec::new()),
    }
}

/// What is wrong with it, each with what to do.
fn unfit(row: &Row, schema: &str, readers: usize, others: usize) -> Vec<String> {
    let mut why = Vec::new();
    let (version, encoding): (i32, &str) = (row.get(0), row.get(1));
    if version < VERSION {
        why.push(format!(
            "it is PostgreSQL {}: version 14 is the oldest that will do",
            row.get::<_, &str>(12)
        ));
    }
    if encoding != "UTF8" {
        why.push(format!(
            "its encoding is {encoding}: make one with `create database NAME encoding 'UTF8' template template0`"
        ));
    }
    if row.get(2) {
        why.push(
            "it is a standby, which takes no writes: name the primary, or all hosts with \
             `target_session_attrs=read-write` in the URL"
                .to_owned(),
        );
    } else if row.get(3) {
        why.push("it is read-only: look at `default_transaction_read_only` of the database and the role".to_owned());
    }
    for (column, setting) in [(4, "fsync"), (5, "full_page_writes")] {
        if !row.get::<_, bool>(column) {
            why.push(format!(
                "`{setting}` is off, so a crash may lose or break everything: set it to on"
            ));
        }
    }
    let path: &str = row.get(6);
    if !path.starts_with(schema) || row.get::<_, &str>(7) != "on" {
        why.push(POOLED.to_owned());
    }
    // A second connection ends after this.
    let left = row
        .get::<_, i64>(8)
        .saturating_add(i64::try_from(others).unwrap_or_default());
    // One asks whether the database is back.
    let wanted = i64::try_from(readers).unwrap_or(i64::MAX).saturating_add(1);
    if left < wanted {
        why.push(format!(
            "it has {left} connections left, and {wanted} are needed: raise `max_connections`, or the \
             `connection limit` of the role or the database, or end others"
        ));
    }
    why
}

/// Why the role can't make a store, if it can't.
fn without_tables(row: &Row, schema: &str) -> Option<String> {
    let (role, database): (&str, &str) = (row.get(13), row.get(14));
    match row.get::<_, Option<bool>>(11) {
        Some(true) => None,
        Some(false) => Some(format!(
            "the role `{role}` may not make tables in the schema `{schema}`: `grant usage, create on schema {schema} to {role}`, \
             or let a role that may run `starbridge store init` or `upgrade`, which print what to grant"
        )),
        None if row.get(10) => None,
        None => Some(format!(
            "the role `{role}` may not make a schema: `create schema {schema} authorization {role}`, or `grant create on \
             database {database} to {role}`"
        )),
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Kept beside the checks because both read the server's own words.
pub(crate) async fn backend(session: &Session) -> Result<(i32, String), Failure> {
    let asked = "select pid, backend_start::text from pg_catalog.pg_stat_activity where pid = pg_backend_pid()";
    let row = session.only(asked, &[]).await?;
    Ok((row.get(0), row.get(1)))
}

#[cfg(test)]
mod tests {
    use super::are_kept;

    fn all(pids: &[&str]) -> Vec<String> {
        pids.iter().map(|pid| (*pid).to_owned()).collect()
    }

    #[test]
    fn sessions_of_a_pooler_in_transaction_mode_are_told_apart() {
        assert!(are_kept(&all(&["7", "7", "7"]), &all(&["8", "8", "8"])));
        // The one that was used last goes to whoever asks next.
        assert!(!are_kept(&all(&["7", "7", "7"]), &all(&["7", "7", "7"])));
        // All go in turn.
        assert!(!are_kept(&all(&["7", "9", "8"]), &all(&["8", "7", "9"])));
        assert!(!are_kept(&all(&["7", "7", "7"]), &all(&["8", "8", "9"])));
    }
}
