//! The steps of an execution in the API: the members of each are correct.

use crate::harness::{Running, refusing};
use serde_json::{Value, json};

async fn steps(server: &Running, id: &str, query: &str) -> Value {
    let steps = server.get(&format!("/v1/executions/{id}/steps{query}")).await;
    assert_eq!(steps.status, 200, "{steps:?}");
    steps.body
}

fn rows(steps: &Value) -> &Vec<Value> {
    steps["items"].as_array().unwrap()
}

/// Name and status of each row.
fn standing(steps: &Value) -> Vec<(&str, &str)> {
    rows(steps)
        .iter()
        .map(|step| (step["step"].as_str().unwrap(), step["status"].as_str().unwrap()))
        .collect()
}

async fn start(server: &Running, flow: &str) -> String {
    let started = server.post(&format!("/v1/flows/{flow}/executions"), json!({})).await;
    started.body["id"].as_str().unwrap().to_owned()
}

fn naps() -> Value {
    json!([{"type": "parallel", "name": "both", "branches": [
        {"name": "one", "steps": [{"type": "wait", "name": "nap", "duration": 3600}]},
        {"name": "two", "steps": [{"type": "task", "name": "call", "resourceArn": "queue:nobody"}]},
    ]}])
}

#[tokio::test]
async fn steps_of_an_ended_execution_never_run() {
    let server = Running::start().await;
    server.flow("f", naps()).await;
    let id = start(&server, "f").await;
    let running = steps(&server, &id, "").await;
    assert_eq!(
        standing(&running),
        [("both", "running"), ("nap", "waiting"), ("call", "running")]
    );
    server.post(&format!("/v1/executions/{id}/stop"), json!({})).await;
    let stopped = steps(&server, &id, "").await;
    assert_eq!(
        standing(&stopped),
        [("both", "cancelled"), ("nap", "cancelled"), ("call", "cancelled")]
    );
    for row in rows(&stopped) {
        assert!(row["endedTime"].is_string() && row["waitsUntil"].is_null(), "{row}");
        assert!(row.get("waitingFor").is_none(), "{row}");
    }
    assert_eq!(
        server
            .post(&format!("/v1/executions/{id}/redrive"), json!({}))
            .await
            .status,
        200
    );
    let again = steps(&server, &id, "").await;
    let runs: Vec<u64> = rows(&again).iter().map(|row| row["run"].as_u64().unwrap()).collect();
    assert_eq!(
        standing(&again),
        [
            ("both", "running"),
            ("nap", "cancelled"),
            ("call", "cancelled"),
            ("nap", "waiting"),
            ("call", "running"),
        ]
    );
    assert_eq!(runs, [1, 1, 1, 2, 2]);
}

#[tokio::test]
async fn what_a_failed_branch_leaves_behind_is_given_up() {
    let server = Running::start().await;
    let both = json!([
        {"type": "parallel", "name": "both", "catch": [{"errors": ["FnF.ALL"], "goto": "after"}], "branches": [
            {"name": "one", "steps": [{"type": "wait", "name": "nap", "duration": 3600}]},
            {"name": "two", "steps": [{"type": "fail", "name": "no", "error": "No", "cause": "no"}]},
        ]},
        {"type": "wait", "name": "after", "duration": 3600},
    ]);
    server.flow("f", both).await;
    let id = start(&server, "f").await;
    assert_eq!(
        standing(&steps(&server, &id, "").await),
        [
            ("both", "caught"),
            ("nap", "cancelled"),
            ("no", "failed"),
            ("after", "waiting")
        ]
    );
}

#[tokio::test]
async fn steps_come_in_pages_and_say_that_there_are_more() {
    let server = Running::start().await;
    let pass = |name: &str| json!({"type": "pass", "name": name});
    server.flow("f", json!([pass("a"), pass("b"), pass("c")])).await;
    let id = start(&server, "f").await;
    for status in ["", "&status=succeeded"] {
        let first = steps(&server, &id, &format!("?limit=2{status}")).await;
        assert_eq!(standing(&first), [("a", "succeeded"), ("b", "succeeded")]);
        let next = first["next"].as_u64().unwrap();
        let second = steps(&server, &id, &format!("?limit=2&cursor={next}{status}")).await;
        assert_eq!(standing(&second), [("c", "succeeded")]);
        assert_eq!(second["next"], Value::Null);
    }
    assert_eq!(steps(&server, &id, "?limit=3").await["next"], Value::Null);
}

