//! Worker queues.

use crate::clock::StandingClock;
use crate::harness::{Answer, Running, definition};
use serde_json::{Value, json};
use starbridge_node::stores::in_memory;
use starbridge_server::Access;
use std::sync::Arc;
use std::time::Duration;

/// A server whose time passes only when its clock is set.
async fn standing() -> (Running, Arc<StandingClock>) {
    let clock = StandingClock::new();
    let own = clock.clone();
    let server = Running::with(Access::default(), |settings| settings.clock = own).await;
    (server, clock)
}

/// Waits until this many workers wait for tasks of a queue.
async fn workers(server: &Running, queue: &str, count: u64) {
    for _ in 0..500 {
        if server.get(&format!("/v1/queues/{queue}")).await.body["workers"] == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("there are not {count} workers of {queue}");
}

/// A step that workers of a queue do.
fn task(queue: &str, more: &Value) -> Value {
    let mut step = json!({"type": "task", "name": "work", "resourceArn": format!("queue:{queue}")});
    for (name, value) in more.as_object().unwrap() {
        step[name] = value.clone();
    }
    step
}

async fn start(server: &Running, flow: &str, name: &str, input: Value) {
    let started = server
        .post(
            &format!("/v1/flows/{flow}/executions"),
            json!({"name": name, "input": input}),
        )
        .await;
    assert_eq!(started.status, 201, "{started:?}");
}

/// Tasks for a worker that does not wait long.
async fn hold(server: &Running, queue: &str, more: Value) -> Vec<Value> {
    let mut body = json!({"worker": "w", "limit": 10, "waitSeconds": 0});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    let held = server.post(&format!("/v1/queues/{queue}/hold"), body).await;
    assert_eq!(held.status, 200, "{held:?}");
    held.body["tasks"].as_array().unwrap().clone()
}

/// A task for a worker that waits until there is one.
pub async fn hold_soon(server: &Running, queue: &str) -> Value {
    let tasks = hold(server, queue, json!({"limit": 1, "waitSeconds": 20})).await;
    tasks.into_iter().next().expect("a task")
}

async fn report(server: &Running, task: &Value, verb: &str, body: Value) -> Answer {
    let token = task["token"].as_str().unwrap();
    server.post(&format!("/v1/callbacks/{token}/{verb}"), body).await
}

async fn succeed(server: &Running, task: &Value) {
    let told = report(server, task, "succeed", json!({"output": {}})).await;
    assert_eq!(told.status, 204, "{told:?}");
}

async fn shown(server: &Running, flow: &str, name: &str) -> Value {
    server.get(&format!("/v1/flows/{flow}/executions/{name}")).await.body
}

async fn ended(server: &Running, flow: &str, name: &str) -> Value {
    for _ in 0..500 {
        let execution = shown(server, flow, name).await;
        if execution["endedTime"].is_string() {
            return execution;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{flow}/{name} has not ended");
}

#[tokio::test]
pub async fn a_task_is_held_and_reported() {
    let server = Running::start().await;
    let more = json!({
        "timeoutSeconds": 90,
        "priority": 7,
        "pattern": "waitForCallback",
        "inputMappings": [{"target": "n", "source": "$input.n"}, {"target": "token", "source": "$context.task.token"}],
        "outputMappings": [{"target": "sum", "source": "$local.sum"}],
    });
    server.flow("f", json!([task("jobs", &more)])).await;
    start(&server, "f", "one", json!({"n": 4})).await;
    let held = hold_soon(&server, "jobs").await;
    let execution = shown(&server, "f", "one").await;
    let id = execution["id"].as_str().unwrap();
    for (member, value) in [
        ("queue", json!("jobs")),
        ("execution", json!(id)),
        ("flow", json!("f")),
        ("step", json!("work")),
        ("path", json!([])),
        ("type", json!("normal")),
        ("attempt", json!(1)),
        ("key", json!(format!("{id}/4"))),
        ("stepKey", json!(format!("{id}/2"))),
        ("priority", json!(7)),
        ("leaseSeconds", json!(30)),
        ("timeoutSeconds", json!(90)),
        // The token that a flow passes on is the one that the worker has.
        ("input", json!({"n": 4, "token": held["token"]})),
    ] {
        assert_eq!(held[member], value, "{member}");
    }
    assert!(hold(&server, "jobs", json!({})).await.is_empty());
    let told = report(&server, &held, "succeed", json!({"output": {"sum": 9}})).await;
    assert_eq!(told.status, 204, "{told:?}");
    let execution = ended(&server, "f", "one").await;
    assert_eq!(execution["output"], json!({"sum": 9}));
    let again = report(&server, &held, "fail", json!({"error": "No"})).await;
    assert_eq!(again.status, 409);
    let history = server.get(&format!("/v1/executions/{id}/history")).await.body;
    let events = history["items"].as_array().unwrap();
    let succeeded = events.iter().find(|event| event["type"] == "TaskSucceeded").unwrap();
    assert_eq!(succeeded["detail"]["worker"], "w");
    assert!(succeeded["detail"]["heldTime"].is_string());
}

#[tokio::test]
async fn poll_is_answered_at_once_or_when_its_time_is_over() {
    let (server, clock) = standing().await;
    server.flow("f", json!([task("jobs", &json!({}))])).await;
    // No time passes, and the answer comes.
    let waiting = hold_soon(&server, "jobs");
    let (held, ()) = tokio::join!(waiting, async {
        workers(&server, "jobs", 1).await;
        start(&server, "f", "one", json!({})).await;
    });
    assert_eq!(held["step"], "work");
    succeed(&server, &held).await;
    // No task comes: the answer is empty, and comes only when the time is over.
    let waiting = hold(&server, "jobs", json!({"waitSeconds": 1}));
    let (none, ()) = tokio::join!(waiting, async {
        workers(&server, "jobs", 1).await;
        clock.pass(999);
        workers(&server, "jobs", 1).await;
        clock.pass(1);
    });
    assert!(none.is_empty());
}

#[tokio::test]
async fn lease_ends_by_silence_and_the_queue_tries_again() {
    let (server, clock) = standing().await;
    server.flow("f", json!([task("jobs", &json!({}))])).await;
    let set = server.put("/v1/queues/jobs", json!({"redeliver": 1})).await;
    assert_eq!(set.status, 200, "{set:?}");
    start(&server, "f", "one", json!({})).await;
    let first = hold(&server, "jobs", json!({"waitSeconds": 20, "leaseSeconds": 1}))
        .await
        .remove(0);
    // A heartbeat keeps it.
    for _ in 0..3 {
        clock.pass(600);
        assert_eq!(report(&server, &first, "heartbeat", json!({})).await.status, 204);
    }
    clock.pass(1_000);
    assert!(hold(&server, "jobs", json!({})).await.is_empty(), "its last moment");
    clock.pass(1);
    let second = hold(&server, "jobs", json!({"waitSeconds": 20, "leaseSeconds": 1}))
        .await
        .remove(0);
    assert_eq!(second["attempt"], 2);
    assert_ne!(second["key"], first["key"]);
    assert_eq!(second["stepKey"], first["stepKey"]);
    let late = [
        ("heartbeat", json!({})),
        ("succeed", json!({"output": {}})),
        ("fail", json!({"error": "Late"})),
        ("heartbeat", json!({})),
    ];
    for (verb, body) in &late {
        let late = report(&server, &first, verb, body.clone()).await;
        assert_eq!(late.code(), (410, "TaskTimedOut"), "{verb}");
    }
    // The queue grants one retry; after it the task is dead.
    clock.pass(1_001);
    let execution = ended(&server, "f", "one").await;
    assert_eq!(
        (&execution["status"], &execution["error"]),
        (&json!("Failed"), &json!("FnF.HeartbeatTimeout"))
    );
    for (verb, body) in &late {
        let late = report(&server, &first, verb, body.clone()).await;
        assert_eq!(late.code(), (410, "TaskTimedOut"), "{verb} after the end");
    }
    let dead = server.get("/v1/queues/jobs/dead").await.body;
    assert_eq!(dead["items"].as_array().unwrap().len(), 1, "{dead}");
    assert_eq!(dead["items"][0]["execution"], execution["id"]);
    assert_eq!(dead["items"][0]["attempt"], 2);
    assert_eq!(server.get("/v1/queues/jobs").await.body["dead"], 1);
}

#[tokio::test]
pub async fn dead_tasks_are_queued_anew_or_dropped() {
    let server = Running::start().await;
    server.flow("f", json!([task("jobs", &json!({}))])).await;
    for name in ["one", "two"] {
        start(&server, "f", name, json!({})).await;
        let held = hold_soon(&server, "jobs").await;
        let failed = report(&server, &held, "fail", json!({"error": "Paper.Jam", "cause": "tray 2"})).await;
        assert_eq!(failed.status, 204);
        ended(&server, "f", name).await;
    }
    let page = server.get("/v1/queues/jobs/dead?limit=1").await.body;
    assert_eq!(page["items"][0]["error"], "Paper.Jam");
    assert_eq!(page["items"][0]["cause"], "tray 2");
    let next = page["next"].as_str().unwrap();
    let rest = server.get(&format!("/v1/queues/jobs/dead?cursor={next}")).await.body;
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
    let one = &page["items"][0];
    let tasks = json!([{"execution": one["execution"], "call": one["call"]}]);
    let done = server
        .post("/v1/queues/jobs/dead", json!({"action": "requeue", "tasks": tasks}))
        .await;
    assert_eq!(done.body, json!({"done": 1, "notDone": 0, "next": null}));
    succeed(&server, &hold_soon(&server, "jobs").await).await;
    let one = ended(&server, "f", "one").await;
    assert_eq!(one["status"], "Succeeded");
    let path = format!("/v1/executions/{}/history", one["id"].as_str().unwrap());
    let history = server.get(&path).await.body;
    let mut events = history["items"].as_array().unwrap().iter();
    let redriven = events.find(|event| event["type"] == "ExecutionRedriven").unwrap();
    assert_eq!(redriven["detail"]["by"], "local", "{redriven}");
    let done = server.post("/v1/queues/jobs/dead", json!({"action": "drop"})).await;
    assert_eq!(done.body, json!({"done": 1, "notDone": 0, "next": null}));
    assert_eq!(server.get("/v1/queues/jobs/dead").await.body["items"], json!([]));
    assert_eq!(shown(&server, "f", "two").await["status"], "Failed");
    let wrong = server
        .post("/v1/queues/jobs/dead", json!({"action": "discard_dead"}))
        .await;
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn dead_task_is_not_one_that_is_retried_or_caught() {
    let server = Running::start().await;
    let more = json!({
        "retry": [{"errors": ["Busy"], "intervalSeconds": 1, "maxAttempts": 1, "backoff": "fixed"}],
        "catch": [{"errors": ["FnF.ALL"], "goto": "rest"}],
    });
    let rest = json!({"type": "pass", "name": "rest"});
    server.flow("f", json!([task("jobs", &more), rest])).await;
    start(&server, "f", "one", json!({})).await;
    for attempt in 1..=2 {
        let held = hold_soon(&server, "jobs").await;
        assert_eq!(held["attempt"], attempt);
        assert_eq!(
            report(&server, &held, "fail", json!({"error": "Busy"})).await.status,
            204
        );
    }
    assert_eq!(ended(&server, "f", "one").await["status"], "Succeeded");
    assert_eq!(server.get("/v1/queues/jobs/dead").await.body["items"], json!([]));
}

/// A failure that means "nobody was called" is not undone, and one that means "time is over" is retried. A worker can
/// report neither.
#[tokio::test]
async fn error_name_of_a_worker_is_prefixed() {
    let server = Running::start().await;
    let more = json!({
        "retry": [{"errors": ["FnF.NoSuchResource"], "intervalSeconds": 0, "maxAttempts": 5}],
        "rollback": {"resourceArn": "queue:undo"},
    });
    server.flow("f", json!([task("jobs", &more)])).await;
    start(&server, "f", "one", json!({})).await;
    let held = hold_soon(&server, "jobs").await;
    let told = report(&server, &held, "fail", json!({"error": "FnF.NoSuchResource"})).await;
    assert_eq!(told.status, 204, "{told:?}");
    succeed(&server, &hold_soon(&server, "undo").await).await;
    let failed = ended(&server, "f", "one").await;
    assert_eq!(failed["error"], "Worker.FnF.NoSuchResource", "{failed}");
}

#[tokio::test]
pub async fn what_is_stopped_leaves_the_queue_and_its_worker_learns_it() {
    let server = Running::start().await;
    server.flow("f", json!([task("jobs", &json!({}))])).await;
    start(&server, "f", "held", json!({})).await;
    let held = hold_soon(&server, "jobs").await;
    start(&server, "f", "waiting", json!({})).await;
    for name in ["held", "waiting"] {
        let id = shown(&server, "f", name).await["id"].as_str().unwrap().to_owned();
        assert_eq!(
            server
                .post(&format!("/v1/executions/{id}/stop"), json!({}))
                .await
                .status,
            200
        );
    }
    assert!(hold(&server, "jobs", json!({})).await.is_empty());
    let beat = report(&server, &held, "heartbeat", json!({})).await;
    assert_eq!(beat.code(), (410, "TaskTimedOut"));
    // Nothing is left in the queue.
    assert_eq!(server.get("/v1/queues/jobs").await.code(), (404, "NoSuchQueue"));
}

#[tokio::test]
async fn fair_queue_many_tasks_of_one_do_not_keep_another_waiting() {
    let server = Running::start().await;
    let each = json!({
        "type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "n"},
        "steps": [task("jobs", &json!({}))],
    });
    server.flow("many", json!([each])).await;
    server.flow("one", json!([task("jobs", &json!({}))])).await;
    server
        .flow("urgent", json!([task("jobs", &json!({"priority": 9}))]))
        .await;
    let items: Vec<u32> = (0..300).collect();
    start(&server, "many", "m", json!({"items": items})).await;
    // A few are taken, then an execution with a single one comes.
    let first = hold(&server, "jobs", json!({"limit": 20, "waitSeconds": 20})).await;
    assert!(first.iter().all(|task| task["flow"] == "many"));
    start(&server, "one", "o", json!({})).await;
    start(&server, "urgent", "u", json!({})).await;
    let next = hold(&server, "jobs", json!({"limit": 5})).await;
    let flows: Vec<&str> = next.iter().map(|task| task["flow"].as_str().unwrap()).collect();
    assert_eq!(flows[0], "urgent", "{flows:?}");
    assert!(flows.contains(&"one"), "{flows:?}");
    let numbers: Vec<u64> = first.iter().map(|task| task["input"]["n"].as_u64().unwrap()).collect();
    assert_eq!(
        numbers,
        (0..20).collect::<Vec<u64>>(),
        "one after another within an execution"
    );
}

#[tokio::test]
pub async fn queues_keep_to_what_is_set() {
    let (server, clock) = standing().await;
    server.flow("f", json!([task("jobs", &json!({}))])).await;
    for number in 0..6 {
        start(&server, "f", &format!("e{number}"), json!({})).await;
    }
    let paused = server.put("/v1/queues/jobs", json!({"paused": true})).await;
    assert_eq!(paused.body["paused"], true);
    assert!(hold(&server, "jobs", json!({})).await.is_empty());
    server.put("/v1/queues/jobs", json!({"maxConcurrent": 2})).await;
    let held = hold(&server, "jobs", json!({"limit": 5, "waitSeconds": 20})).await;
    assert_eq!(held.len(), 2);
    assert!(hold(&server, "jobs", json!({})).await.is_empty());
    succeed(&server, &held[0]).await;
    assert_eq!(hold(&server, "jobs", json!({"waitSeconds": 20})).await.len(), 1);
    server.put("/v1/queues/jobs", json!({"ratePerSecond": 2})).await;
    assert_eq!(hold(&server, "jobs", json!({})).await.len(), 1);
    for _ in 0..2 {
        clock.pass(490);
        assert!(hold(&server, "jobs", json!({})).await.is_empty());
        clock.pass(10);
        assert_eq!(hold(&server, "jobs", json!({})).await.len(), 1);
    }
    for (body, word) in [
        (json!({"maxConcurrent": 0}), "maxConcurrent"),
        (json!({"pause": true}), "did you mean `paused`"),
    ] {
        let refused = server.put("/v1/queues/jobs", body).await;
        assert!(refused.body["detail"].as_str().unwrap().contains(word), "{refused:?}");
    }
}

#[tokio::test]
pub async fn several_queues_are_asked_at_once() {
    let server = Running::start().await;
    for queue in ["a", "b"] {
        server.flow(queue, json!([task(queue, &json!({}))])).await;
        start(&server, queue, "one", json!({})).await;
    }
    let both = json!({"worker": "w", "queues": ["b", "a"], "limit": 5, "waitSeconds": 20});
    let mut queues = Vec::new();
    while queues.len() < 2 {
        let held = server.post("/v1/queues/hold", both.clone()).await;
        let tasks = held.body["tasks"].as_array().unwrap().clone();
        queues.extend(tasks.iter().map(|task| task["queue"].as_str().unwrap().to_owned()));
    }
    queues.sort();
    assert_eq!(queues, ["a", "b"]);
    for (body, word) in [
        (json!({"queues": ["a"]}), "`worker`"),
        (json!({"worker": "w", "queues": []}), "no queue"),
        (json!({"worker": "w", "queues": ["1"]}), "no name of a queue"),
        (json!({"worker": "w", "queues": ["a"], "limit": 0}), "`limit`"),
        (json!({"worker": "w", "queues": ["a"], "limit": 1001}), "`limit`"),
        (
            json!({"worker": "w", "queues": ["a"], "waitSeconds": 61}),
            "`waitSeconds`",
        ),
        (json!({"worker": "w\n", "queues": ["a"]}), "control"),
        (json!({"worker": "w", "queue": "a"}), "did you mean `queues`"),
    ] {
        let refused = server.post("/v1/queues/hold", body.clone()).await;
        assert_eq!(refused.status, 400, "{body}");
        assert!(
            refused.body["detail"].as_str().unwrap().contains(word),
            "{body}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn timeout_counts_from_the_hold_and_waiting_has_a_bound_of_its_own() {
    let (server, clock) = standing().await;
    server
        .flow("slow", json!([task("slow", &json!({"timeoutSeconds": 1}))]))
        .await;
    server
        .flow("late", json!([task("late", &json!({"waitSeconds": 1}))]))
        .await;
    start(&server, "slow", "s", json!({})).await;
    start(&server, "late", "l", json!({})).await;
    clock.pass(1_500);
    // This is longer than its time in the queue, which no longer counts.
    let held = hold_soon(&server, "slow").await;
    let late = ended(&server, "late", "l").await;
    assert_eq!(late["error"], "FnF.TaskTimeout", "{late}");
    assert!(hold(&server, "late", json!({})).await.is_empty());
    clock.pass(500);
    assert_eq!(report(&server, &held, "heartbeat", json!({})).await.status, 204);
    clock.pass(501);
    let slow = ended(&server, "slow", "s").await;
    assert_eq!(slow["error"], "FnF.TaskTimeout", "{slow}");
    assert_eq!(
        report(&server, &held, "succeed", json!({"output": {}})).await.status,
        410
    );
}

#[tokio::test]
async fn rollback_goes_through_queues_too() {
    let server = Running::start().await;
    let undone = task("jobs", &json!({"rollback": {"resourceArn": "queue:undo"}}));
    let fails = json!({"type": "fail", "name": "no", "error": "Nope"});
    server.flow("f", json!([undone, fails])).await;
    start(&server, "f", "one", json!({})).await;
    succeed(&server, &hold_soon(&server, "jobs").await).await;
    let undo = hold_soon(&server, "undo").await;
    assert_eq!((&undo["type"], &undo["step"]), (&json!("rollback"), &json!("work")));
    succeed(&server, &undo).await;
    assert_eq!(ended(&server, "f", "one").await["error"], "Nope");
}

#[tokio::test]
async fn lease_and_task_outlive_the_process() {
    let store = in_memory();
    let kept = store.clone();
    let server = Running::with(Access::default(), move |settings| settings.store = kept).await;
    server.flow("f", json!([task("jobs", &json!({}))])).await;
    for name in ["one", "two", "three"] {
        start(&server, "f", name, json!({})).await;
    }
    server.put("/v1/queues/jobs", json!({"redeliver": 7})).await;
    let held = hold_soon(&server, "jobs").await;
    server.node.drain(Duration::from_secs(5)).await.unwrap();
    let server = Running::with(Access::default(), move |settings| settings.store = store).await;
    let queue = server.get("/v1/queues/jobs").await.body;
    assert_eq!(
        (&queue["waiting"], &queue["held"], &queue["redeliver"]),
        (&json!(2), &json!(1), &json!(7))
    );
    // A worker that held a task still holds it.
    assert_eq!(report(&server, &held, "heartbeat", json!({})).await.status, 204);
    assert_eq!(hold(&server, "jobs", json!({})).await.len(), 2);
    succeed(&server, &held).await;
    assert_eq!(
        ended(&server, "f", held_name(&server, &held).await.as_str()).await["status"],
        "Succeeded"
    );
}

async fn held_name(server: &Running, held: &Value) -> String {
    let execution = held["execution"].as_str().unwrap();
    let shown = server.get(&format!("/v1/executions/{execution}")).await.body;
    shown["name"].as_str().unwrap().to_owned()
}

#[tokio::test]
pub async fn nothing_is_known_of_a_queue_nobody_used() {
    let server = Running::start().await;
    assert_eq!(server.get("/v1/queues/none").await.code(), (404, "NoSuchQueue"));
    assert_eq!(server.get("/v1/queues").await.body["items"], json!([]));
    let put = server
        .put("/v1/flows/f", definition(json!([task("jobs", &json!({}))])))
        .await;
    assert_eq!(put.body["diagnostics"], json!([]), "a queue needs no map");
}

#[tokio::test]
async fn retry_that_waits_is_seen() {
    let server = Running::start().await;
    let retry = json!({"retry": [{"errors": ["Busy"], "intervalSeconds": 3600}]});
    let each = json!({
        "type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "n"},
        "steps": [task("jobs", &retry)],
    });
    server.flow("f", json!([each])).await;
    start(&server, "f", "one", json!({"items": [0, 1, 2]})).await;
    let held = hold(&server, "jobs", json!({"waitSeconds": 20})).await;
    assert_eq!(held.len(), 3);
    succeed(&server, &held[0]).await;
    assert_eq!(
        report(&server, &held[1], "fail", json!({"error": "Busy", "cause": "later"}))
            .await
            .status,
        204
    );
    let id = held[0]["execution"].as_str().unwrap();
    let steps = server
        .get(&format!("/v1/executions/{id}/steps?status=retrying"))
        .await
        .body;
    let rows = steps["items"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{steps}");
    assert_eq!(rows[0]["path"], held[1]["path"]);
    assert_eq!(
        (&rows[0]["error"], &rows[0]["endedTime"]),
        (&json!("Busy"), &Value::Null)
    );
    assert!(rows[0]["waitsUntil"].is_string());
    let all = server.get(&format!("/v1/executions/{id}/steps")).await.body;
    assert_eq!(all["items"].as_array().unwrap().len(), 4);
    let wrong = server.get(&format!("/v1/executions/{id}/steps?status=tired")).await;
    assert_eq!(wrong.status, 400);
}
