//! Deleting, families, and the list of what operators did.

use crate::access::access;
use crate::harness::{Answer, Running, asleep, definition, sent, set_aside};
use reqwest::Method;
use serde_json::{Value, json};
use starbridge_node::stores::in_memory;
use starbridge_server::Access;
use std::time::Duration;

fn passes() -> Value {
    json!([{"type": "pass", "name": "p"}])
}

/// The execution of that flow and name, once it has ended.
async fn run(server: &Running, flow: &str, name: &str) -> Value {
    let path = format!("/v1/flows/{flow}/executions?wait=20");
    let ended = server.post(&path, json!({ "name": name })).await;
    assert!(ended.body["endedTime"].is_string(), "{ended:?}");
    ended.body
}

async fn delete(server: &Running, id: &str) -> Answer {
    server.ask(Method::DELETE, &format!("/v1/executions/{id}"), None).await
}

/// The ids on the list for this query.
async fn listed(server: &Running, query: &str) -> Vec<String> {
    let page = server.get(&format!("/v1/executions?{query}")).await.body;
    let items = page["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

/// A parent that has ended, and its child.
async fn family(server: &Running) -> (String, String) {
    server.flow("child", passes()).await;
    let call = json!([{"type": "task", "name": "call", "resourceArn": "flow:child", "pattern": "sync"}]);
    server.flow("parent", call).await;
    let parent = run(server, "parent", "p").await["id"].as_str().unwrap().to_owned();
    let child = listed(server, "flow=child").await.remove(0);
    (parent, child)
}

#[tokio::test]
async fn family_is_listed_and_shown() {
    let server = Running::start().await;
    let (parent, child) = family(&server).await;
    assert_eq!(listed(&server, &format!("parent={parent}")).await, [child.as_str()]);
    assert_eq!(
        listed(&server, &format!("root={parent}&flow=child")).await,
        [child.as_str()]
    );
    assert_eq!(listed(&server, &format!("root={parent}&status=Failed")).await, [""; 0]);
    assert_eq!(listed(&server, &format!("parent={child}")).await, [""; 0]);
    let steps = server.get(&format!("/v1/executions/{parent}/steps")).await.body;
    assert_eq!(steps["items"][0]["child"], *child);
    let shown = server.get(&format!("/v1/executions/{child}")).await.body;
    assert_eq!(shown["root"], *parent);
    assert_eq!(shown["parent"]["execution"], *parent);
    assert!(shown["parent"]["deleted"].is_null(), "{shown}");
}

#[tokio::test]
pub async fn deletion_leaves_the_children() {
    let server = Running::start().await;
    let (parent, child) = family(&server).await;
    assert_eq!(delete(&server, &parent).await.status, 204);
    for part in ["", "/history", "/state", "/steps"] {
        let answer = server.get(&format!("/v1/executions/{parent}{part}")).await;
        assert_eq!(answer.code(), (404, "NoSuchExecution"), "{part}");
    }
    assert_eq!(delete(&server, &parent).await.code(), (404, "NoSuchExecution"));
    assert_eq!(delete(&server, "never").await.code(), (404, "NoSuchExecution"));
    let shown = server.get(&format!("/v1/executions/{child}")).await.body;
    assert_eq!(shown["parent"]["deleted"], true, "{shown}");
    assert_eq!(listed(&server, &format!("root={parent}")).await, [child.as_str()]);
    // The name is free.
    let again = run(&server, "parent", "p").await;
    assert_ne!(again["id"], *parent);
}

/// The list has what changed something.
#[tokio::test]
async fn what_is_set_already_is_not_listed_again() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let listed = async |kind: &str| {
        let list = server.get(&format!("/v1/audit?kind={kind}&action=set")).await.body;
        list["items"].as_array().unwrap().len()
    };
    let flow = async |body: Value| {
        let answer = server.ask(Method::PATCH, "/v1/flows/f", Some(body)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        (answer.body["maxRunning"].clone(), answer.body["paused"].clone())
    };
    for (body, entries) in [
        (json!({"paused": false}), 0),
        (json!({"maxRunning": null}), 0),
        (json!({"maxRunning": 3, "paused": true}), 1),
        (json!({"maxRunning": 3, "paused": true}), 1),
        (json!({"maxRunning": 3}), 1),
        (json!({"maxRunning": 3, "paused": false}), 2),
        (json!({"maxRunning": 4, "paused": false}), 3),
    ] {
        flow(body.clone()).await;
        assert_eq!(listed("flow").await, entries, "{body}");
    }
    assert_eq!(flow(json!({"paused": false})).await, (json!(4), json!(false)));
    for (limit, entries) in [(2, 1), (2, 1), (0, 2), (0, 2)] {
        let set = server.put("/v1/keys/p/k", json!({"limit": limit})).await;
        assert_eq!((set.status, &set.body["limit"]), (200, &json!(limit)), "{set:?}");
        assert_eq!(listed("key").await, entries, "{limit}");
    }
}

/// The id of what is gone says nothing to anybody.
#[tokio::test]
async fn deletion_is_listed_with_flow_and_name() {
    let server = Running::start().await;
    server.flow("f", passes()).await;
    let detail = async |id: &Value| {
        let id = id.as_str().unwrap();
        let list = server.get(&format!("/v1/audit?action=delete&object={id}")).await.body;
        list["items"][0]["detail"].clone()
    };
    let named = run(&server, "f", "a").await;
    assert_eq!(delete(&server, named["id"].as_str().unwrap()).await.status, 204);
    assert_eq!(detail(&named["id"]).await, json!({"flow": "f", "name": "a"}));
    let unnamed = server.post("/v1/flows/f/executions?wait=20", json!({})).await.body;
    assert_eq!(delete(&server, unnamed["id"].as_str().unwrap()).await.status, 204);
    assert_eq!(detail(&unnamed["id"]).await, json!({"flow": "f"}));
    tokio::spawn(server.node.clone().keep_bulk());
    let third = run(&server, "f", "b").await;
    let job = server
        .post("/v1/bulk", json!({"action": "delete", "all": true}))
        .await
        .body;
    while detail(&third["id"]).await.is_null() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let expected = json!({"flow": "f", "name": "b", "bulk": job["id"]});
    assert_eq!(detail(&third["id"]).await, expected);
}

#[tokio::test]
pub async fn deletion_of_what_has_not_ended_is_refused() {
    let store = in_memory();
    let kept = store.clone();
    let server = Running::with(Access::default(), |settings| settings.store = kept).await;
    server.flow("f", asleep()).await;
    let begun = server.post("/v1/flows/f/executions", json!({"name": "a"})).await;
    let id = begun.body["id"].as_str().unwrap();
    assert_eq!(delete(&server, id).await.code(), (409, "NotEnded"));
    assert_eq!(
        server.get(&format!("/v1/executions/{id}")).await.body["status"],
        "Running"
    );
    server.node.drain(Duration::from_secs(5)).await.unwrap();
    set_aside(&store, id);
    let server = Running::with(Access::default(), |settings| settings.store = store).await;
    assert_eq!(delete(&server, id).await.code(), (409, "NotEnded"));
    // None of these is carried out, so none is recorded.
    let audit = server.get("/v1/audit?action=delete").await.body;
    assert_eq!(audit["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletion_and_other_requests_at_once_leave_the_server_well() {
    let server = Running::start().await;
    server
        .flow("f", json!([{"type": "fail", "name": "no", "error": "No", "cause": ""}]))
        .await;
    for round in 0..20 {
        let ended = run(&server, "f", &format!("n{round}")).await;
        let path = format!("/v1/executions/{}", ended["id"].as_str().unwrap());
        let (redrive, stop) = (format!("{path}/redrive"), format!("{path}/stop"));
        let (deleted, redriven, stopped) = tokio::join!(
            server.ask(Method::DELETE, &path, None),
            server.post(&redrive, json!({})),
            server.post(&stop, json!({})),
        );
        assert!(matches!(deleted.status, 204 | 409), "{deleted:?}");
        assert!(matches!(redriven.status, 200 | 404), "{redriven:?}");
        assert!(matches!(stopped.status, 200 | 404 | 409), "{stopped:?}");
        let there = server.get(&path).await.status;
        assert_eq!(there == 404, deleted.status == 204, "{deleted:?} {redriven:?}");
    }
    assert_eq!(server.get("/healthz").await.status, 200);
}

/// The answer to a request with that token, and with an id.
async fn ask(server: &Running, token: &str, method: Method, path: &str, body: Option<Value>) -> Answer {
    let request = server.request(method, path).bearer_auth(token);
    let request = request.header("x-request-id", "r-1");
    let request = match body {
        Some(body) => request.body(body.to_string()),
        None => request,
    };
    Answer::of(sent(request).await).await
}

/// What an administrator's request does.
async fn admin(server: &Running, method: Method, path: &str, body: Value) -> Value {
    let body = Some(body).filter(|body| !body.is_null());
    let answer = ask(server, "token-admin", method, path, body).await;
    assert!(answer.status < 300, "{path}: {answer:?}");
    answer.body
}

/// Does something to every kind of object. Returns the started execution, and a fork of it.
async fn do_everything(server: &Running) -> (Value, Value) {
    let flow = json!({"version": "v1", "type": "flow", "steps": [{"type": "wait", "name": "w", "duration": 3600}]});
    let schedule = json!({"flow": "f", "cron": "@every 1h", "payload": {"card": 7}});
    for (method, path, body) in [
        (Method::PUT, "/v1/flows/f", flow.clone()),
        // This changes nothing.
        (Method::PUT, "/v1/flows/f", flow),
        (Method::PUT, "/v1/queues/q", json!({"paused": true})),
        // This changes nothing either.
        (Method::PUT, "/v1/queues/q", json!({"paused": true})),
        (Method::PUT, "/v1/schedules/s", schedule),
        (Method::POST, "/v1/schedules/s/pause", Value::Null),
        // This changes nothing either.
        (Method::POST, "/v1/schedules/s/pause", Value::Null),
        (Method::POST, "/v1/schedules/s/resume", Value::Null),
        (Method::POST, "/v1/schedules/s/run", Value::Null),
        (Method::DELETE, "/v1/schedules/s", Value::Null),
    ] {
        admin(server, method, path, body).await;
    }
    let begun = admin(server, Method::POST, "/v1/flows/f/executions", json!({})).await;
    let path = format!("/v1/executions/{}", begun["id"].as_str().unwrap());
    let (stop, redrive, fork) = (
        format!("{path}/stop"),
        format!("{path}/redrive"),
        format!("{path}/fork"),
    );
    let stopped = ask(
        server,
        "token-operate",
        Method::POST,
        &stop,
        Some(json!({"cause": "late"})),
    )
    .await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
    admin(server, Method::POST, &redrive, json!({})).await;
    let fork = admin(server, Method::POST, &fork, json!({"event": 2})).await;
    admin(server, Method::POST, &stop, json!({})).await;
    // A request that is refused did nothing.
    let refused = ask(server, "token-admin", Method::POST, &stop, Some(json!({}))).await;
    assert_eq!(refused.code(), (409, "AlreadyEnded"));
    let refused = ask(server, "token-operate", Method::DELETE, &path, None).await;
    assert_eq!(refused.code(), (403, "Forbidden"));
    admin(server, Method::DELETE, &path, Value::Null).await;
    admin(server, Method::DELETE, "/v1/flows/f", Value::Null).await;
    (begun, fork)
}

#[tokio::test]
pub async fn audit_list_says_who_did_what() {
    let server = Running::with(access(), |_| {}).await;
    let (begun, fork) = do_everything(&server).await;
    let list = admin(&server, Method::GET, "/v1/audit", Value::Null).await;
    let items = list["items"].as_array().unwrap();
    let text = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
    let done = items
        .iter()
        .rev()
        .map(|item| format!("{} {}", text(item, "kind"), text(item, "action")));
    let expected = "flow put, queue set, schedule put, schedule pause, schedule resume, schedule run, schedule delete, \
                    execution stop, execution redrive, execution fork, execution stop, execution delete, flow hide";
    assert_eq!(done.collect::<Vec<_>>().join(", "), expected);
    let of = |action: &str| items.iter().rev().find(|item| item["action"] == action).unwrap();
    assert_eq!(of("stop")["by"], "operate");
    assert_eq!(
        (&of("stop")["detail"], &of("stop")["object"]),
        (&json!({"cause": "late"}), &begun["id"])
    );
    assert_eq!(
        (&of("redrive")["by"], &of("redrive")["request"]),
        (&json!("admin"), &json!("r-1"))
    );
    assert_eq!(of("fork")["detail"], json!({"event": 2, "fork": fork["id"]}));
    assert_eq!(of("put")["detail"], json!({"version": 1}));
    assert!(!list.to_string().contains("card"), "a payload is data: {list}");
    let count = async |path: &str| {
        let page = admin(&server, Method::GET, path, Value::Null).await;
        (page["items"].as_array().unwrap().len(), page["next"].clone())
    };
    assert_eq!(count("/v1/audit?by=operate&kind=execution&limit=5").await.0, 1);
    let (_, next) = count("/v1/audit?limit=12").await;
    let rest = format!("/v1/audit?limit=12&cursor={}", next.as_str().unwrap());
    assert_eq!(count(&rest).await, (1, Value::Null));
    for (token, path, code) in [
        ("token-operate", "/v1/audit", (403, "Forbidden")),
        ("token-admin", "/v1/audit?kind=worker", (400, "BadRequest")),
        ("token-admin", "/v1/audit?cursor=x", (400, "BadRequest")),
        ("token-admin", "/v1/audit?from=today", (400, "BadRequest")),
    ] {
        let answer = ask(&server, token, Method::GET, path, None).await;
        assert_eq!(answer.code(), code, "{path}");
    }
}

#[tokio::test]
async fn audit_list_names_whoever_needs_no_token_local() {
    let store = in_memory();
    let kept = store.clone();
    let server = Running::with(Access::default(), |settings| settings.store = kept).await;
    server.flow("f", asleep()).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let id = begun.body["id"].as_str().unwrap().to_owned();
    server.node.drain(Duration::from_secs(5)).await.unwrap();
    set_aside(&store, &id);
    let server = Running::with(Access::default(), |settings| settings.store = store).await;
    server.post(&format!("/v1/executions/{id}/redrive"), json!({})).await;
    let list = server.get(&format!("/v1/audit?object={id}")).await.body;
    let item = &list["items"][0];
    assert_eq!(
        (&item["by"], &item["action"], &item["request"]),
        (&json!("local"), &json!("release"), &Value::Null)
    );
    let history = server.get(&format!("/v1/executions/{id}/history")).await.body;
    assert!(!history.to_string().contains("local"), "{history}");
}

/// A key may be guessed, for example an order number.
#[tokio::test]
async fn key_of_a_start_shows_its_data_only_to_readers_and_to_its_sender() {
    let server = Running::with(access(), |_| {}).await;
    let flow = definition(passes());
    assert_eq!(
        ask(&server, "token-admin", Method::PUT, "/v1/flows/f", Some(flow))
            .await
            .status,
        201
    );
    let path = "/v1/flows/f/executions?wait=10";
    let body = |secret: &str| Some(json!({"input": {"card": secret}, "onceKey": "order-7"}));
    let first = ask(&server, "token-start", Method::POST, path, body("4111")).await;
    assert_eq!(
        (first.status, &first.body["input"]["card"]),
        (201, &json!("4111")),
        "{first:?}"
    );
    let again = ask(&server, "token-start", Method::POST, path, body("4111")).await;
    assert_eq!(
        (again.status, &again.body["input"]["card"]),
        (200, &json!("4111")),
        "{again:?}"
    );
    let batch = Some(json!([{"flow": "f", "input": {}, "onceKey": "order-7"}]));
    let batch = ask(&server, "token-start", Method::POST, "/v1/executions/batch", batch).await;
    let guessed = ask(&server, "token-start", Method::POST, path, body("?")).await;
    for shown in [&guessed.body, &batch.body["items"][0]["execution"]] {
        assert_eq!(
            (&shown["id"], &shown["status"]),
            (&first.body["id"], &json!("Succeeded")),
            "{shown}"
        );
        assert!(!shown.to_string().contains("4111"), "{shown}");
    }
    let admin = ask(&server, "token-admin", Method::POST, path, body("?")).await;
    assert_eq!(admin.body["input"]["card"], "4111", "{admin:?}");
}

#[tokio::test]
async fn start_by_a_token_stands_in_the_history_with_its_name() {
    let server = Running::with(access(), |_| {}).await;
    admin(&server, Method::PUT, "/v1/flows/f", definition(passes())).await;
    let single = ask(
        &server,
        "token-start",
        Method::POST,
        "/v1/flows/f/executions",
        Some(json!({})),
    )
    .await;
    let batch = Some(json!([{"flow": "f", "input": {}}]));
    let batch = ask(&server, "token-start", Method::POST, "/v1/executions/batch", batch).await;
    for started in [&single.body, &batch.body["items"][0]["execution"]] {
        let path = format!("/v1/executions/{}/history", started["id"].as_str().unwrap());
        let history = admin(&server, Method::GET, &path, Value::Null).await;
        assert_eq!(history["items"][0]["detail"]["by"], "start", "{history}");
    }
    // Whoever needs no token is not named, and the history is as before.
    let open = Running::start().await;
    open.flow("f", passes()).await;
    let started = open.post("/v1/flows/f/executions", json!({})).await.body;
    let path = format!("/v1/executions/{}/history", started["id"].as_str().unwrap());
    let first = open.get(&path).await.body["items"][0].clone();
    assert_eq!(
        (&first["detail"]["by"], &first["detail"]["machine"]),
        (&Value::Null, &json!(1)),
        "{first}"
    );
}
