//! The order of executions that wait and that run.

use crate::harness::{Answer, Running, asleep, definition};
use serde_json::{Value, json};
use std::time::Duration;

async fn started(server: &Running, flow: &str, start: Value) -> String {
    let started = server.post(&format!("/v1/flows/{flow}/executions"), start).await;
    assert_eq!(started.status, 201, "{started:?}");
    started.body["id"].as_str().unwrap().to_owned()
}

async fn order(server: &Running, id: &str, body: Value) -> Answer {
    server.post(&format!("/v1/executions/{id}/order"), body).await
}

/// The execution, as soon as it has this status.
async fn becomes(server: &Running, id: &str, status: &str) -> Value {
    let mut last = Value::Null;
    for _ in 0..500 {
        last = server.get(&format!("/v1/executions/{id}")).await.body;
        if last["status"] == status {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} is not {status}: {last}");
}

/// The execution, as soon as its place is this.
async fn stands_at(server: &Running, id: &str, position: u64) {
    let mut last = Value::Null;
    for _ in 0..500 {
        last = server.get(&format!("/v1/executions/{id}")).await.body;
        if last["waitingFor"]["position"] == position {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} is not number {position}: {last}");
}

async fn limited() -> Running {
    let server = Running::start().await;
    let mut flow = definition(asleep());
    flow["concurrency"] = json!([{"key": "one", "limit": 1}]);
    assert_eq!(server.put("/v1/flows/f", flow).await.status, 201);
    server
}

#[tokio::test]
async fn one_that_waits_in_a_line_goes_before_others() {
    let server = limited().await;
    let first = started(&server, "f", json!({})).await;
    becomes(&server, &first, "Running").await;
    let second = started(&server, "f", json!({})).await;
    stands_at(&server, &second, 1).await;
    let third = started(&server, "f", json!({"orderTime": 5_000_000_000_000_i64})).await;
    stands_at(&server, &third, 2).await;
    let changed = order(&server, &third, json!({"priority": 9})).await;
    assert_eq!(
        (changed.status, &changed.body["priority"]),
        (200, &json!(9)),
        "{changed:?}"
    );
    stands_at(&server, &third, 1).await;
    stands_at(&server, &second, 2).await;
    // Another time works as well.
    assert_eq!(
        order(&server, &second, json!({"priority": 9, "orderTime": 1}))
            .await
            .status,
        200
    );
    stands_at(&server, &second, 1).await;
    let stopped = server.post(&format!("/v1/executions/{first}/stop"), json!({})).await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
    becomes(&server, &second, "Running").await;
    let history = server.get(&format!("/v1/executions/{second}/history")).await.body;
    let begun = &history["items"][0]["detail"];
    assert_eq!(
        (&begun["priority"], &begun["orderTime"]),
        (&json!(9), &json!(1)),
        "{begun}"
    );
    let audit = server.get("/v1/audit?action=order").await.body;
    let items = audit["items"].as_array().unwrap();
    assert_eq!(
        (items.len(), &items[1]["detail"]),
        (2, &json!({"priority": 9})),
        "{audit}"
    );
}

#[tokio::test]
pub async fn one_that_waits_for_a_time_or_for_others_begins_when_asked() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let delayed = started(&server, "f", json!({"delaySeconds": 3600})).await;
    becomes(&server, &delayed, "Delayed").await;
    assert_eq!(order(&server, &delayed, json!({"startNow": true})).await.status, 200);
    becomes(&server, &delayed, "Running").await;
    let blocked = started(&server, "f", json!({"after": ["f/never"]})).await;
    becomes(&server, &blocked, "Blocked").await;
    assert_eq!(order(&server, &blocked, json!({"after": []})).await.status, 200);
    becomes(&server, &blocked, "Running").await;
    let both = started(&server, "f", json!({"after": ["f/never"], "delaySeconds": 3600})).await;
    assert_eq!(order(&server, &both, json!({"after": []})).await.status, 200);
    assert_eq!(becomes(&server, &both, "Delayed").await["status"], "Delayed");
    assert_eq!(order(&server, &both, json!({"startNow": true})).await.status, 200);
    becomes(&server, &both, "Running").await;
}

#[tokio::test]
async fn tasks_that_nobody_holds_go_in_the_new_order() {
    let server = Running::start().await;
    let task = json!([{"type": "task", "name": "t", "resourceArn": "queue:jobs", "timeoutSeconds": 60}]);
    server.flow("f", task).await;
    let hold = json!({"worker": "w", "limit": 1, "waitSeconds": 20});
    let held = started(&server, "f", json!({"name": "held"})).await;
    let taken = server.post("/v1/queues/jobs/hold", hold.clone()).await.body;
    assert_eq!(taken["tasks"].as_array().unwrap().len(), 1, "{taken}");
    let early = started(&server, "f", json!({"name": "early"})).await;
    let late = started(&server, "f", json!({"name": "late"})).await;
    for id in [&late, &held] {
        let changed = order(&server, id, json!({"priority": 9, "orderTime": "2001-09-09T01:46:40Z"})).await;
        assert_eq!(changed.status, 200, "{changed:?}");
    }
    let history = server.get(&format!("/v1/executions/{late}/history")).await.body;
    let last = history["items"].as_array().unwrap().last().unwrap();
    assert_eq!(last["type"], "ExecutionReordered");
    let detail = json!({"priority": 9, "orderTime": 1_000_000_000_000_i64, "by": "local"});
    assert_eq!(last["detail"], detail);
    let record = server.get(&format!("/v1/executions/{late}")).await.body;
    assert_eq!(
        (&record["priority"], &record["orderTime"]),
        (&json!(9), &detail["orderTime"])
    );
    // The task that a worker holds is not given out twice, and the other two come in the new order.
    for expected in [&late, &early] {
        let taken = server.post("/v1/queues/jobs/hold", hold.clone()).await.body;
        assert_eq!(taken["tasks"][0]["execution"], json!(expected), "{taken}");
    }
    let queue = server.get("/v1/queues/jobs").await.body;
    assert_eq!((&queue["waiting"], &queue["held"]), (&json!(0), &json!(3)), "{queue}");
}

#[tokio::test]
pub async fn what_means_nothing_is_refused() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let id = started(&server, "f", json!({})).await;
    for (body, told) in [
        (json!({}), "nothing is to change"),
        (json!({"startNow": false}), "nothing is to change"),
        (json!({"priority": 10}), "from 0 to 9"),
        (json!({"priority": "high"}), "`priority`"),
        (json!({"orderTime": "soon"}), "`orderTime`"),
        (json!({"orderTime": 1.5}), "`orderTime`"),
        (json!({"after": ["f/x"]}), "`after` must be an empty list"),
        (json!({"why": 1}), "why"),
    ] {
        let refused = order(&server, &id, body.clone()).await;
        assert_eq!(refused.code(), (400, "BadRequest"), "{body}");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(told), "{body}: {detail}");
    }
    for body in [json!({"startNow": true}), json!({"after": [], "priority": 3})] {
        assert_eq!(order(&server, &id, body).await.code(), (409, "AlreadyBegun"));
    }
    assert_eq!(
        order(&server, "none", json!({"priority": 1})).await.code(),
        (404, "NoSuchExecution")
    );
    let history = server.get(&format!("/v1/executions/{id}/history")).await.body;
    let items = history["items"].as_array().unwrap();
    assert!(
        items.iter().all(|event| event["type"] != "ExecutionReordered"),
        "{history}"
    );
    assert_eq!(
        server
            .post(&format!("/v1/executions/{id}/stop"), json!({}))
            .await
            .status,
        200
    );
    assert_eq!(
        order(&server, &id, json!({"priority": 1})).await.code(),
        (409, "NotRunning")
    );
}
