use crate::harness::{Answer, Running, asleep, definition};
use crate::mailbox::{Mailbox, ended};
use reqwest::Method;
use serde_json::{Map, Value, json};
use starbridge_server::Access;

/// How many bytes the input of an execution, a step, and a definition may have.
const INPUT: usize = 100_000;
const STEP: usize = 10_000;
const DEFINITION: usize = 20_000;
/// How many bytes a body may have in addition to its data, and how many a report.
const ENVELOPE: usize = 64 * 1024;
const REPORT: usize = 1024 * 1024;

async fn narrow() -> Running {
    Running::with(Access::default(), |settings| {
        settings.limits.collection_bytes = INPUT;
        settings.limits.step_data_bytes = STEP;
        settings.limits.definition_bytes = DEFINITION;
    })
    .await
}

/// A JSON text, filled with blanks up to this many bytes.
fn padded(body: &Value, bytes: usize) -> String {
    let text = body.to_string();
    let blanks = bytes - text.len();
    text + &" ".repeat(blanks)
}

async fn send(server: &Running, method: Method, path: &str, body: String) -> Answer {
    Answer::of(server.raw(method, path, Some(body)).await).await
}

#[tokio::test]
pub async fn an_input_and_its_body_have_their_limits() {
    let server = narrow().await;
    server.flow("f", asleep()).await;
    let path = "/v1/flows/f/executions";
    let input = |bytes: usize| json!({"a": "x".repeat(bytes - json!({"a": ""}).to_string().len())});
    let most = server.post(path, json!({"input": input(INPUT)})).await;
    assert_eq!(most.status, 201);
    let more = server.post(path, json!({"input": input(INPUT + 1)})).await;
    assert_eq!(more.code(), (413, "InputTooLarge"));
    let said = format!("{} bytes, more than the limit of {INPUT}", INPUT + 1);
    assert!(more.body["detail"].as_str().unwrap().contains(&said), "{more:?}");
    let body = json!({"name": "one"});
    let most = send(&server, Method::POST, path, padded(&body, INPUT + ENVELOPE)).await;
    assert_eq!(most.status, 201);
    let body = json!({"name": "two"});
    let more = send(&server, Method::POST, path, padded(&body, INPUT + ENVELOPE + 1)).await;
    assert_eq!(more.code(), (413, "BodyTooLarge"));
    assert_eq!(
        server.get(&format!("{path}/two")).await.code(),
        (404, "NoSuchExecution")
    );
}

/// Nested arrays.
fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(0), |inner, _| json!([inner]))
}

#[tokio::test]
pub async fn an_input_is_so_deep_and_no_deeper() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let start = |levels: usize| json!({"input": {"a": deep(levels)}});
    assert_eq!(server.post("/v1/flows/f/executions", start(99)).await.status, 201);
    let more = server.post("/v1/flows/f/executions", start(100)).await;
    assert_eq!(more.code(), (422, "InputTooDeep"));
    assert!(more.body["detail"].as_str().unwrap().contains("100"), "{more:?}");
    let much = format!(
        "{{\"input\": {{\"a\": {}{}}}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let much = send(&server, Method::POST, "/v1/flows/f/executions", much).await;
    assert_eq!(much.code(), (400, "BadRequest"));
}

#[tokio::test]
async fn limit_of_reports_and_their_bodies() {
    let server = narrow().await;
    let mailbox = Mailbox::open().await;
    server.flow("f", json!([mailbox.ask("ask")])).await;
    for name in ["a", "b"] {
        server.post("/v1/flows/f/executions", json!({"name": name})).await;
    }
    let path = format!("/v1/callbacks/{}/succeed", mailbox.token("a").await);
    let body = json!({"output": {"n": 1}});
    for path in [&path, "/v1/callbacks"] {
        let more = send(&server, Method::POST, path, padded(&body, REPORT + STEP + 1)).await;
        assert_eq!(more.code(), (413, "BodyTooLarge"), "{path}");
    }
    assert_eq!(server.get("/v1/flows/f/executions/a").await.body["status"], "Running");
    let most = send(&server, Method::POST, &path, padded(&body, REPORT + STEP)).await;
    assert_eq!(most.status, 204);
    assert_eq!(ended(&server, "f", "a").await["output"], json!({"n": 1}));
    // A result that is too large for a step is not lost: it is in the history as a failure with a name.
    let path = format!("/v1/callbacks/{}/succeed", mailbox.token("b").await);
    let large = server.post(&path, json!({"output": {"a": "x".repeat(STEP)}})).await;
    assert_eq!(large.status, 204);
    assert_eq!(ended(&server, "f", "b").await["error"], "FnF.PayloadTooLarge");
}

