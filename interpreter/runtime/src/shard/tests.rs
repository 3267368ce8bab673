//! Tests of a shard, one rule at a time and without a store.

mod admission;
mod ownership;

use super::*;
use starbridge_flow::graph::Pattern;
use starbridge_flow::syntax::Source;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::TURN_BYTES;

const CALL: &str = r#"{"type": "task", "name": "call", "resourceArn": "http://x/f"}"#;
const SLEEP: &str = r#"{"type": "wait", "name": "sleep", "duration": 5}"#;

/// A shard with a flow `f` of these steps. Ids are `e1`, `e2` and so on.
fn shard(steps: &str) -> Shard {
    shard_of_flow("", steps)
}

/// The same with more members of the flow.
fn shard_of_flow(members: &str, steps: &str) -> Shard {
    let text = format!(r#"{{"version": "v1", "type": "flow", {members}"steps": [{steps}]}}"#);
    let checked = starbridge_fdl::check(&Source::new("flow.json", text), &Limits::default());
    let mut flows = FlowTable::default();
    flows.put("f", checked.flow.unwrap());
    let mut born = 0;
    Shard::new(flows, ResourceMap::default(), Arc::default(), move |request, _| {
        born += 1;
        ExecutionSeed {
            id: request.name.clone().unwrap_or_else(|| format!("e{born}").into()),
            seed: born,
        }
    })
}

fn start(shard: &mut Shard) -> Text {
    let request = StartRequest {
        flow: "f".into(),
        ..StartRequest::default()
    };
    shard.start(request, Timestamp(0)).unwrap()
}

fn succeeded(call: EventId) -> Signal {
    Signal::Succeeded {
        call,
        result: Object::new().into(),
        worker: None,
        held_time: None,
    }
}

/// The calls that leave now: execution and call.
fn sent(shard: &mut Shard) -> Vec<(Text, EventId)> {
    let calls = shard.take_outgoing().into_iter().filter_map(|outgoing| match outgoing {
        Outgoing::Send { execution, call } => {
            assert_eq!(call.pattern, Pattern::RequestResponse);
            Some((execution, call.call))
        }
        _ => None,
    });
    calls.collect()
}

#[test]
fn durability_nothing_leaves_before_its_turn_is_committed() {
    let mut shard = shard(CALL);
    let id = start(&mut shard);
    assert_eq!(shard.pump(Timestamp(0)), PumpResult::Decided);
    assert!(shard.take_outgoing().is_empty());
    let batch = shard.take_batch();
    assert_eq!((batch.len(), &batch[0].execution), (1, &id));
    assert!(shard.take_outgoing().is_empty(), "the append is under way");
    shard.committed(&[]);
    let sent = sent(&mut shard);
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].0, id);
}

#[test]
fn durability_batches_under_way_let_out_in_the_order_they_were_taken() {
    let mut shard = shard(CALL);
    let first = start(&mut shard);
    shard.take_batch();
    let second = start(&mut shard);
    shard.take_batch();
    shard.committed(&[]);
    let executions: Vec<Text> = sent(&mut shard).into_iter().map(|(execution, _)| execution).collect();
    assert_eq!(executions, [first]);
    shard.committed(&[]);
    let executions: Vec<Text> = sent(&mut shard).into_iter().map(|(execution, _)| execution).collect();
    assert_eq!(executions, [second]);
}

#[test]
fn refused_start_leaves_nothing_behind() {
    let mut shard = shard(CALL);
    let id = start(&mut shard);
    shard.take_batch();
    let refusal = Refusal::Exists {
        execution: "older".into(),
        version: 1,
        keyed: None,
    };
    shard.committed(&[(0, refusal)]);
    let outgoing = shard.take_outgoing();
    assert!(
        matches!(outgoing.iter().collect::<Vec<_>>()[..], [Outgoing::Refused { execution, .. }] if *execution == id),
        "{outgoing:?}"
    );
    assert!(shard.state(&id).is_none());
    assert_eq!(shard.pump(Timestamp(0)), PumpResult::Idle);
}

