//! Bulk jobs: one act on many executions, each handled once.

use crate::access::access;
use crate::harness::{Answer, Running, asleep, sent};
use crate::held::Held;
use crate::mailbox::eventually;
use reqwest::Method;
use serde_json::{Value, json};
use starbridge_node::stores::in_memory;
use starbridge_ports::{AuditKind, AuditQuery};
use starbridge_server::Access;

/// A server that runs bulk jobs, with a flow that waits and one that fails.
async fn serving() -> Running {
    let server = Running::start().await;
    tokio::spawn(server.node.clone().keep_bulk());
    server.flow("waits", asleep()).await;
    let fails = json!([{"type": "fail", "name": "no", "error": "No.Way"}]);
    server.flow("fails", fails).await;
    server
}

async fn begin(server: &Running, flow: &str, count: usize) {
    for number in 0..count {
        let start = json!({"name": format!("n{number}"), "labels": {"odd": (number % 2).to_string()}});
        let wait = if flow == "waits" { 0 } else { 1 };
        let begun = server
            .post(&format!("/v1/flows/{flow}/executions?wait={wait}"), start)
            .await;
        assert_eq!(begun.status, 201, "{begun:?}");
    }
}

/// The job once it is over.
async fn over(server: &Running, job: &Value) -> Value {
    let path = format!("/v1/bulk/{}", job["id"].as_str().unwrap());
    let look = async || {
        let job = server.get(&path).await.body;
        (job["state"] == "done").then_some(job)
    };
    eventually("an end of the job", look).await
}

/// Waits until a member of the resource at a path has this value.
async fn becomes(server: &Running, path: &str, member: &str, value: Value) {
    let look = async || (server.get(path).await.body[member] == value).then_some(());
    eventually(&format!("{member} {value}"), look).await;
}

fn counts(job: &Value) -> [u64; 5] {
    ["items", "open", "done", "skipped", "failed"].map(|key| job[key].as_u64().unwrap())
}

#[tokio::test]
pub async fn bulk_job_is_for_what_a_view_shows() {
    let server = serving().await;
    begin(&server, "waits", 4).await;
    let odd = json!({"filter": {"labels": {"odd": "1"}}});
    let put = server.put("/v1/views/the%20odd%20ones", odd).await;
    assert_eq!(put.status, 201, "{put:?}");
    let bulk = |filter: Value| json!({"action": "stop", "filter": filter, "dryRun": true});
    let preview = server
        .post("/v1/bulk", bulk(json!({"view": "the odd ones", "flow": "waits"})))
        .await;
    assert_eq!(
        (preview.status, &preview.body["executions"]),
        (200, &json!(2)),
        "{preview:?}"
    );
    let none = server.post("/v1/bulk", bulk(json!({"view": "the even ones"}))).await;
    assert_eq!(none.code(), (404, "NoSuchView"));
    for odd in [
        json!({"view": 7}),
        json!({"view": "the odd ones", "labels": {"odd": "0"}}),
    ] {
        assert_eq!(server.post("/v1/bulk", bulk(odd)).await.code(), (400, "BadRequest"));
    }
    let job = json!({"action": "stop", "filter": {"view": "the odd ones"}});
    let job = server.post("/v1/bulk", job).await;
    // What the view means is kept: it may be another one tomorrow.
    assert_eq!(job.body["filter"], json!({"labels": {"odd": "1"}}));
    assert_eq!(over(&server, &job.body).await["done"], 2);
}

