//! The contents of an execution: attempts, iterations, the time line, the picture, data in parts.

use crate::access;
use crate::harness::{Running, asleep};
use reqwest::Method;
use serde_json::{Value, json};

async fn start(server: &Running, flow: &str, input: Value) -> String {
    let path = format!("/v1/flows/{flow}/executions");
    let started = server.post(&path, json!({"input": input})).await;
    started.body["id"].as_str().unwrap().to_owned()
}

/// Takes the next task and reports it.
async fn work(server: &Running, verb: &str, report: Value) {
    let hold = json!({"worker": "desk-2", "waitSeconds": 20});
    let held = server.post("/v1/queues/jobs/hold", hold).await;
    let token = held.body["tasks"][0]["token"].as_str().unwrap().to_owned();
    let done = server.post(&format!("/v1/callbacks/{token}/{verb}"), report).await;
    assert_eq!(done.status, 204, "{done:?}");
}

/// An execution whose only task failed once and then succeeded, and its id.
async fn tried_twice() -> (Running, String) {
    let server = Running::start().await;
    let task = json!([{"type": "task", "name": "work", "resourceArn": "queue:jobs",
        "retry": [{"errors": ["Busy"], "intervalSeconds": 0}]}]);
    server.flow("f", task).await;
    let id = start(&server, "f", json!({"order": 7, "note": "x".repeat(200)})).await;
    work(&server, "fail", json!({"error": "Busy", "cause": "later"})).await;
    work(&server, "succeed", json!({"output": {"receipt": "r-7-of-the-desk"}})).await;
    server.get(&format!("/v1/executions/{id}?wait=10")).await;
    (server, id)
}

