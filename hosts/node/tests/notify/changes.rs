//! The notices that a shard stores with its turns.

use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Object, Text};
use starbridge_machine::{Decision, Event, EventId, EventKind, Resolution, Signal, Status};
use starbridge_node::notify::Notice;
use starbridge_node::system::new_seed;
use starbridge_ports::{Append, KeptNotice};
use starbridge_runtime::{FlowTable, Outgoing, ResourceMap, Shard, StartRequest};
use std::sync::Arc;

const NOW: Timestamp = Timestamp(1_704_067_200_000);

/// A shard that makes notices about everything for `ops`, with this flow as `f`.
fn shard(flow: &str) -> Shard {
    let limits = Limits::default();
    let checked = starbridge_fdl::check(&Source::new("f", flow), &limits);
    let mut flows = FlowTable::default();
    flows.put("f", checked.flow.expect("it has no errors"));
    let id_source = |request: &StartRequest, _| new_seed(request);
    let mut shard = Shard::new(flows, ResourceMap::default(), Arc::new(limits), id_source);
    shard.notify(|change| {
        vec![KeptNotice {
            target: "ops".into(),
            event: change.event,
            time: change.time,
            text: starbridge_flow::value::Value::from(Notice::of(change).message()).to_json(),
        }]
    });
    shard
}

fn start(shard: &mut Shard) -> Text {
    let request = StartRequest {
        flow: "f".into(),
        ..StartRequest::default()
    };
    shard.start(request, NOW).unwrap()
}

/// The notices in the next batch.
fn told(shard: &mut Shard, execution: &str) -> Vec<Notice> {
    let batch = shard.take_batch();
    let notices = |append: &Append| {
        let last = append.turn.as_ref().map(|turn| turn.last());
        for notice in &append.notices {
            assert_eq!(Some(notice.event), last, "it is of the turn's last event");
        }
        append.notices.clone()
    };
    let notices: Vec<KeptNotice> = batch.iter().flat_map(notices).collect();
    shard.committed(&[]);
    let read = |notice: &KeptNotice| {
        let message: Object = serde_json::from_str(&notice.text).unwrap();
        Notice::read(execution, notice.event, &message).unwrap()
    };
    notices.iter().map(read).collect()
}

fn calls(shard: &mut Shard) -> Vec<EventId> {
    let sent = shard.take_outgoing().into_iter().filter_map(|outgoing| match outgoing {
        Outgoing::Send { call, .. } => Some(call.call),
        _ => None,
    });
    sent.collect()
}

/// The requests to operators in the current output. Each wakes the notifier.
fn asked(shard: &mut Shard) -> Vec<EventId> {
    let left = shard.take_outgoing();
    assert!(left.iter().any(|left| matches!(left, Outgoing::Noticed { .. })));
    let turns = left.into_iter().filter_map(|outgoing| match outgoing {
        Outgoing::Turn { events, .. } => Some(events),
        _ => None,
    });
    let asks = |event: &Event| matches!(event.detail, EventKind::ManualRequested(_));
    let asked = turns.flatten().filter(asks).map(|event| event.id);
    asked.collect()
}

fn fails(call: EventId, error: &str) -> Signal {
    Signal::Failed {
        call,
        error: error.to_owned(),
        cause: "jam".to_owned(),
        retry_after: None,
        not_sent: false,
        holder: None,
    }
}

#[test]
fn notice_for_each_step_that_asks_an_operator() {
    let task = |name: &str| {
        format!(
            r#"{{"type": "task", "name": "{name}", "resourceArn": "http://h/x", "retry": [], "catch": [{{"errors": ["FnF.ALL"], "manual": true}}]}}"#
        )
    };
    let flow = format!(
        r#"{{"version": "v1", "type": "flow", "steps": [{{"type": "parallel", "name": "both", "branches": [
            {{"steps": [{}]}}, {{"steps": [{}]}}]}}]}}"#,
        task("a"),
        task("b")
    );
    let mut shard = shard(&flow);
    let id = start(&mut shard);
    let statuses = |notices: &[Notice]| notices.iter().map(|notice| notice.status).collect::<Vec<_>>();
    assert_eq!(statuses(&told(&mut shard, &id)), [Status::Running]);
    let calls = calls(&mut shard);
    let mut requests = Vec::new();
    for (call, error, step) in [(calls[0], "Paper.Jam", "a"), (calls[1], "Paper.Out", "b")] {
        shard.signal(&id, fails(call, error), NOW).unwrap();
        let told = told(&mut shard, &id);
        assert_eq!(statuses(&told), [Status::Manual]);
        requests.extend(asked(&mut shard));
        let failure = told[0].failure.as_ref().unwrap();
        assert_eq!((&*failure.error, &*failure.cause, &*failure.step), (error, "jam", step));
    }
    // One decision leaves the other request open, which changes no status. The last one does.
    let mut all = Vec::new();
    for request in requests {
        let resolution = Box::new(Resolution {
            decision: Decision::Succeed { output: None },
            by: "me".into(),
            note: None,
        });
        shard.signal(&id, Signal::Resolve { request, resolution }, NOW).unwrap();
        all.push(statuses(&told(&mut shard, &id)));
    }
    assert_eq!(all, [vec![], vec![Status::Succeeded]]);
}

