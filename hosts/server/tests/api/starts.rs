//! The order and time of starts.

use crate::clock::StandingClock;
use crate::harness::{Running, asleep};
use crate::mailbox::{ended, eventually};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const STARTS: &str = "/v1/flows/f/executions";

fn pass() -> Value {
    json!([{"type": "pass", "name": "p", "outputMappings": [{"target": "x", "source": 1}]}])
}

async fn types(server: &Running, id: &str) -> Vec<String> {
    let history = server.get(&format!("/v1/executions/{id}/history")).await;
    assert_eq!(history.status, 200, "{history:?}");
    let items = history.body["items"].as_array().unwrap();
    items
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect()
}

fn id_of(answer: &crate::harness::Answer) -> String {
    answer.body["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer:?}"))
        .to_owned()
}

#[tokio::test]
async fn once_key_is_one_execution_waiting_running_or_ended() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    server.flow("g", asleep()).await;
    let key = "order 7 / Zoë";
    let first = server.post(STARTS, json!({"onceKey": key, "input": {"a": 1}})).await;
    assert_eq!((first.status, &first.body["onceKey"]), (201, &json!(key)));
    for again in [
        json!({"onceKey": key, "input": {"a": 1}}),
        // With another input, name or time, the result is still the first execution.
        json!({"onceKey": key, "input": {"a": 2}}),
        json!({"onceKey": key, "name": "other", "delaySeconds": 5}),
    ] {
        let again = server.post(STARTS, again).await;
        assert_eq!((again.status, &again.body["id"]), (200, &first.body["id"]));
        assert_eq!(again.body["input"], json!({"a": 1}));
    }
    let elsewhere = server.post("/v1/flows/g/executions", json!({"onceKey": key})).await;
    assert_eq!(elsewhere.status, 201);
    let other = server.post(STARTS, json!({"onceKey": "order 8"})).await;
    assert_eq!(other.status, 201);
    let batch = json!([{"flow": "f", "onceKey": key}, {"flow": "f", "onceKey": "order 9"}]);
    let batch = server.post("/v1/executions/batch", batch).await;
    assert_eq!(batch.body["items"][0]["execution"]["id"], first.body["id"]);
    let statuses: Vec<_> = (0..2)
        .map(|n| batch.body["items"][n]["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [200, 201]);
    let id = id_of(&first);
    server.post(&format!("/v1/executions/{id}/stop"), json!({})).await;
    let after = server.post(&format!("{STARTS}?wait=5"), json!({"onceKey": key})).await;
    assert_eq!((after.status, &after.body["status"]), (200, &json!("Stopped")));
    let waiting = json!({"onceKey": "later", "delaySeconds": 600});
    let first = server.post(STARTS, waiting).await;
    let again = server.post(STARTS, json!({"onceKey": "later"})).await;
    assert_eq!((again.status, &again.body["status"]), (200, &json!("Delayed")));
    assert_eq!(again.body["id"], first.body["id"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn once_key_at_once_starts_one() {
    let server = Arc::new(Running::start().await);
    server.flow("f", asleep()).await;
    let mut starts = Vec::new();
    for number in 0..20 {
        let server = server.clone();
        let start = json!({"onceKey": "one", "input": {"n": number}, "delaySeconds": number % 2 * 100});
        starts.push(tokio::spawn(async move { server.post(STARTS, start).await }));
    }
    let (mut ids, mut created) = (Vec::new(), 0);
    for start in starts {
        let answer = start.await.unwrap();
        created += usize::from(answer.status == 201);
        ids.push(id_of(&answer));
    }
    ids.sort();
    ids.dedup();
    assert_eq!((created, ids.len()), (1, 1), "{ids:?}");
    let list = server.get("/v1/executions?flow=f").await;
    assert_eq!(list.body["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn terms_of_a_start_that_are_none_are_refused() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    for (start, words) in [
        (json!({"onceKey": ""}), "must not be empty"),
        (
            json!({"onceKey": "é".repeat(129)}),
            "258 bytes, more than the limit of 256",
        ),
        (json!({"onceKey": 7}), "must be a string"),
        (json!({"priority": 10}), "from 0 to 9, not 10"),
        (json!({"priority": -1}), "whole number"),
        (json!({"orderTime": "soon"}), "a whole number or an RFC 3339 time"),
        (json!({"orderTime": 1.5}), "a whole number or an RFC 3339 time"),
        (json!({"orderTime": {}}), "not an object"),
        (json!({"startAt": "tomorrow"}), "must be an RFC 3339 time"),
        (json!({"startAt": 5}), "must be a string"),
        (json!({"delaySeconds": -1}), "whole number"),
        (
            json!({"delaySeconds": 3_153_600_001_u64}),
            "at most 3153600000, a hundred years, not 3153600001",
        ),
        (json!({"delaySeconds": u64::MAX}), "at most 3153600000"),
        (json!({"startDeadlineSeconds": 1_u64 << 62}), "at most 3153600000"),
        (
            json!({"startAt": "2030-01-01T00:00:00Z", "delaySeconds": 1}),
            "give one of them",
        ),
        (json!({"startDeadlineSeconds": 0}), "at least 1"),
    ] {
        let refused = server.post(STARTS, start.clone()).await;
        assert_eq!(refused.code(), (400, "BadRequest"), "{start}");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{start}: {detail}");
    }
    for after in [
        json!("a"),
        json!([7]),
        json!([{"execution": "a", "when": "soon"}]),
        json!(["a b"]),
    ] {
        let refused = server.post(STARTS, json!({"after": after})).await;
        assert_eq!(refused.code(), (400, "BadRequest"), "{after}: {}", refused.body);
    }
    let list = server.get("/v1/executions").await;
    assert_eq!(list.body["items"], json!([]));
}

#[tokio::test]
pub async fn delayed_start_waits_without_a_history_and_begins() {
    let clock = StandingClock::new();
    let own = clock.clone();
    let server = Running::with(starbridge_server::Access::default(), |settings| {
        (settings.owners, settings.clock) = (1, own);
    })
    .await;
    server.flow("f", pass()).await;
    let start = json!({"name": "one", "input": {"a": 1}, "delaySeconds": 60, "priority": 7, "orderTime": 3});
    let delayed = server.post(STARTS, start.clone()).await;
    assert_eq!((delayed.status, &delayed.body["status"]), (201, &json!("Delayed")));
    assert_eq!(delayed.body["waitingFor"]["reason"], "startTime");
    assert_eq!(
        (&delayed.body["priority"], &delayed.body["orderTime"]),
        (&json!(7), &json!(3))
    );
    let id = id_of(&delayed);
    assert_eq!(types(&server, &id).await, Vec::<String>::new());
    let shown = server.get(&format!("/v1/executions/{id}")).await;
    assert_eq!(
        (&shown.body["status"], &shown.body["input"]),
        (&json!("Delayed"), &json!({"a": 1}))
    );
    let state = server.get(&format!("/v1/executions/{id}/state")).await;
    assert_eq!((state.status, &state.body["status"]), (200, &json!("Delayed")));
    let steps = server.get(&format!("/v1/executions/{id}/steps")).await;
    assert_eq!((steps.status, &steps.body["items"]), (200, &json!([])));
    let fork = server
        .post(&format!("/v1/executions/{id}/fork"), json!({"event": 1}))
        .await;
    assert_eq!(fork.code(), (404, "NoSuchEvent"));
    for (action, body) in [
        ("redrive", json!({})),
        ("skip", json!({})),
        ("steps/1/resolve", json!({"action": "retry"})),
    ] {
        let answer = server.post(&format!("/v1/executions/{id}/{action}"), body).await;
        assert_eq!(answer.code(), (409, "NotStarted"), "{action}: {answer:?}");
        assert!(
            answer.body["detail"].as_str().unwrap().contains("can be stopped"),
            "{answer:?}"
        );
    }
    let list = server.get("/v1/executions?status=Delayed").await;
    assert_eq!(list.body["items"][0]["id"], json!(id));
    // The same start again gives the same execution; with another input it does not.
    let again = server.post(STARTS, start).await;
    assert_eq!((again.status, &again.body["id"]), (200, &json!(id)));
    let other = server.post(STARTS, json!({"name": "one", "input": {"a": 2}})).await;
    assert_eq!(other.code(), (409, "ExecutionAlreadyExists"));
    clock.pass(60_000);
    let end = server.get(&format!("/v1/executions/{id}?wait=30")).await;
    assert_eq!(
        (&end.body["status"], &end.body["output"]),
        (&json!("Succeeded"), &json!({"x": 1}))
    );
    assert!(
        end.body["requestedTime"].as_str() < end.body["startedTime"].as_str(),
        "{end:?}"
    );
    assert_eq!(end.body["priority"], 7);
    let history = server.get(&format!("/v1/executions/{id}/history")).await;
    let first = &history.body["items"][0]["detail"];
    assert_eq!((&first["machine"], &first["priority"]), (&json!(2), &json!(7)));
    assert_eq!(first["waited"]["requestedTime"], end.body["requestedTime"]);
    let counts = server.node.store().counts().unwrap();
    assert_eq!(counts, [(starbridge_machine::Status::Succeeded, 1)]);
}

#[tokio::test]
async fn wait_answers_with_the_end_of_a_delayed_start() {
    let server = Running::start().await;
    server.flow("f", pass()).await;
    let end = server
        .post(&format!("{STARTS}?wait=30"), json!({"delaySeconds": 1}))
        .await;
    assert_eq!((end.status, &end.body["status"]), (201, &json!("Succeeded")));
    let now = server
        .post(&format!("{STARTS}?wait=30"), json!({"startAt": "2020-01-01T00:00:00Z"}))
        .await;
    assert_eq!(now.body["status"], "Succeeded");
    assert_eq!(types(&server, &id_of(&now)).await[0], "ExecutionStarted");
    assert_eq!(now.body.get("requestedTime"), None);
    let refused = server
        .post(STARTS, json!({"input": {}, "version": 9, "delaySeconds": 1}))
        .await;
    assert_eq!(refused.code(), (404, "NoSuchFlow"));
}

#[tokio::test]
async fn delayed_start_that_is_stopped_has_two_events() {
    let server = Running::start().await;
    server.flow("f", pass()).await;
    let start = json!({"name": "one", "startAt": "2099-01-01T00:00:00Z"});
    let id = id_of(&server.post(STARTS, start).await);
    let stop = json!({"error": "Shop.Closed", "cause": "it is late"});
    let stopped = server.post(&format!("/v1/executions/{id}/stop"), stop.clone()).await;
    assert_eq!(
        (stopped.status, &stopped.body["status"]),
        (200, &json!("Stopped")),
        "{stopped:?}"
    );
    assert_eq!(stopped.body["error"], "Shop.Closed");
    assert_eq!(types(&server, &id).await, ["ExecutionStarted", "ExecutionStopped"]);
    let again = server.post(&format!("/v1/executions/{id}/stop"), stop).await;
    assert_eq!(again.code(), (409, "AlreadyEnded"));
    // Its redrive runs at once.
    let redriven = server.post(&format!("/v1/executions/{id}/redrive"), json!({})).await;
    assert_eq!(redriven.status, 200, "{redriven:?}");
    assert_eq!(ended(&server, "f", "one").await["status"], "Succeeded");
}

#[tokio::test]
async fn deadline_of_a_start_fails_it() {
    let server = Running::start().await;
    server.flow("f", pass()).await;
    let start = json!({"name": "late", "delaySeconds": 60, "startDeadlineSeconds": 1});
    let late = server.post(&format!("{STARTS}?wait=30"), start).await;
    assert_eq!(late.body["status"], "Failed", "{late:?}");
    assert_eq!(late.body["error"], "FnF.StartDeadlineExceeded");
    assert_eq!(
        types(&server, &id_of(&late)).await,
        ["ExecutionStarted", "ExecutionFailed"]
    );
    let kept = json!({"delaySeconds": 1, "startDeadlineSeconds": 600});
    let kept = server.post(&format!("{STARTS}?wait=30"), kept).await;
    assert_eq!(kept.body["status"], "Succeeded");
}

#[tokio::test]
async fn delayed_start_outlives_the_process() {
    let store = starbridge_node::stores::in_memory();
    let (first, second) = (store.clone(), store);
    let server = Running::with(starbridge_server::Access::default(), |settings| settings.store = first).await;
    server.flow("f", pass()).await;
    for number in 0..20 {
        let start = json!({"name": format!("e{number}"), "delaySeconds": 1, "onceKey": format!("k{number}")});
        assert_eq!(server.post(STARTS, start).await.status, 201);
    }
    server.node.drain(Duration::ZERO).await.unwrap();
    drop(server);
    let server = Running::with(starbridge_server::Access::default(), |settings| settings.store = second).await;
    for number in 0..20 {
        assert_eq!(ended(&server, "f", &format!("e{number}")).await["status"], "Succeeded");
    }
    let again = server.post(STARTS, json!({"onceKey": "k7"})).await;
    assert_eq!((again.status, &again.body["name"]), (200, &json!("e7")));
}

#[tokio::test]
async fn priority_and_order_of_a_start_order_its_tasks() {
    let server = Running::start().await;
    server
        .flow("f", json!([{"type": "task", "name": "t", "resourceArn": "queue:jobs"}]))
        .await;
    for (name, terms) in [
        ("usual", json!({})),
        ("second", json!({"priority": 9, "orderTime": "1970-01-01T00:00:02Z"})),
        ("first", json!({"priority": 9, "orderTime": 1})),
        ("last", json!({"priority": 0})),
    ] {
        let mut start = terms;
        start["name"] = json!(name);
        assert_eq!(server.post(STARTS, start).await.status, 201);
    }
    eventually("all four in the queue", async || {
        let queue = server.get("/v1/queues/jobs").await;
        (queue.body["waiting"] == 4).then_some(())
    })
    .await;
    let hold = json!({"worker": "w", "limit": 4, "waitSeconds": 20});
    let held = server.post("/v1/queues/jobs/hold", hold).await;
    let tasks = held.body["tasks"].as_array().unwrap();
    let mut order = Vec::new();
    for task in tasks {
        let execution = task["execution"].as_str().unwrap();
        let shown = server.get(&format!("/v1/executions/{execution}")).await;
        order.push(shown.body["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(order, ["first", "second", "usual", "last"]);
}

/// The execution that has the key is deleted between looking it up and showing it: another one begins.
#[tokio::test]
async fn once_key_of_what_is_deleted_meanwhile_starts_anew() {
    let server = Running::start().await;
    server.flow("f", json!([{"type": "pass", "name": "p"}])).await;
    let client = async |number: usize| {
        for turn in 0..40 {
            let begun = server.post(STARTS, json!({"onceKey": "race"})).await;
            assert!(matches!(begun.status, 200 | 201), "{:?}", begun.body);
            if (number + turn).is_multiple_of(3) {
                let path = format!("/v1/executions/{}", begun.body["id"].as_str().unwrap());
                server.ask(Method::DELETE, &path, None).await;
            }
        }
    };
    tokio::join!(client(0), client(1), client(2), client(3), client(4), client(5));
}
