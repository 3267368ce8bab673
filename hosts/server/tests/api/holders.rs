//! Tasks that workers hold, and those that none holds: their histories, and their treatment by a
//! draining flow.

use crate::clock::StandingClock;
use crate::harness::{Running, definition};
use serde_json::{Value, json};
use starbridge_server::Access;
use std::sync::Arc;
use std::time::Duration;

/// A server whose time passes only when its clock is set.
async fn standing() -> (Running, Arc<StandingClock>) {
    let clock = StandingClock::new();
    let own = clock.clone();
    let server = Running::with(Access::default(), |settings| settings.clock = own).await;
    (server, clock)
}

/// A step that workers of the queue `jobs` do.
fn task(more: &Value) -> Value {
    let mut step = json!({"type": "task", "name": "work", "resourceArn": "queue:jobs"});
    for (name, value) in more.as_object().unwrap() {
        step[name] = value.clone();
    }
    step
}

async fn start(server: &Running, name: &str) {
    let body = json!({"name": name, "input": {}});
    let started = server.post("/v1/flows/f/executions", body).await;
    assert_eq!(started.status, 201, "{started:?}");
}

/// A task for a worker that waits until there is one.
async fn hold(server: &Running) -> Value {
    let body = json!({"worker": "w-7", "limit": 1, "waitSeconds": 20, "leaseSeconds": 5});
    let held = server.post("/v1/queues/jobs/hold", body).await;
    held.body["tasks"][0].clone()
}

async fn report(server: &Running, task: &Value, verb: &str, body: Value) -> u16 {
    let token = task["token"].as_str().unwrap();
    server.post(&format!("/v1/callbacks/{token}/{verb}"), body).await.status
}