#[tokio::test]
async fn limit_of_names_is_128_characters() {
    let server = Running::start().await;
    let (longest, longer) = ("n".repeat(128), "n".repeat(129));
    server.flow(&longest, asleep()).await;
    let refused = server.put(&format!("/v1/flows/{longer}"), definition(asleep())).await;
    assert_eq!(refused.code(), (400, "BadRequest"));
    let path = format!("/v1/flows/{longest}/executions");
    assert_eq!(server.post(&path, json!({"name": longest})).await.status, 201);
    for name in [longer.as_str(), "", "a b", "ä", "-a", "a.b", "a/b"] {
        assert_eq!(
            server.post(&path, json!({"name": name})).await.code(),
            (400, "BadRequest"),
            "{name}"
        );
    }
    let shown = server.get(&format!("{path}/{longest}")).await;
    let id = shown.body["id"].as_str().unwrap();
    let fork = format!("/v1/executions/{id}/fork");
    let refused = server.post(&fork, json!({"event": 1, "name": longer})).await;
    assert_eq!(refused.code(), (400, "BadRequest"));
    let forked = "f".repeat(128);
    assert_eq!(
        server.post(&fork, json!({"event": 1, "name": forked})).await.status,
        201
    );
    // Its executions are named after it and the time.
    let (longest, longer) = ("s".repeat(111), "s".repeat(112));
    let schedule = json!({"flow": "n".repeat(128), "cron": "@every 1h"});
    let put = server.put(&format!("/v1/schedules/{longest}"), schedule.clone()).await;
    assert_eq!(put.status, 200, "{put:?}");
    let refused = server.put(&format!("/v1/schedules/{longer}"), schedule).await;
    assert_eq!(refused.code(), (422, "InvalidSchedule"));
    assert!(refused.body["detail"].as_str().unwrap().contains("111"), "{refused:?}");
}

#[tokio::test]
pub async fn a_batch_starts_a_thousand_at_most() {
    let server = Running::start().await;
    server.flow("f", json!([{"type": "pass", "name": "p"}])).await;
    let batch = |many: usize| json!(vec![json!({"flow": "f"}); many]);
    let more = server.post("/v1/executions/batch", batch(1_001)).await;
    assert_eq!(more.code(), (413, "BatchTooLarge"));
    assert_eq!(server.get("/v1/executions").await.body["items"], json!([]));
    let most = server.post("/v1/executions/batch", batch(1_000)).await;
    let items = most.body["items"].as_array().unwrap();
    assert!(
        items.len() == 1_000 && items.iter().all(|item| item["status"] == 201),
        "{most:?}"
    );
}

