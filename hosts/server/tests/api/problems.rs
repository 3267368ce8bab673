//! Rare problems.

use crate::harness::{Running, asleep};
use crate::held::Held;
use reqwest::Method;
use serde_json::json;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_node::node::{LeaseSettings, NodeSettings};
use starbridge_node::stores::in_memory;
use starbridge_ports::{
    Append, AuditEntry, Broken, ExecutionLeases, Heartbeat, History, Mark, Message, Receivers, Refusal, ShardSet,
    Store, StoreError, StoredHistory,
};
use starbridge_server::Access;
use std::sync::Arc;
use std::time::Duration;

async fn on(store: Arc<dyn Store>, change: impl FnOnce(&mut NodeSettings)) -> Running {
    Running::with(Access::default(), |settings| {
        settings.store = store;
        change(settings);
    })
    .await
}

/// A server with an execution whose task a worker holds: its id, and the path to report it.
async fn with_task(store: &Arc<dyn Store>) -> (Running, String, String) {
    let server = on(store.clone(), |_| {}).await;
    let task = json!([{"type": "task", "name": "work", "resourceArn": "queue:jobs"}]);
    server.flow("f", task).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let hold = json!({"worker": "w", "waitSeconds": 20});
    let held = server.post("/v1/queues/jobs/hold", hold).await;
    let token = held.body["tasks"][0]["token"].as_str().unwrap().to_owned();
    let id = begun.body["id"].as_str().unwrap().to_owned();
    (server, id, format!("/v1/callbacks/{token}/succeed"))
}

#[tokio::test]
pub async fn problem_of_a_store_hides_what_the_store_says() {
    let store = Held::over(in_memory());
    let server = on(store.clone(), |_| {}).await;
    server.flow("f", asleep()).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let path = format!("/v1/executions/{}", begun.body["id"].as_str().unwrap());
    let why = || "/srv/flows.db is away".to_owned();
    for (error, problem) in [
        (StoreError::Unavailable(why()), (503, "StoreUnavailable")),
        (StoreError::Corrupt(why()), (500, "Corrupt")),
    ] {
        store.fail(Some(error));
        let answer = server.get(&path).await;
        assert_eq!(answer.code(), problem);
        assert!(!answer.body.to_string().contains("flows.db"), "{answer:?}");
    }
    store.fail(None);
    assert_eq!(server.get(&path).await.status, 200);
}

#[tokio::test]
pub async fn panic_of_a_request_is_answered() {
    let store = Held::over(in_memory());
    let server = on(store.clone(), |_| {}).await;
    store.panic_at_lists(true);
    assert_eq!(server.get("/v1/executions").await.code(), (500, "Internal"));
    store.panic_at_lists(false);
    assert_eq!(server.get("/v1/executions").await.status, 200);
}

#[tokio::test]
pub async fn set_aside_execution_refuses_a_report() {
    let store = in_memory();
    let (server, id, report) = with_task(&store).await;
    server.node.drain(Duration::from_secs(5)).await.unwrap();
    let broken = Broken {
        since: Timestamp(0),
        cause: "it panicked".into(),
    };
    store.mark(&[(id.as_str().into(), Mark::Broken(broken))], None).unwrap();
    let server = on(store, |_| {}).await;
    assert_eq!(
        server.post(&report, json!({"output": {}})).await.code(),
        (409, "ExecutionSetAside")
    );
}

#[tokio::test]
pub async fn problem_of_a_node_that_has_ended() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let name = server.post("/v1/flows/f/executions", json!({"name": "n"})).await;
    server.node.drain(Duration::from_secs(5)).await.unwrap();
    let stopping = (503, "Stopping");
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.get(path).await.code(), stopping, "{path}");
    }
    assert_eq!(server.post("/v1/flows/f/executions", json!({})).await.code(), stopping);
    // What is stored can still be shown.
    assert_eq!(server.get("/v1/flows/f/executions/n").await.body["id"], name.body["id"]);
}

/// A store in which another process has every execution and takes messages for them.
struct Elsewhere(Arc<dyn Store>);

impl History for Elsewhere {
    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        self.0.append(batch)
    }

    fn load(&self, _execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        Err(StoreError::Held(Timestamp(i64::MAX)))
    }

    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.0.load_whole(execution)
    }

    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError> {
        self.0.parent_of(execution)
    }

    fn awake(&self, shards: &ShardSet) -> Result<Vec<Text>, StoreError> {
        self.0.awake(shards)
    }

    fn due(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        self.0.due(shards, before, limit)
    }

    fn mark(&self, marks: &[(Text, Mark)], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.0.mark(marks, audit)
    }

    fn messages(&self, to: &Receivers) -> Result<Vec<Message>, StoreError> {
        self.0.messages(to)
    }
}

impl ExecutionLeases for Elsewhere {
    fn hold_until(&self, _until: Timestamp) {}

    fn release(&self, _execution: &str) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn messages_for(&self, _execution: &str) -> Result<Vec<Message>, StoreError> {
        Ok(Vec::new())
    }

    fn leave_message(&self, _message: &Message) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn heartbeats(&self, _execution: &str) -> Result<Vec<Heartbeat>, StoreError> {
        Ok(Vec::new())
    }

