//! Concurrency keys, and limits and pauses of flows.

use crate::harness::{Answer, Running, asleep, definition};
use reqwest::Method;
use serde_json::{Value, json};
use starbridge_server::Access;
use std::time::Duration;

/// A server with a flow that runs once at a time for each cluster.
async fn deploying() -> Running {
    let server = Running::start().await;
    let mut flow = definition(asleep());
    flow["concurrency"] = json!([{"key": "$input.cluster", "limit": 1}]);
    let put = server.put("/v1/flows/deploy", flow).await;
    assert_eq!(put.status, 201, "{put:?}");
    server
}

pub async fn start(server: &Running, flow: &str, name: &str) -> String {
    let body = json!({"name": name, "input": {"cluster": "a/b"}});
    let started = server.post(&format!("/v1/flows/{flow}/executions"), body).await;
    assert_eq!(started.status, 201, "{started:?}");
    started.body["id"].as_str().unwrap().to_owned()
}

/// The execution, as soon as it has this status and, if it waits, gives the reason.
pub async fn becomes(server: &Running, id: &str, status: &str, reason: &Value) -> Value {
    let mut last = Value::Null;
    for _ in 0..500 {
        last = server.get(&format!("/v1/executions/{id}")).await.body;
        if last["status"] == status && last["waitingFor"]["reason"] == *reason {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{id} is not {status}, {reason}: {last}");
}

pub async fn runs(server: &Running, id: &str) {
    becomes(server, id, "Running", &json!("timer")).await;
}

pub async fn waits(server: &Running, id: &str, reason: &str) -> Value {
    let execution = becomes(server, id, "Queued", &json!(reason)).await;
    execution["waitingFor"].clone()
}

pub async fn stop(server: &Running, id: &str) {
    let stopped = server.post(&format!("/v1/executions/{id}/stop"), json!({})).await;
    assert!(stopped.status < 300, "{stopped:?}");
}

pub async fn patch(server: &Running, flow: &str, body: Value) -> Answer {
    server
        .ask(Method::PATCH, &format!("/v1/flows/{flow}"), Some(body))
        .await
}

const KEY: &str = "/v1/keys/deploy/a%2Fb";

#[tokio::test]
pub async fn key_admits_as_many_as_its_limit_says() {
    let server = deploying().await;
    let one = start(&server, "deploy", "one").await;
    runs(&server, &one).await;
    let two = start(&server, "deploy", "two").await;
    let three = start(&server, "deploy", "three").await;
    waits(&server, &two, "key").await;
    let waiting = waits(&server, &three, "key").await;
    for (member, value) in [
        ("pool", json!("deploy")),
        ("key", json!("a/b")),
        ("limit", json!(1)),
        ("held", json!(1)),
        ("holders", json!([one])),
        ("position", json!(2)),
        ("act", json!("starbridge key set deploy a/b --limit 2")),
    ] {
        assert_eq!(waiting[member], value, "{member}");
    }
    let key = server.get(KEY).await.body;
    let shown = json!({"pool": "deploy", "key": "a/b", "limit": 1, "definedLimit": 1, "setLimit": null, "paused": false,
        "held": 1, "waiting": 2, "holders": [one]});
    assert_eq!(key, shown);
    let list = server.get("/v1/keys").await.body;
    assert_eq!(list["items"][0]["waiting"], 2);
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    stop(&server, &one).await;
    runs(&server, &two).await;
    assert_eq!(waits(&server, &three, "key").await["position"], 1);
    stop(&server, &two).await;
    runs(&server, &three).await;
}

#[tokio::test]
async fn key_with_a_line_break_can_be_set_while_executions_wait_for_it() {
    let server = deploying().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let body = json!({"input": {"cluster": "a\nb\u{1}"}});
        let started = server.post("/v1/flows/deploy/executions", body).await;
        ids.push(started.body["id"].as_str().unwrap().to_owned());
    }
    runs(&server, &ids[0]).await;
    waits(&server, &ids[1], "key").await;
    let path = "/v1/keys/deploy/a%0Ab%01";
    let set = server.put(path, json!({"limit": 2})).await;
    assert_eq!((set.status, &set.body["setLimit"]), (200, &json!(2)), "{set:?}");
    runs(&server, &ids[1]).await;
    assert_eq!(server.get(path).await.body["held"], 2);
    assert_eq!(server.ask(Method::DELETE, path, None).await.status, 204);
}

/// A server with a flow that needs a slot of a cluster and one of a shard.
async fn sharding() -> Running {
    let server = Running::start().await;
    let mut flow = definition(asleep());
    flow["concurrency"] = json!([
        {"key": "c-{$input.cluster}", "limit": 1},
        {"key": "s-{$input.shard}", "limit": 1},
    ]);
    let put = server.put("/v1/flows/shards", flow).await;
    assert_eq!(put.status, 201, "{put:?}");
    server
}

async fn start_shard(server: &Running, cluster: &str, shard: &str, priority: u64) -> String {
    let body = json!({"priority": priority, "input": {"cluster": cluster, "shard": shard}});
    let started = server.post("/v1/flows/shards/executions", body).await;
    assert_eq!(started.status, 201, "{started:?}");
    started.body["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn waiter_says_which_of_its_other_keys_are_full() {
    let server = sharding().await;
    let one = start_shard(&server, "x", "1", 0).await;
    runs(&server, &one).await;
    let both = start_shard(&server, "x", "1", 0).await;
    let waiting = waits(&server, &both, "key").await;
    let mut full = vec![waiting["key"].clone(), waiting["alsoFull"][0]["key"].clone()];
    full.sort_by_key(Value::to_string);
    assert_eq!(full, ["c-x", "s-1"], "{waiting}");
    let other = &waiting["alsoFull"][0];
    let shown = json!({"pool": "shards", "key": other["key"], "limit": 1, "held": 1});
    assert_eq!(waiting["alsoFull"], json!([shown]), "{waiting}");
    // Only one is full for these.
    for (cluster, shard, key) in [("x", "2", "c-x"), ("y", "1", "s-1")] {
        let id = start_shard(&server, cluster, shard, 0).await;
        let waiting = waits(&server, &id, "key").await;
        assert_eq!(
            (&waiting["key"], &waiting["alsoFull"]),
            (&json!(key), &Value::Null),
            "{waiting}"
        );
    }
}

#[tokio::test]
async fn who_has_a_claim_says_so() {
    let server = sharding().await;
    let shard = start_shard(&server, "y", "1", 0).await;
    runs(&server, &shard).await;
    let mut running = start_shard(&server, "x", "0", 0).await;
    runs(&server, &running).await;
    // It needs what `shard` holds as well.
    let oldest = start_shard(&server, "x", "1", 0).await;
    let waiting = waits(&server, &oldest, "key").await;
    assert_eq!(
        (&waiting["key"], &waiting["claim"]),
        (&json!("c-x"), &Value::Null),
        "{waiting}"
    );
    // Others pass it, but not for ever.
    let mut passed = 0;
    let (claiming, last) = loop {
        let next = start_shard(&server, "x", &format!("next{passed}"), 9).await;
        waits(&server, &next, "key").await;
        stop(&server, &running).await;
        let path = format!("/v1/executions/{oldest}");
        let claiming = loop {
            let waiting = server.get(&path).await.body["waitingFor"].clone();
            if waiting["claim"] == true {
                break Some(waiting);
            }
            let shown = server.get(&format!("/v1/executions/{next}")).await.body;
            if shown["waitingFor"]["reason"] == "timer" {
                break None;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        if let Some(claiming) = claiming {
            break (claiming, next);
        }
        passed += 1;
        assert!(passed < 40, "nobody gets a claim");
        running = next;
    };
    // With the first one and the last one, sixteen had the slot.
    assert_eq!(passed, 14);
    assert_eq!(claiming["reason"], "key", "{claiming}");
    // The slot that becomes free is kept for it, whoever comes.
    runs(&server, &last).await;
    stop(&server, &last).await;
    let urgent = start_shard(&server, "x", "urgent", 9).await;
    waits(&server, &urgent, "key").await;
    let waiting = waits(&server, &oldest, "key").await;
    assert_eq!(
        (&waiting["key"], &waiting["claim"]),
        (&json!("s-1"), &json!(true)),
        "{waiting}"
    );
    stop(&server, &shard).await;
    runs(&server, &oldest).await;
}

#[tokio::test]
pub async fn raised_limit_admits_at_once_and_a_lowered_one_stops_nobody() {
    let server = deploying().await;
    let one = start(&server, "deploy", "one").await;
    let two = start(&server, "deploy", "two").await;
    let three = start(&server, "deploy", "three").await;
    runs(&server, &one).await;
    waits(&server, &two, "key").await;
    waits(&server, &three, "key").await;
    let set = server.put(KEY, json!({"limit": 2})).await;
    assert_eq!(set.status, 200, "{set:?}");
    assert_eq!(
        (&set.body["limit"], &set.body["setLimit"], &set.body["setBy"]),
        (&json!(2), &json!(2), &json!("local"))
    );
    runs(&server, &two).await;
    waits(&server, &three, "key").await;
    let lowered = server.put(KEY, json!({"limit": 0})).await;
    assert_eq!((&lowered.body["limit"], &lowered.body["held"]), (&json!(0), &json!(2)));
    runs(&server, &one).await;
    runs(&server, &two).await;
    stop(&server, &one).await;
    stop(&server, &two).await;
    let waiting = waits(&server, &three, "key").await;
    assert_eq!(waiting["limit"], 0);
    // Without the operator's limit that of the definition holds again.
    let unset = server.ask(Method::DELETE, KEY, None).await;
    assert_eq!(unset.status, 204, "{unset:?}");
    runs(&server, &three).await;
    let audit = server.get("/v1/audit?kind=key").await.body;
    let actions: Vec<&Value> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["action"])
        .collect();
    assert_eq!(actions, ["unset", "set", "set"]);
}

#[tokio::test]
pub async fn keys_come_in_pages_and_rubbish_is_refused() {
    let server = deploying().await;
    for (pool, key) in [("b", "x"), ("a", "y/z"), ("a", "x")] {
        let path = format!("/v1/keys/{pool}/{}", key.replace('/', "%2F"));
        assert_eq!(server.put(&path, json!({"limit": 3})).await.status, 200);
    }
    let mut seen = Vec::new();
    let mut path = "/v1/keys?limit=1".to_owned();
    loop {
        let page = server.get(&path).await.body;
        seen.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|key| format!("{}{}", key["pool"], key["key"])),
        );
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/keys?limit=1&cursor={}", next.replace('/', "%2F")),
            None => break,
        }
    }
    assert_eq!(seen, [r#""a""x""#, r#""a""y/z""#, r#""b""x""#]);
    assert_eq!(server.ask(Method::DELETE, "/v1/keys/a/x", None).await.status, 204);
    let unknown = server.get("/v1/keys/a/x").await;
    assert_eq!(unknown.code(), (404, "NoSuchKey"));
    assert_eq!(
        server.ask(Method::DELETE, "/v1/keys/a/x", None).await.code(),
        (404, "NoSuchKey")
    );
    for (path, body, word) in [
        ("/v1/keys/a/x", json!({}), "missing"),
        ("/v1/keys/a/x", json!({"limit": null}), "missing"),
        ("/v1/keys/a/x", json!({"limit": -1}), "whole number"),
        ("/v1/keys/a/x", json!({"limit": "many"}), "whole number"),
        ("/v1/keys/a/x", json!({"limit": 1_000_000_001_u64}), "1000000000"),
        ("/v1/keys/a/x", json!({"limits": 1}), "limit"),
        ("/v1/keys/@flow/deploy", json!({"limit": 1}), "flow set"),
        ("/v1/keys/a%20b/x", json!({"limit": 1}), "pool"),
    ] {
        let refused = server.put(path, body.clone()).await;
        assert_eq!(refused.code(), (400, "BadRequest"), "{path} {body}");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(word), "{path} {body}: {detail}");
    }
    let long = format!("/v1/keys/a/{}", "x".repeat(257));
    assert_eq!(server.get(&long).await.code(), (400, "BadRequest"));
    assert_eq!(server.get("/v1/keys?cursor=x").await.code(), (400, "BadRequest"));
}

#[tokio::test]
pub async fn flow_is_limited_paused_and_resumed() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let one = start(&server, "f", "one").await;
    runs(&server, &one).await;
    let set = patch(&server, "f", json!({"maxRunning": 1})).await;
    assert_eq!(set.body, json!({"name": "f", "maxRunning": 1, "paused": false}));
    let two = start(&server, "f", "two").await;
    let waiting = waits(&server, &two, "flowLimit").await;
    assert_eq!(
        (&waiting["flow"], &waiting["limit"], &waiting["held"]),
        (&json!("f"), &json!(1), &json!(1))
    );
    let set = patch(&server, "f", json!({"paused": true})).await;
    assert_eq!(set.body, json!({"name": "f", "maxRunning": 1, "paused": true}));
    let flow = server.get("/v1/flows/f").await.body;
    assert_eq!((&flow["maxRunning"], &flow["paused"]), (&json!(1), &json!(true)));
    let waiting = waits(&server, &two, "flowPaused").await;
    assert_eq!(
        (&waiting["by"], &waiting["act"]),
        (&json!("local"), &json!("starbridge flow set f --resume"))
    );
    stop(&server, &one).await;
    waits(&server, &two, "flowPaused").await;
    assert_eq!(patch(&server, "f", json!({"paused": false})).await.status, 200);
    runs(&server, &two).await;
    let three = start(&server, "f", "three").await;
    waits(&server, &three, "flowLimit").await;
    let unset = patch(&server, "f", json!({"maxRunning": null})).await;
    assert_eq!(unset.body["maxRunning"], Value::Null);
    runs(&server, &three).await;
    assert_eq!(
        patch(&server, "g", json!({"paused": true})).await.code(),
        (404, "NoSuchFlow")
    );
    for body in [
        json!({}),
        json!({"paused": 1}),
        json!({"maxRunning": -1}),
        json!({"pause": true}),
    ] {
        assert_eq!(patch(&server, "f", body).await.code(), (400, "BadRequest"));
    }
}

