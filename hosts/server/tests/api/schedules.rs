//! Schedules: changed, paused, run by hand, and the results of their triggers.

use crate::clock::StandingClock;
use crate::harness::{Running, asleep, definition};
use reqwest::Method;
use serde_json::{Value, json};
use starbridge_node::stores::in_memory;
use starbridge_server::Access;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

async fn with_schedule() -> Running {
    let server = Running::start().await;
    server.flow("f", json!([{"type": "pass", "name": "p"}])).await;
    server.flow("g", json!([{"type": "pass", "name": "p"}])).await;
    let schedule = json!({
        "flow": "f", "cron": "0 3 * * *", "payload": {"all": true}, "overlap": "queue", "catchUp": "last",
    });
    assert_eq!(server.put("/v1/schedules/nightly", schedule).await.status, 200);
    server
}

#[tokio::test]
pub async fn only_what_is_named_of_a_schedule_changes() {
    let server = with_schedule().await;
    let before = server.get("/v1/schedules/nightly").await.body;
    let paused = server.post("/v1/schedules/nightly/pause", json!({})).await;
    assert_eq!((paused.status, &paused.body["paused"]), (200, &json!(true)));
    assert_eq!(paused.body["nextTime"], Value::Null);
    for member in ["flow", "cron", "payload", "overlap", "catchUp"] {
        assert_eq!(paused.body[member], before[member], "{member}");
    }
    let resumed = server.post("/v1/schedules/nightly/resume", json!({})).await;
    assert_eq!((resumed.status, &resumed.body), (200, &before));
    let change = async |change: Value| server.ask(Method::PATCH, "/v1/schedules/nightly", Some(change)).await;
    let changed = change(json!({"flow": "g", "cron": "0 4 * * *"})).await;
    assert_eq!(
        (changed.status, &changed.body["flow"], &changed.body["cron"]),
        (200, &json!("g"), &json!("0 4 * * *"))
    );
    assert_eq!(changed.body["payload"], json!({"all": true}));
    assert_eq!(change(json!({"payload": null})).await.body["payload"], Value::Null);
    assert_eq!(
        change(json!({"cron": "61 * * * *"})).await.code(),
        (422, "InvalidSchedule")
    );
    assert_eq!(change(json!({"flow": "none"})).await.code(), (422, "NoSuchFlow"));
    for member in ["flow", "cron"] {
        let refused = change(json!({ member: null })).await;
        assert_eq!(refused.code(), (400, "BadRequest"), "{member}");
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(member) && detail.contains("leave it out"), "{detail}");
    }
    // A member with a default goes back to it.
    let unset = change(json!({"overlap": null, "catchUp": null, "paused": null})).await;
    assert_eq!(
        (&unset.body["overlap"], &unset.body["catchUp"], &unset.body["paused"]),
        (&json!("skip"), &json!("none"), &json!(false))
    );
    let kept = server.get("/v1/schedules/nightly").await.body;
    assert_eq!((&kept["flow"], &kept["cron"]), (&json!("g"), &json!("0 4 * * *")));
    let none = server.ask(Method::PATCH, "/v1/schedules/none", Some(json!({}))).await;
    assert_eq!(none.code(), (404, "NoSuchSchedule"));
    for verb in ["pause", "resume", "run"] {
        let none = server.post(&format!("/v1/schedules/none/{verb}"), json!({})).await;
        assert_eq!(none.code(), (404, "NoSuchSchedule"), "{verb}");
    }
}

#[tokio::test]
pub async fn a_schedule_is_run_by_hand_also_while_it_is_paused() {
    let server = with_schedule().await;
    server.post("/v1/schedules/nightly/pause", json!({})).await;
    let run = server.post("/v1/schedules/nightly/run", json!({})).await;
    assert_eq!(run.status, 201, "{run:?}");
    assert_eq!(
        (
            &run.body["flow"],
            &run.body["input"]["payload"],
            &run.body["input"]["triggerName"]
        ),
        (&json!("f"), &json!({"all": true}), &json!("nightly"))
    );
    let strict = json!({
        "version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "p"}],
        "inputSchema": {"type": "object", "required": ["id"]},
    });
    server.put("/v1/flows/f", strict).await;
    let refused = server.post("/v1/schedules/nightly/run", json!({})).await;
    assert_eq!(refused.code(), (422, "InvalidInput"));
}