#[tokio::test]
pub async fn each_attempt_says_what_went_in_and_what_came_back() {
    let (server, id) = tried_twice().await;
    let steps = server.get(&format!("/v1/executions/{id}/steps?step=work")).await.body;
    let event = steps["items"][0]["event"].as_u64().unwrap();
    assert_eq!(
        server.get(&format!("/v1/executions/{id}/steps?step=other")).await.body["items"],
        json!([])
    );
    let visit = server.get(&format!("/v1/executions/{id}/steps/{event}")).await.body;
    let tries = visit["tries"].as_array().unwrap();
    let told: Vec<_> = tries
        .iter()
        .map(|tried| {
            (
                tried["attempt"].as_u64(),
                tried["status"].as_str(),
                tried["error"].as_str(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            (Some(1), Some("failed"), Some("Busy")),
            (Some(2), Some("succeeded"), None)
        ]
    );
    assert_eq!(
        (&tries[0]["input"]["order"], &tries[1]["worker"]),
        (&json!(7), &json!("desk-2"))
    );
    assert_eq!(tries[1]["received"], json!({"receipt": "r-7-of-the-desk"}));
    assert_eq!(visit["pauses"][0]["kind"], "backoff");
    // Data that is too large is reported, and is found at the reported place.
    let small = server
        .get(&format!("/v1/executions/{id}/steps/{event}?bytes=20"))
        .await
        .body;
    let left = &small["tries"][1]["left"]["received"];
    assert!(small["tries"][0].get("input").is_none(), "{small}");
    let path = format!(
        "/v1/executions/{id}/data?event={}&part={}",
        left["event"],
        left["part"].as_str().unwrap()
    );
    let datum = server.get(&path).await.body;
    assert_eq!(datum["bytes"], left["bytes"]);
    let none = server.get(&format!("/v1/executions/{id}/steps/1")).await;
    assert_eq!(none.code(), (404, "NoSuchEvent"));
    assert_eq!(
        server.get(&format!("/v1/executions/none/steps/{event}")).await.code(),
        (404, "NoSuchExecution")
    );
    assert_eq!(
        server.get(&format!("/v1/executions/{id}/steps/x")).await.code(),
        (400, "BadRequest")
    );
}

#[cfg(feature = "console")]
#[tokio::test]
pub async fn an_earlier_event_shows_what_was_known_then() {
    let (server, id) = tried_twice().await;
    let history = server
        .get(&format!("/v1/executions/{id}/history?type=StepFailed"))
        .await
        .body;
    let at = history["items"][0]["id"].as_u64().unwrap();
    let steps = server.get(&format!("/v1/executions/{id}/steps?at={at}")).await.body;
    assert_eq!(
        (&steps["items"][0]["status"], &steps["items"][0]["attempts"]),
        (&json!("failed"), &json!(1))
    );
    let marks = server.get(&format!("/v1/executions/{id}/marks?at={at}")).await.body;
    assert_eq!(
        (&marks["event"], &marks["items"][0]["status"]),
        (&json!(at), &json!("failed"))
    );
    assert!(marks["end"].as_u64().unwrap() > at);
    // Incidents are those of all of the history, so that a reader at an earlier event sees what came later.
    assert_eq!(
        marks["incidents"],
        json!({"failures": {"count": 1, "events": [at]}, "retries": {"count": 1, "events": [at + 1]}, "pauses": {"count": 0, "events": []}})
    );
    let now = server.get(&format!("/v1/executions/{id}/marks")).await.body;
    assert_eq!(
        (&now["items"][0]["status"], &now["items"][0]["attempts"]),
        (&json!("done"), &json!(2))
    );
    for (look, has_style) in [("", true), ("&look=page", false)] {
        let drawn = server
            .get(&format!("/v1/executions/{id}/graph.svg?at={at}{look}"))
            .await;
        let svg = drawn.body.as_str().unwrap();
        assert_eq!(
            (svg.contains("<style>"), svg.contains("Busy")),
            (has_style, true),
            "{svg}"
        );
    }
    for path in ["marks", "graph.svg", "steps", "timeline"] {
        let beyond = server.get(&format!("/v1/executions/{id}/{path}?at=9999")).await;
        assert_eq!(beyond.code(), (404, "NoSuchEvent"), "{path}");
        let nobody = server.get(&format!("/v1/executions/none/{path}")).await;
        assert_eq!(nobody.code(), (404, "NoSuchExecution"), "{path}");
    }
    assert_eq!(
        server
            .get(&format!("/v1/executions/{id}/graph.svg?look=loud"))
            .await
            .code(),
        (400, "BadRequest")
    );
}

#[tokio::test]
pub async fn iterations_are_a_letter_each() {
    let server = Running::start().await;
    let each = json!([{"type": "foreach", "name": "each", "concurrency": 2,
        "iterationMapping": {"collection": "$.items", "item": "item"},
        "steps": [{"type": "wait", "name": "nap", "duration": 3600}]}]);
    server.flow("f", each).await;
    let id = start(&server, "f", json!({"items": [1, 2, 3, 4, 5]})).await;
    let steps = server.get(&format!("/v1/executions/{id}/steps")).await.body;
    let event = steps["items"][0]["event"].as_u64().unwrap();
    let path = format!("/v1/executions/{id}/iterations?event={event}");
    let map = server.get(&path).await.body;
    assert_eq!((&map["map"], &map["total"]), (&json!("rr..."), &json!(5)), "{map}");
    assert_eq!(map["counts"]["running"], 2);
    let first = server.get(&format!("{path}&status=notBegun&limit=2")).await.body;
    let number = |page: &Value, at: usize| page["items"][at]["number"].as_u64();
    assert_eq!((number(&first, 0), number(&first, 1)), (Some(2), Some(3)));
    let next = first["next"].as_u64().unwrap();
    let second = server
        .get(&format!("{path}&status=notBegun&limit=2&cursor={next}"))
        .await
        .body;
    assert_eq!((number(&second, 0), &second["next"]), (Some(4), &Value::Null));
    // A place is given in the form of rows.
    let inside = "%5B%7B%22step%22:%22each%22,%22iteration%22:1%7D%5D";
    let rows = server
        .get(&format!("/v1/executions/{id}/steps?path={inside}"))
        .await
        .body;
    assert_eq!(rows["items"].as_array().unwrap().len(), 1, "{rows}");
    server.post(&format!("/v1/executions/{id}/stop"), json!({})).await;
    assert_eq!(server.get(&path).await.body["map"], "cc...");
    for (query, code) in [
        ("", (400, "BadRequest")),
        ("?event=x", (400, "BadRequest")),
        ("?event=1", (404, "NoSuchEvent")),
    ] {
        let refused = server.get(&format!("/v1/executions/{id}/iterations{query}")).await;
        assert_eq!(refused.code(), code, "{query}");
    }
    assert_eq!(
        server.get(&format!("{path}&status=odd")).await.code(),
        (400, "BadRequest")
    );
    assert_eq!(
        server.get(&format!("/v1/executions/{id}/steps?path=each")).await.code(),
        (400, "BadRequest")
    );
}

#[tokio::test]
pub async fn timeline_has_a_lane_for_each_visit_and_bands_for_many() {
    let (server, id) = tried_twice().await;
    let line = server.get(&format!("/v1/executions/{id}/timeline")).await.body;
    let spans = line["items"][0]["spans"].as_array().unwrap().iter();
    let kinds: Vec<_> = spans.map(|span| span["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["attempt", "backoff", "attempt"]);
    let later = server
        .get(&format!("/v1/executions/{id}/timeline?from=2999-01-01T00:00:00Z"))
        .await
        .body;
    assert_eq!(later["items"], json!([]));
    let each = json!([{"type": "foreach", "name": "each", "concurrency": 20,
        "iterationMapping": {"collection": "$.items", "item": "item"},
        "steps": [{"type": "wait", "name": "nap", "duration": 3600}]}]);
    server.flow("many", each).await;
    let many: Vec<u32> = (0..20).collect();
    let id = start(&server, "many", json!({"items": many})).await;
    let line = server.get(&format!("/v1/executions/{id}/timeline")).await.body;
    assert_eq!(line["items"].as_array().unwrap().len(), 1, "{line}");
    assert_eq!(line["items"][0]["children"], 20);
    let bands = line["items"][0]["bands"].as_array().unwrap();
    // All of them go on now, wherever the line ends.
    let most = bands.iter().filter_map(|band| band[0].as_u64()).max();
    assert_eq!((bands.len(), most), (48, Some(20)));
    // Pages of lanes.
    let pass = |name: &str| json!({"type": "pass", "name": name});
    server.flow("three", json!([pass("a"), pass("b"), pass("c")])).await;
    let id = start(&server, "three", json!({})).await;
    server.get(&format!("/v1/executions/{id}?wait=10")).await;
    let first = server.get(&format!("/v1/executions/{id}/timeline?lanes=2")).await.body;
    let next = first["next"].as_u64().unwrap();
    let second = server
        .get(&format!("/v1/executions/{id}/timeline?lanes=2&cursor={next}"))
        .await
        .body;
    assert_eq!(
        (&second["items"][0]["step"], &second["next"]),
        (&json!("c"), &Value::Null)
    );
}

/// All events of an execution, in order.
async fn all_events(server: &Running, id: &str) -> Vec<Value> {
    let (mut events, mut from) = (Vec::new(), 1);
    loop {
        let path = format!("/v1/executions/{id}/history?limit=1000&from={from}");
        let page = server.get(&path).await.body;
        let items = page["items"].as_array().unwrap();
        events.extend(items.iter().cloned());
        match page["next"].as_u64() {
            Some(next) => from = next,
            None => return events,
        }
    }
}

#[tokio::test]
pub async fn long_history_is_told_at_any_of_its_events() {
    let server = Running::start().await;
    let each = json!([{"type": "foreach", "name": "each",
        "iterationMapping": {"collection": "$.items", "item": "item"},
        "steps": [{"type": "pass", "name": "p"}]}]);
    server.flow("f", each).await;
    let items: Vec<u32> = (0..1_600).collect();
    let id = start(&server, "f", json!({"items": items})).await;
    server.get(&format!("/v1/executions/{id}?wait=20")).await;
    let events = all_events(&server, &id).await;
    let last = events.len() as u64;
    assert!(last > 9_000, "{last} events: several copies of the fold");
    let entered = |event: &&Value| event["type"] == "StepEntered";
    let composite = events.iter().find(entered).unwrap()["id"].as_u64().unwrap();
    // Forwards, backwards, with copies, and twice.
    for at in [9_001, 4_095, 4_096, 4_097, 7_000, 7_001, 500, 8_192, 8_192, last] {
        let until = || events.iter().take(at as usize);
        let many = |kind: &str| until().filter(|event| event["type"] == *kind).count() as u64;
        let path = format!("/v1/executions/{id}/iterations?event={composite}&at={at}");
        let map = server.get(&path).await.body;
        let (begun, done) = (many("IterationEntered"), many("IterationExited"));
        let counts = &map["counts"];
        assert_eq!(counts["succeeded"], done, "at {at}");
        assert_eq!(counts["running"], begun - done, "at {at}");
        let marks = server.get(&format!("/v1/executions/{id}/marks?at={at}")).await.body;
        let inner = marks["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|mark| mark["step"] == "p");
        let visits = until().filter(|event| event["type"] == "StepEntered" && event["step"] == "p");
        assert_eq!(inner.unwrap()["visits"], visits.count() as u64, "at {at}");
        // A row deep inside is found by its step and place.
        let inside = format!("%5B%7B%22step%22:%22each%22,%22iteration%22:{}%7D%5D", begun - 1);
        let rows = format!("/v1/executions/{id}/steps?at={at}&path={inside}&step=p");
        let rows = server.get(&rows).await.body;
        let there = until().any(|event| entered(&event) && event["path"][0]["iteration"] == begun - 1);
        assert_eq!(
            rows["items"].as_array().unwrap().len(),
            usize::from(there),
            "at {at}: {rows}"
        );
    }
    let line = server.get(&format!("/v1/executions/{id}/timeline")).await.body;
    let bands = line["items"][0]["bands"].as_array().unwrap();
    let counted: u64 = bands.iter().filter_map(|band| band[0].as_u64()).sum();
    assert!(counted >= 1_600, "{line}");
}

#[tokio::test]
pub async fn history_is_asked_for_some_events() {
    let (server, id) = tried_twice().await;
    let path = format!("/v1/executions/{id}/history");
    let types = |page: &Value| {
        let items = page["items"].as_array().unwrap().iter();
        items
            .map(|event| event["type"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let failed = server.get(&format!("{path}?failed=true")).await.body;
    assert_eq!(types(&failed), ["TaskFailed", "StepFailed"]);
    assert_eq!(failed["next"], Value::Null);
    let back = server.get(&format!("{path}?failed=true&order=desc&limit=1")).await.body;
    assert_eq!(types(&back), ["StepFailed"]);
    let next = back["next"].as_u64().unwrap();
    let rest = server
        .get(&format!("{path}?failed=true&order=desc&from={next}"))
        .await
        .body;
    assert_eq!(types(&rest), ["TaskFailed"]);
    let mixed = server
        .get(&format!("{path}?type=ExecutionStarted,StepExited&step=work"))
        .await
        .body;
    assert_eq!(types(&mixed), ["StepExited"]);
    let last = server.get(&format!("{path}?order=desc&limit=1")).await.body;
    let (number, time) = (&last["items"][0]["id"], last["items"][0]["time"].as_str().unwrap());
    let at = server.get(&format!("{path}?at={time}")).await.body;
    let items = at["items"].as_array().unwrap();
    assert!(items.iter().all(|event| event["time"] == time), "{at}");
    assert_eq!(&items[items.len() - 1]["id"], number);
    assert_eq!(
        server.get(&format!("{path}?at=2999-01-01T00:00:00Z")).await.body["items"],
        json!([])
    );
    for query in [
        "type=Odd",
        "failed=maybe",
        "at=noon",
        "order=desc&at=2999-01-01T00:00:00Z",
    ] {
        let refused = server.get(&format!("{path}?{query}")).await;
        assert_eq!(refused.code(), (400, "BadRequest"), "{query}");
    }
}

#[tokio::test]
pub async fn datum_comes_in_parts() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let id = start(&server, "f", json!({"星": "a".repeat(100), "list": [{"x": 1}]})).await;
    let path = format!("/v1/executions/{id}/data?event=1&part=input");
    let (mut text, mut from) = (String::new(), 0);
    loop {
        let part = server.get(&format!("{path}&bytes=7&from={from}")).await.body;
        text.push_str(part["text"].as_str().unwrap());
        match part["next"].as_u64() {
            Some(next) => from = next,
            None => break,
        }
    }
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["list"], json!([{"x": 1}]));
    let one = server.get(&format!("{path}&pointer=/list/0/x")).await.body;
    assert_eq!((&one["text"], &one["kind"]), (&json!("1"), &json!("a number")));
    for query in ["event=1&part=odd", "event=1&part=input&pointer=/none"] {
        let refused = server.get(&format!("/v1/executions/{id}/data?{query}")).await;
        assert_eq!(refused.code(), (404, "NoSuchData"), "{query}");
    }
    let beyond = server.get(&format!("/v1/executions/{id}/data?event=999")).await;
    assert_eq!(beyond.code(), (404, "NoSuchEvent"));
    assert_eq!(
        server.get(&format!("/v1/executions/{id}/data")).await.code(),
        (400, "BadRequest")
    );
}

#[tokio::test]
pub async fn sender_is_told_its_name_and_scopes() {
    let server = Running::with(access::access(), |_| {}).await;
    let ask = |token: &str| server.request(Method::GET, "/v1/me").bearer_auth(token);
    for scope in ["read", "start", "worker", "operate", "admin"] {
        let me = crate::harness::sent(ask(&format!("token-{scope}"))).await;
        let me: Value = serde_json::from_str(&me.text().await.unwrap()).unwrap();
        assert_eq!(me, json!({"name": scope, "scopes": [scope]}));
    }
    assert_eq!(crate::harness::sent(ask("token-none")).await.status(), 401);
    let open = Running::start().await;
    assert_eq!(
        open.get("/v1/me").await.body,
        json!({"name": null, "scopes": ["admin"]})
    );
}
