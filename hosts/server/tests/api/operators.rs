//! Information for operators: who did what, where an execution comes from, which workers serve a
//! queue.

use crate::access::access;
use crate::harness::{Answer, Running, sent};
use reqwest::Method;
use serde_json::{Value, json};
use starbridge_node::config::Config;
use starbridge_node::stores::in_memory;
use starbridge_server::Access;

/// A request with the token that has every scope: `token-admin`.
async fn ask(server: &Running, method: Method, path: &str, body: Option<Value>) -> Value {
    let mut request = server.request(method, path).bearer_auth("token-admin");
    if let Some(body) = body {
        request = request.body(body.to_string());
    }
    Answer::of(sent(request).await).await.body
}

#[tokio::test]
async fn what_is_done_is_noted_under_the_name_of_the_token() {
    let server = Running::with(access(), |_| {}).await;
    let flow = json!({"version": "v1", "type": "flow", "steps": [
        {"type": "task", "name": "work", "resourceArn": "queue:jobs"}
    ]});
    ask(&server, Method::PUT, "/v1/flows/f", Some(flow)).await;
    let started = ask(
        &server,
        Method::POST,
        "/v1/flows/f/executions",
        Some(json!({"name": "one"})),
    )
    .await;
    let id = started["id"].as_str().unwrap();
    let held = ask(
        &server,
        Method::POST,
        "/v1/queues/jobs/hold",
        Some(json!({"worker": "w"})),
    )
    .await;
    let queue = ask(&server, Method::GET, "/v1/queues/jobs", None).await;
    assert_eq!((&queue["workers"], &queue["busyWorkers"]), (&json!(0), &json!(1)));
    let token = held["tasks"][0]["token"].as_str().unwrap();
    let failed = json!({"error": "Paper.Jam"});
    ask(
        &server,
        Method::POST,
        &format!("/v1/callbacks/{token}/fail"),
        Some(failed),
    )
    .await;
    ask(&server, Method::GET, &format!("/v1/executions/{id}?wait=10"), None).await;
    let dead = ask(&server, Method::GET, "/v1/queues/jobs/dead", None).await;
    assert_eq!(
        (&dead["items"][0]["flow"], &dead["items"][0]["name"]),
        (&json!("f"), &json!("one"))
    );
    let again = json!({"action": "requeue", "by": "somebody-else"});
    let done = ask(&server, Method::POST, "/v1/queues/jobs/dead", Some(again)).await;
    assert_eq!(done["done"], 1);
    ask(
        &server,
        Method::POST,
        &format!("/v1/executions/{id}/stop"),
        Some(json!({})),
    )
    .await;
    let history = ask(&server, Method::GET, &format!("/v1/executions/{id}/history"), None).await;
    let events = history["items"].as_array().unwrap();
    for kind in ["ExecutionRedriven", "ExecutionStopped"] {
        let event = events.iter().find(|event| event["type"] == kind).unwrap();
        assert_eq!(event["detail"]["by"], "admin", "{event}");
    }
}

#[tokio::test]
async fn a_fork_says_of_what_and_since_when() {
    let server = Running::start().await;
    let steps = json!([{"type": "pass", "name": "p"}, {"type": "wait", "name": "w", "duration": 3600}]);
    server.flow("f", steps).await;
    let first = server.post("/v1/flows/f/executions", json!({"name": "old"})).await.body;
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let id = first["id"].as_str().unwrap();
    let fork = server
        .post(&format!("/v1/executions/{id}/fork"), json!({"event": 2, "name": "new"}))
        .await
        .body;
    let of = json!({"execution": id, "event": 2});
    let kept = server.get("/v1/flows/f/executions/new").await.body;
    let listed = server.get("/v1/executions?limit=1").await.body["items"][0].clone();
    for shown in [&fork, &kept, &listed] {
        assert_eq!((&shown["name"], &shown["forkedFrom"]), (&json!("new"), &of), "{shown}");
        assert!(
            shown["startedTime"].as_str().unwrap() > first["startedTime"].as_str().unwrap(),
            "{shown}"
        );
    }
    assert!(
        server
            .get("/v1/flows/f/executions/old")
            .await
            .body
            .get("forkedFrom")
            .is_none()
    );
    // It stays this way.
    let path = format!("/v1/executions/{}", fork["id"].as_str().unwrap());
    let stopped = server.post(&format!("{path}/stop"), json!({})).await.body;
    assert_eq!(
        (&stopped["forkedFrom"], &stopped["startedTime"]),
        (&of, &fork["startedTime"])
    );
}

#[tokio::test]
async fn an_address_that_is_not_called_is_told_when_a_flow_is_put() {
    let guarded = |loopback: bool| {
        Running::with(Access::default(), move |settings| {
            let usual = Config::default().node(in_memory()).unwrap().http.guard;
            settings.http.guard = if loopback { usual.with_loopback() } else { usual };
        })
    };
    let flow = |host: &str| {
        json!({"version": "v1", "type": "flow", "steps": [
            {"type": "task", "name": "t", "resourceArn": format!("http://{host}/x")}
        ]})
    };
    let server = guarded(false).await;
    for host in ["127.0.0.1:9", "localhost:9", "10.0.0.1", "[::1]:9"] {
        let put = server.put("/v1/flows/f", flow(host)).await.body;
        let found = &put["diagnostics"][0];
        assert_eq!(found["code"], "FDL0704", "{host}: {put}");
        let message = found["message"].as_str().unwrap();
        assert!(
            message.contains("`http.allow`") && message.contains("`http.private_addresses`"),
            "{message}"
        );
    }
    let ended = server.post("/v1/flows/f/executions?wait=10", json!({})).await.body;
    let cause = ended["cause"].as_str().unwrap();
    assert!(
        cause.contains("`http.allow`") && cause.contains("`http.private_addresses`"),
        "{cause}"
    );
    let here = guarded(true).await;
    assert_eq!(
        here.put("/v1/flows/f", flow("127.0.0.1:9")).await.body["diagnostics"],
        json!([])
    );
    assert_eq!(
        here.put("/v1/flows/f", flow("10.0.0.1")).await.body["diagnostics"][0]["code"],
        "FDL0704"
    );
}
