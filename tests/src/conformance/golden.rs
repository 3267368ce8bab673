//! Recorded histories: the history of the first case of each file is in `tests/histories/v1/`, only
//! as a regression test.
//!
//! They are only ever added to: `UPDATE=1` writes those that are not there yet, and overwrites none.

use crate::data;
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_machine::Event;
use starbridge_node::export::{ExportedHistory, export_event, export_head, needed_version};
use starbridge_simulator::{Case, Flows, Simulation};
use std::collections::BTreeMap;

/// Longer histories are not kept.
const LONGEST: usize = 16 * 1024;

/// The differences between the recorded history of a case and the new one.
pub(super) fn compare(file: &str, flows: &Flows, case: &Case, limits: &Limits) -> Option<String> {
    let mut simulation = Simulation::new(flows.clone(), case.clone(), limits.clone());
    simulation.run().ok()?;
    let (id, events) = simulation.histories().first_key_value()?;
    let head = export_head(id, needed_version(events), &flows.flow, &flows.children);
    differs(file.trim_end_matches(".test.json"), &flows.flow, head, events)
}

/// The same of a case in which an operator takes part.
pub(crate) fn compare_lines(file: &str, flow: &Flow, id: &str, events: &[Event]) -> Option<String> {
    let head = export_head(id, needed_version(events), flow, &BTreeMap::new());
    differs(file.trim_end_matches(".operated.json"), flow, head, events)
}

fn differs(name: &str, flow: &Flow, head: String, events: &[Event]) -> Option<String> {
    let mut lines = vec![head];
    lines.extend(events.iter().map(|event| export_event(flow, event)));
    let now = lines.join("\n") + "\n";
    let name = format!("{name}.jsonl");
    let path = data::folder().join("histories").join("v1").join(&name);
    match std::fs::read_to_string(&path) {
        Ok(recorded) => {
            if let Err(error) = ExportedHistory::parse(&recorded) {
                return Some(format!("the recorded history can't be read any more: {error}"));
            }
            let differs = recorded.lines().zip(now.lines()).position(|(a, b)| a != b);
            match differs {
                None if recorded.len() == now.len() => None,
                None => Some("the recorded history has another length".to_owned()),
                Some(at) => Some(format!(
                    "the history is not the recorded one from event {at} on:\n    recorded {}\n    now      {}",
                    recorded.lines().nth(at).unwrap_or_default(),
                    now.lines().nth(at).unwrap_or_default()
                )),
            }
        }
        Err(_) if now.len() > LONGEST => None,
        Err(_) if std::env::var_os("UPDATE").is_some() => {
            let folder = path.parent()?;
            let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, now));
            written
                .err()
                .map(|error| format!("the history can't be written: {error}"))
        }
        Err(_) => Some("no history is recorded: run with UPDATE=1".to_owned()),
    }
}
