//! Messages: steps that go on once their task is in a queue.

use crate::harness::Running;
use serde_json::{Value, json};
use starbridge_runtime::ResourceMap;
use starbridge_server::Access;
use std::time::Duration;

/// A server whose map leads topics to queues.
async fn mapped() -> Running {
    let mut map = ResourceMap::default();
    map.add("acs:mns:*/topics/{t}/messages=queue:{t}").unwrap();
    map.add("custom:{t}=queue:{t}").unwrap();
    Running::with(Access::default(), |settings| settings.resources = map).await
}

fn announce(more: &Value) -> Value {
    let mut step = json!({"type": "task", "name": "announce", "resourceArn": "acs:mns:::/topics/news/messages",
        "outputMappings": [{"target": "sent", "source": "$local"}]});
    for (name, value) in more.as_object().unwrap() {
        step[name] = value.clone();
    }
    step
}

async fn start(server: &Running, name: &str, input: Value) -> String {
    let started = server
        .post("/v1/flows/f/executions", json!({"name": name, "input": input}))
        .await;
    assert_eq!(started.status, 201, "{started:?}");
    started.body["id"].as_str().unwrap().to_owned()
}

async fn hold(server: &Running, seconds: u64) -> Option<Value> {
    let body = json!({"worker": "w", "limit": 1, "waitSeconds": seconds});
    let held = server.post("/v1/queues/news/hold", body).await;
    held.body["tasks"].as_array().unwrap().first().cloned()
}

async fn report(server: &Running, task: &Value, verb: &str, body: Value) -> u16 {
    let token = task["token"].as_str().unwrap();
    server.post(&format!("/v1/callbacks/{token}/{verb}"), body).await.status
}

async fn until_status(server: &Running, id: &str, status: &str) -> Value {
    for _ in 0..500 {
        let execution = server.get(&format!("/v1/executions/{id}")).await.body;
        if execution["status"] == status {
            return execution;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{id} is not {status}");
}

#[tokio::test]
async fn a_step_goes_on_once_its_message_is_in_the_queue() {
    let server = mapped().await;
    server.flow("f", json!([announce(&json!({"priority": 8}))])).await;
    let id = start(&server, "one", json!({"title": "hello"})).await;
    // Nobody has worked on it.
    let sender = until_status(&server, &id, "Succeeded").await;
    let sent = &sender["output"]["sent"];
    let message = sent["MessageId"].as_str().unwrap().to_owned();
    assert!(sent["RequestId"].as_str().unwrap().starts_with(&id), "{sent}");
    // The MD5 of `{"title":"hello"}`.
    assert_eq!(sent["MessageBodyMD5"], "E90D9516EF7A6840FAA8BC08E5B5CF0C");
    let deleted = server
        .ask(reqwest::Method::DELETE, &format!("/v1/executions/{id}"), None)
        .await;
    assert_eq!(deleted.status, 204, "{deleted:?}");
    // The message outlives the one that sent it.
    let held = hold(&server, 20).await.expect("the message");
    assert_eq!(held["input"], json!({"title": "hello"}));
    assert_eq!(held["execution"], message.as_str());
    assert_eq!(
        (&held["flow"], &held["step"], &held["priority"]),
        (&json!("queue:news"), &json!("message"), &json!(8))
    );
    assert_eq!(
        report(&server, &held, "succeed", json!({"output": {"read": true}})).await,
        204
    );
    let worked = until_status(&server, &message, "Succeeded").await;
    assert_eq!(worked["output"], json!({"read": true}));
    let list = server.get("/v1/executions?flow=queue:news").await.body;
    assert_eq!(list["items"][0]["id"], message.as_str(), "{list}");
    // So commands that need the definition have it.
    let flow = server.get("/v1/flows/queue:news?version=1").await.body;
    assert_eq!(flow["definition"]["steps"][0]["resourceArn"], "queue:news", "{flow}");
}

#[tokio::test]
async fn message_that_nobody_can_do_is_dead_and_its_sender_is_not() {
    let server = mapped().await;
    let body = json!({"serviceParams": {"MessageBody": "$.title", "Priority": 1}});
    server.flow("f", json!([announce(&body)])).await;
    let id = start(&server, "one", json!({"title": "hello"})).await;
    let held = hold(&server, 20).await.expect("the message");
    assert_eq!(held["input"], json!({"MessageBody": "hello", "Priority": 1}));
    assert_eq!(report(&server, &held, "fail", json!({"error": "Paper.Jam"})).await, 204);
    let message = held["execution"].as_str().unwrap();
    until_status(&server, message, "Failed").await;
    until_status(&server, &id, "Succeeded").await;
    let dead = server.get("/v1/queues/news/dead").await.body;
    assert_eq!(dead["items"][0]["execution"], message, "{dead}");
    let requeued = server.post("/v1/queues/news/dead", json!({"action": "requeue"})).await;
    assert_eq!(requeued.body["done"], 1, "{requeued:?}");
    let held = hold(&server, 20).await.expect("the message again");
    assert_eq!(report(&server, &held, "succeed", json!({"output": {}})).await, 204);
    until_status(&server, message, "Succeeded").await;
}

#[tokio::test]
async fn who_asks_for_an_answer_waits_for_the_worker() {
    let server = mapped().await;
    for (name, step) in [
        ("callback", announce(&json!({"pattern": "waitForCallback"}))),
        ("polls", announce(&json!({"poll": {"until": "$.read == true"}}))),
        ("otherwise", announce(&json!({"resourceArn": "custom:news"}))),
        ("direct", announce(&json!({"resourceArn": "queue:news"}))),
    ] {
        server.flow("f", json!([step])).await;
        let id = start(&server, name, json!({})).await;
        let held = hold(&server, 20).await.unwrap_or_else(|| panic!("{name}: no task"));
        assert_eq!(held["execution"], id.as_str(), "{name}");
        until_status(&server, &id, "Running").await;
        assert_eq!(
            report(&server, &held, "succeed", json!({"output": {"read": true}})).await,
            204
        );
        let ended = until_status(&server, &id, "Succeeded").await;
        assert_eq!(ended["output"]["sent"], json!({"read": true}), "{name}");
    }
}

#[tokio::test]
async fn undo_waits_for_its_worker() {
    let server = mapped().await;
    let step = announce(&json!({"rollback": {"resourceArn": "acs:mns:::/topics/news/messages"}}));
    server
        .flow("f", json!([step, {"type": "fail", "name": "no", "error": "No"}]))
        .await;
    let id = start(&server, "one", json!({})).await;
    let mut types = Vec::new();
    for _ in 0..2 {
        let held = hold(&server, 20).await.expect("a task");
        types.push(held["type"].as_str().unwrap().to_owned());
        assert_eq!(report(&server, &held, "succeed", json!({"output": {}})).await, 204);
    }
    types.sort();
    assert_eq!(types, ["normal", "rollback"]);
    until_status(&server, &id, "Failed").await;
}

#[tokio::test]
async fn nobody_starts_or_puts_a_flow_of_messages() {
    let server = mapped().await;
    let started = server
        .post("/v1/flows/queue:news/executions", json!({"input": {}}))
        .await;
    assert_eq!(started.status, 404, "{started:?}");
    let started = server
        .post("/v1/flows/queue:news/executions", json!({"input": {}, "version": 1}))
        .await;
    assert_eq!(started.status, 404, "{started:?}");
    let put = server
        .put("/v1/flows/queue:news", crate::harness::definition(json!([])))
        .await;
    assert_eq!(put.status, 400, "{put:?}");
}
