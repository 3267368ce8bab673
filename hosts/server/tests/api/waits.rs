//! What running executions wait for, in lists and in single answers.

use crate::harness::{Running, asleep, definition, plain_client, refusing};
use serde_json::{Value, json};
use starbridge_runtime::AdmissionSettings;
use starbridge_server::Access;
use std::time::Duration;

async fn started(server: &Running, flow: &str) -> String {
    let started = server.post(&format!("/v1/flows/{flow}/executions"), json!({})).await;
    assert_eq!(started.status, 201, "{started:?}");
    started.body["id"].as_str().unwrap().to_owned()
}

/// The only execution that a list with this query has, as soon as it has one.
async fn only(server: &Running, query: &str) -> Value {
    let mut last = Value::Null;
    for _ in 0..500 {
        last = server.get(&format!("/v1/executions?{query}")).await.body;
        let items = last["items"].as_array().unwrap_or_else(|| panic!("{query}: {last}"));
        if let [item] = items.as_slice() {
            return item.clone();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{query} does not list one: {last}");
}

async fn none(server: &Running, query: &str) {
    let list = server.get(&format!("/v1/executions?{query}")).await.body;
    assert_eq!(list["items"], json!([]), "{query}");
}

async fn hold(server: &Running) -> Value {
    let hold = json!({"worker": "w", "limit": 1, "waitSeconds": 20});
    let held = server.post("/v1/queues/jobs/hold", hold).await;
    assert_eq!(held.status, 200, "{held:?}");
    held.body["tasks"][0].clone()
}

fn task(name: &str, resource: &str) -> Value {
    json!({"type": "task", "name": name, "resourceArn": resource, "timeoutSeconds": 600})
}

#[tokio::test]
pub async fn a_list_says_what_each_one_that_runs_waits_for() {
    let server = Running::start().await;
    let nobody = refusing();
    let target = format!("http://{}/pay", nobody.local_addr().unwrap());
    let mut retry = task("again", &target);
    retry["retry"] = json!([{"errors": ["FnF.ALL"], "intervalSeconds": 3600, "maxAttempts": 3}]);
    let mut manual = task("ask", &target);
    manual["retry"] = json!([]);
    manual["catch"] = json!([{"errors": ["FnF.ALL"], "manual": true}]);
    for (flow, steps, reason, of) in [
        ("timer", asleep(), "timer", "sleep"),
        ("retry", json!([retry]), "retry", "again"),
        ("manual", json!([manual]), "manual", "ask"),
        ("queue", json!([task("work", "queue:jobs")]), "queue", "jobs"),
    ] {
        server.flow(flow, steps).await;
        let id = started(&server, flow).await;
        let item = only(&server, &format!("reason={reason}&reasonOf={of}")).await;
        assert_eq!(item["id"], id, "{item}");
        let waiting = &item["waitingFor"];
        assert_eq!(
            (&waiting["reason"], &waiting["of"]),
            (&json!(reason), &json!(of)),
            "{item}"
        );
        assert!(waiting["text"].as_str().unwrap().contains(of), "{item}");
        none(&server, &format!("reason={reason}&reasonOf=other")).await;
        let shown = server.get(&format!("/v1/executions/{id}")).await.body;
        assert_eq!(shown["waitingFor"]["reason"], reason, "{shown}");
        let bare = server.get(&format!("/v1/executions/{id}?data=none")).await.body;
        assert_eq!(bare["waitingFor"], shown["waitingFor"], "{bare}");
    }
    let counts = server.get("/v1/executions/counts").await;
    assert_eq!(counts.status, 200, "{counts:?}");
    let expected = json!({"manual": 1, "queue": 1, "retry": 1, "timer": 1});
    assert_eq!(counts.body["reasons"], expected, "{counts:?}");
    assert_eq!(
        counts.body["statuses"],
        json!({"Running": 3, "Manual": 1}),
        "{counts:?}"
    );
    none(&server, "reason=running").await;
    none(&server, "reason=worker").await;
}

#[tokio::test]
async fn a_list_refuses_reasons_that_are_seen_only_where_an_execution_runs() {
    let server = Running::start().await;
    for reason in ["call", "capacity", "moving"] {
        let refused = server.get(&format!("/v1/executions?reason={reason}")).await;
        assert_eq!(refused.code(), (400, "BadRequest"), "{refused:?}");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("`{reason}`")), "{detail}");
        assert!(detail.contains("`reason=running`"), "{detail}");
        let counts = server.get("/v1/executions/counts").await.body;
        assert_eq!(counts["reasons"][reason], Value::Null);
    }
    let unknown = server.get("/v1/executions?reason=tired").await;
    let detail = unknown.body["detail"].as_str().unwrap();
    assert!(detail.contains("known are") && !detail.contains("=running"), "{detail}");
}

