//! Why executions do not go on: each reason is caused, queried, and ended by its act.

use crate::harness::{Running, asleep, definition, refusing};
use crate::mailbox::Mailbox;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

async fn started(server: &Running, flow: &str, start: Value) -> String {
    let started = server.post(&format!("/v1/flows/{flow}/executions"), start).await;
    assert_eq!(started.status, 201, "{started:?}");
    started.body["id"].as_str().unwrap().to_owned()
}

/// The answer, as soon as this is the primary reason; `null` for an execution that has ended.
async fn why(server: &Running, id: &str, reason: &Value) -> Value {
    let mut last = Value::Null;
    for _ in 0..500 {
        let answer = server.get(&format!("/v1/executions/{id}/why")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        last = answer.body;
        let told = match &last["waitingFor"] {
            Value::Null => Value::Null,
            waiting => waiting["reason"].clone(),
        };
        if told == *reason {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} does not wait for {reason}: {last}");
}

async fn done(server: &Running, path: &str, body: Value) {
    let answer = server.post(path, body).await;
    assert!(answer.status < 300, "{path}: {answer:?}");
}

async fn listed(server: &Running, query: &str) -> Vec<String> {
    let list = server.get(&format!("/v1/executions?{query}")).await;
    let items = list.body["items"]
        .as_array()
        .unwrap_or_else(|| panic!("{query}: {list:?}"));
    let id = |item: &Value| item["id"].as_str().unwrap().to_owned();
    items.iter().map(id).collect()
}

fn task(resource: &str) -> Value {
    json!([{"type": "task", "name": "t", "resourceArn": resource, "timeoutSeconds": 600}])
}

/// What makes the reason, and the act on the execution that ends it.
async fn one(server: &Running, id: &str, reason: &str, act: (Option<&str>, &str, Value), then: Value) {
    let told = why(server, id, &json!(reason)).await;
    let waiting = &told["waitingFor"];
    let (command, verb, body) = act;
    let command = command.map(|command| command.replace("ID", id));
    assert_eq!(waiting["act"], json!(command), "{told}");
    assert!(!waiting["text"].as_str().unwrap().is_empty(), "{told}");
    assert_eq!(told["waits"][0], *waiting, "{told}");
    done(server, &format!("/v1/executions/{id}/{verb}"), body).await;
    why(server, id, &then).await;
}

#[tokio::test]
async fn each_reason_of_an_execution_is_ended_by_its_act() {
    let server = Running::start().await;
    server.flow("asleep", asleep()).await;
    let nobody = refusing();
    let target = format!("http://{}/pay", nobody.local_addr().unwrap());
    let manual = json!([{"type": "task", "name": "t", "resourceArn": target, "retry": [],
        "catch": [{"errors": ["FnF.ALL"], "manual": true}]}]);
    server.flow("manual", manual).await;
    let retry = json!([{"type": "task", "name": "t", "resourceArn": target,
        "retry": [{"errors": ["FnF.ALL"], "intervalSeconds": 3600, "maxAttempts": 3}]}]);
    server.flow("retry", retry).await;
    let id = started(&server, "asleep", json!({"delaySeconds": 3600})).await;
    let now = (Some("starbridge order ID --now"), "order", json!({"startNow": true}));
    one(&server, &id, "startTime", now, json!("timer")).await;
    done(&server, &format!("/v1/executions/{id}/pause"), json!({})).await;
    let resume = (Some("starbridge resume ID"), "resume", json!({}));
    one(&server, &id, "paused", resume, json!("timer")).await;
    // Only time ends these two, so no command is told; a stop ends them, too.
    let stop = || (None, "stop", json!({}));
    one(&server, &id, "timer", stop(), Value::Null).await;
    let id = started(&server, "retry", json!({})).await;
    one(&server, &id, "retry", stop(), Value::Null).await;
    let id = started(&server, "manual", json!({})).await;
    let asked = why(&server, &id, &json!("manual")).await;
    let event = asked["waitingFor"]["request"].as_u64().unwrap();
    assert!(asked["waitingFor"]["error"].is_string(), "{asked}");
    let command = format!("starbridge resolve ID retry --event {event}");
    let verb = format!("steps/{event}/resolve");
    let fail = json!({"action": "fail"});
    one(&server, &id, "manual", (Some(&*command), &verb, fail), Value::Null).await;
    let mailbox = Mailbox::open().await;
    server.flow("callback", json!([mailbox.ask("ask")])).await;
    let id = started(&server, "callback", json!({})).await;
    let listed_wait = async || server.get("/v1/executions?flow=callback").await.body["items"][0]["waitingFor"].clone();
    let event = why(&server, &id, &json!("callback")).await["waitingFor"]["event"]
        .as_u64()
        .unwrap();
    let command = format!("starbridge report {id} --step ask succeed");
    while listed_wait().await["act"] != json!(command) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let command = format!("starbridge report ID --event {event} succeed");
    let verb = format!("steps/{event}/report");
    let succeed = json!({"action": "succeed", "output": {}});
    one(&server, &id, "callback", (Some(&*command), &verb, succeed), Value::Null).await;
    let id = started(&server, "asleep", json!({"after": ["asleep/never"]})).await;
    let told = why(&server, &id, &json!("dependency")).await;
    assert_eq!(told["waitingFor"]["act"], "starbridge start asleep --name never");
    assert_eq!(
        listed(&server, "reason=dependency&reasonOf=asleep/never").await,
        std::slice::from_ref(&id)
    );
    assert_eq!(
        listed(&server, "reason=dependency&reasonOf=asleep/other").await,
        [""; 0]
    );
    done(&server, &format!("/v1/executions/{id}/order"), json!({"after": []})).await;
    why(&server, &id, &json!("timer")).await;
    let missing = server.get("/v1/executions/none/why").await;
    assert_eq!(missing.code(), (404, "NoSuchExecution"));
}

#[tokio::test]
async fn lines_of_keys_and_flows_are_told_apart_in_lists() {
    let server = Running::start().await;
    let mut flow = definition(asleep());
    flow["concurrency"] = json!([{"key": "one", "limit": 1}]);
    assert_eq!(server.put("/v1/flows/keyed", flow).await.status, 201);
    server.flow("paused", asleep()).await;
    started(&server, "keyed", json!({})).await;
    let keyed = started(&server, "keyed", json!({})).await;
    let told = why(&server, &keyed, &json!("key")).await;
    assert_eq!(told["waitingFor"]["position"], 1, "{told}");
    let patch = async |body: Value| {
        let answer = server.ask(Method::PATCH, "/v1/flows/paused", Some(body)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    };
    patch(json!({"paused": true})).await;
    let paused = started(&server, "paused", json!({})).await;
    why(&server, &paused, &json!("flowPaused")).await;
    for (query, expected) in [
        ("reason=key", vec![&keyed]),
        ("reason=key&reasonOf=one", vec![&keyed]),
        ("reason=key&reasonOf=two", vec![]),
        ("reason=flowPaused", vec![&paused]),
        ("reason=flowPaused&reasonOf=paused", vec![&paused]),
        ("reason=flowLimit", vec![]),
        ("reason=admission", vec![]),
        ("reason=key&status=Running", vec![]),
    ] {
        let found = listed(&server, query).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    let list = server.get("/v1/executions?flow=paused").await.body;
    assert_eq!(list["items"][0]["waitingFor"]["reason"], "flowPaused", "{list}");
    assert_eq!(list["items"][0]["waitingFor"]["of"], "paused", "{list}");
    patch(json!({"paused": false, "maxRunning": 1})).await;
    why(&server, &paused, &json!("timer")).await;
    let second = started(&server, "paused", json!({})).await;
    why(&server, &second, &json!("flowLimit")).await;
    assert_eq!(listed(&server, "reason=flowLimit").await, std::slice::from_ref(&second));
    patch(json!({"maxRunning": 2})).await;
    why(&server, &second, &json!("timer")).await;
    assert_eq!(listed(&server, "reason=flowLimit").await, [""; 0]);
    for query in ["reason=tired", "reasonOf=one", "reason=paused&reasonOf=one"] {
        let refused = server.get(&format!("/v1/executions?{query}")).await;
        assert_eq!(refused.code(), (400, "BadRequest"), "{query}");
    }
}

#[tokio::test]
pub async fn a_task_says_its_queue_and_then_its_worker_through_the_parent() {
    let server = Running::start().await;
    server.flow("child", task("queue:jobs")).await;
    let call = json!([{"type": "task", "name": "call", "resourceArn": "flow:child", "pattern": "sync"}]);
    server.flow("parent", call).await;
    let id = started(&server, "parent", json!({})).await;
    let mut told = Value::Null;
    for _ in 0..500 {
        told = why(&server, &id, &json!("child")).await["waitingFor"].clone();
        if told["waitingFor"]["reason"] == "queue" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(told["waitingFor"]["because"], "noWorker", "{told}");
    assert_eq!(told["act"], "starbridge worker --queue jobs -- COMMAND", "{told}");
    let set = server.put("/v1/queues/jobs", json!({"paused": true})).await;
    assert!(set.status < 300, "{set:?}");
    let child = told["execution"].as_str().unwrap().to_owned();
    let paused = why(&server, &child, &json!("queue")).await;
    assert_eq!(paused["waitingFor"]["act"], "starbridge queue resume jobs", "{paused}");
    let set = server.put("/v1/queues/jobs", json!({"paused": false})).await;
    assert!(set.status < 300, "{set:?}");
    let hold = json!({"worker": "w", "limit": 1, "waitSeconds": 20});
    done(&server, "/v1/queues/jobs/hold", hold).await;
    let held = why(&server, &child, &json!("worker")).await;
    assert_eq!(held["waitingFor"]["worker"], "w", "{held}");
    assert!(held["waitingFor"]["heldTime"].is_string(), "{held}");
}
