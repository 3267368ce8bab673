//! What is done with a store while nobody serves it: making it, bringing it up to the current format, and what follows a restore.

use crate::config::{Config, StoreConfig};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{Append, Broken, Clock, Mark, Query, QueuedTask, ShardSet, Store};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// How many executions are read, and marked, at once.
const BATCH: usize = 500;
/// Those that have begun and not ended.
const BEGUN: [Status; 3] = [Status::Running, Status::Manual, Status::RollingBack];
/// Those that have not begun.
const WAITING: [Status; 3] = [Status::Delayed, Status::Blocked, Status::Queued];
/// Why an execution is left alone after a restore.
const CAUSE: &str = "the store was restored: what this execution did after the backup is not known; `redrive` lets it go on, and \
                     calls made since may be made again under the same keys";

/// An execution that had begun in a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// As the backup has it.
    pub id: Text,
    /// The name of its flow.
    pub flow: Text,
    /// Unique among the executions of its flow.
    pub name: Text,
    /// When it began.
    pub started: Timestamp,
}

/// What became of the executions of a restored store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Care {
    /// The place of the store, for people.
    pub place: String,
    /// What is set aside.
    pub aside: Vec<Restored>,
    /// How many wait to begin, and will.
    pub waiting: u64,
}

/// Sets aside what had begun and not ended when the backup was made, also what was asleep: it may have gone on since, and made
/// calls. Its tasks leave their queues: a worker may have done them since. Lists it, the newest first. What is set aside already
/// stays as it is. `place` is a file, or the URL of a database; otherwise
/// the one that is configured.
///
/// # Errors
///
/// Why it can't be opened, or written.
pub fn restored(place: Option<&Path>, config: &Config) -> Result<Care, String> {
    let config = at(place, config);
    let (store, shown) = open(&config)?;
    let of = |error: starbridge_ports::StoreError| error.to_string();
    let mut query = Query {
        statuses: BEGUN.to_vec(),
        limit: BATCH,
        ..Query::default()
    };
    let mut all = Vec::new();
    loop {
        let page = store.list(&query).map_err(of)?;
        let items = page.items.into_iter().filter(|item| item.record.broken.is_none());
        all.extend(items.map(|item| Restored {
            id: item.id,
            flow: item.record.flow,
            name: item.record.name,
            started: item.record.started,
        }));
        query.cursor = page.next;
        if query.cursor.is_none() {
            break;
        }
    }
    let broken = Broken {
        since: crate::clock::SystemClock.now(),
        cause: CAUSE.into(),
    };
    for some in all.chunks(BATCH) {
        let marks = some.iter().map(|one| (one.id.clone(), Mark::Broken(broken.clone())));
        store.mark(&marks.collect::<Vec<_>>(), None).map_err(of)?;
    }
    empty_queues(store.as_ref())?;
    let counts = store.counts().map_err(of)?;
    let waits = counts.iter().filter(|(status, _)| WAITING.contains(status));
    Ok(Care {
        place: shown,
        aside: all,
        waiting: waits.map(|(_, count)| count).sum(),
    })
}

/// Takes all tasks out of all queues. All of them are of executions that are set aside; a redrive puts them in again.
fn empty_queues(store: &dyn Store) -> Result<(), String> {
    let of = |error: starbridge_ports::StoreError| error.to_string();
    let held: Vec<_> = store
        .leased_tasks(&ShardSet::ALL)
        .map_err(of)?
        .into_iter()
        .map(|(task, _)| task)
        .collect();
    for some in held.chunks(BATCH) {
        unqueue(store, some)?;
    }
    for depth in store.depths(&ShardSet::ALL).map_err(of)? {
        loop {
            let tasks = store.next_tasks(&depth.queue, BATCH).map_err(of)?;
            if tasks.is_empty() {
                break;
            }
            unqueue(store, &tasks)?;
        }
    }
    Ok(())
}

