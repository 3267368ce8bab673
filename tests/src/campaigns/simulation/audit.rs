//! Compares the stores of a world with the records from outside.

use super::outside::{Key, name_of};
use super::world::World;
use crate::campaigns::kills::FLOWS;
use crate::campaigns::{Findings, laws};
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{Event, EventKind};
use starbridge_node::export::ExportedHistory;
use starbridge_node::replay::replay;
use starbridge_ports::{ExecutionRecord, History, Listing, Query, Receivers, ShardSet};
use std::collections::{BTreeMap, BTreeSet};

/// Compares all records with each other.
pub(super) fn audit(world: &World) -> Findings {
    let mut findings = world.findings.clone();
    findings.problems.extend(world.outside.problems.clone());
    let page = world.store.store().list(&Query {
        limit: 10_000,
        ..Query::default()
    });
    let items = page.map(|page| page.items).unwrap_or_default();
    let records: BTreeMap<Text, ExecutionRecord> = items.into_iter().map(|listed| (listed.id, listed.record)).collect();
    starts(world, &records, &mut findings);
    let mut histories = BTreeMap::new();
    for (id, record) in &records {
        match events(world, id, record) {
            Ok(history) => drop(histories.insert(id.clone(), history)),
            Err(problem) => findings.problem(format!("{id}: {problem}")),
        }
    }
    let mut known = BTreeSet::new();
    for (id, history) in &histories {
        let record = records.get(id).cloned().unwrap_or_default();
        one(world, history, &record, &mut known, &mut findings);
    }
    seen(world, &histories, &known, &mut findings);
    left(world, &mut findings);
    findings.count("executions", records.len() as u64);
    findings
}

fn starts(world: &World, records: &BTreeMap<Text, ExecutionRecord>, findings: &mut Findings) {
    for name in &world.names {
        let Some(id) = world.outside.acknowledged.get(name) else {
            findings.problem(format!("the start of {name} was never acknowledged"));
            continue;
        };
        findings.count("starts acknowledged", 1);
        let Some(record) = records.get(id) else {
            findings.problem(format!("{name} ({id}) was acknowledged and is lost"));
            continue;
        };
        let error = record.failure.as_ref().map_or("", |failure| &*failure.error);
        let expected = FLOWS.iter().find(|(flow, ..)| *flow == &*record.flow);
        if expected.is_none_or(|(_, status, expected)| record.status.as_str() != *status || error != *expected) {
            findings.problem(format!("{name} ({id}) is {} {error}", record.status.as_str()));
        }
        if records.values().filter(|record| *record.name == **name).count() != 1 {
            findings.problem(format!("there are several executions named {name}"));
        }
    }
}

fn events(world: &World, id: &Text, record: &ExecutionRecord) -> Result<ExportedHistory, String> {
    let flow = world.flows.running(&record.flow, record.version);
    let flow = flow.ok_or("it has no flow")?;
    ExportedHistory::of_execution(world.store.store(), flow, id).map_err(|error| error.to_string())
}

fn one(
    world: &World,
    history: &ExportedHistory,
    record: &ExecutionRecord,
    known: &mut BTreeSet<Key>,
    findings: &mut Findings,
) {
    let id = &history.execution;
    findings.count("events", history.events.len() as u64);
    findings.problems.extend(laws::broken(id, &history.events));
    if !record.status.is_ended() {
        findings.problem(format!(
            "{id} does not come to its end: it is {}",
            record.status.as_str()
        ));
    }
    let replayed = replay(history, &history.flow, Limits::default());
    if let Some(divergence) = replayed.divergence {
        findings.problem(format!(
            "{id}: replay parts at event {}: {divergence:?}",
            divergence.event
        ));
    }
    if replayed.state.status() != record.status {
        findings.problem(format!("{id}: its record says another status than its history"));
    }
    for (call, fate) in laws::calls(&history.events) {
        let key = (id.clone(), call);
        let event = usize::try_from(call.0).ok().and_then(|at| history.events.get(at - 1));
        let child = |event: &Event| matches!(&event.detail, EventKind::TaskScheduled(scheduled) if scheduled.resource.starts_with("flow:"));
        if event.is_some_and(child) {
            continue;
        }
        if fate.answered && !world.outside.calls.contains_key(&key) {
            findings.problem(format!("{}: an answer of a call nobody saw", name_of(&key)));
        }
        known.insert(key);
    }
}

/// Everything seen outside is in the histories.
fn seen(world: &World, histories: &BTreeMap<Text, ExportedHistory>, known: &BTreeSet<Key>, findings: &mut Findings) {
    let names: BTreeSet<String> = known.iter().map(name_of).collect();
    for key in &world.outside.keys {
        if !names.contains(key) {
            findings.problem(format!("a call came under the key {key}, which stands in no history"));
        }
    }
    for (key, called) in &world.outside.calls {
        findings.count("calls sent again", called.times - 1);
        if called.call.step.as_str() == "after" && !world.jumped {
            paused(world, &key.0, called.first, findings);
        }
    }
    for key in world.outside.reports.keys() {
        if !world.outside.reported.contains(key) {
            findings.problem(format!("{}: its report was never acknowledged", name_of(key)));
            continue;
        }
        findings.count("reports acknowledged", 1);
        let events = histories
            .get(&key.0)
            .map(|history| &*history.events)
            .unwrap_or_default();
        let said = |event: &&Event| match &event.detail {
            EventKind::TaskSucceeded { result, .. } if event.caused_by == key.1 => {
                let said = result.as_object().and_then(|result| result.get("said"));
                said.and_then(Value::as_str) == Some(&*name_of(key))
            }
            _ => false,
        };
        if events.iter().filter(said).count() != 1 {
            findings.problem(format!("{}: a report was acknowledged and is lost", name_of(key)));
        }
    }
    if world.outside.second_taken > 0 {
        findings.problem("a second report was taken");
    }
}

/// The wait of `paced` is 400 ms, by a clock outside.
fn paused(world: &World, execution: &Text, after: u64, findings: &mut Findings) {
    let of = world.outside.calls.iter().filter(|(key, _)| key.0 == *execution);
    let before = of
        .filter(|(_, called)| called.call.step.as_str() == "before")
        .map(|(_, called)| called.first)
        .min();
    if let Some(before) = before {
        findings.count("waits measured from outside", 1);
        if after < before + 400 {
            findings.problem(format!(
                "{execution}: the wait of 400 ms took {} ms",
                after.saturating_sub(before)
            ));
        }
    }
}

/// No work is left.
fn left(world: &World, findings: &mut Findings) {
    let store = world.store.store();
    let awake = store.awake(&ShardSet::ALL).map_or(0, |awake| awake.len());
    let messages = store.messages(&Receivers::All).map_or(0, |messages| messages.len());
    let sleepers = store
        .due(&ShardSet::ALL, Timestamp(i64::MAX), 10)
        .map_or(0, |due| due.len());
    if awake + messages + sleepers > 0 {
        findings.problem(format!(
            "something is left to do: {awake} awake, {messages} messages, {sleepers} asleep"
        ));
    }
}