#[tokio::test]
async fn steps_say_what_they_wait_for() {
    let server = Running::start().await;
    server.flow("f", naps()).await;
    let id = start(&server, "f").await;
    let call = rows(&steps(&server, &id, "").await)[2]["waitingFor"].clone();
    assert_eq!(call["reason"], "queue");
    assert!(
        call["text"].as_str().unwrap().ends_with("1 waiting, 0 held, no worker"),
        "{call}"
    );
    assert!(call["since"].is_string());
    server.put("/v1/queues/nobody", json!({"paused": true})).await;
    let paused = rows(&steps(&server, &id, "").await)[2]["waitingFor"].clone();
    assert_eq!(paused["text"], "a worker of the queue `nobody`: it is paused");
    let child = json!([{"type": "task", "name": "child", "resourceArn": "flow:f", "pattern": "sync"}]);
    server.flow("parent", child).await;
    let parent = start(&server, "parent").await;
    let mut waiting = Value::Null;
    for _ in 0..500 {
        waiting = rows(&steps(&server, &parent, "").await)[0]["waitingFor"].clone();
        if waiting["reason"] == "child" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(waiting["reason"], "child", "{waiting}");
    assert!(waiting["execution"].is_string());
}

#[tokio::test]
async fn undoing_has_attempts_and_an_error_of_its_own() {
    let server = Running::start().await;
    let closed = refusing();
    let undo = format!("http://{}/undo", closed.local_addr().unwrap());
    let saga = json!([
        {"type": "task", "name": "pay", "resourceArn": "queue:pay", "rollback": {"resourceArn": undo}},
        {"type": "fail", "name": "no", "error": "Not.Today", "cause": "rain"},
    ]);
    server.flow("f", saga).await;
    let id = start(&server, "f").await;
    let held = server.post("/v1/queues/pay/hold", json!({"worker": "w"})).await;
    let token = held.body["tasks"][0]["token"].as_str().unwrap().to_owned();
    server
        .post(&format!("/v1/callbacks/{token}/succeed"), json!({"output": {}}))
        .await;
    let ended = server.get(&format!("/v1/executions/{id}?wait=20")).await.body;
    assert_eq!(ended["status"], "RollbackFailed", "{ended}");
    assert_eq!((&ended["error"], &ended["step"]), (&json!("Not.Today"), &json!("no")));
    let rollback = &ended["rollback"];
    assert_eq!(
        (&rollback["step"], &rollback["left"]),
        (&json!("pay"), &json!(["pay"])),
        "{ended}"
    );
    assert!(rollback["error"].as_str().unwrap().starts_with("HTTP."), "{ended}");
    assert!(!rollback["cause"].as_str().unwrap().is_empty());
    let listed = server.get("/v1/executions?status=RollbackFailed").await.body;
    assert_eq!(listed["items"][0]["rollback"], *rollback);
    let steps = steps(&server, &id, "").await;
    let pay = &rows(&steps)[0];
    assert_eq!(
        (&pay["status"], &pay["attempts"]),
        (&json!("rollbackFailed"), &json!(1))
    );
    assert_eq!(pay["error"], Value::Null, "the step itself did not fail: {pay}");
    assert_eq!(
        (&pay["rollback"]["status"], &pay["rollback"]["attempts"]),
        (&json!("failed"), &json!(1))
    );
    assert_eq!(pay["rollback"]["error"], rollback["error"]);
    // A redrive tries the undo once more, and what is told is told of all its runs.
    let redriven = server.post(&format!("/v1/executions/{id}/redrive"), json!({})).await;
    assert_eq!(redriven.status, 200, "{}", redriven.body);
    let again = server.get(&format!("/v1/executions/{id}?wait=20")).await.body;
    assert_eq!(again["status"], "RollbackFailed", "{again}");
    let pay = rows(&self::steps(&server, &id, "").await)[0].clone();
    assert_eq!((&pay["attempts"], &pay["rollback"]["attempts"]), (&json!(1), &json!(2)));
    let event = pay["event"].as_u64().unwrap();
    let visit = server.get(&format!("/v1/executions/{id}/steps/{event}")).await.body;
    let tries = visit["tries"].as_array().unwrap();
    let numbers: Vec<_> = tries
        .iter()
        .map(|tried| (tried["attempt"].as_u64(), tried["rollback"] == true))
        .collect();
    assert_eq!(numbers, [(Some(1), false), (Some(1), true), (Some(2), true)], "{visit}");
}

#[tokio::test]
async fn a_stopped_execution_says_where_it_stood() {
    let server = Running::start().await;
    server.flow("f", naps()).await;
    let id = start(&server, "f").await;
    let stopped = server.post(&format!("/v1/executions/{id}/stop"), json!({})).await;
    assert_eq!(
        (&stopped.body["status"], &stopped.body["step"]),
        (&json!("Stopped"), &json!("nap"))
    );
}

#[tokio::test]
async fn a_page_of_steps_of_one_status_keeps_no_more_rows_than_a_page_of_all() {
    let server = Running::start().await;
    let each = json!([{"type": "foreach", "name": "all", "iterationMapping": {"collection": "$.items", "item": "item"}, "steps": [{"type": "pass", "name": "p"}]}]);
    server.flow("f", each).await;
    let items: Vec<u32> = (0..10_100).collect();
    let body = json!({"input": {"items": items}});
    let ended = server.post("/v1/flows/f/executions?wait=60", body).await.body;
    assert_eq!(ended["status"], "Succeeded");
    let id = ended["id"].as_str().unwrap();
    // The whole history is folded once, so one page knows that there is none.
    let first = steps(&server, id, "?status=rolledBack&limit=10").await;
    assert_eq!((rows(&first).len(), first["next"].is_null()), (0, true), "{first}");
    let mut seen = 0;
    let mut cursor = json!(0);
    while !cursor.is_null() {
        let page = steps(&server, id, &format!("?status=succeeded&limit=5000&cursor={cursor}")).await;
        assert!(rows(&page).iter().all(|row| row["status"] == "succeeded"));
        seen += rows(&page).len();
        cursor = page["next"].clone();
    }
    assert_eq!(seen, 10_101);
}

#[tokio::test]
async fn a_task_that_a_worker_has_names_the_worker() {
    let server = Running::start().await;
    server.flow("f", naps()).await;
    let id = start(&server, "f").await;
    let held = server.post("/v1/queues/nobody/hold", json!({"worker": "w-1"})).await;
    assert_eq!(held.body["tasks"].as_array().map(Vec::len), Some(1), "{held:?}");
    let call = rows(&steps(&server, &id, "").await)[2]["waitingFor"].clone();
    let text = call["text"].as_str().unwrap();
    assert!(
        text.starts_with("a worker of the queue `nobody`: `w-1` has it since 20"),
        "{call}"
    );
}
