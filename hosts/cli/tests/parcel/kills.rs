//! Servers and services are killed at each moment of a flow, and the result is the same.

use crate::broker::{Broker, Redis, Sqs};
use crate::functions::Functions;
use crate::world::{World, wait_for};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// When the server is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    Never,
    Function,
    Worker,
    Message,
    Reply,
    Child,
}

const MOMENTS: [Moment; 6] = [
    Moment::Never,
    Moment::Function,
    Moment::Worker,
    Moment::Message,
    Moment::Child,
    Moment::Reply,
];

/// Waits for a message of an order. Returns its report and its key. Messages of other orders are
/// reported too, as late ones.
fn carry(broker: &dyn Broker, order: u64) -> (Value, String) {
    let mut found = None;
    wait_for("the message", || {
        let Some(message) = broker.take() else { return false };
        let report =
            json!({"token": message.body["token"], "output": {"tracking": format!("t-{}", message.body["order"])}});
        if message.body["order"] == order {
            found = Some((report, message.key));
        } else {
            broker.reply(&report);
        }
        found.is_some()
    });
    found.unwrap()
}

/// The keys of the remaining messages of one order.
fn keys_left(broker: &dyn Broker, order: u64) -> BTreeSet<String> {
    let messages = std::iter::from_fn(|| broker.take());
    let messages = messages.filter(|message| message.body["order"] == order);
    messages.map(|message| message.key).collect()
}

/// Reports over HTTP. Returns the error, if there is one.
fn reported(world: &World, report: &Value) -> String {
    let (token, output) = (report["token"].as_str().unwrap(), report["output"].to_string());
    let mut callback = world.command(&["callback", token, "succeed", "--output", &output]);
    String::from_utf8(callback.output().unwrap().stderr).unwrap()
}

/// An order from its start to its end, with the server killed in between.
fn order(world: &mut World, broker: &dyn Broker, number: u64, moment: Moment) {
    let called = |functions: &Functions, path: &str| functions.calls(path, number) > 0;
    match moment {
        Moment::Function => world.functions.hold("/price"),
        Moment::Worker => world.hold_packing(true),
        Moment::Child => world.functions.hold("/bill"),
        _ => {}
    }
    world.begin(number);
    match moment {
        Moment::Function => {
            wait_for("the call", || called(&world.functions, "/price"));
            world.serve();
            wait_for("the call again", || world.functions.calls("/price", number) > 1);
            world.functions.hold("");
        }
        Moment::Worker => {
            wait_for("the worker", || world.packed(number) > 0);
            world.serve();
            world.hold_packing(false);
        }
        Moment::Message => {
            wait_for("the message", || broker.waiting() > 0);
            world.serve();
        }
        _ => {}
    }
    let (report, key) = carry(broker, number);
    if moment == Moment::Reply {
        world.kill();
    }
    // A consumer that was killed after its report makes it again.
    if matches!(moment, Moment::Never | Moment::Reply) {
        broker.reply(&report);
        broker.reply(&report);
    } else {
        // A message for which the killed server still waited would be withheld from the next one
        // for a minute.
        assert_eq!(reported(world, &report).trim(), "reported");
        let refusal = reported(world, &report);
        assert!(refusal.contains("another report came first"), "{refusal}");
    }
    if moment == Moment::Reply {
        assert_eq!(broker.replies(), 2);
        world.serve();
    }
    if moment == Moment::Child {
        wait_for("the child's call", || called(&world.functions, "/bill"));
        world.serve();
        wait_for("the child's call again", || world.functions.calls("/bill", number) > 1);
        world.functions.hold("");
    }
    let ended = world.ended(&format!("parcel/p-{number}"));
    let output = json!({"order": number, "price": 42, "box": format!("box-{number}"),
        "tracking": format!("t-{number}"), "invoice": format!("i-{number}")});
    assert_eq!(ended["output"], output, "{moment:?}: {ended}");
    let mut keys = keys_left(broker, number);
    keys.insert(key);
    counted_once(world, number, &keys);
    wait_for("the last report's end", || broker.replies() == 0);
}

/// Each task was called under one key, and one of its reports counts.
fn counted_once(world: &World, number: u64, messages: &BTreeSet<String>) {
    let events = world.history(&format!("parcel/p-{number}"));
    for step in ["price", "pack", "ship", "invoice"] {
        for kind in ["TaskScheduled", "TaskSucceeded"] {
            let found = events
                .iter()
                .filter(|event| event["step"] == step && event["type"] == kind);
            assert_eq!(found.count(), 1, "{kind} of {step}: {events:#?}");
        }
    }
    for path in ["/price", "/bill"] {
        assert_eq!(world.functions.keys(path, number).len(), 1, "{path}");
    }
    assert_eq!(world.packed(number), 1);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(
        !world
            .functions
            .keys("/price", number)
            .contains(messages.first().unwrap())
    );
}

fn killed_at_each_moment(broker: &dyn Broker) {
    let (mut world, _worker) = World::of_the_example(broker);
    for (number, moment) in (1..).zip(MOMENTS) {
        order(&mut world, broker, number, moment);
    }
}

#[test]
fn a_server_that_is_killed_loses_nothing_with_sqs() {
    killed_at_each_moment(&Sqs::start());
}

#[test]
fn a_server_that_is_killed_loses_nothing_with_redis() {
    killed_at_each_moment(&Redis::start());
}

/// Whether a step has failed with this error.
fn failed_with(world: &World, execution: &str, error: &str) -> bool {
    let events = world.history(execution);
    events
        .iter()
        .any(|event| event["type"] == "StepFailed" && event["detail"]["error"] == error)
}

#[test]
fn queues_that_are_gone_are_waited_for() {
    let mut sqs = Sqs::start();
    let (world, _worker) = World::of_the_example(&sqs);
    world.hold_packing(true);
    world.begin(1);
    wait_for("the worker", || world.packed(1) > 0);
    sqs.service().kill();
    world.hold_packing(false);
    wait_for("a try", || failed_with(&world, "parcel/p-1", "SQS.ConnectionFailed"));
    sqs.service().start_again();
    wait_for("another try", || {
        failed_with(&world, "parcel/p-1", "SQS.QueueDoesNotExist")
    });
    sqs.make();
    let (report, _) = carry(&sqs, 1);
    sqs.reply(&report);
    assert_eq!(world.ended("parcel/p-1")["output"]["tracking"], "t-1");
    assert_eq!(world.functions.keys("/bill", 1).len(), 1);
}

#[test]
fn a_redis_that_is_killed_is_waited_for() {
    let mut redis = Redis::start();
    let (world, _worker) = World::of_the_example(&redis);
    world.begin(1);
    wait_for("the message", || redis.waiting() > 0);
    world.hold_packing(true);
    world.begin(2);
    wait_for("the worker", || world.packed(2) > 0);
    redis.service().kill();
    world.hold_packing(false);
    let packed = |event: &Value| event["step"] == "pack" && event["type"] == "TaskSucceeded";
    wait_for("the packing", || world.history("parcel/p-2").iter().any(packed));
    redis.service().start_again();
    for number in [1, 2] {
        let (report, _) = carry(&redis, number);
        redis.reply(&report);
        let tracking = format!("t-{number}");
        assert_eq!(
            world.ended(&format!("parcel/p-{number}"))["output"]["tracking"],
            tracking
        );
    }
}
