//! External faults from the user's view: the flow fails within the task's time, and `show` says
//! why.

use crate::broker::{Broker, Sqs};
use crate::world::World;
use serde_json::{Value, json};
use starbridge_services::{Kind, Service};

/// The task's timeout, in seconds.
const TIMEOUT: u64 = 20;

/// A flow that sends something fails with this error.
fn fails(world: &World, name: &str, resource: &str, params: Option<Value>, error: &str, cause: &str) {
    let mut step = json!({"type": "task", "name": "send", "resourceArn": resource, "timeoutSeconds": TIMEOUT});
    if let Some(params) = params {
        step["serviceParams"] = params;
    }
    world.put(&json!({"version": "v1", "type": "flow", "name": name, "steps": [step]}).to_string());
    let text = "x".repeat(200_000);
    std::fs::write(world.path("input.json"), json!({"text": text}).to_string()).unwrap();
    world.run(&["start", name, "--name", "one", "--input-file", "input.json"]);
    let execution = format!("{name}/one");
    let ended = world.ended(&execution);
    assert_eq!(ended["status"], "Failed", "{name}");
    let shown = world.run(&["show", &execution]);
    let line = shown.lines().find(|line| line.starts_with("error")).unwrap();
    let said = format!("{error}: {cause}");
    assert!(line.contains(&said), "{name}: `{line}` does not say `{said}`");
    assert!(line.ends_with("(in `send`)"), "{line}");
    let events = world.history(&execution);
    let failed = events.iter().any(|event| event["type"] == "TaskFailed");
    assert!(failed, "{name}: it was not the timeout that ended it");
}

#[test]
fn queues_that_can_t_be_sent_to() {
    let sqs = Sqs::start();
    let small = json!({"QueueName": "small", "Attributes": {"MaximumMessageSize": "1024"}});
    sqs.ask("CreateQueue", &small);
    let world = World::start(&sqs.config(), sqs.environment());
    let no_queue = "SQS.QueueDoesNotExist";
    fails(
        &world,
        "missing",
        "sqs:nobody",
        None,
        no_queue,
        "queue `nobody`: there is no such queue",
    );
    let elsewhere = "arn:aws:sqs:eu-west-1:000000000000:shipping";
    let cause = "queue `shipping` in `eu-west-1`: there is no such queue";
    fails(&world, "elsewhere", elsewhere, None, no_queue, cause);
    // A step's data is smaller than a message may be, but a message may contain it several times.
    let much = json!({"MessageBody": {"a": "$", "b": "$", "c": "$", "d": "$", "e": "$", "f": "$"}});
    let too_large = "SQS.MessageTooLarge";
    fails(
        &world,
        "much",
        "sqs:shipping",
        Some(much),
        too_large,
        "queue `shipping`: ",
    );
    fails(&world, "small", "sqs:small", None, too_large, "queue `small`: ");
    assert_eq!(sqs.waiting(), 0);
}

#[test]
fn credentials_that_are_missing() {
    let nowhere = |further: &[(&'static str, &str)]| {
        let all = [&[("AWS_ENDPOINT_URL", "http://127.0.0.1:1")], further].concat();
        all.into_iter().map(|(name, value)| (name, value.to_owned())).collect()
    };
    let world = World::start("", nowhere(&[("AWS_REGION", "us-east-1")]));
    let cause = "queue `orders`: no credentials are given";
    fails(&world, "nobody", "sqs:orders", None, "SQS.CredentialsMissing", cause);
    let cause = "function `pay`: no credentials are given";
    fails(
        &world,
        "nobody-pays",
        "lambda:pay",
        None,
        "Lambda.CredentialsMissing",
        cause,
    );
}

#[test]
fn a_redis_that_is_read_only() {
    let replica = Service::start_with(Kind::Redis, &["--replicaof", "127.0.0.1 1"]);
    let world = World::start(&format!("[redis]\nurl = \"{}\"\n", replica.url()), Vec::new());
    let cause = format!("stream `orders` at `127.0.0.1:{}`: ", replica.port());
    fails(&world, "replica", "redis:orders", None, "Redis.ReadOnly", &cause);
}