#[tokio::test]
pub async fn bulk_job_deals_with_what_matched() {
    let server = serving().await;
    begin(&server, "waits", 70).await;
    begin(&server, "fails", 2).await;
    let stop =
        json!({"action": "stop", "arguments": {"cause": "late"}, "filter": {"flow": "waits", "labels": {"odd": "1"}}});
    let mut dry = stop.clone();
    dry["dryRun"] = json!(true);
    let preview = server.post("/v1/bulk", dry).await;
    assert_eq!(
        (preview.status, &preview.body["executions"]),
        (200, &json!(35)),
        "{preview:?}"
    );
    assert_eq!(
        preview.body["counts"],
        json!([{"flow": "waits", "status": "Running", "executions": 35}])
    );
    assert_eq!(preview.body["examples"].as_array().unwrap().len(), 20);
    let made = server.post("/v1/bulk", stop).await;
    assert_eq!(made.status, 201, "{made:?}");
    let job = over(&server, &made.body).await;
    assert_eq!(counts(&job), [35, 0, 35, 0, 0], "{job}");
    let path = format!("/v1/bulk/{}/cancel", job["id"].as_str().unwrap());
    assert_eq!(server.post(&path, json!({})).await.code(), (409, "WrongBulkState"));
    let stopped = server.get("/v1/executions?status=Stopped&limit=1000").await.body;
    assert_eq!(stopped["items"].as_array().unwrap().len(), 35);
    // The history has who did it, as that of a single request has.
    let path = format!(
        "/v1/executions/{}/history?order=desc&limit=1",
        stopped["items"][0]["id"].as_str().unwrap()
    );
    let last = server.get(&path).await.body["items"][0].clone();
    assert_eq!(
        (&last["type"], &last["detail"]["by"]),
        (&json!("ExecutionStopped"), &json!("local")),
        "{last}"
    );
    // A stopped execution refuses the act the next time, and a failing one fails again.
    let all = json!({"action": "stop", "all": true});
    let again = over(&server, &server.post("/v1/bulk", all).await.body).await;
    assert_eq!(counts(&again), [72, 0, 35, 37, 0], "{again}");
    let path = format!("/v1/bulk/{}/items", again["id"].as_str().unwrap());
    let skipped = server.get(&format!("{path}?result=skipped&limit=10")).await.body;
    assert_eq!(skipped["items"].as_array().unwrap().len(), 10);
    assert_eq!(skipped["items"][0]["code"], "AlreadyEnded");
    let next = &skipped["next"];
    let rest = server
        .get(&format!("{path}?result=skipped&limit=100&cursor={next}"))
        .await
        .body;
    assert_eq!(
        (rest["items"].as_array().unwrap().len(), &rest["next"]),
        (27, &Value::Null)
    );
    let ids = [&skipped["items"][0]["execution"], &json!("gone"), &json!("gone")];
    let redrive = json!({"action": "redrive", "executions": ids});
    let redriven = over(&server, &server.post("/v1/bulk", redrive).await.body).await;
    assert_eq!(redriven["items"], 2, "{redriven}");
    let jobs = server.get("/v1/bulk?limit=2").await.body;
    assert_eq!(
        (jobs["items"].as_array().unwrap().len(), jobs["next"].is_null()),
        (2, false)
    );
}

/// How many executions a list shows, and how many a job would be for.
async fn matches(server: &Running, filter: &[(&str, &str)]) -> (usize, usize) {
    let query: Vec<String> = filter.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let list = server
        .get(&format!("/v1/executions?limit=1000&{}", query.join("&")))
        .await;
    assert_eq!(list.status, 200, "{filter:?}: {list:?}");
    let mut body = json!({});
    for (key, value) in filter {
        match *key {
            "status" => body["status"] = json!([value]),
            "label" => {
                let (key, value) = value.split_once(':').unwrap();
                body["labels"] = json!({key: value});
            }
            key => body[key] = json!(value),
        }
    }
    let dry = json!({"action": "pause", "filter": body, "dryRun": true});
    let preview = server.post("/v1/bulk", dry).await;
    assert_eq!(preview.status, 200, "{filter:?}: {preview:?}");
    let number = preview.body["executions"].as_u64().unwrap();
    (list.body["items"].as_array().unwrap().len(), number as usize)
}