#[tokio::test]
pub async fn limit_of_a_flow_counts_starts_that_are_on_their_way() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let starts = || async {
        for _ in 0..50 {
            let started = server.post("/v1/flows/f/executions", json!({})).await;
            assert_eq!(started.status, 201, "{started:?}");
        }
    };
    let limit = async {
        tokio::task::yield_now().await;
        patch(&server, "f", json!({"maxRunning": 1})).await
    };
    let (.., limited) = tokio::join!(starts(), starts(), starts(), starts(), limit);
    assert_eq!(limited.status, 200);
    let last = start(&server, "f", "last").await;
    let waiting = waits(&server, &last, "flowLimit").await;
    let running = server.get("/v1/executions?flow=f&status=Running&limit=1000").await;
    let running = running.body["items"].as_array().unwrap().len();
    assert_eq!(waiting["held"], json!(running), "each that runs holds a slot");
}

#[tokio::test]
pub async fn start_that_would_wait_for_itself_is_refused() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let after = |name: &str, others: Value| json!({"name": name, "after": others});
    let first = server.post("/v1/flows/f/executions", after("a", json!(["b"]))).await;
    let second = server.post("/v1/flows/f/executions", after("b", json!(["c"]))).await;
    assert_eq!((first.status, second.status), (201, 201));
    for answer in [&first, &second] {
        becomes(
            &server,
            answer.body["id"].as_str().unwrap(),
            "Blocked",
            &json!("dependency"),
        )
        .await;
    }
    let third = server
        .post("/v1/flows/f/executions", after("c", json!(["x", "a"])))
        .await;
    assert_eq!(third.code(), (422, "DependencyCycle"));
    let detail = third.body["detail"].as_str().unwrap();
    assert!(
        detail.contains("`f/c` would wait for `f/a`, which waits for `f/b`, which waits for `f/c`"),
        "{detail}"
    );
    assert_eq!(server.get("/v1/flows/f/executions/c").await.status, 404);
    let other = server.post("/v1/flows/f/executions", after("c", json!(["x"]))).await;
    assert_eq!(other.status, 201);
}

