use crate::access::access;
use crate::harness::{Answer, Running, definition, sent};
use crate::held::Held;
use crate::mailbox::ended;
use reqwest::Method;
use serde_json::{Value, json};
use starbridge_node::stores::in_memory;
use starbridge_server::Access;
use std::sync::Arc;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub async fn backpressure_turns_away_and_loses_nobody() {
    let store = Held::over(in_memory());
    let kept = store.clone();
    let server = Running::with(Access::default(), |settings| {
        settings.store = kept;
        settings.inbox = 512;
        settings.owners = 1;
    })
    .await;
    let server = Arc::new(server);
    server.flow("f", json!([{"type": "pass", "name": "p"}])).await;
    store.hold(true);
    let mut under_way = Vec::new();
    // An owner limits its decisions ahead of the store, even if it turns many requests away.
    let refused = loop {
        assert!(under_way.len() < 100, "nobody was turned away");
        let first = under_way.len() * 1_000;
        let entries = (first..first + 1_000).map(|number| json!({"flow": "f", "name": format!("n{number}")}));
        let batch = Value::from_iter(entries);
        let batching = server.clone();
        under_way.push(tokio::spawn(async move {
            batching.post("/v1/executions/batch", batch).await
        }));
        if let Some(refused) = turned_away(&server, under_way.len()).await {
            break refused;
        }
    };
    store.hold(false);
    let mut began = Vec::new();
    let mut busy = vec![refused];
    for (batch, answer) in under_way.into_iter().enumerate() {
        let answer = answer.await.unwrap();
        assert_eq!(answer.status, 200);
        for (number, item) in answer.body["items"].as_array().unwrap().iter().enumerate() {
            let name = format!("n{}", batch * 1_000 + number);
            match item["status"].as_u64().unwrap() {
                201 => began.push(name),
                429 => {
                    assert_eq!(item["problem"]["code"], "Busy");
                    busy.push(name);
                }
                other => panic!("{name}: {other}: {item}"),
            }
        }
    }
    assert!(
        !began.is_empty() && busy.len() > 1,
        "{} began, {} did not",
        began.len(),
        busy.len()
    );
    for name in began.iter().step_by(97) {
        assert_eq!(ended(&server, "f", name).await["status"], "Succeeded", "{name}");
    }
    let counts = server.node.store().counts().unwrap();
    let count: u64 = counts.iter().map(|(_, count)| count).sum();
    // Each accepted request of those that came one by one has begun, although its client left.
    let late = server.get("/v1/executions?name=late&limit=1000").await;
    let taken = late.body["items"].as_array().unwrap().len();
    assert_eq!(count, (began.len() + taken) as u64, "{counts:?}");
    // A request that was turned away has left no trace, and may come again.
    for name in busy.iter().step_by(busy.len().div_ceil(50)) {
        let path = format!("/v1/flows/f/executions/{name}");
        assert_eq!(server.get(&path).await.code(), (404, "NoSuchExecution"), "{name}");
        let again = server
            .post("/v1/flows/f/executions?wait=10", json!({"name": name}))
            .await;
        assert_eq!((again.status, &again.body["status"]), (201, &json!("Succeeded")));
    }
}

/// Starts one execution. Returns its name if it is turned away.
async fn turned_away(server: &Running, number: usize) -> Option<String> {
    // The peak is over by now, so a request is only turned away because the store does not respond.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let name = format!("late{number}");
    let body = Some(json!({"name": name}).to_string());
    let asked = server.raw(Method::POST, "/v1/flows/f/executions", body);
    // A request that is accepted waits for the store.
    let response = tokio::time::timeout(Duration::from_millis(200), asked).await.ok()?;
    assert_eq!(response.headers()["retry-after"], "1");
    assert_eq!(Answer::of(response).await.code(), (429, "Busy"));
    Some(name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fairness_batches_of_one_token_leave_room_for_another() {
    let store = Held::over(in_memory());
    let kept = store.clone();
    let server = Running::with(access(), |settings| {
        settings.store = kept;
        settings.inbox = 512;
        settings.owners = 1;
    })
    .await;
    let server = Arc::new(server);
    let flow = definition(json!([{"type": "pass", "name": "p"}])).to_string();
    let put = server.request(Method::PUT, "/v1/flows/f").bearer_auth("token-admin");
    assert_eq!(sent(put.body(flow)).await.status(), 201);
    store.hold(true);
    let begin = |path: &str, token: &str, body: Value| {
        let request = server.request(Method::POST, path).bearer_auth(token);
        tokio::spawn(sent(request.body(body.to_string())))
    };
    let batch = Value::from_iter((0..1_000).map(|_| json!({"flow": "f"})));
    let batches: Vec<_> = (0..8)
        .map(|_| begin("/v1/executions/batch", "token-start", batch.clone()))
        .collect();
    let mut others = Vec::new();
    for _ in 0..30 {
        let mut other = begin("/v1/flows/f/executions", "token-admin", json!({}));
        // One that is taken waits for the store; one that is turned away is told so at once.
        if let Ok(refused) = tokio::time::timeout(Duration::from_millis(100), &mut other).await {
            panic!("{}", refused.unwrap().status());
        }
        others.push(other);
    }
    store.hold(false);
    for other in others {
        assert_eq!(other.await.unwrap().status(), 201);
    }
    for batch in batches {
        let answer = Answer::of(batch.await.unwrap()).await;
        let items = answer.body["items"].as_array().unwrap();
        assert!(items.iter().all(|item| item["status"] == 201), "{answer:?}");
    }
}