#[tokio::test]
pub async fn each_filter_of_the_list_is_one_of_bulk_jobs() {
    let server = serving().await;
    begin(&server, "waits", 3).await;
    begin(&server, "fails", 4).await;
    let flow = json!({
        "version": "v1", "type": "flow", "steps": asleep(), "concurrency": [{"key": "$input.shard", "limit": 1}]
    });
    let put = server.put("/v1/flows/keyed", flow).await;
    assert!(put.status < 300, "{put:?}");
    for _ in 0..3 {
        let begun = server
            .post("/v1/flows/keyed/executions", json!({"input": {"shard": "s1"}}))
            .await;
        assert_eq!(begun.status, 201, "{begun:?}");
    }
    let task = json!([{"type": "task", "name": "t", "resourceArn": "queue:jobs"}]);
    server.flow("queued", task).await;
    for _ in 0..2 {
        server.post("/v1/flows/queued/executions", json!({})).await;
    }
    let waiting = async || (matches(&server, &[("reason", "key")]).await.0 == 2).then_some(());
    eventually("two that wait for the key", waiting).await;
    let queued = async || (matches(&server, &[("reason", "queue")]).await.0 == 2).then_some(());
    eventually("two tasks in the queue", queued).await;
    let hold = json!({"worker": "w"});
    let leased = server.post("/v1/queues/jobs/hold", hold).await;
    assert_eq!(leased.status, 200, "{leased:?}");
    let (long_ago, never) = ("2001-01-01T00:00:00Z", "2901-01-01T00:00:00Z");
    for (filter, number) in [
        (&[("flow", "fails")][..], 4),
        (&[("status", "Failed")], 4),
        (&[("name", "n1")], 2),
        (&[("label", "odd:1")], 3),
        (&[("from", never)], 0),
        (&[("to", long_ago)], 0),
        (&[("error", "No.Way")], 4),
        (&[("error", "No.Such")], 0),
        (&[("step", "no"), ("error", "No.Way")], 4),
        (&[("step", "yes")], 0),
        (&[("endedFrom", long_ago)], 4),
        (&[("endedFrom", never)], 0),
        (&[("endedTo", never)], 4),
        (&[("endedTo", long_ago)], 0),
        (&[("reason", "key"), ("reasonOf", "s1")], 2),
        (&[("reason", "key"), ("reasonOf", "s2")], 0),
        (&[("reason", "key"), ("status", "Failed")], 0),
        (&[("reason", "queue"), ("reasonOf", "jobs")], 1),
        (&[("reason", "worker")], 1),
        (&[("reason", "worker"), ("reasonOf", "other")], 0),
    ] {
        assert_eq!(matches(&server, filter).await, (number, number), "{filter:?}");
    }
}

#[tokio::test]
pub async fn bulk_job_is_suspended_resumed_and_cancelled() {
    let server = serving().await;
    begin(&server, "waits", 5).await;
    let stop = json!({"action": "stop", "filter": {"flow": "waits"}, "ratePerSecond": 1});
    let job = server.post("/v1/bulk", stop).await.body;
    let path = format!("/v1/bulk/{}", job["id"].as_str().unwrap());
    becomes(&server, &path, "done", json!(1)).await;
    let suspended = server.post(&format!("{path}/suspend"), json!({})).await;
    assert_eq!((suspended.status, &suspended.body["state"]), (200, &json!("suspended")));
    let resumed = server.post(&format!("{path}/resume"), json!({})).await;
    assert_eq!((resumed.status, &resumed.body["state"]), (200, &json!("running")));
    let cancelled = server.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!((cancelled.status, &cancelled.body["state"]), (200, &json!("cancelled")));
    for verb in ["suspend", "resume"] {
        let answer = server.post(&format!("{path}/{verb}"), json!({})).await;
        assert_eq!(answer.code(), (409, "WrongBulkState"), "{answer:?}");
    }
    for path in ["/v1/bulk/none", "/v1/bulk/none/items"] {
        assert_eq!(server.get(path).await.code(), (404, "NoSuchBulkJob"));
    }
    for verb in ["suspend", "resume", "cancel"] {
        let answer = server.post(&format!("/v1/bulk/none/{verb}"), json!({})).await;
        assert_eq!(answer.code(), (404, "NoSuchBulkJob"));
    }
    let query = AuditQuery {
        kind: Some(AuditKind::Bulk),
        limit: 10,
        ..AuditQuery::default()
    };
    let entries = server.node.store().audit(&query).unwrap().items;
    let actions: Vec<_> = entries.iter().rev().map(|(_, entry)| entry.action.as_str()).collect();
    assert_eq!(actions, ["stop", "suspend", "resume", "cancel"]);
}

#[tokio::test]
pub async fn bulk_job_is_suspended_before_it_is_collected() {
    // Nothing runs jobs yet.
    let server = Running::start().await;
    server.flow("waits", asleep()).await;
    begin(&server, "waits", 3).await;
    let stop = json!({"action": "stop", "filter": {"flow": "waits"}});
    let job = server.post("/v1/bulk", stop).await.body;
    let path = format!("/v1/bulk/{}", job["id"].as_str().unwrap());
    for (verb, state) in [
        ("suspend", "suspended"),
        ("suspend", "suspended"),
        ("resume", "collecting"),
        ("suspend", "suspended"),
    ] {
        let changed = server.post(&format!("{path}/{verb}"), json!({})).await;
        assert_eq!((changed.status, &changed.body["state"]), (200, &json!(state)));
    }
    tokio::spawn(server.node.clone().keep_bulk());
    let again = json!({"action": "stop", "filter": {"flow": "waits", "labels": {"odd": "1"}}});
    over(&server, &server.post("/v1/bulk", again).await.body).await;
    assert_eq!(server.get(&path).await.body["state"], "suspended");
    assert_eq!(server.post(&format!("{path}/resume"), json!({})).await.status, 200);
    let job = over(&server, &job).await;
    assert_eq!(counts(&job), [3, 0, 2, 1, 0], "{job}");
}