#[tokio::test]
pub async fn starts_of_one_moment_that_wait_for_one_another_fail() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    for ring in [["a", "b"].as_slice(), &["c", "d", "e"], &["g", "h", "i", "j", "k"]] {
        let others = ring.iter().cycle().skip(1);
        let starts: Vec<Value> = ring
            .iter()
            .zip(others)
            .map(|(name, other)| json!({"flow": "f", "name": name, "after": [other]}))
            .collect();
        let answer = server.post("/v1/executions/batch", json!(starts)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let items = answer.body["items"].as_array().unwrap();
        // One that comes after the others are known to wait is refused, and they wait for its name.
        let refused: Vec<&Value> = items.iter().filter_map(|item| item.get("problem")).collect();
        if !refused.is_empty() {
            assert!(
                refused.iter().all(|problem| problem["code"] == "DependencyCycle"),
                "{refused:?}"
            );
            continue;
        }
        for item in items {
            let id = item["execution"]["id"].as_str().unwrap();
            let ended = server.get(&format!("/v1/executions/{id}?wait=20")).await;
            assert_eq!(ended.body["status"], "Failed", "{ended:?}");
            assert_eq!(ended.body["error"], "FnF.DependencyFailed", "{ended:?}");
        }
    }
}

/// Admission that decides nothing is as far behind as it can be.
#[tokio::test]
pub async fn start_that_would_wait_for_itself_is_refused_whatever_admission_has_to_decide_before() {
    let server = Running::with(Access::default(), |settings| settings.admission.messages = 0).await;
    server.flow("f", asleep()).await;
    let after = |name: &str, others: Value| json!({"name": name, "after": others});
    for (name, other) in [("a", "b"), ("b", "c")] {
        let started = server.post("/v1/flows/f/executions", after(name, json!([other]))).await;
        assert_eq!(started.status, 201, "{started:?}");
    }
    let third = server
        .post("/v1/flows/f/executions", after("c", json!(["x", "a"])))
        .await;
    assert_eq!(third.code(), (422, "DependencyCycle"));
    let detail = third.body["detail"].as_str().unwrap();
    assert!(
        detail.contains("`f/c` would wait for `f/a`, which waits for `f/b`, which waits for `f/c`"),
        "{detail}"
    );
    let other = server.post("/v1/flows/f/executions", after("c", json!(["x"]))).await;
    assert_eq!(other.status, 201);
}