#[tokio::test]
async fn a_list_tells_a_task_that_waits_from_one_that_a_worker_holds() {
    let server = Running::start().await;
    server.flow("work", json!([task("work", "queue:jobs")])).await;
    let call = json!([{"type": "task", "name": "call", "resourceArn": "flow:work", "pattern": "sync"}]);
    server.flow("parent", call).await;
    let first = started(&server, "work").await;
    let waits = only(&server, "reason=queue").await;
    assert_eq!(waits["waitingFor"]["because"], "noWorker", "{waits}");
    assert_eq!(
        waits["waitingFor"]["act"], "starbridge worker --queue jobs -- COMMAND",
        "{waits}"
    );
    hold(&server).await;
    let held = only(&server, "reason=worker&reasonOf=jobs").await;
    assert_eq!(
        (&held["id"], &held["waitingFor"]["worker"]),
        (&json!(first), &json!("w")),
        "{held}"
    );
    none(&server, "reason=queue").await;
    let shown = server.get(&format!("/v1/executions/{first}")).await.body;
    assert_eq!(shown["waitingFor"]["reason"], "worker", "{shown}");
    assert!(shown["waitingFor"]["leaseUntil"].is_string(), "{shown}");
    let parent = started(&server, "parent").await;
    let told = only(&server, "reason=child").await;
    assert_eq!(told["id"], parent, "{told}");
    let child = told["waitingFor"]["execution"].as_str().unwrap();
    assert_eq!(told["waitingFor"]["waitingFor"]["reason"], "queue", "{told}");
    none(&server, &format!("reason=child&reasonOf={first}")).await;
    assert_eq!(
        only(&server, &format!("reason=child&reasonOf={child}")).await["id"],
        parent
    );
}

#[tokio::test]
async fn one_that_goes_from_one_queue_to_the_next_is_listed_there() {
    let server = Running::start().await;
    let steps = json!([task("first", "queue:jobs"), task("second", "queue:others")]);
    server.flow("two", steps).await;
    let id = started(&server, "two").await;
    only(&server, "reason=queue&reasonOf=jobs").await;
    let held = hold(&server).await;
    let token = held["token"].as_str().unwrap();
    let done = server
        .post(&format!("/v1/callbacks/{token}/succeed"), json!({"output": {}}))
        .await;
    assert_eq!(done.status, 204, "{done:?}");
    let item = only(&server, "reason=queue&reasonOf=others").await;
    assert_eq!(item["id"], id, "{item}");
    none(&server, "reason=queue&reasonOf=jobs").await;
}

#[tokio::test]
async fn a_task_says_its_position_in_the_queue() {
    let server = Running::start().await;
    server.flow("work", json!([task("work", "queue:jobs")])).await;
    let put = server.put("/v1/queues/jobs", json!({"maxConcurrent": 1})).await;
    assert!(put.status < 300, "{put:?}");
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(started(&server, "work").await);
    }
    for (number, id) in ids.iter().enumerate() {
        let why = server.get(&format!("/v1/executions/{id}/why")).await.body;
        assert_eq!(why["waitingFor"]["position"], number as u64 + 1, "{why}");
        assert_eq!(why["waitingFor"]["maxConcurrent"], 1, "{why}");
    }
    hold(&server).await;
    let why = server.get(&format!("/v1/executions/{}/why", ids[2])).await.body;
    let waiting = &why["waitingFor"];
    assert_eq!(
        (&waiting["position"], &waiting["because"], &waiting["held"]),
        (&json!(2), &json!("limit"), &json!(1)),
        "{why}"
    );
    let first = json!({"priority": 9});
    let order = server.post(&format!("/v1/executions/{}/order", ids[2]), first).await;
    assert!(order.status < 300, "{order:?}");
    let why = server.get(&format!("/v1/executions/{}/why", ids[2])).await.body;
    assert_eq!(why["waitingFor"]["position"], 1, "{why}");
}

#[tokio::test]
pub async fn a_start_is_refused_where_too_many_wait() {
    let server = Running::with(Access::default(), |settings| {
        settings.admission = AdmissionSettings {
            max_waiting: 1,
            ..AdmissionSettings::default()
        };
    })
    .await;
    let mut keyed = definition(asleep());
    keyed["concurrency"] = json!([{"key": "one", "limit": 1}]);
    assert_eq!(server.put("/v1/flows/keyed", keyed).await.status, 201);
    server.flow("free", asleep()).await;
    let first = started(&server, "keyed").await;
    let second = started(&server, "keyed").await;
    let waits = only(&server, "reason=key").await;
    assert_eq!(waits["id"], second, "{waits}");
    let url = format!("{}/v1/flows/keyed/executions", server.base);
    let refused = plain_client().post(url).body("{}").send().await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "1");
    assert_eq!(refused.status().as_u16(), 429);
    let refused = server
        .post("/v1/flows/keyed/executions", json!({"name": "third"}))
        .await;
    assert_eq!(refused.code(), (429, "TooManyWaiting"));
    let batch =
        json!([{"flow": "keyed", "name": "third"}, {"flow": "free"}, {"flow": "free", "after": ["free/never"]}]);
    let batch = server.post("/v1/executions/batch", batch).await.body;
    let statuses: Vec<&Value> = batch["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["status"])
        .collect();
    assert_eq!(statuses, [429, 201, 429], "{batch}");
    assert_eq!(server.get("/v1/flows/keyed/executions/third").await.status, 404);
    // The waiting one goes on, and there is room for another.
    let stopped = server.post(&format!("/v1/executions/{first}/stop"), json!({})).await;
    assert!(stopped.status < 300, "{stopped:?}");
    only(&server, "flow=keyed&reason=timer").await;
    started(&server, "keyed").await;
}

#[tokio::test]
async fn a_start_that_waits_for_a_flow_that_is_not_there_is_refused() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let refused = server
        .post("/v1/flows/f/executions", json!({"after": ["nosuch/x"]}))
        .await;
    assert_eq!(refused.code(), (422, "UnknownDependency"));
    assert!(
        refused.body["detail"].as_str().unwrap().contains("no flow `nosuch`"),
        "{refused:?}"
    );
    server.flow("nosuch", asleep()).await;
    let taken = server
        .post("/v1/flows/f/executions", json!({"after": ["nosuch/x"]}))
        .await;
    assert_eq!(taken.status, 201, "{taken:?}");
}