#[tokio::test]
pub async fn bulk_jobs_go_on_a_few_at_a_time() {
    let server = serving().await;
    begin(&server, "waits", 60).await;
    let mut paths = Vec::new();
    for _ in 0..7 {
        let pause = json!({"action": "pause", "filter": {"flow": "waits"}, "ratePerSecond": 1});
        let made = server.post("/v1/bulk", pause).await;
        assert_eq!(made.status, 201, "{made:?}");
        paths.push(format!("/v1/bulk/{}", made.body["id"].as_str().unwrap()));
    }
    let waiting = async || {
        let listed = server.get("/v1/bulk").await.body;
        let items = listed["items"].as_array().unwrap().iter().rev();
        let waits = items.map(|job| (job["state"].clone(), job["waitsFor"].clone()));
        waits
            .enumerate()
            .filter(|(_, (state, _))| state == "running" || state == "collecting")
            .filter(|(_, (_, wait))| !wait.is_null())
            .map(|(number, (_, wait))| (number, wait))
            .collect::<Vec<_>>()
    };
    let place = json!("place");
    let look = async |expected: &[usize]| {
        let expected: Vec<_> = expected.iter().map(|number| (*number, place.clone())).collect();
        let look = async || (waiting().await == expected).then_some(());
        eventually("jobs that wait", look).await;
    };
    look(&[4, 5, 6]).await;
    let change = async |number: usize, verb: &str, state: &str| {
        let changed = server.post(&format!("{}/{verb}", paths[number]), json!({})).await;
        assert_eq!((changed.status, &changed.body["state"]), (200, &json!(state)));
    };
    // One that waits gives its turn on, and so does one that runs.
    change(4, "suspend", "suspended").await;
    look(&[5, 6]).await;
    change(1, "cancel", "cancelled").await;
    look(&[6]).await;
    change(4, "resume", "running").await;
    look(&[4, 6]).await;
    change(0, "suspend", "suspended").await;
    look(&[6]).await;
    change(6, "cancel", "cancelled").await;
    look(&[]).await;
    assert_eq!(server.get(&paths[6]).await.body["done"], 0);
    // A job without a rate does not wait for those.
    let stop = json!({"action": "stop", "filter": {"flow": "waits"}});
    let job = over(&server, &server.post("/v1/bulk", stop).await.body).await;
    assert_eq!(counts(&job), [60, 0, 60, 0, 0], "{job}");
}