#[test]
fn conflicting_append_loses_the_execution_to_its_new_owner() {
    let mut shard = shard(CALL);
    let id = start(&mut shard);
    shard.take_batch();
    shard.committed(&[]);
    let call = sent(&mut shard)[0].1;
    shard.signal(&id, succeeded(call), Timestamp(1)).unwrap();
    shard.take_batch();
    shard.committed(&[(0, Refusal::Conflict)]);
    assert_eq!(shard.take_lost(), [id]);
    assert!(shard.take_outgoing().is_empty(), "nothing of a refused turn leaves");
}

#[test]
fn backpressure_backlog_counts_turns_that_are_not_on_their_way() {
    let mut shard = shard(CALL);
    for count in 1..=3 {
        start(&mut shard);
        assert_eq!(shard.backlog(), count);
    }
    shard.take_batch();
    assert_eq!(shard.backlog(), 0, "what is under way is the writer's");
    start(&mut shard);
    assert_eq!((shard.backlog(), shard.has_batch()), (1, true));
}

#[test]
fn timer_fires_when_it_is_due_and_once() {
    let mut shard = shard(SLEEP);
    let id = start(&mut shard);
    assert_eq!(shard.next_wakeup(), Some(Timestamp(5_000)));
    assert!(!shard.fire_next(Timestamp(4_999)));
    assert!(shard.fire_next(Timestamp(5_000)));
    assert!(!shard.fire_next(Timestamp(9_000)));
    assert_eq!(shard.next_wakeup(), None);
    assert_eq!(shard.state(&id).map(State::status), Some(Status::Succeeded));
}

#[test]
fn report_of_a_call_counts_once() {
    let mut shard = shard(CALL);
    let id = start(&mut shard);
    shard.take_batch();
    shard.committed(&[]);
    let call = sent(&mut shard)[0].1;
    assert_eq!(shard.signal(&id, succeeded(call), Timestamp(1)), Ok(()));
    assert!(shard.signal(&id, succeeded(call), Timestamp(2)).is_err());
    assert_eq!(shard.backlog(), 1, "the second left nothing to append");
    assert_eq!(
        shard.signal("nobody", succeeded(call), Timestamp(2)),
        Err(Rejection::Unknown)
    );
}

#[test]
fn panic_costs_what_was_not_appended_and_nothing_of_others() {
    let mut shard = shard(CALL);
    let other = start(&mut shard);
    let id = start(&mut shard);
    let panicked = shard.guarded(&id, Timestamp(0), |shard| {
        start(shard);
        std::panic::resume_unwind(Box::new("a fault"));
    });
    assert_eq!(panicked, None::<()>);
    assert!(shard.is_aside(&id) && shard.state(&id).is_none());
    assert_eq!(shard.take_panicked(), std::slice::from_ref(&id));
    assert_eq!(shard.backlog(), 2, "what was decided before stays");
    assert!(shard.state(&other).is_some());
    // An execution with appends in flight waits for them, whatever the time.
    assert!(shard.aside_due(Timestamp(i64::MAX)).is_empty());
    shard.take_batch();
    shard.committed(&[]);
    assert_eq!(shard.next_aside(), Some(Timestamp(500)));
    assert!(shard.aside_due(Timestamp(499)).is_empty());
    let due = shard.aside_due(Timestamp(500)).remove(0);
    assert_eq!((due.execution, due.tries, due.cause.as_str()), (id, 1, "a fault"));
}

#[test]
fn trim_leaves_the_store_who_waits_the_longest() {
    let mut shard = shard(SLEEP);
    let first = start(&mut shard);
    let second = start(&mut shard);
    shard.take_batch();
    shard.committed(&[]);
    shard.trim(1, usize::MAX);
    assert!(shard.state(&first).is_none() && shard.state(&second).is_some());
}

