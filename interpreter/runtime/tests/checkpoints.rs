//! Checkpoints never take more bytes than the history before them, also where each task that could be undone has the same
//! large input.

use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::Signal;
use starbridge_runtime::{ExecutionSeed, FlowTable, Outgoing, PumpResult, ResourceMap, Shard, StartRequest};
use std::sync::Arc;

const NOW: Timestamp = Timestamp(0);
const FLOW: &str = r#"{"version": "v1", "type": "flow", "steps": [
    {"type": "foreach", "name": "each", "concurrency": 1, "iterationMapping": {"collection": "$.items", "item": "item"}, "steps": [
        {"type": "task", "name": "book", "resourceArn": "http://x/book", "rollback": {"resourceArn": "http://x/cancel"}}]}]}"#;

fn shard() -> Shard {
    let checked = starbridge_fdl::check(&Source::new("flow.json", FLOW), &Limits::default());
    let mut flows = FlowTable::default();
    flows.put("f", checked.flow.unwrap());
    let seed = |_: &StartRequest, _| ExecutionSeed {
        id: "e".into(),
        seed: 1,
    };
    let mut shard = Shard::new(flows, ResourceMap::default(), Arc::default(), seed);
    shard.checkpoint_every(100);
    shard
}

/// The bytes of the history so far, and of the checkpoint, for each checkpoint of a run over 60 items.
fn checkpoints(padding: usize) -> Vec<(usize, usize)> {
    let items = Value::from((0..60_u32).map(Value::from).collect::<Vec<_>>());
    let members = [
        ("items".into(), items),
        ("padding".into(), Value::from("x".repeat(padding))),
    ];
    let input: Object = members.into_iter().collect();
    let mut shard = shard();
    let request = StartRequest {
        flow: "f".into(),
        input: input.into(),
        ..StartRequest::default()
    };
    let id: Text = shard.start(request, NOW).unwrap();
    let (mut found, mut history) = (Vec::new(), 0);
    while shard.pump(NOW) == PumpResult::Decided {
        for append in shard.take_batch() {
            history += append.turn.as_ref().map_or(0, |turn| turn.text.len());
            found.extend(append.checkpoint.map(|checkpoint| (history, checkpoint.len())));
        }
        shard.committed(&[]);
        for outgoing in shard.take_outgoing() {
            if let Outgoing::Send { call, .. } = outgoing {
                let succeeded = Signal::Succeeded {
                    call: call.call,
                    result: Object::new().into(),
                    worker: None,
                    held_time: None,
                };
                shard.signal(&id, succeeded, NOW).unwrap();
            }
        }
    }
    assert!(shard.state(&id).unwrap().status().is_ended());
    found
}

#[test]
fn checkpoints_that_repeat_a_large_input_are_left_out() {
    for (history, checkpoint) in checkpoints(100_000) {
        assert!(
            checkpoint <= history,
            "{checkpoint} bytes after {history} of the history"
        );
    }
}

#[test]
fn checkpoints_are_made_where_inputs_are_small() {
    assert_ne!(checkpoints(10), []);
}