#[tokio::test]
pub async fn bulk_request_that_makes_no_sense_is_refused() {
    let server = serving().await;
    begin(&server, "waits", 1).await;
    for (body, word) in [
        (json!({"action": "explode", "all": true}), "stop, redrive"),
        (json!({"action": "stop"}), "all"),
        (json!({"action": "stop", "filter": {}}), "all"),
        (json!({"action": "stop", "filter": {"name": ""}}), "`name` is empty"),
        (
            json!({"action": "stop", "filter": {"flow": "", "status": ["Running"]}}),
            "`flow` is empty",
        ),
        (json!({"action": "stop", "filter": {"all": true}}), "beside `filter`"),
        (
            json!({"action": "stop", "executions": ["q".repeat(2_000)]}),
            "at most 36",
        ),
        (json!({"action": "stop", "filter": {"stats": ["Failed"]}}), "stats"),
        (json!({"action": "stop", "filter": {"status": ["Gone"]}}), "Gone"),
        (json!({"action": "stop", "all": true, "executions": ["x"]}), "not both"),
        (json!({"action": "stop", "executions": []}), "1 to 10000"),
        (
            json!({"action": "stop", "all": true, "ratePerSecond": 0}),
            "ratePerSecond",
        ),
        (json!({"action": "redrive", "arguments": {"x": 1}, "all": true}), "x"),
        (json!({"action": "resolve", "all": true}), "action"),
        // All of it is kept and shown in lists.
        (
            json!({"action": "resolve", "all": true, "arguments": {"action": "succeed", "output": {"a": "x".repeat(64 << 10)}}}),
            "`arguments` of a bulk job may have 65536 bytes",
        ),
        (
            json!({"action": "stop", "filter": {"error": "x".repeat(16 << 10)}}),
            "`filter` of a bulk job may have 16384 bytes",
        ),
    ] {
        let answer = server.post("/v1/bulk", body.clone()).await;
        assert_eq!(answer.code(), (400, "BadRequest"), "{body}: {answer:?}");
        let detail = answer.body["detail"].as_str().unwrap();
        assert!(detail.contains(word), "{body}: {detail}");
    }
    let answer = server.get("/v1/bulk/x/items?result=lost").await;
    assert_eq!(answer.code(), (400, "BadRequest"));
    assert_eq!(server.get("/v1/bulk").await.body["items"], json!([]));
    // A store without bulk jobs says so.
    let server = Running::with(Access::default(), |settings| settings.store = Held::over(in_memory())).await;
    let answer = server.post("/v1/bulk", json!({"action": "stop", "all": true})).await;
    assert_eq!(answer.code(), (422, "NotSupported"));
}

#[tokio::test]
pub async fn bulk_deletion_needs_the_scope_admin() {
    let server = Running::with(access(), |_| {}).await;
    let ask = async |token: &str, action: &str| {
        let body = json!({"action": action, "all": true, "dryRun": true});
        let request = server.request(Method::POST, "/v1/bulk").bearer_auth(token);
        Answer::of(sent(request.body(body.to_string())).await).await
    };
    assert_eq!(ask("token-operate", "delete").await.code(), (403, "Forbidden"));
    assert_eq!(ask("token-operate", "stop").await.status, 200);
    assert_eq!(ask("token-admin", "delete").await.status, 200);
}

/// A job of somebody with more scopes is no way around them.
#[tokio::test]
pub async fn resume_of_a_bulk_deletion_needs_the_scope_admin() {
    let server = Running::with(access(), |_| {}).await;
    let ask = async |token: &str, path: &str, body: Value| {
        let request = server.request(Method::POST, path).bearer_auth(token);
        Answer::of(sent(request.body(body.to_string())).await).await
    };
    let job = json!({"action": "delete", "executions": ["0190b3e4-8c1d-7abc-9def-0123456789ab"], "ratePerSecond": 1});
    let job = ask("token-admin", "/v1/bulk", job).await;
    assert_eq!(job.status, 201, "{job:?}");
    let path = |act: &str| format!("/v1/bulk/{}/{act}", job.body["id"].as_str().unwrap());
    assert_eq!(
        ask("token-operate", &path("resume"), json!({})).await.code(),
        (403, "Forbidden")
    );
    let resumed = ask("token-admin", &path("resume"), json!({})).await;
    assert_ne!(resumed.status, 403, "{resumed:?}");
    let missing = ask("token-operate", "/v1/bulk/none/resume", json!({})).await;
    assert_eq!(missing.status, 404, "{missing:?}");
}

#[tokio::test]
async fn bulk_resolves_deletes_and_redrives() {
    let server = serving().await;
    let asks = json!([{"type": "task", "name": "pay", "resourceArn": "cmd:none",
        "catch": [{"errors": ["FnF.ALL"], "manual": true}]}]);
    server.flow("asks", asks).await;
    let started = server
        .post("/v1/flows/asks/executions", json!({"name": "one"}))
        .await
        .body;
    let path = format!("/v1/executions/{}", started["id"].as_str().unwrap());
    becomes(&server, &path, "status", json!("Manual")).await;
    let resolve = json!({"action": "resolve", "filter": {"status": ["Manual"]},
        "arguments": {"action": "succeed", "output": {"paid": true}, "step": "pay"}});
    let job = over(&server, &server.post("/v1/bulk", resolve).await.body).await;
    assert_eq!(counts(&job), [1, 0, 1, 0, 0], "{job}");
    becomes(&server, &path, "status", json!("Succeeded")).await;
    let redrive = json!({"action": "redrive", "filter": {"flow": "asks"}});
    let job = over(&server, &server.post("/v1/bulk", redrive).await.body).await;
    assert_eq!(counts(&job), [1, 0, 0, 1, 0], "{job}");
    begin(&server, "waits", 1).await;
    let delete = json!({"action": "delete", "all": true});
    let job = over(&server, &server.post("/v1/bulk", delete).await.body).await;
    assert_eq!(counts(&job), [2, 0, 1, 1, 0], "{job}");
    assert_eq!(server.get(&path).await.code(), (404, "NoSuchExecution"));
}