#[tokio::test]
pub async fn execution_says_whom_it_waits_for() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let body = json!({"name": "later", "after": ["f/first"]});
    let started = server.post("/v1/flows/f/executions", body).await;
    assert_eq!(started.status, 201, "{started:?}");
    let id = started.body["id"].as_str().unwrap();
    let wanted = json!([{"flow": "f", "name": "first", "status": "notThere"}]);
    let mut waiting = Value::Null;
    for _ in 0..500 {
        waiting = server.get(&format!("/v1/executions/{id}")).await.body["waitingFor"].clone();
        if waiting["executions"] == wanted {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(waiting["executions"], wanted, "{waiting}");
    assert_eq!(
        (&waiting["reason"], &waiting["open"]),
        (&json!("dependency"), &json!(1))
    );
    assert_eq!(waiting["act"], "starbridge start f --name first");
    start(&server, "f", "first").await;
    for _ in 0..500 {
        waiting = server.get("/v1/flows/f/executions/later").await.body["waitingFor"].clone();
        if waiting["executions"][0]["status"] == "Running" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not see the execution: {waiting}");
}

#[tokio::test]
pub async fn paused_waiter_says_so_and_lets_others_go_first() {
    let server = deploying().await;
    let one = start(&server, "deploy", "one").await;
    runs(&server, &one).await;
    let two = start(&server, "deploy", "two").await;
    let three = start(&server, "deploy", "three").await;
    waits(&server, &two, "key").await;
    waits(&server, &three, "key").await;
    let act = async |id: &str, verb: &str| {
        let path = format!("/v1/executions/{id}/{verb}");
        server.post(&path, json!({})).await
    };
    assert_eq!(act(&two, "pause").await.status, 200);
    waits(&server, &two, "paused").await;
    stop(&server, &one).await;
    runs(&server, &three).await;
    waits(&server, &two, "paused").await;
    // A redrive that waits in a line is not paused either.
    let redriven = act(&one, "redrive").await;
    assert_eq!((redriven.status, &redriven.body["status"]), (200, &json!("Queued")));
    let refused = act(&one, "pause").await;
    assert_eq!(refused.code(), (409, "NotRunning"));
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("`stop` withdraws"), "{detail}");
    stop(&server, &one).await;
    assert_eq!(act(&two, "resume").await.status, 200);
    waits(&server, &two, "key").await;
    stop(&server, &three).await;
    runs(&server, &two).await;
}

#[tokio::test]
pub async fn flows_that_share_a_pool_give_it_one_limit() {
    let server = Running::start().await;
    let flow = |keys: Value| {
        let mut flow = definition(asleep());
        flow["concurrency"] = keys;
        flow
    };
    let one = flow(json!([{"key": "$input.cluster", "limit": 5, "pool": "clusters"}]));
    assert_eq!(server.put("/v1/flows/migrate", one.clone()).await.status, 201);
    let other = flow(json!([{"key": "$.name", "limit": 3, "pool": "clusters"}]));
    let refused = server.put("/v1/flows/upgrade", other.clone()).await;
    assert_eq!(refused.code(), (422, "DifferentLimits"));
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("limit 3 here and 5 in the flow `migrate`"), "{detail}");
    assert_eq!(server.get("/v1/flows/upgrade").await.status, 404);
    // A pool may have several kinds of keys. In that case, keys with the same text are compared.
    let two = json!([{"key": "$input.cluster", "limit": 5, "pool": "clusters"}, {"key": "s-{$input.shard}", "limit": 1, "pool": "clusters"}]);
    assert_eq!(server.put("/v1/flows/upgrade", flow(two)).await.status, 201);
    // The flow's own pool has its name.
    let own = flow(json!([{"key": "a", "limit": 2, "pool": "migrate"}]));
    assert_eq!(server.put("/v1/flows/third", own).await.status, 201);
    // A flow may change its own limit if no other flow contradicts.
    assert_eq!(
        server.put("/v1/flows/third", other).await.code(),
        (422, "DifferentLimits")
    );
    let alone = flow(json!([{"key": "a", "limit": 4, "pool": "migrate"}]));
    assert_eq!(server.put("/v1/flows/third", alone).await.status, 201);
}