#[tokio::test]
async fn a_schedule_is_paused_although_its_flow_was_deleted() {
    let server = with_schedule().await;
    assert_eq!(server.ask(Method::DELETE, "/v1/flows/f", None).await.status, 204);
    let paused = server.post("/v1/schedules/nightly/pause", json!({})).await;
    assert_eq!(
        (paused.status, &paused.body["paused"]),
        (200, &json!(true)),
        "{paused:?}"
    );
    let other = json!({"flow": "nobody"});
    let refused = server.ask(Method::PATCH, "/v1/schedules/nightly", Some(other)).await;
    assert_eq!(refused.code(), (422, "NoSuchFlow"));
}

#[tokio::test]
async fn runs_at_once_start_an_execution_each() {
    let server = with_schedule().await;
    let run = || server.post("/v1/schedules/nightly/run", json!({}));
    let (one, two, three, four) = tokio::join!(run(), run(), run(), run());
    let ran = [one, two, three, four];
    let ids: BTreeSet<String> = ran.iter().map(|run| run.body["id"].to_string()).collect();
    assert_eq!(
        (ran.iter().all(|run| run.status == 201), ids.len()),
        (true, 4),
        "{ran:?}"
    );
}

#[tokio::test]
async fn a_change_does_not_undo_a_pause_that_comes_at_once() {
    let server = with_schedule().await;
    for round in 0..20 {
        let payload = json!({"payload": {"round": round}});
        let (paused, changed) = tokio::join!(
            server.post("/v1/schedules/nightly/pause", json!({})),
            server.ask(Method::PATCH, "/v1/schedules/nightly", Some(payload)),
        );
        assert_eq!((paused.status, changed.status), (200, 200));
        let shown = server.get("/v1/schedules/nightly").await.body;
        assert_eq!(
            (&shown["paused"], &shown["payload"]["round"]),
            (&json!(true), &json!(round))
        );
        server.post("/v1/schedules/nightly/resume", json!({})).await;
    }
}

#[tokio::test]
async fn a_trigger_that_could_start_nothing_is_seen() {
    let clock = StandingClock::new();
    let own = clock.clone();
    let server = Running::with(Access::default(), |settings| settings.clock = own).await;
    server.flow("f", json!([{"type": "pass", "name": "p"}])).await;
    let schedule = json!({"flow": "f", "cron": "@every 1s"});
    server.put("/v1/schedules/s", schedule).await;
    let mut strict = definition(json!([{"type": "pass", "name": "p"}]));
    strict["inputSchema"] = json!({"type": "object", "required": ["id"]});
    assert_eq!(server.put("/v1/flows/f", strict).await.status, 201);
    tokio::spawn(server.node.clone().keep_schedules());
    clock.pass(1_000);
    let mut shown = json!(null);
    for _ in 0..500 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        shown = server.get("/v1/schedules/s").await.body;
        if shown["latestError"].is_string() {
            break;
        }
    }
    assert!(
        shown["latestError"].as_str().unwrap().contains("inputSchema"),
        "{shown}"
    );
    assert!(shown["latestTime"].is_string());
    let metrics = server.get("/metrics").await.body;
    let metrics = metrics.as_str().unwrap();
    assert!(metrics.contains("starbridge_schedule_refusals_total 1"), "{metrics}");
}

/// The name of the execution that a schedule's next trigger starts.
fn next_name(schedule: &str, shown: &Value) -> String {
    let next = shown["nextTime"].as_str().unwrap().replace(".000", "");
    let plain: String = next.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{schedule}-{plain}")
}

#[tokio::test]
async fn a_trigger_whose_name_is_taken_by_another_input_has_started_nothing() {
    let clock = StandingClock::new();
    let own = clock.clone();
    let server = Running::with(Access::default(), |settings| settings.clock = own).await;
    server.flow("f", json!([{"type": "pass", "name": "p"}])).await;
    let mut ids = Vec::new();
    for name in ["own", "taken"] {
        let schedule = json!({"flow": "f", "cron": "@every 1s"});
        let put = server.put(&format!("/v1/schedules/{name}"), schedule).await;
        let mut input = json!({"payload": null, "triggerTime": "2026-01-01T00:00:01Z", "triggerName": "own"});
        if name == "taken" {
            input = json!({"by": "somebody"});
        }
        let start = json!({"name": next_name(name, &put.body), "input": input});
        let started = server.post("/v1/flows/f/executions", start).await;
        assert_eq!(started.status, 201, "{started:?}");
        ids.push(started.body["id"].clone());
    }
    tokio::spawn(server.node.clone().keep_schedules());
    clock.pass(1_000);
    let mut shown = json!(null);
    for _ in 0..500 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        shown = server.get("/v1/schedules/taken").await.body;
        if shown["latestTime"].is_string() {
            break;
        }
    }
    let error = shown["latestError"].as_str().unwrap_or_default();
    assert!(
        error.contains("taken") && error.contains(ids[1].as_str().unwrap()),
        "{shown}"
    );
    assert_eq!(shown["latestExecution"], Value::Null);
    // The same trigger, handled a second time after a crash, has started its execution.
    let own = server.get("/v1/schedules/own").await.body;
    assert_eq!((&own["latestExecution"], &own["latestError"]), (&ids[0], &Value::Null));
    let metrics = server.get("/metrics").await.body;
    assert!(
        metrics
            .as_str()
            .unwrap()
            .contains("starbridge_schedule_refusals_total 1")
    );
}

