//! Only the definition makes references: strings in data never lead to a secret or a token, even if
//! they look like references.

use crate::harness::Running;
use axum::extract::Request;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use starbridge_ports::{Secret, Secrets};
use starbridge_runtime::SecretUse;
use starbridge_server::Access;
use std::sync::{Arc, Mutex};

const CANARY: &str = "canary-77ab01";

struct Cage;

impl Secrets for Cage {
    fn get(&self, name: &str) -> Option<Secret> {
        (name == "KEY").then(|| Secret::new(CANARY))
    }
}

/// A function that answers with `answer`, or with what it received if that is null, and keeps everything it received.
struct Function {
    url: String,
    sent: Arc<Mutex<Vec<String>>>,
}

impl Function {
    async fn answering(status: u16, answer: Value) -> Self {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let seen = sent.clone();
        let handler = move |headers: HeaderMap, request: Request| {
            let (seen, answer) = (seen.clone(), answer.clone());
            async move {
                let line = request.uri().to_string();
                let body = axum::body::to_bytes(request.into_body(), 1 << 20).await.unwrap();
                let body = String::from_utf8_lossy(&body).into_owned();
                let shown = format!("{line} {headers:?} {body}");
                seen.lock().unwrap().push(shown.clone());
                let answer = match answer {
                    Value::Null => json!({"error": shown, "cause": shown, "echo": {shown.as_str(): [shown]}}),
                    answer => answer,
                };
                let id = headers
                    .get("starbridge-execution")
                    .map_or("", |id| id.to_str().unwrap());
                let answer = answer.to_string().replace("{id}", id);
                (axum::http::StatusCode::from_u16(status).unwrap(), answer)
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/f", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(handler)).await });
        Self { url, sent }
    }

    fn sent(&self) -> String {
        self.sent.lock().unwrap().join("\n")
    }
}

async fn server() -> Running {
    Running::with(Access::default(), |settings| settings.secrets = Arc::new(Cage)).await
}

async fn run(server: &Running, flow: &str, input: Value) -> Value {
    let path = format!("/v1/flows/{flow}/executions?wait=30");
    server.post(&path, json!({"input": input})).await.body
}

async fn hold(server: &Running, queue: &str) -> Value {
    hold_as(server, "w", queue).await
}

async fn hold_as(server: &Running, worker: &str, queue: &str) -> Value {
    let asked = json!({"worker": worker, "waitSeconds": 20});
    let held = server.post(&format!("/v1/queues/{queue}/hold"), asked).await;
    held.body["tasks"][0].clone()
}

async fn succeed(server: &Running, task: &Value, output: Value) -> u16 {
    let token = task["token"].as_str().unwrap();
    let path = format!("/v1/callbacks/{token}/succeed");
    server.post(&path, json!({"output": output})).await.status
}

#[tokio::test]
async fn secret_reference_in_data_is_a_string() {
    let server = server().await;
    let lookalike = json!({"secret": "secret://KEY"});
    let function = Function::answering(200, lookalike.clone()).await;
    let params =
        json!({"headers": {"x-data": "$.secret"}, "query": {"q": "$.secret"}, "body": {"all": "$", "one": "$.secret"}});
    server
        .flow(
            "f",
            json!([
            {"type": "task", "name": "ask", "resourceArn": function.url, "serviceParams": params},
            {"type": "task", "name": "relay", "resourceArn": function.url, "serviceParams": params},
            {"type": "task", "name": "work", "resourceArn": "queue:jobs"},
            {"type": "task", "name": "last", "resourceArn": "queue:jobs", "serviceParams": {"body": "$"}}]),
        )
        .await;
    let id = server
        .post("/v1/flows/f/executions", json!({"input": lookalike}))
        .await
        .body["id"]
        .clone();
    let id = id.as_str().unwrap();
    let first = hold(&server, "jobs").await;
    assert_eq!(first["input"]["secret"], "secret://KEY");
    assert_eq!(succeed(&server, &first, json!({"reported": "secret://KEY"})).await, 204);
    let second = hold(&server, "jobs").await;
    assert_eq!(second["input"]["body"]["reported"], "secret://KEY");
    assert_eq!(second.get("references"), None, "{second}");
    assert_eq!(succeed(&server, &second, json!({})).await, 204);
    let shown = server
        .get(&format!("/v1/executions/{id}/history?limit=1000"))
        .await
        .body
        .to_string();
    for text in [function.sent(), first.to_string(), second.to_string(), shown] {
        assert!(!text.contains(CANARY), "{text}");
        assert!(text.contains("secret://KEY"), "{text}");
    }
}

#[tokio::test]
async fn token_reference_in_data_is_not_signed() {
    let server = server().await;
    let approval = json!([{"type": "task", "name": "approve", "resourceArn": "queue:humans"}]);
    let jobs = json!([
        {"type": "task", "name": "first", "resourceArn": "queue:jobs"},
        {"type": "task", "name": "second", "resourceArn": "queue:jobs"}]);
    let branches = json!([{"steps": approval}, {"steps": jobs}]);
    server
        .flow("f", json!([{"type": "parallel", "name": "both", "branches": branches}]))
        .await;
    let id = server.post("/v1/flows/f/executions", json!({"input": {}})).await.body["id"].clone();
    let id = id.as_str().unwrap();
    let first = hold(&server, "jobs").await;
    let guesses: Vec<String> = (1..40).map(|call| format!("task-token:{id}/{call}")).collect();
    assert_eq!(succeed(&server, &first, json!({"guesses": guesses})).await, 204);
    let second = hold(&server, "jobs").await;
    assert_eq!(second["input"]["guesses"], json!(guesses));
    let approval = hold(&server, "humans").await;
    assert!(
        !second["input"]
            .to_string()
            .contains(approval["token"].as_str().unwrap())
    );
}

#[tokio::test]
async fn token_that_the_definition_maps_is_signed_also_through_a_child() {
    let server = server().await;
    let function = Function::answering(200, json!({})).await;
    let send = |body: Value| json!({"type": "task", "name": "send", "resourceArn": function.url, "serviceParams": {"body": body}});
    // The child's own step has a token of its parent's call in its input; what a function answers under that name is
    // data.
    server
        .flow("child", json!([
            send(json!({"handed": "$.token", "deep": ["$.token"]})),
            {"type": "pass", "name": "over", "outputMappings": [{"target": "token", "source": "$input.lookalike"}]},
            {"type": "task", "name": "again", "resourceArn": function.url, "serviceParams": {"body": {"shadowed": "$.token"}}}]))
        .await;
    server
        .flow(
            "parent",
            json!([{
            "type": "task", "name": "call", "resourceArn": "flow:child", "pattern": "waitForCallback",
            "inputMappings": [
                {"target": "token", "source": "$context.task.token"},
                {"target": "lookalike", "source": "$input.lookalike"}]}]),
        )
        .await;
    let id = server
        .post("/v1/flows/parent/executions", json!({"input": {"lookalike": "x"}}))
        .await
        .body["id"]
        .clone();
    let id = id.as_str().unwrap().to_owned();
    let mut sent = String::new();
    for _ in 0..200 {
        sent = function.sent();
        if sent.contains("shadowed") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let body = |line: &str| -> Value { serde_json::from_str(&line[line.rfind("} {").unwrap() + 2..]).unwrap() };
    let lines: Vec<&str> = sent.lines().collect();
    let handed = body(lines[0]);
    let token = handed["handed"].as_str().unwrap();
    assert_eq!(handed["deep"][0], token);
    assert!(token.contains('.') && !token.starts_with("task-token:"), "{handed}");
    assert_eq!(body(lines[1])["shadowed"], "x");
    let told = server
        .post(
            &format!("/v1/callbacks/{token}/succeed"),
            json!({"output": {"yes": true}}),
        )
        .await;
    assert_eq!(told.status, 204, "{told:?}");
    let ended = run_out(&server, &id).await;
    assert_eq!(ended["status"], "Succeeded", "{ended}");
}

async fn run_out(server: &Running, id: &str) -> Value {
    for _ in 0..500 {
        let shown = server.get(&format!("/v1/executions/{id}")).await.body;
        if shown["endedTime"] != Value::Null {
            return shown;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("it has not ended");
}

#[tokio::test]
async fn secret_that_comes_back_is_redacted() {
    for status in [200, 500] {
        let server = server().await;
        let function = Function::answering(status, Value::Null).await;
        server
            .flow(
                "f",
                json!([{"type": "task", "name": "t", "resourceArn": function.url,
                "serviceParams": {"headers": {"x-key": "secret://KEY"}, "body": {"key": ["secret://KEY"]}}}]),
            )
            .await;
        let ended = run(&server, "f", json!({})).await;
        assert!(function.sent().matches(CANARY).count() >= 2, "it was not sent");
        let id = ended["id"].as_str().unwrap();
        let history = server
            .get(&format!("/v1/executions/{id}/history?limit=1000"))
            .await
            .body;
        for text in [ended.to_string(), history.to_string()] {
            assert!(!text.contains(CANARY), "{text}");
            assert!(text.contains("secret://KEY"), "{text}");
        }
    }
}

#[tokio::test]
async fn token_that_comes_back_is_redacted() {
    let server = server().await;
    let function = Function::answering(200, Value::Null).await;
    server
        .flow(
            "f",
            json!([{"type": "task", "name": "t", "resourceArn": function.url, "pattern": "waitForCallback",
            "inputMappings": [{"target": "token", "source": "$context.task.token"}]}]),
        )
        .await;
    let started = server.post("/v1/flows/f/executions", json!({"input": {}})).await;
    let id = started.body["id"].as_str().unwrap().to_owned();
    let mut history = String::new();
    for _ in 0..500 {
        let path = format!("/v1/executions/{id}/history?limit=1000");
        history = server.get(&path).await.body.to_string();
        if history.contains("TaskSubmitted") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(history.contains("TaskSubmitted"), "{history}");
    let sent = function.sent();
    let token = sent.rsplit('"').nth(1).unwrap();
    assert!(token.contains('.'), "{sent}");
    assert!(!history.contains(token), "{history}");
    let told = server
        .post(&format!("/v1/callbacks/{token}/succeed"), json!({"output": {}}))
        .await;
    assert_eq!(told.status, 204, "{told:?}");
}

/// The effects of a child are undone, regardless of the name of its error.
#[tokio::test]
async fn rollback_of_a_child_that_ran_whatever_it_failed_with() {
    let server = server().await;
    let undo = Function::answering(200, json!({})).await;
    server
        .flow("child", json!([{"type": "fail", "name": "f", "error": "$input.error"}]))
        .await;
    server
        .flow(
            "parent",
            json!([{"type": "task", "name": "call", "resourceArn": "flow:child", "pattern": "sync",
            "rollback": {"resourceArn": undo.url}}]),
        )
        .await;
    for error in ["FnF.NoSuchResource", "Other"] {
        let ended = run(&server, "parent", json!({"error": error})).await;
        assert_eq!(
            (&ended["status"], &ended["error"]),
            (&json!("Failed"), &json!(error)),
            "{ended}"
        );
    }
    assert_eq!(undo.sent.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn secret_that_a_worker_reports_is_redacted() {
    let server = server().await;
    server
        .flow("f", json!([{"type": "task", "name": "t", "resourceArn": "queue:jobs", "serviceParams": {"key": "secret://KEY"}}]))
        .await;
    let id = server.post("/v1/flows/f/executions", json!({"input": {}})).await.body["id"].clone();
    let task = hold_as(&server, &format!("w-{CANARY}"), "jobs").await;
    assert_eq!(task["input"]["key"], CANARY);
    let told = succeed(&server, &task, json!({"log": format!("I was given {CANARY}")})).await;
    assert_eq!(told, 204);
    let ended = run_out(&server, id.as_str().unwrap()).await;
    assert_eq!(ended["output"]["log"], "I was given secret://KEY");
    let id = id.as_str().unwrap();
    let history = server.get(&format!("/v1/executions/{id}/history?limit=1000")).await;
    let history = history.body.to_string();
    assert!(
        history.contains("w-secret://KEY") && !history.contains(CANARY),
        "{history}"
    );
}

#[tokio::test]
async fn secret_of_another_step_is_redacted_after_a_restart() {
    let store = starbridge_node::stores::in_memory();
    let on_store = || {
        Running::with(Access::default(), |settings| {
            settings.store = store.clone();
            settings.secrets = Arc::new(Cage);
        })
    };
    let server = on_store().await;
    let send =
        json!({"type": "task", "name": "send", "resourceArn": "queue:send", "serviceParams": {"key": "secret://KEY"}});
    let work = json!({"type": "task", "name": "work", "resourceArn": "queue:work"});
    server.flow("f", json!([send, work])).await;
    server.flow("g", json!([work])).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let id = begun.body["id"].as_str().unwrap().to_owned();
    let sent = hold(&server, "send").await;
    assert_eq!(sent["input"]["key"], CANARY);
    assert_eq!(succeed(&server, &sent, json!({})).await, 204);
    let own = hold(&server, "work").await;
    let begun = server.post("/v1/flows/g/executions", json!({})).await;
    let other = begun.body["id"].as_str().unwrap().to_owned();
    let others = hold(&server, "work").await;
    server.node.drain(std::time::Duration::from_secs(5)).await.unwrap();
    let server = on_store().await;
    // One that names the secret in another step, and one that names none.
    for (id, task) in [(other, others), (id, own)] {
        assert_eq!(
            succeed(&server, &task, json!({"log": format!("it was {CANARY}")})).await,
            204
        );
        let ended = run_out(&server, &id).await;
        assert_eq!(ended["output"]["log"], "it was secret://KEY", "{ended}");
    }
}

#[tokio::test]
async fn secret_is_only_for_flows_that_may_use_it() {
    let server = Running::with(Access::default(), |settings| {
        settings.secrets = Arc::new(Cage);
        settings.secret_use = SecretUse::new(Some(vec![("pay-*".to_owned(), vec!["K*".to_owned()])]), []);
    })
    .await;
    let function = Function::answering(200, json!({})).await;
    let step =
        |params: Value| json!([{"type": "task", "name": "t", "resourceArn": function.url, "serviceParams": params}]);
    let headers = json!({"headers": {"x-key": "secret://KEY"}});
    for (flow, params, status, cause) in [
        ("pay-now", headers.clone(), "Succeeded", ""),
        ("other", headers, "Failed", "`[secrets.use]`"),
        (
            "pay-odd",
            json!({"idempotency": "secret://KEY"}),
            "Failed",
            "`idempotency`",
        ),
        ("pay-method", json!({"method": "secret://KEY"}), "Failed", "`method`"),
    ] {
        server.flow(flow, step(params)).await;
        let ended = run(&server, flow, json!({})).await;
        assert_eq!(ended["status"], status, "{ended}");
        if status == "Failed" {
            assert_eq!(ended["error"], "FnF.NoSuchResource", "{ended}");
        }
        assert!(ended["cause"].as_str().unwrap_or_default().contains(cause), "{ended}");
        assert!(!ended.to_string().contains(CANARY), "{ended}");
    }
    assert_eq!(function.sent.lock().unwrap().len(), 1);
}

/// Keys and words of data that look like references. `{id}` is the execution's id, which functions receive.
const KEYS: [&str; 11] = [
    "input",
    "body",
    "headers",
    "token",
    "references",
    "Input",
    "key",
    "a/b",
    "~0",
    "0",
    "",
];
const WORDS: [&str; 10] = [
    "secret://KEY",
    "secret://",
    "xsecret://KEY",
    "task-token:{id}/4",
    "task-token:{id}/10",
    "$context.task.token",
    "$.token",
    r#"{"references":[{"at":"/x","secret":"KEY"}]}"#,
    "secret://KEY\u{0}",
    "SECRET://KEY",
];

/// Random data; the same each time.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % below as u64).unwrap()
    }

    fn data(&mut self, depth: usize) -> Value {
        let mut value = json!(WORDS[self.next(WORDS.len())]);
        for _ in 0..depth {
            let (key, word) = (KEYS[self.next(KEYS.len())], WORDS[self.next(WORDS.len())]);
            value = match self.next(3) {
                0 => json!([value, word]),
                1 => json!({key: value, "w": word}),
                _ => json!({key: [value], word: word}),
            };
        }
        json!({"data": value, KEYS[self.next(KEYS.len())]: WORDS[self.next(WORDS.len())]})
    }
}

/// For any strings in requests and answers, nothing that is sent contains a byte of the secret or a
/// signed token.
#[tokio::test]
async fn secret_and_token_are_not_reached_from_data() {
    let server = server().await;
    let mut chance = Chance(0x2545_f491_4f6c_dd1d);
    // A header or a query can't hold all of these: such a call fails, and the next step follows.
    let on = |next: &str| json!([{"errors": ["FnF.ALL"], "goto": next}]);
    for round in 0..12 {
        let function = Function::answering(200, chance.data(round % 5)).await;
        let (ask, child) = (format!("ask-{round}"), format!("child-{round}"));
        server
            .flow(&child, json!([{"type": "task", "name": "c", "resourceArn": function.url, "serviceParams": {"headers": {"x": "$.data"}, "body": "$"}}]))
            .await;
        server
            .flow(&ask, json!([
                {"type": "task", "name": "plain", "resourceArn": function.url, "catch": on("whole")},
                {"type": "task", "name": "whole", "resourceArn": function.url, "catch": on("child"),
                    "serviceParams": {"query": {"q": "$.token"}, "body": "$"}},
                {"type": "task", "name": "child", "resourceArn": format!("flow:{child}"), "pattern": "sync", "catch": on("work"),
                    "serviceParams": {"Input": "$"}},
                {"type": "task", "name": "work", "resourceArn": format!("queue:q{round}"),
                    "outputMappings": [{"target": "reported", "source": "$local"}], "catch": on("each")},
                {"type": "foreach", "name": "each", "inputMappings": [{"target": "items", "source": "$input.items"}],
                    "iterationMapping": {"collection": "$.items", "item": "item"}, "steps": [
                    {"type": "task", "name": "item", "resourceArn": function.url, "serviceParams": {"body": "$"}}]},
                {"type": "task", "name": "told", "resourceArn": function.url, "serviceParams": {"body": "$"}}]))
            .await;
        let mut input = chance.data(4);
        input["items"] = json!([chance.data(3), chance.data(1)]);
        let started = server
            .post(&format!("/v1/flows/{ask}/executions"), json!({"input": input}))
            .await;
        assert_eq!(started.status, 201, "{started:?}");
        let task = hold(&server, &format!("q{round}")).await;
        assert_eq!(task["step"], "work", "{task}");
        let token = task["token"].as_str().unwrap();
        // What a worker says, of a success or of a failure, goes on to the steps that follow.
        let (end, report) = match round % 2 {
            0 => ("succeed", json!({"output": chance.data(3)})),
            _ => (
                "fail",
                json!({"error": "secret://KEY", "cause": chance.data(3).to_string()}),
            ),
        };
        let told = server.post(&format!("/v1/callbacks/{token}/{end}"), report).await;
        assert_eq!(told.status, 204, "{told:?}");
        let ended = run_out(&server, started.body["id"].as_str().unwrap()).await;
        assert_eq!(ended["status"], "Succeeded", "{ended}");
        assert!(function.sent().contains("\"item\":"), "{}", function.sent());
        let left = format!("{}\n{}\n{ended}", function.sent(), task["input"]);
        assert!(left.contains("secret://"), "{left}");
        assert!(!left.contains(CANARY), "{left}");
        // A signed token is hexadecimal digits, a dot and the 64 digits of its MAC.
        let signed = left
            .split(|letter: char| !letter.is_ascii_hexdigit())
            .any(|run| run.len() >= 64);
        assert!(!signed, "{left}");
    }
}
