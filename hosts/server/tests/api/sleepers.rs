use crate::harness::{Running, definition};
use crate::held::Held;
use crate::mailbox::{Mailbox, ended, eventually};
use serde_json::json;
use starbridge_node::stores::in_memory;
use starbridge_server::Access;

/// Half of them wait for a time, the others for a report.
const EACH: usize = 25;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asleep_execution_is_left_to_the_store_and_comes_back() {
    let store = Held::over(in_memory());
    let kept = store.clone();
    let server = Running::with(Access::default(), |settings| {
        settings.store = kept;
        settings.hot_executions = 2;
        settings.owners = 1;
    })
    .await;
    let mailbox = Mailbox::open().await;
    let timed = json!([{"type": "wait", "name": "w", "duration": "$.seconds"}, {"type": "pass", "name": "p"}]);
    server.flow("timed", timed).await;
    server
        .flow("asked", json!([mailbox.ask("ask"), {"type": "pass", "name": "p"}]))
        .await;
    for number in 0..EACH {
        let seconds = 1 + number % 2;
        let start = json!({"name": format!("t{number}"), "input": {"seconds": seconds}});
        assert_eq!(server.post("/v1/flows/timed/executions", start).await.status, 201);
        let start = json!({"name": format!("a{number}")});
        assert_eq!(server.post("/v1/flows/asked/executions", start).await.status, 201);
    }
    for number in 0..EACH {
        mailbox.token(&format!("a{number}")).await;
    }
    looked_at_while_asleep(&server).await;
    let before = store.loaded();
    for number in 0..EACH {
        let path = format!("/v1/callbacks/{}/succeed", mailbox.token(&format!("a{number}")).await);
        let body = json!({"output": {"number": number}});
        // A second report, after the execution was left to the store again, gets the corresponding
        // answer.
        assert_eq!(server.post(&path, body.clone()).await.status, 204);
        assert_eq!(server.post(&path, body).await.code(), (409, "TaskAlreadyCompleted"));
    }
    // Each came from the store, except at most two that were still in memory.
    assert!(store.loaded() >= before + EACH - 2, "{before}, {}", store.loaded());
    for number in 0..EACH {
        let asked = ended(&server, "asked", &format!("a{number}")).await;
        assert_eq!(
            (&asked["status"], &asked["output"]),
            (&json!("Succeeded"), &json!({"number": number}))
        );
        assert_eq!(
            ended(&server, "timed", &format!("t{number}")).await["status"],
            "Succeeded"
        );
    }
    for flow in ["timed", "asked"] {
        let list = server
            .get(&format!("/v1/executions?flow={flow}&status=Succeeded"))
            .await;
        assert_eq!(list.body["items"].as_array().unwrap().len(), EACH);
    }
}

/// State, history and steps of the one that was put to sleep first, which is no longer in memory.
async fn looked_at_while_asleep(server: &Running) {
    let path = eventually("a call that is submitted", async || {
        let shown = server.get("/v1/flows/asked/executions/a0").await;
        let path = format!("/v1/executions/{}", shown.body["id"].as_str().unwrap());
        let history = server.get(&format!("{path}/history")).await;
        let items = history.body["items"].as_array().unwrap();
        items
            .iter()
            .any(|event| event["type"] == "TaskSubmitted")
            .then_some(path)
    })
    .await;
    let state = server.get(&format!("{path}/state")).await;
    assert_eq!(
        (state.status, &state.body["steps"][0]["step"]),
        (200, &json!("ask")),
        "{state:?}"
    );
    let steps = server.get(&format!("{path}/steps")).await;
    assert_eq!(steps.body["items"][0]["step"], "ask", "{steps:?}");
    assert_eq!(server.get(&path).await.body["status"], "Running");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asleep_parents_and_children_are_left_to_the_store() {
    let server = Running::with(Access::default(), |settings| {
        settings.hot_executions = 0;
        settings.owners = 2;
    })
    .await;
    let mailbox = Mailbox::open().await;
    server
        .flow(
            "child",
            json!([{"type": "wait", "name": "w", "duration": 1}, mailbox.ask("ask")]),
        )
        .await;
    let call = json!([{"type": "task", "name": "call", "resourceArn": "flow:child", "pattern": "sync",
        "serviceParams": {"ExecutionName": "$.child"}, "inputMappings": [{"target": "child", "source": "$input.child"}]}]);
    assert_eq!(server.put("/v1/flows/parent", definition(call)).await.status, 201);
    for number in 0..10 {
        let start = json!({"name": format!("p{number}"), "input": {"child": format!("c{number}")}});
        assert_eq!(server.post("/v1/flows/parent/executions", start).await.status, 201);
    }
    for number in 0..10 {
        let token = mailbox.token(&format!("c{number}")).await;
        let body = json!({"output": {"number": number}});
        assert_eq!(
            server
                .post(&format!("/v1/callbacks/{token}/succeed"), body)
                .await
                .status,
            204
        );
    }
    for number in 0..10 {
        let parent = ended(&server, "parent", &format!("p{number}")).await;
        assert_eq!(
            (&parent["status"], &parent["output"]["number"]),
            (&json!("Succeeded"), &json!(number)),
            "{parent}"
        );
    }
}