    fn heartbeat(&self, _execution: &str, _beat: &Heartbeat) -> Result<(), StoreError> {
        Ok(())
    }

    fn stranded(&self, _before: Timestamp, _limit: usize) -> Result<Vec<Text>, StoreError> {
        Ok(Vec::new())
    }
}

#[tokio::test]
pub async fn execution_lease_of_another_process_is_respected() {
    let store = in_memory();
    let (first, id, report) = with_task(&store).await;
    first.node.drain(Duration::from_secs(5)).await.unwrap();
    let elsewhere = Arc::new(Elsewhere(store.clone()));
    let server = on(store, |settings| {
        settings.owners = 1;
        settings.worker_queues = false;
        settings.leased = Some(LeaseSettings {
            leases: elsewhere.clone(),
            history: elsewhere,
        });
    })
    .await;
    server.node.refresh_flows().unwrap();
    let limit = || Some(json!({"limit": 1}));
    for (method, path, body) in [
        (Method::GET, "/v1/keys", None),
        (Method::GET, "/v1/keys/f/x", None),
        (Method::PUT, "/v1/keys/f/x", limit()),
        (Method::DELETE, "/v1/keys/f/x", None),
        (Method::PATCH, "/v1/flows/f", Some(json!({"paused": true}))),
    ] {
        assert_eq!(
            server.ask(method, path, body).await.code(),
            (422, "NotSupported"),
            "{path}"
        );
    }
    assert_eq!(server.post(&report, json!({"output": {}})).await.status, 202);
    let told = server.post(&format!("/v1/executions/{id}/stop"), json!({})).await;
    assert_eq!((told.status, &told.body["status"]), (202, &json!("Running")));
    let redriven = server.post(&format!("/v1/executions/{id}/redrive"), json!({})).await;
    assert_eq!(redriven.code(), (503, "ExecutionBusy"));
}

/// Routes and problems that no other test here covers.
#[tokio::test]
pub async fn openapi_problems_are_answered() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    for path in [
        "/v1/openapi.json",
        "/metrics",
        "/healthz",
        "/readyz",
        "/v1/schedules",
        "/v1/queues",
    ] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    let schedule = json!({"flow": "f", "cron": "@every 1h"});
    assert_eq!(server.put("/v1/schedules/s", schedule).await.status, 200);
    assert_eq!(server.get("/v1/schedules/s").await.body["flow"], "f");
    let gone = server.ask(Method::DELETE, "/v1/schedules/s", None).await;
    let never = server.ask(Method::DELETE, "/v1/schedules/s", None).await;
    assert_eq!((gone.status, never.code()), (204, (404, "NoSuchSchedule")));
    let history = server.get("/v1/executions/none/history").await;
    assert_eq!(history.code(), (404, "NoSuchExecution"));
    for path in ["state", "steps"] {
        let answer = server.get(&format!("/v1/executions/none/{path}")).await;
        assert_eq!(answer.code(), (404, "NoSuchExecution"), "{path}");
    }
    assert_eq!(server.get("/v1/flows/none/versions").await.code(), (404, "NoSuchFlow"));
    let named = server.get("/v1/flows/f/executions/none").await;
    assert_eq!(named.code(), (404, "NoSuchExecution"));
    let after = json!({"after": ["0190b3e4-8c1d-7abc-9def-0123456789ab"]});
    let refused = server.post("/v1/flows/f/executions", after).await;
    assert_eq!(refused.code(), (422, "UnknownDependency"));
    assert!(
        refused.body["detail"].as_str().unwrap().contains("`FLOW/NAME`"),
        "{refused:?}"
    );
    let alone = json!({"name": "alone", "after": ["alone"]});
    let refused = server.post("/v1/flows/f/executions", alone).await;
    assert_eq!(refused.code(), (422, "DependencyCycle"));
    let keyed = r#"{"version": "v1", "type": "flow", "concurrency": [{"key": "$input.a", "limit": 1}],
        "steps": [{"type": "pass", "name": "a"}]}"#;
    let now = Timestamp::default();
    server.node.store().put_flow("keyed", keyed, "hash", now, None).unwrap();
    server.node.refresh_flows().unwrap();
    for input in [json!({}), json!({"a": true}), json!({"a": "x".repeat(257)})] {
        let refused = server.post("/v1/flows/keyed/executions", json!({"input": input})).await;
        assert_eq!(refused.code(), (422, "InvalidConcurrencyKey"));
    }
    let set = server.put("/v1/queues/q", json!({"maxConcurrent": 0})).await;
    assert_eq!(set.code(), (422, "InvalidQueue"));
    let drained = server.post("/v1/cluster/nodes/a/drain", json!({})).await;
    assert_eq!(drained.code(), (404, "NoSuchNode"));
    assert_eq!(server.put("/v1/queues/q", json!({"paused": true})).await.status, 200);
    assert_eq!(server.get("/v1/queues/q").await.body["paused"], true);
    let server = on(Held::over(in_memory()), |_| {}).await;
    server.flow("f", asleep()).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let path = format!("/v1/executions/{}/logs", begun.body["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.code(), (422, "NotSupported"));
}
