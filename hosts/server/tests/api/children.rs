//! Child flows without an end.

use crate::harness::{Running, set_aside};
use serde_json::json;
use starbridge_node::node::NodeSettings;
use starbridge_node::stores::in_memory;
use starbridge_ports::{Query, Store};
use starbridge_server::Access;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A flow that calls itself and waits, without end.
fn calls_itself() -> serde_json::Value {
    json!([{"type": "task", "name": "t", "resourceArn": "flow:$self", "pattern": "sync"}])
}

fn count(store: &Arc<dyn Store>) -> u64 {
    store.counts().unwrap().iter().map(|(_, count)| count).sum()
}

async fn on(store: &Arc<dyn Store>, change: impl FnOnce(&mut NodeSettings)) -> Running {
    let kept = store.clone();
    Running::with(Access::default(), |settings| {
        settings.store = kept;
        change(settings);
    })
    .await
}

/// The parent of a flow `child`, with this token for its end.
fn tells(token: &str, pattern: &str) -> serde_json::Value {
    json!([{
        "type": "task", "name": "call", "action": "fnf:StartExecution", "pattern": pattern,
        "serviceParams": {"FlowName": "child", "Input": "$.input", "CallbackFnFTaskToken": token},
        "inputMappings": [
            {"target": "token", "source": "$context.task.token"},
            {"target": "input", "source": "$input"},
        ],
    }])
}

#[tokio::test]
async fn end_of_a_child_is_reported_to_a_token() {
    let server = Running::start().await;
    let child = json!([{
        "type": "choice", "name": "c",
        "choices": [{"condition": "$.bad == true", "steps": [{"type": "fail", "name": "f", "error": "Child.Bad", "cause": "why"}]}],
        "default": {"steps": [{"type": "pass", "name": "p", "outputMappings": [{"target": "n", "source": "$input.n"}]}]},
    }]);
    server.flow("child", child).await;
    server.flow("parent", tells("$.token", "waitForCallback")).await;
    let path = "/v1/flows/parent/executions?wait=20";
    let well = server.post(path, json!({"input": {"n": 7}})).await.body;
    assert_eq!(
        (&well["status"], &well["output"]),
        (&json!("Succeeded"), &json!({"n": 7})),
        "{well}"
    );
    let bad = server.post(path, json!({"input": {"bad": true}})).await.body;
    assert_eq!(
        (&bad["error"], &bad["cause"]),
        (&json!("Child.Bad"), &json!("why")),
        "{bad}"
    );
    let children = server.get("/v1/executions?flow=child").await.body;
    let id = children["items"][0]["id"].as_str().unwrap();
    let history = server.get(&format!("/v1/executions/{id}/history")).await.body;
    let started = &history["items"][0]["detail"];
    assert_eq!(started["reportTo"]["execution"], bad["id"], "{started}");
}

#[tokio::test]
async fn what_is_no_token_for_the_end_of_a_child_is_refused() {
    let server = Running::start().await;
    server.flow("child", json!([{"type": "pass", "name": "p"}])).await;
    for (token, pattern) in [
        ("$.input.fake", "waitForCallback"),
        ("task-token:x/4", "waitForCallback"),
    ] {
        server.flow("parent", tells(token, pattern)).await;
        let start = json!({"input": {"fake": "task-token:x/4"}});
        let ended = server.post("/v1/flows/parent/executions?wait=10", start).await.body;
        let told = (&ended["status"], &ended["error"]);
        assert_eq!(
            told,
            (&json!("Failed"), &json!("FnF.InvalidInput")),
            "{token} {pattern} {ended}"
        );
    }
    assert_eq!(server.get("/v1/executions?flow=child").await.body["items"], json!([]));
}