#[test]
fn trim_leaves_the_store_large_ones_by_their_bytes() {
    let mut shard = shard(SLEEP);
    let start = |shard: &mut Shard, bytes: usize| {
        let input: Object = [("text".into(), Text::from("x".repeat(bytes)).into())]
            .into_iter()
            .collect();
        let request = StartRequest {
            flow: "f".into(),
            input: input.into(),
            ..StartRequest::default()
        };
        let id = shard.start(request, Timestamp(0)).unwrap();
        shard.take_batch();
        shard.committed(&[]);
        id
    };
    let small = start(&mut shard, 100);
    let first = start(&mut shard, 2 * LARGE_BYTES);
    let second = start(&mut shard, 3 * LARGE_BYTES);
    let held = shard.loaded_bytes();
    assert!((5 * LARGE_BYTES..6 * LARGE_BYTES).contains(&held), "{held}");
    assert!(shard.trim(10, held).is_empty() && shard.state(&first).is_some());
    let asleep = shard.trim(10, held - 1);
    assert!(matches!(&asleep[..], [(_, id)] if *id == first), "{asleep:?}");
    assert!(shard.state(&first).is_none() && shard.state(&second).is_some() && shard.state(&small).is_some());
    shard.forget(&second);
    assert_eq!(shard.loaded_bytes(), 0);
}

#[test]
fn execution_that_becomes_large_in_small_steps_counts() {
    let each = format!(
        r#"{{"type": "foreach", "name": "each", "iterationMapping": {{"collection": "$.items", "item": "item"}},
        "steps": [{CALL}], "outputMappings": [{{"target": "all", "source": "$local"}}]}}"#
    );
    let mut shard = shard(&each);
    let input: Value = serde_json::from_str(r#"{"items": [1, 2, 3, 4]}"#).unwrap();
    let request = StartRequest {
        flow: "f".into(),
        input,
        ..StartRequest::default()
    };
    let id = shard.start(request, Timestamp(0)).unwrap();
    shard.take_batch();
    shard.committed(&[]);
    for (_, call) in sent(&mut shard) {
        assert_eq!(shard.loaded_bytes(), 0);
        let result = Text::from("x".repeat(LARGE_BYTES / 3));
        let signal = Signal::Succeeded {
            call,
            result: [("text".into(), result.into())].into_iter().collect::<Object>().into(),
            worker: None,
            held_time: None,
        };
        shard.signal(&id, signal, Timestamp(1)).unwrap();
        shard.take_batch();
        shard.committed(&[]);
        if shard.state(&id).unwrap().clone().held() >= LARGE_BYTES {
            break;
        }
    }
    assert!(shard.loaded_bytes() >= LARGE_BYTES, "{}", shard.loaded_bytes());
}

#[test]
fn turns_that_were_cut_are_gone_on_with_in_small_batches() {
    let (executions, items, text) = (10, 40, 50_000);
    let mut shard = shard(
        r#"{"type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "n"},
            "steps": [{"type": "task", "name": "t", "resourceArn": "queue:q"}]}"#,
    );
    shard.queue_tasks(Arc::default());
    let mut input = Object::new();
    input.insert("items".into(), vec![Value::from(0_u32); items].into());
    input.insert("text".into(), Text::from("x".repeat(text)).into());
    for _ in 0..executions {
        let request = StartRequest {
            flow: "f".into(),
            input: input.clone().into(),
            ..StartRequest::default()
        };
        shard.start(request, Timestamp(0)).unwrap();
    }
    let (mut queued, mut batches) = (0, 0);
    while shard.has_batch() || shard.pump(Timestamp(0)) == PumpResult::Decided {
        let bytes = shard.backlog_bytes();
        // The starts are one batch; then a turn may pass the bound.
        let most = CONTINUED_BYTES + TURN_BYTES + 2 * text;
        assert!(batches == 0 || bytes <= most, "{bytes} bytes, more than {most}");
        batches += 1;
        queued += shard
            .take_batch()
            .iter()
            .map(|append| append.queued.len())
            .sum::<usize>();
        shard.committed(&[]);
    }
    assert_eq!(queued, executions * items);
    assert!(batches > 10, "{batches}");
}
