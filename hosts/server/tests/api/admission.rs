//! What admission is told while an execution waits, and what it tells.

use crate::harness::{Running, asleep, definition};
use crate::keys::{becomes, patch, runs, start, stop, waits};
use crate::mailbox::eventually;
use crate::queues::hold_soon;
use reqwest::Method;
use serde_json::{Value, json};

async fn order(server: &Running, id: &str, body: Value) -> crate::harness::Answer {
    server.post(&format!("/v1/executions/{id}/order"), body).await
}

/// An execution of `task` that has failed, and one of `f` that failed because it waited for it.
async fn both_failed(server: &Running) -> (String, String) {
    let work = json!([{"type": "task", "name": "work", "resourceArn": "queue:jobs", "retry": []}]);
    server.flow("task", work.clone()).await;
    server.flow("f", work).await;
    let first = start(server, "task", "first").await;
    let after = json!({"after": ["task/first"]});
    let second = server.post("/v1/flows/f/executions", after).await.body;
    let second = second["id"].as_str().unwrap().to_owned();
    let task = hold_soon(server, "jobs").await;
    let path = format!("/v1/callbacks/{}/fail", task["token"].as_str().unwrap());
    assert_eq!(
        server.post(&path, json!({"error": "No", "cause": "no"})).await.status,
        204
    );
    becomes(server, &first, "Failed", &Value::Null).await;
    let failed = becomes(server, &second, "Failed", &Value::Null).await;
    assert_eq!(failed["error"], "FnF.DependencyFailed", "{failed}");
    (first, second)
}

async fn redrive(server: &Running, id: &str) {
    let redriven = server.post(&format!("/v1/executions/{id}/redrive"), json!({})).await;
    assert_eq!(redriven.status, 200, "{redriven:?}");
}

#[tokio::test]
async fn redrive_that_waits_changes_its_place_and_waits_for_nobody() {
    let server = Running::start().await;
    let (first, second) = both_failed(&server).await;
    redrive(&server, &first).await;
    redrive(&server, &second).await;
    let waiting = waits(&server, &second, "dependency").await;
    assert_eq!(waiting["act"], format!("starbridge order {second} --no-after"));
    let listed = server.get("/v1/executions?flow=f").await.body;
    assert_eq!(listed["items"][0]["waitingFor"]["reason"], "dependency", "{listed}");
    assert_eq!(
        order(&server, &second, json!({"startNow": true})).await.code(),
        (409, "AlreadyBegun")
    );
    let changed = order(&server, &second, json!({"priority": 9})).await;
    assert_eq!((changed.status, &changed.body["priority"]), (200, &json!(9)));
    assert_eq!(order(&server, &second, json!({"orderTime": 7})).await.status, 200);
    let changed = order(&server, &second, json!({"after": []})).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    let on = becomes(&server, &second, "Running", &json!("queue")).await;
    assert_eq!((&on["priority"], &on["orderTime"]), (&json!(9), &json!(7)), "{on}");
    let history = server.get(&format!("/v1/executions/{second}/history")).await.body;
    let events = history["items"].as_array().unwrap();
    let event = events.iter().find(|event| event["type"] == "ExecutionReordered");
    assert_eq!(
        event.unwrap()["detail"],
        json!({"priority": 9, "orderTime": 7, "by": "local"})
    );
    // Its task goes before that of the other one, which was there first.
    assert_eq!(hold_soon(&server, "jobs").await["execution"], json!(second));
    let audit = server.get("/v1/audit?action=order").await.body;
    assert_eq!(audit["items"].as_array().unwrap().len(), 3, "{audit}");
    // Withdrawn, a redrive has no place.
    becomes(&server, &first, "Running", &json!("queue")).await;
    stop(&server, &second).await;
    becomes(&server, &second, "Stopped", &Value::Null).await;
    assert_eq!(
        order(&server, &second, json!({"after": []})).await.code(),
        (409, "NotRunning")
    );
}