#[tokio::test]
async fn second_child_with_a_key_is_the_first() {
    let server = Running::start().await;
    server.flow("child", json!([{"type": "pass", "name": "p"}])).await;
    let call = |name: &str, pattern: &str| {
        json!({
            "type": "task", "name": name, "resourceArn": "flow:child", "pattern": pattern,
            "serviceParams": {"OnceKey": "$.key"},
            "outputMappings": [{"target": name, "source": "$local"}],
        })
    };
    server
        .flow(
            "parent",
            json!([call("one", "requestResponse"), call("two", "requestResponse")]),
        )
        .await;
    let path = "/v1/flows/parent/executions?wait=20";
    let ended = server.post(path, json!({"input": {"key": "k"}})).await.body;
    assert_eq!(ended["status"], "Succeeded", "{ended}");
    let first = &ended["output"]["one"];
    assert_eq!(first, &ended["output"]["two"], "{ended}");
    let children = server.get("/v1/executions?flow=child").await.body;
    assert_eq!(children["items"].as_array().unwrap().len(), 1, "{children}");
    assert_eq!(children["items"][0]["id"], first["executionId"]);
    // A waiting parent would wait forever, because that execution reports its end to another call.
    server.flow("waits", json!([call("one", "sync")])).await;
    let path = "/v1/flows/waits/executions?wait=20";
    let refused = server.post(path, json!({"input": {"key": "k"}})).await.body;
    assert_eq!(refused["error"], "fnf.ExecutionAlreadyExists", "{refused}");
    assert!(refused["cause"].as_str().unwrap().contains("`k`"), "{refused}");
    let own = server.post(path, json!({"input": {"key": "other"}})).await.body;
    assert_eq!(own["status"], "Succeeded", "{own}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_depth_is_limited() {
    let store = in_memory();
    let server = on(&store, |_| {}).await;
    server.flow("f", calls_itself()).await;
    let ended = server.post("/v1/flows/f/executions?wait=60", json!({})).await;
    assert_eq!(ended.body["status"], "Failed", "{ended:?}");
    assert_eq!(ended.body["error"], "FnF.LimitExceeded", "{ended:?}");
    assert_eq!(count(&store), 101);
    let all = store.list(&Query {
        limit: 1_000,
        ..Query::default()
    });
    let root = ended.body["id"].as_str().unwrap();
    for listed in all.unwrap().items {
        let (id, record) = (listed.id, listed.record);
        assert_eq!(record.root.as_deref(), (id != *root).then_some(root), "{id}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drain_starts_no_more_children() {
    let store = in_memory();
    let endless = |settings: &mut NodeSettings| settings.limits.child_depth = 1_000_000;
    let server = on(&store, endless).await;
    server.flow("f", calls_itself()).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    assert_eq!(begun.status, 201, "{begun:?}");
    while count(&store) < 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let asked = Instant::now();
    let drained = tokio::time::timeout(Duration::from_secs(60), server.node.drain(Duration::from_secs(60))).await;
    assert_eq!(drained, Ok(Ok(())), "no end came after {:?}", asked.elapsed());
    assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
    let left = count(&store);
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(count(&store), left);
    // Children that were not begun go on at the next start.
    let next = on(&store, endless).await;
    while count(&store) < left + 20 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    next.node.drain(Duration::from_secs(60)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_is_answered_while_its_execution_computes() {
    let server = Running::start().await;
    let again = json!({"type": "choice", "name": "again", "choices": [{"condition": "true", "goto": "a"}]});
    server.flow("f", json!([{"type": "pass", "name": "a"}, again])).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let id = begun.body["id"].as_str().unwrap();
    for other in 0..20 {
        server
            .flow(&format!("g{other}"), json!([{"type": "pass", "name": "p"}]))
            .await;
        let path = format!("/v1/flows/g{other}/executions?wait=30");
        assert_eq!(server.post(&path, json!({})).await.body["status"], "Succeeded");
    }
    let stopped = server.post(&format!("/v1/executions/{id}/stop"), json!({})).await;
    assert!(stopped.status < 300, "{stopped:?}");
    assert_eq!(
        server.get(&format!("/v1/executions/{id}")).await.body["status"],
        "Stopped"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn set_aside_execution_is_listed_and_may_be_resumed() {
    let store = in_memory();
    let server = on(&store, |_| {}).await;
    server.flow("f", crate::harness::asleep()).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let id = begun.body["id"].as_str().unwrap().to_owned();
    server.node.drain(Duration::from_secs(5)).await.unwrap();
    set_aside(&store, &id);
    let server = on(&store, |_| {}).await;
    let waits = json!({"reason": "broken", "text": "it panicked", "since": "1970-01-01T00:00:00.000Z",
        "act": format!("starbridge redrive {id}")});
    let one = format!("/v1/executions/{id}");
    assert_eq!(server.get(&one).await.body["waitingFor"], waits);
    let listed = server.get("/v1/executions?reason=broken").await;
    assert_eq!(listed.body["items"][0]["waitingFor"], waits);
    assert_eq!(server.get("/v1/executions?reason=call").await.status, 400);
    let metrics = server.get("/metrics").await.body;
    assert!(
        metrics.as_str().unwrap().contains("starbridge_executions_broken 1"),
        "{metrics}"
    );
    let forked = server.post(&format!("{one}/fork"), json!({"event": 1})).await;
    assert_eq!(forked.status, 201, "{forked:?}");
    let redriven = server.post(&format!("{one}/redrive"), json!({})).await;
    assert_eq!(redriven.status, 200, "{redriven:?}");
    assert_ne!(redriven.body["waitingFor"]["reason"], "broken", "{redriven:?}");
    let stopped = server.post(&format!("{one}/stop"), json!({})).await;
    assert_eq!(stopped.body["status"], "Stopped", "{stopped:?}");
}

/// A child whose default name is taken is started all the same: knowing the id of an execution must
/// not allow anyone to block its children.
#[tokio::test]
async fn the_name_of_a_child_that_is_given_none_can_not_be_taken() {
    let server = Running::start().await;
    server.flow("child", json!([{"type": "pass", "name": "p"}])).await;
    let call = |parameters: serde_json::Value| {
        json!([
            {"type": "wait", "name": "w", "duration": 1},
            {"type": "task", "name": "call", "resourceArn": "flow:child", "pattern": "sync", "serviceParams": parameters},
        ])
    };
    server.flow("parent", call(json!({}))).await;
    let named = call(json!({"ExecutionName": "mine", "Input": "$"}));
    server.flow("names", named).await;
    let first = server
        .post("/v1/flows/parent/executions?wait=10", json!({"name": "first"}))
        .await;
    assert_eq!(first.body["status"], "Succeeded", "{first:?}");
    let children = server.get("/v1/executions?flow=child").await.body;
    let usual = children["items"][0]["name"].as_str().unwrap();
    let taken = usual.replace("first", "second");
    for name in [taken.as_str(), "mine"] {
        let somebody = server
            .post(
                "/v1/flows/child/executions",
                json!({"name": name, "input": {"by": "me"}}),
            )
            .await;
        assert_eq!(somebody.status, 201, "{somebody:?}");
    }
    let second = server
        .post("/v1/flows/parent/executions?wait=10", json!({"name": "second"}))
        .await;
    assert_eq!(second.body["status"], "Succeeded", "{second:?}");
    let id = second.body["id"].as_str().unwrap();
    let call = taken.rsplit('-').next().unwrap();
    let child = server.get(&format!("/v1/flows/child/executions/{id}.{call}")).await;
    assert_eq!(
        (child.status, &child.body["parent"]["execution"]),
        (200, &json!(id)),
        "{child:?}"
    );
    // A name that the flow gives is the flow's own responsibility.
    let refused = server.post("/v1/flows/names/executions?wait=10", json!({})).await;
    assert_eq!(refused.body["error"], "fnf.ExecutionAlreadyExists", "{refused:?}");
}
