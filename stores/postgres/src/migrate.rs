//! Migrating a store to the current format: numbered SQL files, each run once, all in one transaction.

use crate::fault::Failure;
use crate::link::Link;
use crate::open_error::OpenError;
use crate::session::Session;
use starbridge_flow::fnv::fnv1a_64;
use starbridge_machine::history::{SHORT_KEYS, SHORT_TYPES};
use starbridge_ports::STATUS_CODES;
use std::fmt::Write;

/// The steps from nothing to the current format, in order. A released one is never changed: the store keeps its
/// checksum.
const MIGRATIONS: [&str; 3] = [
    include_str!("../migrations/0001-first.sql"),
    include_str!("../migrations/0002-cluster.sql"),
    include_str!("../migrations/0003-locks.sql"),
];

/// What is there of a store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No schema, or one without tables; those of an outbox may be in it.
    Nothing,
    Store,
    /// Tables of somebody else.
    Foreign,
}

pub(crate) async fn look(session: &Session, schema: &str) -> Result<Found, Failure> {
    let asked = "select
        (select count(*) from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
            where n.nspname = $1 and c.relname !~ '^outbox'),
        (select count(*) from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
            where n.nspname = $1 and c.relname in ('meta', 'migrations') and c.relkind = 'r')";
    let row = session.only(asked, &[&schema]).await?;
    let (tables, ours): (i64, i64) = (row.get(0), row.get(1));
    if ours < 2 {
        return Ok(if tables == 0 { Found::Nothing } else { Found::Foreign });
    }
    let mark = session.first("select value from meta where name = 'store'", &[]).await;
    match mark {
        Ok(Some(row)) if row.try_get::<_, &str>(0).is_ok_and(|mark| mark == "starbridge") => Ok(Found::Store),
        Ok(_) => Ok(Found::Foreign),
        Err(error) if error.as_db_error().is_some_and(|error| error.code().code() == "42703") => Ok(Found::Foreign),
        Err(error) => Err(error.into()),
    }
}

/// What a store lacks, as SQL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lack {
    /// Whether there is no store at all.
    pub is_new: bool,
    /// The format that it has; 0 if there is none.
    pub has: usize,
    /// Statements for a transaction, with the schema first in the search path.
    pub sql: String,
}

/// The format that this program brings stores to.
pub(crate) const FORMAT: usize = MIGRATIONS.len();

/// Brings a store up to the current format. Returns whether it was made.
pub(crate) async fn bring_up(session: &Session, link: &Link) -> Result<bool, OpenError> {
    let Some(lack) = lack(session, link).await? else {
        return Ok(false);
    };
    fill(session, &lack).await?;
    Ok(lack.is_new)
}

/// Runs what a store lacks: all of it or nothing.
pub(crate) async fn fill(session: &Session, lack: &Lack) -> Result<(), Failure> {
    session.run("begin").await?;
    let filled = session.run(&lack.sql).await;
    session.run(if filled.is_ok() { "commit" } else { "rollback" }).await?;
    Ok(filled?)
}

/// What a store lacks, if that is anything.
pub(crate) async fn lack(session: &Session, link: &Link) -> Result<Option<Lack>, OpenError> {
    let schema = link.schema();
    let is_new = match look(session, schema).await? {
        Found::Foreign => {
            return Err(OpenError::Foreign {
                place: link.place().to_owned(),
                schema: schema.to_owned(),
            });
        }
        found => found == Found::Nothing,
    };
    if !is_new && !missing(session, link.place()).await? {
        return Ok(None);
    }
    let mut sql = String::new();
    let mut has = 0;
    if is_new {
        // Who may not make schemas may be given one.
        let there = session
            .first("select 1 from pg_catalog.pg_namespace where nspname = $1", &[&schema])
            .await;
        if there.map_err(Failure::from)?.is_none() {
            let _ = writeln!(sql, "create schema {schema};");
        }
        let made =
            "create table migrations (number bigint primary key, checksum text not null, time bigint not null);\n";
        sql.push_str(made);
    } else {
        let last = session.only("select count(*) from migrations", &[]).await?;
        has = usize::try_from(last.get::<_, i64>(0)).unwrap_or_default();
    }
    for (number, step) in (1..).zip(MIGRATIONS).skip(has) {
        sql.push_str(step);
        let _ = writeln!(
            sql,
            "insert into migrations values ({number}, '{}', (extract(epoch from now()) * 1000)::bigint);",
            checksum(step)
        );
    }
    sql.push_str(&codes());
    Ok(Some(Lack { is_new, has, sql }))
}

/// Whether a store has not all of this: steps, or words for codes. An error if it is none that these steps made.
async fn missing(session: &Session, place: &str) -> Result<bool, OpenError> {
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    let asked = "select number, checksum, (select count(*) from statuses), (select count(*) from event_types),
        (select count(*) from detail_members) from migrations order by number";
    let kept = session.query(asked, &[]).await.map_err(Failure::from)?;
    if let Some(found) = kept.last().map(|row| row.get(0)).filter(|found| *found > known) {
        let place = place.to_owned();
        return Err(OpenError::Newer { place, found, known });
    }
    let mut words = true;
    for row in &kept {
        let number: i64 = row.get(0);
        let step = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let is_same = |sql: &&str| checksum(sql) == row.get::<_, &str>(1);
        if !step.and_then(|step| MIGRATIONS.get(step)).is_some_and(is_same) {
            return Err(OpenError::Altered {
                place: place.to_owned(),
                migration: number,
            });
        }
        let wanted = [STATUS_CODES.len(), SHORT_TYPES.len(), SHORT_KEYS.len()];
        let has = |column: usize| usize::try_from(row.get::<_, i64>(column)).unwrap_or_default();
        words = (2..).zip(wanted).all(|(column, wanted)| has(column) >= wanted);
    }
    Ok(kept.len() < MIGRATIONS.len() || !words)
}

/// Fills the tables from which the views take the words for codes. A later version may have more codes than the one
/// that created the store. No word has a quote.
fn codes() -> String {
    let statuses = STATUS_CODES.iter().enumerate();
    let statuses = statuses.map(|(code, status)| format!("({code}, '{}')", status.as_str()));
    let pairs = |table: &[(&'static str, &'static str)]| -> Vec<String> {
        table
            .iter()
            .map(|(long, short)| format!("('{short}', '{long}')"))
            .collect()
    };
    let all = [
        ("statuses", statuses.collect()),
        ("event_types", pairs(SHORT_TYPES)),
        ("detail_members", pairs(SHORT_KEYS)),
    ];
    let all = all.map(|(table, rows)| {
        format!(
            "insert into {table} values {} on conflict do nothing;\n",
            rows.join(", ")
        )
    });
    all.concat()
}

/// The tables and sequences of a store of the current format, by name.
pub(crate) fn relations() -> Vec<String> {
    let made = |line: &str| {
        let name = line
            .strip_prefix("create table ")
            .or(line.strip_prefix("create sequence "))?;
        let end = name.find([' ', ';', '(']).unwrap_or(name.len());
        name.get(..end).map(str::to_owned)
    };
    let all = MIGRATIONS.iter().flat_map(|step| step.lines()).filter_map(made);
    std::iter::once("migrations".to_owned()).chain(all).collect()
}

/// Detects accidental changes.
fn checksum(text: &str) -> String {
    format!("{:016x}", fnv1a_64(text.bytes()))
}