#[tokio::test]
async fn bulk_pauses_and_resumes() {
    let server = serving().await;
    begin(&server, "waits", 3).await;
    let list = server.get("/v1/executions?flow=waits").await.body;
    let first = list["items"][0]["id"].as_str().unwrap();
    let paused = server.post(&format!("/v1/executions/{first}/pause"), json!({})).await;
    assert_eq!(paused.status, 200, "{paused:?}");
    let job = async |action: &str, arguments: Value| {
        let body = json!({"action": action, "arguments": arguments, "filter": {"flow": "waits"}});
        let job = over(&server, &server.post("/v1/bulk", body).await.body).await;
        let items = server
            .get(&format!("/v1/bulk/{}/items", job["id"].as_str().unwrap()))
            .await
            .body;
        let items = items["items"].as_array().unwrap().clone();
        let skipped = items.into_iter().filter(|item| item["result"] == "skipped");
        let codes: Vec<Value> = skipped.map(|item| item["code"].clone()).collect();
        (counts(&job), codes)
    };
    let paused = async || {
        let list = server.get("/v1/executions?reason=paused").await.body;
        list["items"].as_array().unwrap().len()
    };
    let (counts, codes) = job("pause", json!({"cause": "the bank is down"})).await;
    assert_eq!((counts, codes), ([3, 0, 2, 1, 0], vec![json!("AlreadyPaused")]));
    assert_eq!(paused().await, 3);
    let resumed = server.post(&format!("/v1/executions/{first}/resume"), json!({})).await;
    assert_eq!(resumed.status, 200, "{resumed:?}");
    let (counts, codes) = job("resume", json!({})).await;
    assert_eq!((counts, codes), ([3, 0, 2, 1, 0], vec![json!("NotPaused")]));
    assert_eq!(paused().await, 0);
}

#[tokio::test]
async fn bulk_stop_undoes_no_success() {
    let server = serving().await;
    let undoable =
        json!([{"type": "task", "name": "pay", "resourceArn": "queue:pay", "rollback": {"resourceArn": "queue:undo"}}]);
    server.flow("pays", undoable).await;
    let begun = server.post("/v1/flows/pays/executions", json!({})).await.body;
    let hold = json!({"worker": "w", "limit": 1, "waitSeconds": 20});
    let held = server.post("/v1/queues/pay/hold", hold).await.body;
    let token = held["tasks"][0]["token"].as_str().unwrap();
    let path = format!("/v1/callbacks/{token}/succeed");
    assert_eq!(server.post(&path, json!({"output": {}})).await.status, 204);
    let execution = format!("/v1/executions/{}", begun["id"].as_str().unwrap());
    becomes(&server, &execution, "status", json!("Succeeded")).await;
    let stop = json!({"rollback": true});
    let refused = server.post(&format!("{execution}/stop"), stop.clone()).await;
    assert_eq!(refused.code(), (409, "AlreadyEnded"));
    let job = json!({"action": "stop", "arguments": stop, "filter": {"flow": "pays"}});
    let job = over(&server, &server.post("/v1/bulk", job).await.body).await;
    assert_eq!(counts(&job), [1, 0, 0, 1, 0], "{job}");
    assert_eq!(server.get(&execution).await.body["status"], "Succeeded");
}

#[tokio::test]
async fn bulk_keeps_a_cause_as_long_as_histories_do() {
    let server = serving().await;
    begin(&server, "waits", 1).await;
    let stop = json!({"action": "stop", "arguments": {"cause": "z".repeat(9_000)}, "filter": {"flow": "waits"}});
    let job = over(&server, &server.post("/v1/bulk", stop).await.body).await;
    let kept = "z".repeat(4_096);
    assert_eq!(job["arguments"]["cause"], kept);
    let audit = server.get("/v1/audit?action=stop").await.body;
    let causes: Vec<&Value> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["detail"]["cause"])
        .collect();
    assert_eq!(causes, [&json!(kept), &json!(kept)]);
}
