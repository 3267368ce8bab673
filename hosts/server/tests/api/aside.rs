//! Reports for executions that are set aside.

use crate::clock::StandingClock;
use crate::harness::{Answer, Running, set_aside};
use serde_json::{Value, json};
use starbridge_node::stores::in_memory;
use starbridge_ports::Store;
use starbridge_server::Access;
use std::sync::Arc;
use std::time::Duration;

async fn on(store: &Arc<dyn Store>, clock: &Arc<StandingClock>) -> Running {
    let (store, clock) = (store.clone(), clock.clone());
    Running::with(Access::default(), |settings| {
        settings.store = store;
        settings.clock = clock;
    })
    .await
}

/// A worker holds the task of an execution that is then set aside, by another server.
async fn held_and_set_aside(lease: u64, clock: &Arc<StandingClock>) -> (Running, String, Value) {
    let store = in_memory();
    let server = on(&store, clock).await;
    server
        .flow(
            "f",
            json!([{"type": "task", "name": "work", "resourceArn": "queue:jobs"}]),
        )
        .await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let id = begun.body["id"].as_str().unwrap().to_owned();
    let task = hold(&server, lease).await;
    server.node.drain(Duration::from_secs(5)).await.unwrap();
    set_aside(&store, &id);
    (on(&store, clock).await, id, task)
}

async fn hold(server: &Running, lease: u64) -> Value {
    let body = json!({"worker": "w", "waitSeconds": 20, "leaseSeconds": lease});
    let held = server.post("/v1/queues/jobs/hold", body).await;
    assert!(held.body["tasks"][0].is_object(), "{held:?}");
    held.body["tasks"][0].clone()
}

async fn report(server: &Running, task: &Value, verb: &str, body: Value) -> Answer {
    let token = task["token"].as_str().unwrap();
    server.post(&format!("/v1/callbacks/{token}/{verb}"), body).await
}

async fn redrive(server: &Running, id: &str) {
    let redriven = server.post(&format!("/v1/executions/{id}/redrive"), json!({})).await;
    assert_eq!(redriven.status, 200, "{redriven:?}");
}

#[tokio::test]
async fn set_aside_execution_refuses_reports_until_an_operator_acts() {
    let (server, id, task) = held_and_set_aside(600, &StandingClock::new()).await;
    let refused = (409, "ExecutionSetAside");
    let done = report(&server, &task, "succeed", json!({"output": {"n": 1}})).await;
    assert_eq!(done.code(), refused, "{done:?}");
    let detail = done.body["detail"].as_str().unwrap();
    assert!(
        detail.contains("set aside") && detail.contains("starbridge redrive"),
        "{detail}"
    );
    let failed = report(&server, &task, "fail", json!({"error": "E"})).await;
    assert_eq!(failed.code(), refused, "{failed:?}");
    let batch = json!({"reports": [{"token": task["token"], "output": {"n": 1}}]});
    let results = server.post("/v1/callbacks", batch).await.body["results"].clone();
    assert_eq!(results[0]["status"], 409, "{results}");
    assert_eq!(results[0]["code"], "ExecutionSetAside", "{results}");
    redrive(&server, &id).await;
    let done = report(&server, &task, "succeed", json!({"output": {"n": 1}})).await;
    assert_eq!(done.status, 204, "{done:?}");
    let ended = server.get(&format!("/v1/executions/{id}?wait=20")).await;
    assert_eq!(
        (&ended.body["status"], &ended.body["output"]["n"]),
        (&json!("Succeeded"), &json!(1))
    );
}

#[tokio::test]
async fn set_aside_execution_gives_its_task_out_again_once_it_goes_on() {
    let clock = StandingClock::new();
    let (server, id, first) = held_and_set_aside(1, &clock).await;
    let done = report(&server, &first, "succeed", json!({"output": {}})).await;
    assert_eq!(done.code(), (409, "ExecutionSetAside"));
    // The lease ends while the execution is set aside.
    clock.pass(2_500);
    redrive(&server, &id).await;
    let second = hold(&server, 600).await;
    assert_ne!(second["token"], first["token"]);
    assert_eq!(second["stepKey"], first["stepKey"]);
    let done = report(&server, &second, "succeed", json!({"output": {}})).await;
    assert_eq!(done.status, 204, "{done:?}");
    let ended = server.get(&format!("/v1/executions/{id}?wait=20")).await;
    assert_eq!(ended.body["status"], "Succeeded", "{ended:?}");
}
