//! The trace context of a start.

use crate::harness::{Answer, Running, sent};
use crate::queues::hold_soon;
use reqwest::Method;
use serde_json::{Value, json};
use starbridge_server::Access;

/// Of every kind of start, the first event of the history and the calls of parent and child have the new trace context.
#[tokio::test]
async fn start_without_trace_context_gets_a_new_one_where_traces_are_sent() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let server = Running::with(Access::default(), |settings| settings.begins_traces = true).await;
    let work = json!([{"type": "task", "name": "work", "resourceArn": "queue:traced"}]);
    server.flow("child", work).await;
    let call = json!([{"type": "task", "name": "call", "resourceArn": "flow:child", "pattern": "sync"}]);
    server.flow("parent", call).await;
    let path = "/v1/flows/parent/executions";
    let schedule = json!({"flow": "parent", "cron": "@every 1h"});
    let put = server.put("/v1/schedules/hourly", schedule).await;
    assert_eq!(put.status, 200, "{put:?}");
    let mut traces = Vec::new();
    for (path, body) in [
        (path, json!({})),
        ("/v1/schedules/hourly/run", json!({})),
        ("/v1/executions/batch", json!([{"flow": "parent"}])),
        (path, json!({ "traceparent": TRACE })),
    ] {
        let started = server.post(path, body).await;
        assert!(started.status < 300, "{started:?}");
        let task = hold_soon(&server, "traced").await;
        let trace = task["traceparent"]
            .as_str()
            .unwrap_or_else(|| panic!("{task}"))
            .to_owned();
        let parts: Vec<_> = trace.split('-').map(str::len).collect();
        assert_eq!(parts, [2, 32, 16, 2], "{trace}");
        assert!(trace.starts_with("00-") && trace.ends_with("-01"), "{trace}");
        let ancestor = task["ancestors"][0].as_str().unwrap();
        let history = server.get(&format!("/v1/executions/{ancestor}/history")).await.body;
        assert_eq!(history["items"][0]["detail"]["traceparent"], trace.as_str());
        traces.push(trace);
    }
    assert_eq!(traces.pop().as_deref(), Some(TRACE));
    traces.sort();
    traces.dedup();
    assert_eq!(traces.len(), 3);
}

#[tokio::test]
async fn trace_context_of_a_start_goes_with_every_call() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    const OTHER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b8-01";
    let server = Running::start().await;
    let work = json!([{"type": "task", "name": "work", "resourceArn": "queue:traced"}]);
    server.flow("child", work).await;
    let call = json!([{"type": "task", "name": "call", "resourceArn": "flow:child", "pattern": "sync"}]);
    server.flow("parent", call).await;
    let path = "/v1/flows/parent/executions";
    let start = |body: Value| {
        server
            .request(Method::POST, path)
            .header("traceparent", TRACE)
            .body(body.to_string())
    };
    // A member takes precedence over the header; an invalid header is ignored.
    let odd = server
        .request(Method::POST, path)
        .header("traceparent", "00-1-2-3")
        .body("{}");
    for (request, expected) in [
        (start(json!({})), Some(TRACE)),
        (start(json!({ "traceparent": OTHER })), Some(OTHER)),
        (odd, None),
    ] {
        let started = Answer::of(sent(request).await).await;
        assert_eq!(started.status, 201, "{started:?}");
        let task = hold_soon(&server, "traced").await;
        assert_eq!(task["traceparent"].as_str(), expected, "{task}");
        let id = started.body["id"].as_str().unwrap();
        let history = server.get(&format!("/v1/executions/{id}/history")).await.body;
        let detail = &history["items"][0]["detail"];
        assert_eq!(detail["traceparent"].as_str(), expected);
        assert_eq!(detail["machine"], if expected.is_some() { 2 } else { 1 });
    }
    let wrong = server.post(path, json!({"traceparent": "00-1-2-3"})).await;
    assert_eq!(wrong.code(), (400, "BadRequest"), "{wrong:?}");
}