async fn ended(server: &Running, name: &str) -> Value {
    for _ in 0..1_000 {
        let execution = server.get(&format!("/v1/flows/f/executions/{name}")).await.body;
        if execution["endedTime"].is_string() {
            return execution;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{name} has not ended");
}

/// The details of the events of one kind.
async fn details(server: &Running, execution: &Value, kind: &str) -> Vec<Value> {
    let id = execution["id"].as_str().unwrap();
    let history = server.get(&format!("/v1/executions/{id}/history")).await.body;
    let events = history["items"].as_array().unwrap().iter();
    let events = events.filter(|event| event["type"] == kind);
    events.map(|event| event["detail"].clone()).collect()
}

#[tokio::test]
async fn worker_whose_task_failed_is_in_the_history() {
    let (server, clock) = standing().await;
    let set = server.put("/v1/queues/jobs", json!({"redeliver": 0})).await;
    assert_eq!(set.status, 200);
    server
        .flow("f", json!([task(&json!({"timeoutSeconds": 60, "waitSeconds": 600}))]))
        .await;
    start(&server, "failed").await;
    let held = hold(&server).await;
    assert_eq!(report(&server, &held, "fail", json!({"error": "Paper.Jam"})).await, 204);
    start(&server, "silent").await;
    hold(&server).await;
    clock.pass(5_001);
    let silent = ended(&server, "silent").await;
    start(&server, "slow").await;
    let held = hold(&server).await;
    for _ in 0..15 {
        clock.pass(4_000);
        report(&server, &held, "heartbeat", json!({})).await;
    }
    clock.pass(1);
    let slow = ended(&server, "slow").await;
    let failed = ended(&server, "failed").await;
    for (execution, kind, error) in [
        (&failed, "TaskFailed", "Paper.Jam"),
        (&silent, "TaskTimedOut", "FnF.HeartbeatTimeout"),
        (&slow, "TaskTimedOut", "FnF.TaskTimeout"),
    ] {
        let detail = &details(&server, execution, kind).await[0];
        let told = (&detail["error"], &detail["worker"], detail["heldTime"].is_string());
        assert_eq!(told, (&json!(error), &json!("w-7"), true), "{detail}");
    }
    // No worker had it.
    start(&server, "alone").await;
    clock.pass(600_000);
    let alone = ended(&server, "alone").await;
    let detail = &details(&server, &alone, "TaskTimedOut").await[0];
    assert_eq!(detail, &json!({"error": "FnF.TaskTimeout"}));
}

#[tokio::test]
async fn draining_withdraws_what_no_worker_holds() {
    let (server, clock) = standing().await;
    let mut flow = definition(json!([task(&json!({}))]));
    flow["timeoutSeconds"] = json!(10);
    flow["onTimeout"] = json!("drain");
    assert_eq!(server.put("/v1/flows/f", flow).await.status, 201);
    start(&server, "held").await;
    let held = hold(&server).await;
    start(&server, "waiting").await;
    for _ in 0..3 {
        clock.pass(4_000);
        assert_eq!(report(&server, &held, "heartbeat", json!({})).await, 204);
    }
    let waiting = ended(&server, "waiting").await;
    assert_eq!(
        (&waiting["status"], &waiting["error"]),
        (&json!("TimedOut"), &json!("FnF.ExecutionTimeout")),
        "{waiting}"
    );
    let queue = server.get("/v1/queues/jobs").await.body;
    assert_eq!((&queue["waiting"], &queue["held"]), (&json!(0), &json!(1)), "{queue}");
    assert_eq!(
        report(&server, &held, "succeed", json!({"output": {"n": 1}})).await,
        204
    );
    let held = ended(&server, "held").await;
    assert_eq!(
        (&held["status"], &held["output"]),
        (&json!("Succeeded"), &json!({"n": 1}))
    );
}

#[tokio::test]
async fn heartbeat_with_a_log_prolongs_the_lease_and_keeps_the_log() {
    let (server, clock) = standing().await;
    server.flow("f", json!([task(&json!({}))])).await;
    start(&server, "one").await;
    let held = hold(&server).await;
    for beat in ["first\n", "second\n", "third\n"] {
        clock.pass(4_000);
        assert_eq!(report(&server, &held, "heartbeat", json!({"log": beat})).await, 204);
    }
    clock.pass(4_000);
    let batch = json!({"reports": [{"token": held["token"], "heartbeat": true, "log": "fourth\n"}]});
    let answer = server.post("/v1/callbacks", batch).await.body;
    assert_eq!(answer["results"][0]["status"], 204, "{answer}");
    clock.pass(4_000);
    assert_eq!(report(&server, &held, "succeed", json!({"output": {}})).await, 204);
    let execution = ended(&server, "one").await;
    assert_eq!(execution["status"], "Succeeded", "{execution}");
    let id = execution["id"].as_str().unwrap();
    let logs = server.get(&format!("/v1/executions/{id}/logs")).await.body;
    assert_eq!(logs["items"][0]["step"], "work", "{logs}");
    assert!(!logs["items"][0]["text"].as_str().unwrap().is_empty(), "{logs}");
}

#[tokio::test]
async fn log_of_a_report_that_comes_too_late_is_shown_with_its_step() {
    let (server, clock) = standing().await;
    let later = json!([{"errors": ["FnF.HeartbeatTimeout"], "intervalSeconds": 3600, "maxAttempts": 1}]);
    server.flow("f", json!([task(&json!({"retry": later}))])).await;
    start(&server, "one").await;
    let held = hold(&server).await;
    clock.pass(6_000);
    let execution = server.get("/v1/flows/f/executions/one").await.body;
    while details(&server, &execution, "RetryScheduled").await.is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        report(&server, &held, "succeed", json!({"output": {}, "log": "late\n"})).await,
        410
    );
    let id = execution["id"].as_str().unwrap();
    let logs = server.get(&format!("/v1/executions/{id}/logs?step=work")).await.body;
    let told: Vec<_> = logs["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|log| (&log["attempt"], &log["text"]))
        .collect();
    assert_eq!(told, [(&json!(1), &json!("late\n"))], "{logs}");
}
