//! Runs in one process: concurrency keys apply to an execution and its children together.

use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_machine::{EventKind, Status};
use starbridge_node::local::{LocalRun, LocalSettings};
use starbridge_runtime::{FlowTable, Outgoing};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

const CHILD: &str = r#"{"version": "v1", "type": "flow", "concurrency": [{"key": "db", "pool": "cluster", "limit": 1}],
    "steps": [{"type": "wait", "name": "work", "duration": 5}]}"#;

fn parent(members: &str, pattern: &str) -> String {
    format!(
        r#"{{"version": "v1", "type": "flow", {members} "steps": [{{"type": "foreach", "name": "each",
            "iterationMapping": {{"collection": "$.shards", "item": "shard"}},
            "steps": [{{"type": "task", "name": "start", "resourceArn": "flow:child", "pattern": "{pattern}"}}]}}]}}"#
    )
}

/// Runs the flow with three shards. Returns its status, and the largest number of children that ran
/// at once.
async fn run(parent: &str) -> (Status, usize) {
    let mut flows = FlowTable::default();
    for (name, text) in [("child", CHILD), ("parent", parent)] {
        let checked = starbridge_fdl::check(&Source::new("flow.json", text.to_owned()), &Limits::default());
        let flow = checked.flow.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
        flows.put(name, flow);
    }
    let running = Arc::new(Mutex::new((BTreeSet::new(), 0)));
    let seen = running.clone();
    let settings = LocalSettings {
        flows,
        fast_forward: true,
        ..LocalSettings::default()
    };
    let mut local = LocalRun::new(settings, move |shard, outgoing| {
        let Outgoing::Turn { execution, events } = outgoing else {
            return;
        };
        let started = shard.state(execution).and_then(|state| state.started());
        if started.is_none_or(|started| started.flow.as_str() != "child") {
            return;
        }
        let mut running = seen.lock().unwrap();
        for event in events {
            match &event.detail {
                EventKind::ExecutionStarted(_) => drop(running.0.insert(execution.clone())),
                EventKind::ExecutionSucceeded { .. } => drop(running.0.remove(execution)),
                _ => {}
            }
        }
        running.1 = running.1.max(running.0.len());
    })
    .unwrap();
    let input = serde_json::from_str(r#"{"shards": [1, 2, 3]}"#).unwrap();
    let begun = local.begin("parent", Some(input), None).unwrap();
    local.run(begun.id()).await.unwrap();
    let (left, most) = running.lock().unwrap().clone();
    assert!(left.is_empty(), "{left:?} have not ended");
    (local.state(begun.id()).unwrap().status(), most)
}

#[tokio::test]
async fn children_run_one_after_the_other() {
    for pattern in ["requestResponse", "sync"] {
        assert_eq!(run(&parent("", pattern)).await, (Status::Succeeded, 1), "{pattern}");
    }
}

#[tokio::test]
async fn children_that_are_waited_for_share_the_slot_of_the_parent() {
    let key = r#""concurrency": [{"key": "db", "pool": "cluster", "limit": 1}],"#;
    let (status, most) = run(&parent(key, "sync")).await;
    assert_eq!((status, most), (Status::Succeeded, 3));
    // A child that no call waits for needs a slot of its own, once the parent has ended.
    assert_eq!(run(&parent(key, "requestResponse")).await, (Status::Succeeded, 1));
}

#[tokio::test]
async fn children_can_not_wait_for_others_by_name() {
    let text = parent("", "sync").replace(r#""pattern""#, r#""serviceParams": {"After": ["other"]}, "pattern""#);
    assert_eq!(run(&text).await, (Status::Failed, 0));
}