#[test]
fn notice_only_where_a_status_changes() {
    let flow = r#"{"version": "v1", "type": "flow", "steps": [
        {"type": "task", "name": "a", "resourceArn": "http://h/x"}, {"type": "wait", "name": "w", "duration": 5}]}"#;
    let mut shard = shard(flow);
    let id = start(&mut shard);
    assert_eq!(told(&mut shard, &id).len(), 1);
    let call = calls(&mut shard)[0];
    let result = Signal::Succeeded {
        call,
        result: Object::new().into(),
        worker: None,
        held_time: None,
    };
    shard.signal(&id, result, NOW).unwrap();
    assert_eq!(told(&mut shard, &id), []);
    assert!(
        !shard
            .take_outgoing()
            .iter()
            .any(|left| matches!(left, Outgoing::Noticed { .. }))
    );
    assert!(shard.fire_next(NOW.plus(Millis(5_000))));
    let told = told(&mut shard, &id);
    assert_eq!(
        (told[0].status, told[0].time),
        (Status::Succeeded, NOW.plus(Millis(5_000)))
    );
}

/// A shard that makes notices of events of steps for `ops`.
fn shard_of_steps(flow: &str) -> Shard {
    let mut shard = shard(flow);
    shard.notify(|_| Vec::new());
    shard.notify_of_steps(|told| {
        let notice = Notice::of_step(told);
        let kept = notice.map(|notice| KeptNotice {
            target: "ops".into(),
            event: told.event.id,
            time: told.event.time,
            text: starbridge_flow::value::Value::from(notice.message()).to_json(),
        });
        kept.into_iter().collect()
    });
    shard
}

#[test]
fn events_of_steps_are_told_with_their_step_and_attempt() {
    let mut shard = shard_of_steps(
        r#"{"version": "v1", "type": "flow", "steps": [
            {"type": "task", "name": "pay", "resourceArn": "queue:{$input.a}",
             "catch": [{"errors": ["FnF.ALL"], "manual": true}]}
        ]}"#,
    );
    let execution = start(&mut shard);
    let batch = shard.take_batch();
    let messages: Vec<serde_json::Value> = batch
        .iter()
        .flat_map(|append| &append.notices)
        .map(|notice| serde_json::from_str(&notice.text).unwrap())
        .collect();
    let told: Vec<(&str, &str)> = messages
        .iter()
        .map(|message| (message["event"].as_str().unwrap(), message["step"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("StepEntered", "pay"),
            ("StepFailed", "pay"),
            ("ManualRequested", "pay")
        ]
    );
    let failed = &messages[1];
    assert_eq!(
        (&failed["attempt"], &failed["error"]),
        (&1.into(), &"FnF.InvalidInput".into())
    );
    assert!(failed["id"].as_str().unwrap().starts_with(execution.as_str()));
}

#[test]
fn failed_rollback_is_told_with_what_is_left_also_by_its_event() {
    let mut shard = shard(
        r#"{"version": "v1", "type": "flow", "steps": [
            {"type": "task", "name": "pay", "resourceArn": "http://x/", "rollback": {"resourceArn": "http://x/undo"}},
            {"type": "fail", "name": "no", "error": "No"}
        ]}"#,
    );
    shard.notify_of_steps(|told| {
        let notice = Notice::of_step(told);
        let kept = notice.map(|notice| KeptNotice {
            target: "ops".into(),
            event: told.event.id,
            time: told.event.time,
            text: starbridge_flow::value::Value::from(notice.message()).to_json(),
        });
        kept.into_iter().collect()
    });
    let id = start(&mut shard);
    let call = shard.state(&id).unwrap().calls_in_flight().next().unwrap();
    let paid = Signal::Succeeded {
        call,
        result: Object::new().into(),
        worker: None,
        held_time: None,
    };
    shard.signal(&id, paid, NOW).unwrap();
    let call = shard.state(&id).unwrap().calls_in_flight().next().unwrap();
    let failed = Signal::Failed {
        call,
        error: "Bank.Closed".to_owned(),
        cause: String::new(),
        retry_after: None,
        not_sent: false,
        holder: None,
    };
    shard.signal(&id, failed, NOW).unwrap();
    assert_eq!(shard.state(&id).unwrap().status(), Status::RollbackFailed);
    let batch = shard.take_batch();
    let texts = batch.iter().flat_map(|append| &append.notices);
    let messages: Vec<serde_json::Value> = texts.map(|kept| serde_json::from_str(&kept.text).unwrap()).collect();
    let last = messages.last().unwrap();
    assert_eq!(
        (&last["event"], &last["status"], &last["rollback"]["error"]),
        (
            &"RollbackFailed".into(),
            &"RollbackFailed".into(),
            &"Bank.Closed".into()
        ),
        "{last}"
    );
}
