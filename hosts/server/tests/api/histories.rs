use crate::clock::StandingClock;
use crate::harness::{Answer, Running, sent};
use reqwest::Method;
use serde_json::{Value, json};
use starbridge_server::Access;

async fn ended(server: &Running) -> String {
    let steps: Vec<Value> = (0..20)
        .map(|number| json!({"type": "pass", "name": format!("s{number}")}))
        .collect();
    server.flow("f", steps.into()).await;
    let ended = server.post("/v1/flows/f/executions?wait=10", json!({})).await;
    ended.body["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
pub async fn pages_in_both_orders_hold_every_event_once() {
    let server = Running::start().await;
    let id = ended(&server).await;
    for (order, first) in [("asc", 1), ("desc", 82)] {
        let mut numbers = Vec::new();
        let mut from = String::new();
        loop {
            let page = server
                .get(&format!("/v1/executions/{id}/history?limit=7&order={order}{from}"))
                .await;
            let items = page.body["items"].as_array().unwrap().clone();
            numbers.extend(items.iter().map(|event| event["id"].as_u64().unwrap()));
            match page.body["next"].as_u64() {
                Some(next) => from = format!("&from={next}"),
                None => break,
            }
        }
        assert_eq!(numbers.first(), Some(&first));
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=82).collect::<Vec<u64>>(), "{order}");
    }
}

#[tokio::test]
async fn event_stream_resumes_at_last_event_id() {
    let server = Running::start().await;
    let id = ended(&server).await;
    let request = server.request(Method::GET, &format!("/v1/executions/{id}/history"));
    let request = request
        .header("accept", "text/event-stream")
        .header("last-event-id", "79");
    let text = sent(request).await.text().await.unwrap();
    let ids: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(ids, ["80", "81", "82"]);
    assert!(text.trim_end().ends_with("event: end\ndata: {}"), "{text}");
}

#[tokio::test]
async fn event_stream_refuses_an_unknown_last_event_id() {
    let server = Running::start().await;
    let id = ended(&server).await;
    for seen in ["18446744073709551615", "18446744073709551616", "-1", "zzz", ""] {
        let request = server.request(Method::GET, &format!("/v1/executions/{id}/history"));
        let request = request
            .header("accept", "text/event-stream")
            .header("last-event-id", seen);
        let answer = Answer::of(sent(request).await).await;
        assert_eq!(answer.code(), (400, "BadRequest"), "{seen}");
    }
}

#[tokio::test]
async fn event_stream_is_live() {
    let server = Running::start().await;
    server
        .flow(
            "f",
            json!([{"type": "wait", "name": "w", "duration": 0.5}, {"type": "pass", "name": "p"}]),
        )
        .await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let id = begun.body["id"].as_str().unwrap();
    let request = server.request(Method::GET, &format!("/v1/executions/{id}/history"));
    let text = sent(request.header("accept", "text/event-stream"))
        .await
        .text()
        .await
        .unwrap();
    assert!(
        text.contains("TimerFired") && text.contains("ExecutionSucceeded"),
        "{text}"
    );
}

#[tokio::test]
pub async fn a_state_is_that_at_the_end_of_the_turn() {
    let server = Running::start().await;
    server
        .flow("f", json!([{"type": "pass", "name": "p", "outputMappings": [{"target": "x", "source": 1}]}, {"type": "wait", "name": "w", "duration": 3600}]))
        .await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let id = begun.body["id"].as_str().unwrap();
    let state = server.get(&format!("/v1/executions/{id}/state?at=3")).await;
    assert_eq!(
        (&state.body["local"], &state.body["steps"][0]["state"]),
        (&json!({"x": 1}), &json!("waiting"))
    );
    assert_eq!(
        server.get(&format!("/v1/executions/{id}/state?at=99")).await.code(),
        (404, "NoSuchEvent")
    );
    let steps = server.get(&format!("/v1/executions/{id}/steps")).await;
    let statuses: Vec<&str> = steps.body["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["succeeded", "waiting"]);
}

#[tokio::test]
pub async fn schedules_start_flows() {
    let clock = StandingClock::new();
    let own = clock.clone();
    let server = Running::with(Access::default(), |settings| settings.clock = own).await;
    server.flow("f", json!([{"type": "pass", "name": "p"}])).await;
    let bad = server
        .put("/v1/schedules/s", json!({"flow": "f", "cron": "61 * * * *"}))
        .await;
    assert_eq!(bad.code(), (422, "InvalidSchedule"));
    assert_eq!(
        server
            .put("/v1/schedules/s", json!({"flow": "none", "cron": "@every 1s"}))
            .await
            .code(),
        (422, "NoSuchFlow")
    );
    tokio::spawn(server.node.clone().keep_schedules());
    let put = server
        .put(
            "/v1/schedules/s",
            json!({"flow": "f", "cron": "@every 1s", "payload": {"k": 1}}),
        )
        .await;
    assert_eq!(put.status, 200, "{put:?}");
    let mut found = json!(null);
    assert_eq!(
        server.get("/v1/executions?flow=f").await.body["items"],
        json!([]),
        "not before its time"
    );
    clock.pass(1_000);
    for _ in 0..500 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        let list = server.get("/v1/executions?flow=f").await;
        if list.body["items"][0].is_object() {
            found = list.body["items"][0].clone();
            break;
        }
    }
    let shown = server
        .get(&format!("/v1/executions/{}", found["id"].as_str().unwrap()))
        .await;
    assert_eq!(
        (&shown.body["input"]["payload"], &shown.body["input"]["triggerName"]),
        (&json!({"k": 1}), &json!("s"))
    );
    assert_eq!(server.ask(Method::DELETE, "/v1/schedules/s", None).await.status, 204);
    assert_eq!(server.get("/v1/schedules/s").await.code(), (404, "NoSuchSchedule"));
}