#[tokio::test]
async fn of_two_limits_of_a_pool_put_at_one_moment_one_is_refused() {
    let server = Running::start().await;
    let flow = |pool: &str, limit: u64| {
        let mut flow = definition(asleep());
        flow["concurrency"] = json!([{"key": "$input.cluster", "limit": limit, "pool": pool}]);
        flow
    };
    for round in 0..20 {
        let pool = format!("pool{round}");
        let (one, two) = (format!("/v1/flows/one{round}"), format!("/v1/flows/two{round}"));
        let (one, two) = tokio::join!(server.put(&one, flow(&pool, 1)), server.put(&two, flow(&pool, 2)));
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 422], "{one:?} {two:?}");
    }
}

#[tokio::test]
async fn a_flow_that_is_deleted_takes_its_limit_along() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    patch(&server, "f", json!({"maxRunning": 0})).await;
    let one = start(&server, "f", "one").await;
    waits(&server, &one, "flowLimit").await;
    assert_eq!(server.ask(Method::DELETE, "/v1/flows/f", None).await.status, 204);
    runs(&server, &one).await;
    server
        .flow("f", json!([{"type": "wait", "name": "later", "duration": 60}]))
        .await;
    assert_eq!(server.get("/v1/flows/f").await.body["maxRunning"], Value::Null);
}
