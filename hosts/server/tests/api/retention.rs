use crate::harness::{Running, asleep, definition};
use crate::mailbox::eventually;
use reqwest::Method;
use serde_json::{Value, json};
use starbridge_flow::time::{Millis, Timestamp};

async fn names(server: &Running) -> Vec<String> {
    let list = server.get("/v1/executions?limit=1000").await;
    let items = list.body["items"].as_array().unwrap();
    let mut names: Vec<String> = items
        .iter()
        .map(|item| item["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

async fn begin(server: &Running, flow: &str, name: &str) -> Value {
    let start = json!({"name": name, "labels": {"of": name}});
    let began = server.post(&format!("/v1/flows/{flow}/executions?wait=2"), start).await;
    assert_eq!(began.status, 201, "{began:?}");
    began.body
}

/// A time after everything that has ended so far.
async fn a_moment_later(server: &Running) -> Timestamp {
    let now = server.node.now();
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    now.plus(Millis(10))
}

/// A child that retention deleted while its parent still ran does not count as undone.
#[tokio::test]
async fn child_that_was_deleted_is_a_failed_undo() {
    let server = Running::start().await;
    server.flow("child", json!([{"type": "pass", "name": "p"}])).await;
    let call = json!({"type": "task", "name": "trip", "resourceArn": "flow:child", "pattern": "sync", "rollback": {"child": true}});
    let wait = json!({"type": "wait", "name": "wait", "duration": 3600});
    server.flow("parent", json!([call, wait])).await;
    let start = json!({"name": "p"});
    let parent = server.post("/v1/flows/parent/executions", start).await.body["id"].clone();
    let parent = format!("/v1/executions/{}", parent.as_str().unwrap());
    eventually("the child ends", async || {
        let list = server.get("/v1/executions?flow=child&status=Succeeded").await;
        list.body["items"].as_array()?.first().cloned()
    })
    .await;
    let before = a_moment_later(&server).await;
    assert_eq!(server.node.clear_before(before).await.unwrap(), 1);
    assert_eq!(
        server
            .post(&format!("{parent}/stop"), json!({"rollback": true}))
            .await
            .status,
        200
    );
    let ended = server.get(&format!("{parent}?wait=20")).await.body;
    assert_eq!(ended["status"], "RollbackFailed", "{ended}");
    let failed = ended["rollback"].to_string();
    assert!(
        failed.contains("trip") && failed.contains("was deleted before it was undone"),
        "{ended}"
    );
    // Only an operator can know which effects remain.
    assert_eq!(server.post(&format!("{parent}/skip"), json!({})).await.status, 200);
    let skipped = server.get(&format!("{parent}?wait=20")).await.body;
    assert_eq!(skipped["status"], "Stopped", "{skipped}");
}

#[tokio::test]
async fn retention_deletes_and_frees_the_name() {
    let server = Running::start().await;
    server.flow("short", json!([{"type": "pass", "name": "p"}])).await;
    server.flow("long", asleep()).await;
    server
        .put("/v1/flows/long", definition(json!([{"type": "pass", "name": "other"}])))
        .await;
    let runs = json!({"name": "runs", "version": 1});
    assert_eq!(server.post("/v1/flows/long/executions", runs).await.status, 201);
    let mut old = Vec::new();
    for number in 0..300 {
        old.push(begin(&server, "short", &format!("old{number:03}")).await);
    }
    let many: Vec<Value> = (0..1_000).map(|_| json!({"flow": "short"})).collect();
    server.post("/v1/executions/batch", json!(many)).await;
    eventually("short ones that have ended", async || {
        let list = server.get("/v1/executions?flow=short&status=Running&limit=1").await;
        list.body["items"][0].is_null().then_some(())
    })
    .await;
    let before = a_moment_later(&server).await;
    begin(&server, "short", "young").await;
    // A few at a time.
    let mut together = Vec::new();
    loop {
        match server.node.clear_before(before).await.unwrap() {
            0 => break,
            cleared => together.push(cleared),
        }
    }
    assert_eq!(
        (together.len(), together.iter().sum::<usize>()),
        (2, 1_300),
        "{together:?}"
    );
    assert_eq!(names(&server).await, ["runs", "young"]);
    for gone in [&old[0], &old[199]] {
        let path = format!("/v1/executions/{}", gone["id"].as_str().unwrap());
        for part in ["", "/history", "/state", "/steps"] {
            assert_eq!(
                server.get(&format!("{path}{part}")).await.code(),
                (404, "NoSuchExecution"),
                "{part}"
            );
        }
        for verb in ["stop", "redrive"] {
            assert_eq!(
                server.post(&format!("{path}/{verb}"), json!({})).await.code(),
                (404, "NoSuchExecution")
            );
        }
        let fork = server.post(&format!("{path}/fork"), json!({"event": 1})).await;
        assert_eq!(fork.code(), (404, "NoSuchExecution"));
    }
    assert_eq!(
        server.get("/v1/executions?label=of:old000").await.body["items"],
        json!([])
    );
    let again = begin(&server, "short", "old000").await;
    assert_ne!(again["id"], old[0]["id"]);
    let runs = server.get("/v1/flows/long/executions/runs").await;
    assert_eq!(runs.body["status"], "Running");
    let path = format!("/v1/executions/{}", runs.body["id"].as_str().unwrap());
    assert_eq!(
        server.get(&format!("{path}/state")).await.body["steps"][0]["step"],
        "sleep"
    );
    let stopped = server.post(&format!("{path}/stop"), json!({})).await;
    assert_eq!(stopped.body["status"], "Stopped", "{stopped:?}");
}

#[tokio::test]
async fn retention_runs_by_itself() {
    let server = Running::start().await;
    server.flow("short", json!([{"type": "pass", "name": "p"}])).await;
    begin(&server, "short", "e").await;
    a_moment_later(&server).await;
    let tidying = tokio::spawn(server.node.clone().clear_periodically(0));
    eventually("an empty list", async || names(&server).await.is_empty().then_some(())).await;
    tidying.abort();
}

#[tokio::test]
async fn what_has_ended_is_cleared_as_fast_as_it_comes() {
    let server = Running::start().await;
    server.flow("short", json!([{"type": "pass", "name": "p"}])).await;
    let batch: Vec<Value> = (0..1_000).map(|_| json!({"flow": "short"})).collect();
    for _ in 0..5 {
        server.post("/v1/executions/batch", json!(batch)).await;
    }
    eventually("executions that have ended", async || {
        let list = server.get("/v1/executions?status=Running&limit=1").await;
        list.body["items"][0].is_null().then_some(())
    })
    .await;
    a_moment_later(&server).await;
    let begun = std::time::Instant::now();
    let tidying = tokio::spawn(server.node.clone().clear_periodically(0));
    eventually("an empty list", async || names(&server).await.is_empty().then_some(())).await;
    tidying.abort();
    // At 64 each 50 ms it would take four seconds.
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn retention_of_a_child_leaves_its_parent() {
    let server = Running::start().await;
    server.flow("child", json!([{"type": "pass", "name": "p"}])).await;
    let steps = json!([{"type": "task", "name": "call", "resourceArn": "flow:child", "pattern": "sync"},
        {"type": "wait", "name": "w", "duration": 1}]);
    server.flow("parent", steps).await;
    let began = server.post("/v1/flows/parent/executions", json!({"name": "p"})).await;
    let ended = async || {
        let list = server.get("/v1/executions?flow=child&status=Succeeded").await;
        list.body["items"][0].is_object().then_some(())
    };
    eventually("a child that has ended", ended).await;
    let before = a_moment_later(&server).await;
    assert_eq!(server.node.clear_before(before).await, Ok(1));
    let path = format!("/v1/executions/{}?wait=10", began.body["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.body["status"], "Succeeded");
}

#[tokio::test]
async fn hidden_flow_keeps_its_definition_for_what_runs() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let began = server.post("/v1/flows/f/executions", json!({})).await;
    assert_eq!(server.ask(Method::DELETE, "/v1/flows/f", None).await.status, 204);
    let before = a_moment_later(&server).await;
    assert_eq!(server.node.clear_before(before).await, Ok(0));
    let path = format!("/v1/executions/{}", began.body["id"].as_str().unwrap());
    let state = server.get(&format!("{path}/state")).await;
    assert_eq!((state.status, &state.body["steps"][0]["step"]), (200, &json!("sleep")));
    assert_eq!(server.get("/v1/flows/f?version=1").await.status, 200);
    assert_eq!(
        server.post(&format!("{path}/stop"), json!({})).await.body["status"],
        "Stopped"
    );
}