#[tokio::test]
async fn limit_of_a_shared_pool_is_changed_by_new_versions() {
    let server = Running::start().await;
    let flow = |limit: u64| {
        let mut flow = definition(asleep());
        flow["concurrency"] = json!([{"key": "$input.cluster", "limit": limit, "pool": "clusters"}]);
        flow
    };
    for name in ["one", "two"] {
        assert_eq!(server.put(&format!("/v1/flows/{name}"), flow(1)).await.status, 201);
    }
    let running = start(&server, "one", "a").await;
    runs(&server, &running).await;
    let waiting = start(&server, "two", "b").await;
    waits(&server, &waiting, "key").await;
    let refused = server.put("/v1/flows/one", flow(2)).await;
    assert_eq!(refused.code(), (422, "DifferentLimits"));
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(
        detail.contains("`--new-limits`") && detail.contains("`two`"),
        "{detail}"
    );
    let refused = server.post("/v1/flows/one/check", flow(2)).await;
    assert_eq!(refused.code(), (422, "DifferentLimits"));
    assert_eq!(server.put("/v1/flows/one?newLimits=true", flow(2)).await.status, 201);
    // The other flow has to follow, and the pool has the new limit with the next start.
    assert_eq!(server.put("/v1/flows/two", flow(2)).await.status, 201);
    let next = start(&server, "two", "c").await;
    runs(&server, &waiting).await;
    assert_eq!(waits(&server, &next, "key").await["limit"], 2);
    assert_eq!(
        server.put("/v1/flows/two", flow(1)).await.code(),
        (422, "DifferentLimits")
    );
    assert_eq!(
        server.put("/v1/flows/two?newLimits=perhaps", flow(1)).await.code(),
        (400, "BadRequest")
    );
}

/// A name of a deleted flow can only be waited for while that execution is there.
#[tokio::test]
async fn nobody_waits_for_a_flow_that_is_not_there() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    server.flow("gone", asleep()).await;
    let there = start(&server, "gone", "there").await;
    assert_eq!(server.ask(Method::DELETE, "/v1/flows/gone", None).await.status, 204);
    let path = "/v1/flows/f/executions";
    for name in ["gone/x", "none/x"] {
        let refused = server.post(path, json!({"after": [name]})).await;
        assert_eq!(refused.code(), (422, "UnknownDependency"), "{refused:?}");
    }
    let waits_for = server.post(path, json!({"after": ["gone/there"]})).await;
    assert_eq!(waits_for.status, 201, "{waits_for:?}");
    let id = waits_for.body["id"].as_str().unwrap();
    // Admission looks the name up once it is durable that somebody waits for it.
    eventually("its id", async || {
        let waiting = becomes(&server, id, "Blocked", &json!("dependency")).await;
        (waiting["waitingFor"]["executions"][0]["execution"] == json!(there)).then_some(())
    })
    .await;
    let call = json!({"type": "task", "name": "call", "resourceArn": "flow:f", "pattern": "sync",
        "serviceParams": {"After": ["none/x"]}, "retry": []});
    server.flow("parent", json!([call])).await;
    let failed = server.post("/v1/flows/parent/executions?wait=10", json!({})).await;
    assert_eq!(failed.body["error"], "FnF.InvalidInput", "{failed:?}");
    let cause = failed.body["cause"].as_str().unwrap();
    assert!(
        cause.contains("UnknownDependency") && cause.contains("there is no flow `none`"),
        "{cause}"
    );
}

/// The first event has the key of the flow, if the flow had a limit or a pause when the execution asked or began.
#[tokio::test]
async fn first_event_says_that_the_limit_of_its_flow_was_waited_for() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let waited = async |id: &str| {
        let history = server.get(&format!("/v1/executions/{id}/history")).await.body;
        history["items"][0]["detail"]["waited"]["keys"].clone()
    };
    let free = start(&server, "f", "free").await;
    runs(&server, &free).await;
    assert_eq!(waited(&free).await, Value::Null);
    patch(&server, "f", json!({"paused": true})).await;
    let paused = start(&server, "f", "paused").await;
    waits(&server, &paused, "flowPaused").await;
    patch(&server, "f", json!({"paused": false})).await;
    runs(&server, &paused).await;
    let own = json!([{"pool": "@flow", "key": "f"}]);
    assert_eq!(waited(&paused).await, own);
    patch(&server, "f", json!({"maxRunning": 2})).await;
    let limited = start(&server, "f", "limited").await;
    waits(&server, &limited, "flowLimit").await;
    stop(&server, &free).await;
    runs(&server, &limited).await;
    assert_eq!(waited(&limited).await, own);
}

#[tokio::test]
async fn counts_tell_tasks_that_workers_hold() {
    let server = Running::start().await;
    let work = json!([{"type": "task", "name": "work", "resourceArn": "queue:jobs"}]);
    server.flow("f", work).await;
    for name in ["a", "b", "c"] {
        let id = start(&server, "f", name).await;
        becomes(&server, &id, "Running", &json!("queue")).await;
    }
    // A count that took long is told again for a moment.
    let reasons = async |wanted: Value| {
        eventually("the counts", async || {
            let counts = server.get("/v1/executions/counts").await.body["reasons"].clone();
            (counts == wanted).then_some(())
        })
        .await;
    };
    reasons(json!({"queue": 3})).await;
    hold_soon(&server, "jobs").await;
    reasons(json!({"queue": 2, "worker": 1})).await;
    hold_soon(&server, "jobs").await;
    hold_soon(&server, "jobs").await;
    reasons(json!({"worker": 3})).await;
}