fn unqueue(store: &dyn Store, tasks: &[QueuedTask]) -> Result<(), String> {
    let of = |error: starbridge_ports::StoreError| error.to_string();
    let mut calls: BTreeMap<&Text, Vec<EventId>> = BTreeMap::new();
    for task in tasks {
        calls.entry(&task.execution).or_default().push(task.call);
    }
    let append = |(execution, unqueued): (&Text, Vec<EventId>)| {
        let heads = store.turn_heads(execution, EventId(u64::MAX), 1, true)?;
        let last = heads
            .first()
            .map(|head| EventId((head.first.0 + u64::from(head.events)).saturating_sub(1)));
        Ok(Append {
            execution: execution.clone(),
            expected: last.unwrap_or_default(),
            unqueued,
            ..Append::default()
        })
    };
    let appends: Result<Vec<Append>, _> = calls.into_iter().map(append).collect();
    match store.append(&appends.map_err(of)?).map_err(of)?.is_empty() {
        true => Ok(()),
        false => Err("a history went on meanwhile: stop the server that has the store, and run this again".to_owned()),
    }
}

/// The configuration with the store at this place.
fn at(place: Option<&Path>, config: &Config) -> Config {
    let mut config = config.clone();
    if let Some(place) = place {
        config.store.url.clear();
        match place.to_str().filter(|text| StoreConfig::is_url(text)) {
            Some(url) => url.clone_into(&mut config.store.url),
            None => place.clone_into(&mut config.store.path),
        }
    }
    config
}

/// Opens a store that is there.
fn open(config: &Config) -> Result<(Arc<dyn Store>, String), String> {
    if !config.store.url.is_empty() {
        return open_database(config);
    }
    let path = &config.store.path;
    if !path.exists() {
        return Err(format!("there is no store `{}`", path.display()));
    }
    Ok((crate::stores::open_store(path)?, format!("`{}`", path.display())))
}

#[cfg(feature = "postgres")]
fn open_database(config: &Config) -> Result<(Arc<dyn Store>, String), String> {
    use starbridge_postgres::Preparing;
    let settings = crate::configured_store::database(config)?;
    // Nothing is made, and a store that is not there is told of.
    starbridge_postgres::prepare(&settings, Preparing::Upgrade, false).map_err(|error| error.to_string())?;
    let store = starbridge_postgres::PostgresStore::open(&settings).map_err(|error| error.to_string())?;
    let shown = format!("{}, schema {}", store.place(), settings.schema);
    Ok((Arc::new(store), shown))
}

#[cfg(not(feature = "postgres"))]
fn open_database(config: &Config) -> Result<(Arc<dyn Store>, String), String> {
    Err(without_postgres(config))
}

#[cfg(not(feature = "postgres"))]
fn without_postgres(config: &Config) -> String {
    format!(
        "`{}` can't be opened: this program was built without the feature `postgres`",
        config.store.place()
    )
}

/// What was prepared, or is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The place, for people; without a password.
    pub shown: String,
    /// Where the tables are in the database.
    pub schema: String,
    /// The format that the store had; 0 if there was none.
    pub had: usize,
    /// The format that it has now, or will have.
    pub has: usize,
    /// The statements that do it; empty if there is nothing to do.
    pub sql: String,
    /// What a role that may not make tables needs: statements with `ROLE` in place of its name.
    pub rights: Vec<String>,
    /// What may go wrong, each with what to do.
    pub warnings: Vec<String>,
}

/// Makes a store in a database, or with `upgrade` brings it up to the current format. `changes`: otherwise nothing is done.
///
/// # Errors
///
/// Why not, and what to do.
pub fn prepare(place: Option<&Path>, config: &Config, upgrade: bool, changes: bool) -> Result<Prepared, String> {
    let config = at(place, config);
    if config.store.url.is_empty() {
        return Err(format!(
            "`{}` is a file: `starbridge serve --db` makes it, and brings it up to the current format; this is for databases",
            config.store.path.display()
        ));
    }
    prepare_database(&config, upgrade, changes)
}

#[cfg(feature = "postgres")]
fn prepare_database(config: &Config, upgrade: bool, changes: bool) -> Result<Prepared, String> {
    use starbridge_postgres::Preparing;
    let settings = crate::configured_store::database(config)?;
    let wanted = if upgrade { Preparing::Upgrade } else { Preparing::Init };
    let done = starbridge_postgres::prepare(&settings, wanted, changes).map_err(|error| error.to_string())?;
    Ok(Prepared {
        shown: format!("{}, schema {}", done.place, settings.schema),
        schema: settings.schema,
        had: done.had,
        has: done.has,
        sql: done.sql,
        rights: done.rights,
        warnings: done.warnings,
    })
}

#[cfg(not(feature = "postgres"))]
fn prepare_database(config: &Config, _: bool, _: bool) -> Result<Prepared, String> {
    Err(without_postgres(config))
}