/// A server whose clock stands still, with a flow that sleeps and a schedule of it.
async fn sleeping(overlap: &str) -> (Running, Arc<StandingClock>) {
    let clock = StandingClock::new();
    let own = clock.clone();
    let server = Running::with(Access::default(), |settings| settings.clock = own).await;
    server.flow("f", asleep()).await;
    let schedule = json!({"flow": "f", "cron": "@every 1s", "overlap": overlap, "priority": 7});
    assert_eq!(server.put("/v1/schedules/s", schedule).await.status, 200);
    tokio::spawn(server.node.clone().keep_schedules());
    (server, clock)
}

/// The statuses and ids of the executions, the oldest first, as soon as they have these statuses.
async fn stand(server: &Running, statuses: &[&str]) -> Vec<String> {
    let mut shown = json!(null);
    for _ in 0..500 {
        shown = server.get("/v1/executions").await.body;
        let mut items = shown["items"].as_array().unwrap().clone();
        items.reverse();
        if items
            .iter()
            .map(|item| item["status"].as_str().unwrap())
            .eq(statuses.iter().copied())
        {
            return items
                .iter()
                .map(|item| item["id"].as_str().unwrap().to_owned())
                .collect();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{statuses:?}: {shown}");
}

async fn stop(server: &Running, id: &str) {
    let stopped = server.post(&format!("/v1/executions/{id}/stop"), json!({})).await;
    assert_eq!(stopped.status, 200, "{stopped:?}");
}

#[tokio::test]
async fn triggers_of_a_queue_wait_for_the_key_of_the_schedule() {
    let (server, clock) = sleeping("queue").await;
    for waiting in 0..3 {
        clock.pass(1_000);
        let statuses: Vec<&str> = std::iter::once("Running")
            .chain(["Queued"; 3])
            .take(waiting + 1)
            .collect();
        stand(&server, &statuses).await;
    }
    let ids = stand(&server, &["Running", "Queued", "Queued"]).await;
    let waiting = server.get(&format!("/v1/executions/{}", ids[1])).await.body;
    assert_eq!(
        (&waiting["priority"], &waiting["status"]),
        (&json!(7), &json!("Queued"))
    );
    // Nobody can set the limit of that key: what helps is the run that has it.
    let told = &waiting["waitingFor"];
    assert_eq!(
        (&told["text"], &told["act"]),
        (
            &json!("another run of the schedule `s` has not ended; it is number 1 in line"),
            &json!(format!("starbridge why {}", ids[0]))
        )
    );
    let key = server.get("/v1/keys/@schedule/s").await.body;
    assert_eq!(
        (&key["limit"], &key["holders"], &key["waiting"]),
        (&json!(1), &json!([ids[0]]), &json!(2))
    );
    // Executions in the line of a paused schedule keep waiting.
    server.post("/v1/schedules/s/pause", json!({})).await;
    stop(&server, &ids[0]).await;
    stand(&server, &["Stopped", "Queued", "Queued"]).await;
    let run = server.post("/v1/schedules/s/run", json!({})).await;
    assert_eq!((run.status, &run.body["status"]), (201, &json!("Running")), "{run:?}");
    stop(&server, run.body["id"].as_str().unwrap()).await;
    server.post("/v1/schedules/s/resume", json!({})).await;
    stand(&server, &["Stopped", "Running", "Queued", "Stopped"]).await;
    stop(&server, &ids[1]).await;
    stand(&server, &["Stopped", "Stopped", "Running", "Stopped"]).await;
}

#[tokio::test]
async fn triggers_of_a_queue_wait_for_what_was_started_without_the_key() {
    let (server, clock) = sleeping("allow").await;
    clock.pass(1_000);
    let first = stand(&server, &["Running"]).await;
    let queue = json!({"overlap": "queue"});
    assert_eq!(
        server.ask(Method::PATCH, "/v1/schedules/s", Some(queue)).await.status,
        200
    );
    clock.pass(1_000);
    stand(&server, &["Running", "Blocked"]).await;
    clock.pass(1_000);
    stand(&server, &["Running", "Blocked", "Blocked"]).await;
    stop(&server, &first[0]).await;
    let ids = stand(&server, &["Stopped", "Running", "Queued"]).await;
    let key = server.get("/v1/keys/@schedule/s").await.body;
    assert_eq!((&key["holders"], &key["waiting"]), (&json!([ids[1]]), &json!(1)));
}

/// Times that passed while no server ran are looked at as soon as one runs, not at the next time.
#[tokio::test]
async fn missed_time_is_caught_up_as_soon_as_a_server_runs() {
    let (store, clock) = (in_memory(), StandingClock::new());
    let serve = async || {
        Running::with(Access::default(), |settings| {
            settings.store = store.clone();
            settings.clock = clock.clone();
        })
        .await
    };
    let server = serve().await;
    server.flow("f", asleep()).await;
    for (name, catch_up) in [("left", "none"), ("made", "last")] {
        let schedule = json!({"flow": "f", "cron": "0 3 * * *", "catchUp": catch_up});
        assert_eq!(server.put(&format!("/v1/schedules/{name}"), schedule).await.status, 200);
    }
    server.node.drain(Duration::from_secs(5)).await.unwrap();
    const DAY: i64 = 86_400_000;
    clock.pass(2 * DAY);
    let server = serve().await;
    tokio::spawn(server.node.clone().keep_schedules());
    let caught_up = stand(&server, &["Running"]).await;
    let shown = server.get(&format!("/v1/executions/{}", caught_up[0])).await.body;
    assert_eq!(shown["name"], "made-20260102T030000Z", "{shown}");
    // A schedule's progress is written after its execution is appended.
    crate::mailbox::eventually("the next times of both", || async {
        let listed = server.get("/v1/schedules").await.body;
        let items = listed["items"].as_array().unwrap();
        items
            .iter()
            .all(|schedule| schedule["nextTime"] == "2026-01-03T03:00:00.000Z")
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn wrong_order_of_a_schedule_is_refused() {
    let server = with_schedule().await;
    let change = async |change: Value| server.ask(Method::PATCH, "/v1/schedules/nightly", Some(change)).await;
    for (wrong, code) in [
        (json!({"priority": 10}), (422, "InvalidSchedule")),
        (json!({"priority": "high"}), (400, "BadRequest")),
        (json!({"startDeadlineSeconds": 0}), (422, "InvalidSchedule")),
        (json!({"startDeadlineSeconds": -1}), (400, "BadRequest")),
    ] {
        assert_eq!(change(wrong.clone()).await.code(), code, "{wrong}");
    }
    let given = change(json!({"priority": 0, "startDeadlineSeconds": 60})).await.body;
    assert_eq!(
        (&given["priority"], &given["startDeadlineSeconds"]),
        (&json!(0), &json!(60))
    );
    let unset = change(json!({"priority": null, "startDeadlineSeconds": null}))
        .await
        .body;
    assert_eq!(
        (&unset["priority"], &unset["startDeadlineSeconds"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test]
pub async fn schedule_says_when_it_triggers_next_by_the_clocks_of_its_zone() {
    let server = with_schedule().await;
    let abroad = json!({"flow": "f", "cron": "CRON_TZ=Asia/Shanghai 0 8 * * *"});
    assert_eq!(server.put("/v1/schedules/abroad", abroad).await.status, 200);
    let listed = server.get("/v1/schedules?next=3").await.body;
    let times = listed["items"][0]["nextTimes"].as_array().unwrap();
    assert_eq!((&listed["items"][0]["name"], times.len()), (&json!("abroad"), 3));
    for time in times {
        assert!(time["time"].as_str().unwrap().contains("T00:00:00"), "{time}");
        let local = time["local"].as_str().unwrap();
        assert!(
            local.contains("T08:00:00") && local.ends_with("[Asia/Shanghai]"),
            "{local}"
        );
    }
    assert_eq!(
        listed["items"][1]["nextTimes"][0]["time"],
        listed["items"][1]["nextTime"]
    );
    assert!(
        server.get("/v1/schedules").await.body["items"][0]
            .get("nextTimes")
            .is_none()
    );
    assert_eq!(server.get("/v1/schedules?next=21").await.code(), (400, "BadRequest"));
}
