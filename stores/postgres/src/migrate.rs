//! Migrating a store to the current format: numbered SQL files, each run once, all in one transaction.

use crate::fault::Failure;
use crate::open_error::OpenError;
use crate::session::{Owned, Sent, Session};
use starbridge_flow::fnv::fnv1a_64;
use starbridge_machine::history::{SHORT_KEYS, SHORT_TYPES};
use starbridge_ports::STATUS_CODES;

/// The steps from nothing to the current format, in order. A released one is never changed: the store keeps its
/// checksum.
const MIGRATIONS: [&str; 2] = [
    include_str!("../migrations/0001-first.sql"),
    include_str!("../migrations/0002-cluster.sql"),
];

/// What is there of a store.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// No schema, or one without tables; those of an outbox may be in it.
    Nothing,
    /// A store.
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

/// Brings a store up to the current format. Returns whether it was made.
pub(crate) async fn bring_up(session: &Session, schema: &str) -> Result<bool, OpenError> {
    bring_up_by(session, schema, &MIGRATIONS).await
}

async fn bring_up_by(session: &Session, schema: &str, migrations: &[&str]) -> Result<bool, OpenError> {
    let is_new = match look(session, schema).await? {
        Found::Foreign => return Err(OpenError::Foreign(schema.to_owned())),
        found => found == Found::Nothing,
    };
    if !is_new && !missing(session, migrations).await? {
        return Ok(false);
    }
    session.run("begin").await.map_err(Failure::from)?;
    let brought = steps(session, schema, migrations, is_new).await;
    let end = if brought.is_ok() { "commit" } else { "rollback" };
    session.run(end).await.map_err(Failure::from)?;
    brought.map(|()| is_new)
}

/// Whether a store has not all of this: steps, or words for codes. An error if it is none that these steps made.
async fn missing(session: &Session, migrations: &[&str]) -> Result<bool, OpenError> {
    let known = i64::try_from(migrations.len()).unwrap_or(i64::MAX);
    let asked = "select number, checksum, (select count(*) from statuses), (select count(*) from event_types),
        (select count(*) from detail_members) from migrations order by number";
    let kept = session.query(asked, &[]).await.map_err(Failure::from)?;
    if let Some(found) = kept.last().map(|row| row.get(0)).filter(|found| *found > known) {
        return Err(OpenError::Newer { found, known });
    }
    let mut words = true;
    for row in &kept {
        let number: i64 = row.get(0);
        let step = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let is_same = |sql: &&str| checksum(sql) == row.get::<_, &str>(1);
        if !step.and_then(|step| migrations.get(step)).is_some_and(is_same) {
            return Err(OpenError::Altered(number));
        }
        let wanted = [STATUS_CODES.len(), SHORT_TYPES.len(), SHORT_KEYS.len()];
        let has = |column: usize| usize::try_from(row.get::<_, i64>(column)).unwrap_or_default();
        words = (2..).zip(wanted).all(|(column, wanted)| has(column) >= wanted);
    }
    Ok(kept.len() < migrations.len() || !words)
}

async fn steps(session: &Session, schema: &str, migrations: &[&str], is_new: bool) -> Result<(), OpenError> {
    if is_new {
        // Who may not make schemas may be given one.
        let there = session
            .first("select 1 from pg_catalog.pg_namespace where nspname = $1", &[&schema])
            .await;
        if there.map_err(Failure::from)?.is_none() {
            session
                .run(&format!("create schema {schema}"))
                .await
                .map_err(Failure::from)?;
        }
        let made = "create table migrations (number bigint primary key, checksum text not null, time bigint not null)";
        session.run(made).await.map_err(Failure::from)?;
    }
    let last = session
        .only("select coalesce(max(number), 0) from migrations", &[])
        .await?;
    let last: i64 = last.get(0);
    for (number, sql) in (1..).zip(migrations).filter(|(number, _)| *number > last) {
        session.run(sql).await.map_err(Failure::from)?;
        let note = "insert into migrations values ($1, $2, (extract(epoch from now()) * 1000)::bigint)";
        session
            .execute(note, &[&number, &checksum(sql)])
            .await
            .map_err(Failure::from)?;
    }
    name_codes(session).await?;
    Ok(())
}

/// Fills the tables from which the views take the words for codes. A later version may have more codes than the one
/// that created the store.
async fn name_codes(session: &Session) -> Result<(), Failure> {
    let numbers: Vec<i16> = (0..).take(STATUS_CODES.len()).collect();
    let words: Vec<&str> = STATUS_CODES.iter().map(|status| status.as_str()).collect();
    let pair = |table: &[(&'static str, &'static str)]| -> Vec<Owned<'static>> {
        vec![
            Box::new(table.iter().map(|(_, short)| *short).collect::<Vec<&str>>()),
            Box::new(table.iter().map(|(long, _)| *long).collect::<Vec<&str>>()),
        ]
    };
    let all = [
        Sent::new(
            "insert into statuses select * from unnest($1::smallint[], $2::text[]) on conflict do nothing",
            vec![Box::new(numbers), Box::new(words)],
        ),
        Sent::new(
            "insert into event_types select * from unnest($1::text[], $2::text[]) on conflict do nothing",
            pair(SHORT_TYPES),
        ),
        Sent::new(
            "insert into detail_members select * from unnest($1::text[], $2::text[]) on conflict do nothing",
            pair(SHORT_KEYS),
        ),
    ];
    Ok(session.execute_all(&all).await?)
}

/// Detects accidental changes.
fn checksum(text: &str) -> String {
    format!("{:016x}", fnv1a_64(text.bytes()))
}
