//! A disk that lost writes: the files of a store at some moment, with the end of the log cut off or
//! garbled. The store must open at an earlier point, without a hole.

use super::Findings;
use crate::chance::Chance;
use crate::conformance;
use starbridge_flow::limits::Limits;
use starbridge_ports::{History, Listing, Query, Turn};
use starbridge_runtime::{Outgoing, Shard};
use starbridge_simulator::{Case, Flows, Simulation};
use starbridge_sqlite::{Options, SqliteStore};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// A store's file and its log.
type Files = (Vec<u8>, Vec<u8>);
/// Turns by execution.
type Histories = BTreeMap<String, Vec<Turn>>;

/// Snapshots taken of one run.
const OF_ONE: usize = 6;
/// Each is damaged so often.
const DAMAGED: u32 = 4;

/// Takes snapshots of so many runs of conformance cases.
pub fn run(runs: u64, seed: u64) -> Findings {
    let mut findings = Findings::default();
    let mut chance = Chance::new(seed);
    let cases = cases();
    for _ in 0..runs {
        let (flows, case, limits) = &cases[chance.below(u32::try_from(cases.len()).unwrap_or(1)) as usize];
        if let Err(problem) = one(flows, case, limits, &mut chance, &mut findings) {
            findings.problem(format!("{}: {problem}", case.name));
        }
    }
    findings
}

fn cases() -> Vec<(Flows, Case, Limits)> {
    let mut cases = Vec::new();
    for of in conformance::case_files() {
        let all = of.file.cases.into_iter();
        cases.extend(all.map(|case| (of.flows.clone(), case, of.limits.clone())));
    }
    cases
}

fn read(file: &Path) -> Files {
    let log = PathBuf::from(format!("{}-wal", file.display()));
    (
        std::fs::read(file).unwrap_or_default(),
        std::fs::read(log).unwrap_or_default(),
    )
}

fn one(
    flows: &Flows,
    case: &Case,
    limits: &Limits,
    chance: &mut Chance,
    findings: &mut Findings,
) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("flows.db");
    // With a short log pages are moved into the file all the time; then only the end of the log may be missing, for
    // pages moved stand on what is before.
    let short = chance.of(40);
    let options = Options {
        log_pages: if short { 4 } else { 100_000 },
        ..Options::default()
    };
    let opened = SqliteStore::open_with(&file, &options).map_err(|error| error.to_string())?;
    let store = Arc::new(opened);
    let snapshots: Rc<RefCell<Vec<Files>>> = Rc::default();
    let (taken, place) = (Rc::clone(&snapshots), file.clone());
    let mut moments = Chance::new(chance.next());
    let observer = Box::new(move |_: &Shard, outgoing: &Outgoing| {
        // Just after an append and before the next one: nothing is being written.
        let mut taken = taken.borrow_mut();
        if matches!(outgoing, Outgoing::Turn { .. }) && moments.of(30) && taken.len() < OF_ONE {
            taken.push(read(&place));
        }
    });
    let mut simulation = Simulation::new(flows.clone(), case.clone(), limits.clone()).over(store.clone());
    simulation = simulation.observed(observer);
    simulation.run().map_err(|error| error.to_string())?;
    snapshots.borrow_mut().push(read(&file));
    let last = histories(&store)?;
    drop(simulation);
    drop(store);
    findings.count(
        if short {
            "runs with a short log"
        } else {
            "runs with a long log"
        },
        1,
    );
    for (database, log) in snapshots.borrow().iter() {
        for _ in 0..DAMAGED {
            let log = damage(log, short, chance, findings);
            let found = reopened(database, &log)?;
            compare(&found, &last, findings);
        }
    }
    Ok(())
}

/// Bytes of a frame of the log: a page and its header.
const FRAME: usize = 8192 + 24;

fn damage(log: &[u8], short: bool, chance: &mut Chance, findings: &mut Findings) -> Vec<u8> {
    let mut log = log.to_vec();
    let length = u32::try_from(log.len()).unwrap_or(u32::MAX);
    // In a short log, all but its last frame may have been moved.
    let least = if short { length.saturating_sub(1) } else { 0 };
    match chance.below(3) {
        0 if length > 0 => {
            findings.count("logs cut off", 1);
            log.truncate(chance.from(least, length) as usize);
        }
        1 if length > 0 && !short => {
            findings.count("logs with a torn last page", 1);
            let from = log.len().saturating_sub(FRAME);
            let at = from + chance.below(u32::try_from(log.len() - from).unwrap_or(1)) as usize;
            log[at..].fill(0xA5);
        }
        _ => findings.count("as they were", 1),
    }
    log
}

fn reopened(database: &[u8], log: &[u8]) -> Result<Histories, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let file = folder.path().join("flows.db");
    let write = std::fs::write(&file, database);
    write
        .and_then(|()| std::fs::write(format!("{}-wal", file.display()), log))
        .map_err(|error| error.to_string())?;
    let store = SqliteStore::open(&file).map_err(|error| format!("it does not open: {error}"))?;
    histories(&store)
}

fn histories(store: &SqliteStore) -> Result<Histories, String> {
    let query = Query {
        limit: 10_000,
        ..Query::default()
    };
    let page = store.list(&query).map_err(|error| error.to_string())?;
    let mut histories = Histories::new();
    for listed in page.items {
        let stored = store.load_whole(&listed.id).map_err(|error| error.to_string())?;
        let turns = stored.map(|stored| stored.turns).unwrap_or_default();
        histories.insert(listed.id.to_string(), turns);
    }
    Ok(histories)
}

/// Each history is the beginning of what it became.
fn compare(found: &Histories, last: &Histories, findings: &mut Findings) {
    findings.count("stores opened again", 1);
    let same = found == last;
    findings.count(
        if same {
            "at the last point"
        } else {
            "at an earlier point"
        },
        1,
    );
    for (id, turns) in found {
        let whole = last.get(id).map(Vec::as_slice).unwrap_or_default();
        if turns.is_empty() || !whole.starts_with(turns) {
            findings.problem(format!(
                "{id} is not as it was at any time: {} turns of {}",
                turns.len(),
                whole.len()
            ));
        }
    }
}
