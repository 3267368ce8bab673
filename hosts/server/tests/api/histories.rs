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
async fn expanded_history_has_the_data_around_each_step() {
    let server = Running::start().await;
    let made = |name: &str, value: u32| json!({"type": "pass", "name": name, "outputMappings": [{"target": name, "source": value}]});
    let each = json!({
        "type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "n"},
        "steps": [made("b", 2), made("c", 3)],
    });
    server.flow("g", json!([made("a", 1), each])).await;
    let start = json!({"input": {"items": [7, 8]}});
    let ended = server.post("/v1/flows/g/executions?wait=10", start).await;
    let path = format!("/v1/executions/{}/history", ended.body["id"].as_str().unwrap());
    let plain = server.get(&path).await.body["items"].as_array().unwrap().clone();
    let full = server.get(&format!("{path}?expand=true")).await.body["items"].clone();
    let full = full.as_array().unwrap();
    assert_eq!(plain.len(), full.len());
    for (plain, full) in plain.iter().zip(full) {
        for (name, value) in plain["detail"].as_object().unwrap() {
            assert_eq!(&full["detail"][name], value, "nothing is taken away");
        }
    }
    let detail = |kind: &str, step: &str, number: usize| {
        let found = full
            .iter()
            .filter(|event| event["type"] == kind && event["step"] == step);
        found.map(|event| event["detail"].clone()).nth(number).unwrap()
    };
    let entered = detail("StepEntered", "c", 1);
    assert_eq!(entered["input"], json!({"items": [7, 8], "a": 1, "n": 8}));
    assert_eq!(entered["local"], json!({"b": 2}));
    let started = detail("StepStarted", "c", 0);
    assert_eq!(started["input"], json!({"items": [7, 8], "a": 1, "n": 7, "b": 2}));
    assert_eq!(detail("StepExited", "a", 0)["local"], json!({"a": 1}));
    assert_eq!(detail("StepExited", "c", 0)["local"], json!({"b": 2, "c": 3}));
    // Pages in both orders are parts of the whole.
    let page = server.get(&format!("{path}?expand=true&from=5&limit=3")).await.body;
    assert_eq!(page["items"].as_array().unwrap()[..], full[4..7]);
    let page = server
        .get(&format!("{path}?expand=true&from=7&limit=3&order=desc"))
        .await
        .body;
    let backwards: Vec<Value> = full[4..7].iter().rev().cloned().collect();
    assert_eq!(page["items"].as_array().unwrap()[..], backwards);
    assert_eq!(page["next"], 4);
    let wrong = server.get(&format!("{path}?expand=yes")).await;
    assert_eq!(wrong.status, 400, "{wrong:?}");
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

/// Each of a hundred iterations has the whole input: the state would have a hundred times its size.
#[tokio::test]
async fn a_state_has_bounded_data() {
    let server = Running::start().await;
    let wait = json!({"type": "wait", "name": "w", "duration": 3600});
    let each = json!([{
        "type": "foreach", "name": "each", "concurrency": 100,
        "iterationMapping": {"collection": "$.items", "item": "item"}, "steps": [wait],
    }]);
    server.flow("f", each).await;
    let input = json!({"items": vec!["x".repeat(4_000); 100]});
    let begun = server.post("/v1/flows/f/executions", json!({"input": input})).await;
    let path = format!("/v1/executions/{}/state", begun.body["id"].as_str().unwrap());
    let told = |state: &Value| state["steps"].as_array().unwrap().len() as u64;
    let state = loop {
        let state = server.get(&path).await.body;
        let left_out = state["stepsLeftOut"].as_u64().unwrap_or(0);
        if told(&state) + left_out == 101 {
            break state;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(told(&state), 42, "16 MiB are 41 inputs and a part of one");
    let last = &state["steps"][41];
    assert_eq!((&last["step"], &last["input"]["items"]), (&json!("w"), &input["items"]));
}