#[tokio::test]
async fn limit_of_labels_and_filters_by_them() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let start = async |labels: Value| server.post("/v1/flows/f/executions", json!({"labels": labels})).await;
    let many = |count: usize| -> Value {
        let labels = (0..count).map(|number| (format!("l{number}"), json!("v")));
        labels.collect::<Map<String, Value>>().into()
    };
    assert_eq!(start(many(64)).await.status, 201);
    let long = start(json!({"k".repeat(128): "v".repeat(256)})).await;
    assert_eq!(long.status, 201);
    for (labels, word) in [
        (many(65), "64"),
        (json!({"k".repeat(129): "v"}), "128"),
        (json!({"": "v"}), "128"),
        (json!({"a:b": "v"}), "colon"),
        (json!({"k": "v".repeat(257)}), "256"),
        (json!({"k": 7}), "strings"),
    ] {
        let refused = start(labels).await;
        assert_eq!(refused.code(), (400, "BadRequest"), "{word}");
        assert!(refused.body["detail"].as_str().unwrap().contains(word), "{refused:?}");
    }
    assert_eq!(start(json!({"where": "here, there: über all"})).await.status, 201);
    let found = server
        .get("/v1/executions?label=where:here,%20there:%20%C3%BCber%20all")
        .await;
    assert_eq!(found.body["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn limit_of_definitions_and_their_bodies() {
    let server = narrow().await;
    let put = async |name: &str, bytes: usize| {
        let body = padded(&definition(asleep()), bytes);
        send(&server, Method::PUT, &format!("/v1/flows/{name}"), body).await
    };
    assert_eq!(put("most", DEFINITION).await.status, 201);
    let more = put("more", DEFINITION + 1).await;
    assert_eq!(more.code(), (422, "InvalidDefinition"));
    assert_eq!(more.body["diagnostics"][0]["code"], "FDL0007", "{more:?}");
    assert_eq!(put("much", INPUT + ENVELOPE + 1).await.code(), (413, "BodyTooLarge"));
    for name in ["more", "much"] {
        assert_eq!(
            server.get(&format!("/v1/flows/{name}")).await.code(),
            (404, "NoSuchFlow")
        );
    }
}

#[tokio::test]
async fn schedule_with_unknown_members_is_refused() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    for (member, value) in [
        ("paused", json!("yes")),
        ("overlap", json!(7)),
        ("catchUp", json!(true)),
        ("cron", json!(5)),
        ("flow", json!(["f"])),
    ] {
        let mut schedule = json!({"flow": "f", "cron": "@every 1h"});
        schedule[member] = value;
        let refused = server.put("/v1/schedules/s", schedule).await;
        assert_eq!(refused.code(), (400, "BadRequest"), "{member}");
        assert!(refused.body["detail"].as_str().unwrap().contains(member), "{refused:?}");
    }
    assert_eq!(server.get("/v1/schedules/s").await.code(), (404, "NoSuchSchedule"));
}

#[tokio::test]
async fn limit_of_label_filters_and_cursors() {
    let server = Running::start().await;
    let asked = |labels: usize| {
        let labels: Vec<String> = (0..labels).map(|number| format!("label=k{number}:v")).collect();
        format!("/v1/executions?{}", labels.join("&"))
    };
    assert_eq!(server.get(&asked(64)).await.status, 200);
    for labels in [65, 1_500] {
        let answer = server.get(&asked(labels)).await;
        assert_eq!(answer.code(), (400, "BadRequest"));
        let detail = answer.body["detail"].as_str().unwrap();
        assert!(detail.contains("at most 64 labels"), "{detail}");
    }
    for cursor in ["zzz", "-1", "18446744073709551616"] {
        let answer = server.get(&format!("/v1/executions?cursor={cursor}")).await;
        assert_eq!(answer.code(), (400, "BadRequest"), "{cursor}");
        assert!(
            answer.body["detail"].as_str().unwrap().contains("`cursor`"),
            "{answer:?}"
        );
    }
}

#[tokio::test]
async fn limit_of_problem_details() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let long = "x".repeat(200_000);
    let start = "/v1/flows/f/executions";
    for (method, path, body) in [
        (Method::POST, start, json!({(long.as_str()): 1})),
        (Method::POST, start, json!({"name": long})),
        (Method::PUT, "/v1/schedules/s", json!({(long.as_str()): 1})),
        (
            Method::PUT,
            "/v1/schedules/s",
            json!({"flow": "f", "cron": "* * * * *", "overlap": long}),
        ),
        (Method::PUT, "/v1/schedules/s", json!({"flow": "f", "cron": long})),
        (Method::PUT, "/v1/queues/q", json!({(long.as_str()): 1})),
        (
            Method::POST,
            "/v1/queues/hold",
            json!({"worker": "w", "queues": [&long]}),
        ),
        (
            Method::POST,
            "/v1/callbacks",
            json!({"reports": [{(long.as_str()): 1}]}),
        ),
        (
            Method::POST,
            "/v1/executions/batch",
            json!([{"flow": "f", (long.as_str()): 1}]),
        ),
        (Method::POST, "/v1/executions/batch", json!([{"flow": long}])),
    ] {
        let answer = server.ask(method.clone(), path, Some(body.clone())).await;
        let told = answer.body.to_string();
        let given: String = body.to_string().chars().take(60).collect();
        assert!(told.len() < 1_000, "{method} {path} {given}: {} bytes", told.len());
        assert!(answer.status >= 400 || told.contains("\"status\":4"), "{told}");
    }
}
