//! Executions that are paused and resumed.

use crate::clock::StandingClock;
use crate::harness::{Answer, Running};
use crate::mailbox::eventually;
use serde_json::{Value, json};
use starbridge_node::stores::in_memory;
use starbridge_server::Access;
use std::time::Duration;

fn waits(seconds: f64) -> Value {
    json!([{"type": "wait", "name": "w", "duration": seconds}])
}

async fn started(server: &Running, flow: &str, start: Value) -> String {
    let started = server.post(&format!("/v1/flows/{flow}/executions"), start).await;
    assert_eq!(started.status, 201, "{started:?}");
    started.body["id"].as_str().unwrap().to_owned()
}

async fn act(server: &Running, id: &str, act: &str, body: Value) -> Answer {
    server.post(&format!("/v1/executions/{id}/{act}"), body).await
}

async fn types(server: &Running, id: &str) -> Vec<String> {
    let history = server.get(&format!("/v1/executions/{id}/history")).await.body;
    let items = history["items"].as_array().unwrap();
    items
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect()
}

async fn ids(server: &Running, query: &str) -> Vec<String> {
    let list = server.get(&format!("/v1/executions?{query}")).await.body;
    let items = list["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect()
}

async fn tasks(server: &Running, seconds: u64) -> Vec<Value> {
    let hold = json!({"worker": "w", "limit": 9, "waitSeconds": seconds});
    let answer = server.post("/v1/queues/jobs/hold", hold).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.body["tasks"].as_array().cloned().unwrap_or_default()
}

#[tokio::test]
pub async fn execution_is_paused_and_goes_on() {
    let clock = StandingClock::new();
    let own = clock.clone();
    let server = Running::with(Access::default(), |settings| settings.clock = own).await;
    server.flow("f", waits(0.2)).await;
    let id = started(&server, "f", json!({})).await;
    let paused = act(&server, &id, "pause", json!({"cause": "the bank is down"})).await;
    assert_eq!((paused.status, &paused.body["status"]), (200, &json!("Running")));
    let waiting = &paused.body["waitingFor"];
    assert_eq!(waiting["reason"], "paused");
    assert_eq!(waiting["cause"], "the bank is down");
    assert_eq!(waiting["by"], "local");
    assert_eq!(waiting["act"], format!("starbridge resume {id}"));
    assert!(waiting["since"].is_string(), "{waiting}");
    // A second, equal request gets the same answer, and nothing happens.
    let again = act(&server, &id, "pause", json!({"cause": "other"})).await;
    assert_eq!((again.status, &again.body["waitingFor"]), (200, waiting));
    assert_eq!(ids(&server, "reason=paused").await, std::slice::from_ref(&id));
    assert_eq!(ids(&server, "reason=manual").await, [""; 0]);
    let unknown = server.get("/v1/executions?reason=tired").await;
    assert_eq!(unknown.code(), (400, "BadRequest"));
    clock.pass(400);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(types(&server, &id).await.last().unwrap(), "ExecutionPaused");
    let resumed = act(&server, &id, "resume", json!({})).await;
    assert_eq!(resumed.status, 200, "{resumed:?}");
    assert_eq!(resumed.body.get("waitingFor"), None);
    clock.pass(400);
    let end = server.get(&format!("/v1/executions/{id}?wait=30")).await;
    assert_eq!(end.body["status"], "Succeeded");
    assert_eq!(ids(&server, "reason=paused").await, [""; 0]);
    for verb in ["pause", "resume"] {
        assert_eq!(act(&server, &id, verb, json!({})).await.code(), (409, "NotRunning"));
        assert_eq!(
            act(&server, "none", verb, json!({})).await.code(),
            (404, "NoSuchExecution")
        );
        assert_eq!(
            act(&server, &id, verb, json!({"why": 1})).await.code(),
            (400, "BadRequest")
        );
    }
    let list = server.get("/v1/audit?kind=execution").await.body;
    let actions: Vec<&str> = (list["items"].as_array().unwrap().iter())
        .map(|entry| entry["action"].as_str().unwrap())
        .collect();
    assert_eq!(actions, ["resume", "pause"]);
}

#[tokio::test]
async fn resume_of_what_is_not_paused_changes_nothing() {
    let server = Running::start().await;
    server.flow("f", waits(60.0)).await;
    let id = started(&server, "f", json!({})).await;
    let before = types(&server, &id).await;
    let resumed = act(&server, &id, "resume", json!({})).await;
    assert_eq!((resumed.status, &resumed.body["status"]), (200, &json!("Running")));
    assert_eq!(types(&server, &id).await, before);
}

#[tokio::test]
async fn tasks_nobody_holds_leave_their_queue_during_a_pause() {
    let server = Running::start().await;
    let task = |name: &str| json!({"steps": [{"type": "task", "name": name, "resourceArn": "queue:jobs", "timeoutSeconds": 60}]});
    let both = json!([{"type": "parallel", "name": "both", "branches": [task("one"), task("two")]}]);
    server.flow("f", both).await;
    let id = started(&server, "f", json!({})).await;
    let hold = json!({"worker": "w", "limit": 1, "waitSeconds": 20});
    let held = server.post("/v1/queues/jobs/hold", hold).await.body["tasks"][0].clone();
    assert!(held["token"].is_string(), "{held}");
    assert_eq!(act(&server, &id, "pause", json!({})).await.status, 200);
    assert_eq!(tasks(&server, 0).await, [json!(null); 0]);
    let queue = server.get("/v1/queues/jobs").await.body;
    assert_eq!((&queue["waiting"], &queue["held"]), (&json!(0), &json!(1)), "{queue}");
    // The worker that has a task goes on.
    let token = held["token"].as_str().unwrap();
    let beat = server
        .post(&format!("/v1/callbacks/{token}/heartbeat"), json!({}))
        .await;
    assert!(beat.status < 300, "{beat:?}");
    assert_eq!(act(&server, &id, "resume", json!({})).await.status, 200);
    let other = tasks(&server, 20).await;
    assert_eq!(other.len(), 1, "{other:?}");
    assert_ne!(other[0]["step"], held["step"]);
    assert_eq!(other[0]["path"][0]["step"], "both");
    for task in [&held, &other[0]] {
        let token = task["token"].as_str().unwrap();
        let told = server
            .post(&format!("/v1/callbacks/{token}/succeed"), json!({"output": {}}))
            .await;
        assert_eq!(told.status, 204, "{told:?}");
    }
    let end = server.get(&format!("/v1/executions/{id}?wait=30")).await;
    assert_eq!(end.body["status"], "Succeeded");
    // Nothing is left in the queue, and nothing was counted twice.
    let queue = server.get("/v1/queues/jobs").await;
    assert_eq!(queue.code(), (404, "NoSuchQueue"));
}

#[tokio::test]
async fn report_is_taken_during_a_pause() {
    let server = Running::start().await;
    let task = json!([{"type": "task", "name": "t", "resourceArn": "queue:jobs", "timeoutSeconds": 60}, {"type": "pass", "name": "p"}]);
    server.flow("f", task).await;
    let id = started(&server, "f", json!({})).await;
    let held = tasks(&server, 20).await.remove(0);
    assert_eq!(act(&server, &id, "pause", json!({})).await.status, 200);
    let token = held["token"].as_str().unwrap();
    let told = server
        .post(&format!("/v1/callbacks/{token}/succeed"), json!({"output": {}}))
        .await;
    assert_eq!(told.status, 204, "{told:?}");
    assert_eq!(types(&server, &id).await.last().unwrap(), "TaskSucceeded");
    assert_eq!(act(&server, &id, "resume", json!({})).await.status, 200);
    let end = server.get(&format!("/v1/executions/{id}?wait=30")).await;
    assert_eq!(end.body["status"], "Succeeded");
}

#[tokio::test]
async fn children_are_paused_with_their_parent_unless_an_operator_did() {
    let server = Running::start().await;
    server.flow("child", waits(60.0)).await;
    let call = |name: &str| {
        let step = json!({"type": "task", "name": name, "resourceArn": "flow:child", "pattern": "sync"});
        json!({"steps": [step]})
    };
    let branches = json!([{"type": "parallel", "name": "both", "branches": [call("a"), call("b")]}]);
    server.flow("parent", branches).await;
    let id = started(&server, "parent", json!({})).await;
    let children = eventually("two children", || async {
        let found = ids(&server, &format!("parent={id}")).await;
        (found.len() == 2).then_some(found)
    })
    .await;
    let [child, other] = &children[..] else { unreachable!() };
    assert_eq!(act(&server, &id, "pause", json!({"cause": "why"})).await.status, 200);
    let paused = async |child: &str| {
        let shown = server.get(&format!("/v1/executions/{child}")).await;
        shown.body["waitingFor"]["reason"] == "paused"
    };
    let becomes = async |child: &str, wanted: bool| {
        let paused = &paused;
        eventually("the child's pause or its end", || async move {
            (paused(child).await == wanted).then_some(())
        })
        .await;
    };
    for child in &children {
        becomes(child, true).await;
    }
    assert_eq!(act(&server, &id, "resume", json!({})).await.status, 200);
    for child in &children {
        becomes(child, false).await;
    }
    assert_eq!(act(&server, child, "pause", json!({})).await.status, 200);
    assert_eq!(act(&server, &id, "pause", json!({})).await.status, 200);
    becomes(other, true).await;
    assert_eq!(act(&server, &id, "resume", json!({})).await.status, 200);
    becomes(other, false).await;
    assert!(paused(child).await, "its own pause stays");
}

#[tokio::test]
async fn delayed_start_does_not_begin_while_it_is_paused() {
    let clock = StandingClock::new();
    let own = clock.clone();
    let server = Running::with(Access::default(), |settings| settings.clock = own).await;
    server.flow("f", waits(0.0)).await;
    let id = started(&server, "f", json!({"delaySeconds": 60})).await;
    let paused = act(&server, &id, "pause", json!({"cause": "not today"})).await;
    assert_eq!((paused.status, &paused.body["status"]), (200, &json!("Delayed")));
    assert_eq!(paused.body["waitingFor"]["reason"], "paused");
    assert_eq!(ids(&server, "reason=paused").await, std::slice::from_ref(&id));
    assert_eq!(ids(&server, "reason=startTime").await, [""; 0]);
    let later = started(&server, "f", json!({"delaySeconds": 61})).await;
    clock.pass(61_000);
    // An execution that was due after it has run.
    let end = server.get(&format!("/v1/executions/{later}?wait=30")).await;
    assert_eq!(end.body["status"], "Succeeded");
    let shown = server.get(&format!("/v1/executions/{id}")).await;
    assert_eq!(shown.body["status"], "Delayed");
    let resumed = act(&server, &id, "resume", json!({})).await;
    assert_eq!(resumed.status, 200, "{resumed:?}");
    let end = server.get(&format!("/v1/executions/{id}?wait=30")).await;
    assert_eq!(end.body["status"], "Succeeded");
}

#[tokio::test]
async fn pause_outlives_the_process() {
    let store = in_memory();
    let on = async |store: &std::sync::Arc<dyn starbridge_ports::Store>| {
        let kept = store.clone();
        Running::with(Access::default(), |settings| settings.store = kept).await
    };
    let server = on(&store).await;
    server.flow("f", waits(0.1)).await;
    let id = started(&server, "f", json!({})).await;
    assert_eq!(act(&server, &id, "pause", json!({})).await.status, 200);
    server.node.drain(Duration::from_secs(10)).await.unwrap();
    let next = on(&store).await;
    // What was begun after it, and waits as long, has ended.
    let later = started(&next, "f", json!({})).await;
    let end = next.get(&format!("/v1/executions/{later}?wait=30")).await;
    assert_eq!(end.body["status"], "Succeeded");
    assert_eq!(types(&next, &id).await.last().unwrap(), "ExecutionPaused");
    assert_eq!(act(&next, &id, "resume", json!({})).await.status, 200);
    let end = next.get(&format!("/v1/executions/{id}?wait=30")).await;
    assert_eq!(end.body["status"], "Succeeded");
}

/// The dead tasks of the queue `jobs`.
async fn dead(server: &Running) -> Vec<Value> {
    let dead = server.get("/v1/queues/jobs/dead").await.body;
    dead["items"].as_array().unwrap().clone()
}

async fn fail(server: &Running, task: &Value) {
    let path = format!("/v1/callbacks/{}/fail", task["token"].as_str().unwrap());
    let failed = server
        .post(&path, json!({"error": "Paper.Jam", "cause": "tray 2"}))
        .await;
    assert_eq!(failed.status, 204, "{failed:?}");
}

async fn becomes(server: &Running, id: &str, status: &str) {
    let look = async || {
        let shown = server.get(&format!("/v1/executions/{id}")).await.body;
        (shown["status"] == status).then_some(())
    };
    eventually(status, look).await;
}

#[tokio::test]
async fn task_that_fails_for_good_in_a_pause_is_dead_after_it() {
    for restart in [false, true] {
        let store = in_memory();
        let kept = store.clone();
        let mut server = Running::with(Access::default(), |settings| settings.store = kept).await;
        let tried = json!([{"errors": ["Paper.Jam"], "intervalSeconds": 1, "maxAttempts": 1}]);
        let print = json!({"type": "task", "name": "print", "resourceArn": "queue:jobs"});
        let mut again = print.clone();
        again["retry"] = tried;
        server.flow("f", json!([print])).await;
        server.flow("tried", json!([again])).await;
        let id = started(&server, "f", json!({})).await;
        let retried = started(&server, "tried", json!({})).await;
        let mut held = tasks(&server, 20).await;
        while held.len() < 2 {
            held.extend(tasks(&server, 20).await);
        }
        for id in [&id, &retried] {
            assert_eq!(act(&server, id, "pause", json!({})).await.status, 200);
        }
        for task in &held {
            fail(&server, task).await;
        }
        assert_eq!(dead(&server).await, [json!(null); 0], "nothing is decided yet");
        if restart {
            server.node.drain(Duration::from_secs(5)).await.unwrap();
            server = Running::with(Access::default(), |settings| settings.store = store).await;
        }
        for id in [&id, &retried] {
            assert_eq!(act(&server, id, "resume", json!({})).await.status, 200);
        }
        becomes(&server, &id, "Failed").await;
        let dead = dead(&server).await;
        assert_eq!(dead.len(), 1, "{restart} {dead:?}");
        assert_eq!(
            (&dead[0]["execution"], &dead[0]["error"], &dead[0]["attempt"]),
            (&json!(id), &json!("Paper.Jam"), &json!(1))
        );
    }
}

#[tokio::test]
async fn skipped_undo_is_dead_no_longer() {
    let server = Running::start().await;
    let undoable =
        json!({"type": "task", "name": "a", "resourceArn": "queue:jobs", "rollback": {"resourceArn": "queue:jobs"}});
    let fails = json!({"type": "fail", "name": "no", "error": "No"});
    server.flow("f", json!([undoable, fails])).await;
    let id = started(&server, "f", json!({})).await;
    let held = tasks(&server, 20).await;
    let path = format!("/v1/callbacks/{}/succeed", held[0]["token"].as_str().unwrap());
    assert_eq!(server.post(&path, json!({"output": {}})).await.status, 204);
    fail(&server, &tasks(&server, 20).await[0]).await;
    becomes(&server, &id, "RollbackFailed").await;
    let undo = dead(&server).await;
    assert_eq!((undo.len(), &undo[0]["attempt"]), (1, &json!(1)), "{undo:?}");
    assert_eq!(act(&server, &id, "skip", json!({})).await.status, 200);
    becomes(&server, &id, "Failed").await;
    assert_eq!(dead(&server).await, [json!(null); 0]);
}
