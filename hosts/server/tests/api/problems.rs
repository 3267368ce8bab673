//! Rare problems, and a check that the tests cover everything in the document.

use crate::document::{named_answers, named_codes, take_seen};
use crate::harness::{Running, asleep};
use crate::held::Held;
use crate::{
    access, answers, audit, bodies, browsers, bulk, connections, decisions, executions, flows, histories, inside, keys,
    limits, order, outboxes, pausing, pressure, queues, reports, schedules, starts, stats, stream, views, waiters,
    waits, why,
};
use reqwest::Method;
use serde_json::json;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_node::node::{LeaseSettings, NodeSettings};
use starbridge_node::stores::in_memory;
use starbridge_ports::{
    Append, AuditEntry, Broken, ExecutionLeases, Heartbeat, History, Mark, Message, Refusal, Store, StoreError,
    StoredHistory,
};
use starbridge_server::Access;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

async fn on(store: Arc<dyn Store>, change: impl FnOnce(&mut NodeSettings)) -> Running {
    Running::with(Access::default(), |settings| {
        settings.store = store;
        change(settings);
    })
    .await
}

/// A server with an execution whose task a worker holds: its id, and the path to report it.
async fn with_task(store: &Arc<dyn Store>) -> (Running, String, String) {
    let server = on(store.clone(), |_| {}).await;
    let task = json!([{"type": "task", "name": "work", "resourceArn": "queue:jobs"}]);
    server.flow("f", task).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let hold = json!({"worker": "w", "waitSeconds": 20});
    let held = server.post("/v1/queues/jobs/hold", hold).await;
    let token = held.body["tasks"][0]["token"].as_str().unwrap().to_owned();
    let id = begun.body["id"].as_str().unwrap().to_owned();
    (server, id, format!("/v1/callbacks/{token}/succeed"))
}

#[tokio::test]
async fn problem_of_a_store_hides_what_the_store_says() {
    let store = Held::over(in_memory());
    let server = on(store.clone(), |_| {}).await;
    server.flow("f", asleep()).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let path = format!("/v1/executions/{}", begun.body["id"].as_str().unwrap());
    let why = || "/srv/flows.db is away".to_owned();
    for (error, problem) in [
        (StoreError::Unavailable(why()), (503, "StoreUnavailable")),
        (StoreError::Corrupt(why()), (500, "Corrupt")),
    ] {
        store.fail(Some(error));
        let answer = server.get(&path).await;
        assert_eq!(answer.code(), problem);
        assert!(!answer.body.to_string().contains("flows.db"), "{answer:?}");
    }
    store.fail(None);
    assert_eq!(server.get(&path).await.status, 200);
}

#[tokio::test]
async fn panic_of_a_request_is_answered() {
    let store = Held::over(in_memory());
    let server = on(store.clone(), |_| {}).await;
    store.panic_at_lists(true);
    assert_eq!(server.get("/v1/executions").await.code(), (500, "Internal"));
    store.panic_at_lists(false);
    assert_eq!(server.get("/v1/executions").await.status, 200);
}

#[tokio::test]
async fn set_aside_execution_refuses_a_report() {
    let store = in_memory();
    let (server, id, report) = with_task(&store).await;
    server.node.drain(Duration::from_secs(5)).await.unwrap();
    let broken = Broken {
        since: Timestamp(0),
        cause: "it panicked".into(),
    };
    store.mark(&[(id.as_str().into(), Mark::Broken(broken))], None).unwrap();
    let server = on(store, |_| {}).await;
    assert_eq!(
        server.post(&report, json!({"output": {}})).await.code(),
        (409, "ExecutionSetAside")
    );
}

#[tokio::test]
async fn problem_of_a_node_that_has_ended() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let name = server.post("/v1/flows/f/executions", json!({"name": "n"})).await;
    server.node.drain(Duration::from_secs(5)).await.unwrap();
    let stopping = (503, "Stopping");
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.get(path).await.code(), stopping, "{path}");
    }
    assert_eq!(server.post("/v1/flows/f/executions", json!({})).await.code(), stopping);
    // What is stored can still be shown.
    assert_eq!(server.get("/v1/flows/f/executions/n").await.body["id"], name.body["id"]);
}

/// A store in which another process has every execution and takes messages for them.
struct Elsewhere(Arc<dyn Store>);

impl History for Elsewhere {
    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        self.0.append(batch)
    }

    fn load(&self, _execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        Err(StoreError::Held(Timestamp(i64::MAX)))
    }

    fn load_whole(&self, execution: &str) -> Result<Option<StoredHistory>, StoreError> {
        self.0.load_whole(execution)
    }

    fn parent_of(&self, execution: &str) -> Result<Option<Text>, StoreError> {
        self.0.parent_of(execution)
    }

    fn awake(&self) -> Result<Vec<Text>, StoreError> {
        self.0.awake()
    }

    fn due(&self, before: Timestamp, limit: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        self.0.due(before, limit)
    }

    fn mark(&self, marks: &[(Text, Mark)], audit: Option<&AuditEntry>) -> Result<(), StoreError> {
        self.0.mark(marks, audit)
    }

    fn messages(&self) -> Result<Vec<Message>, StoreError> {
        self.0.messages()
    }
}

impl ExecutionLeases for Elsewhere {
    fn hold_until(&self, _until: Timestamp) {}

    fn release(&self, _execution: &str) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn messages_for(&self, _execution: &str) -> Result<Vec<Message>, StoreError> {
        Ok(Vec::new())
    }

    fn leave_message(&self, _message: &Message) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn heartbeats(&self, _execution: &str) -> Result<Vec<Heartbeat>, StoreError> {
        Ok(Vec::new())
    }

    fn heartbeat(&self, _execution: &str, _beat: &Heartbeat) -> Result<(), StoreError> {
        Ok(())
    }

    fn stranded(&self, _before: Timestamp, _limit: usize) -> Result<Vec<Text>, StoreError> {
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn execution_lease_of_another_process_is_respected() {
    let store = in_memory();
    let (first, id, report) = with_task(&store).await;
    first.node.drain(Duration::from_secs(5)).await.unwrap();
    let elsewhere = Arc::new(Elsewhere(store.clone()));
    let server = on(store, |settings| {
        settings.owners = 1;
        settings.worker_queues = false;
        settings.leased = Some(LeaseSettings {
            leases: elsewhere.clone(),
            history: elsewhere,
        });
    })
    .await;
    server.node.refresh_flows().unwrap();
    let limit = || Some(json!({"limit": 1}));
    for (method, path, body) in [
        (Method::GET, "/v1/keys", None),
        (Method::GET, "/v1/keys/f/x", None),
        (Method::PUT, "/v1/keys/f/x", limit()),
        (Method::DELETE, "/v1/keys/f/x", None),
        (Method::PATCH, "/v1/flows/f", Some(json!({"paused": true}))),
    ] {
        assert_eq!(
            server.ask(method, path, body).await.code(),
            (422, "NotSupported"),
            "{path}"
        );
    }
    assert_eq!(server.post(&report, json!({"output": {}})).await.status, 202);
    let told = server.post(&format!("/v1/executions/{id}/stop"), json!({})).await;
    assert_eq!((told.status, &told.body["status"]), (202, &json!("Running")));
    let redriven = server.post(&format!("/v1/executions/{id}/redrive"), json!({})).await;
    assert_eq!(redriven.code(), (503, "ExecutionBusy"));
}

/// Routes and problems that no other test here covers.
#[tokio::test]
async fn openapi_problems_are_answered() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    for path in [
        "/v1/openapi.json",
        "/metrics",
        "/healthz",
        "/readyz",
        "/v1/schedules",
        "/v1/queues",
    ] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    let schedule = json!({"flow": "f", "cron": "@every 1h"});
    assert_eq!(server.put("/v1/schedules/s", schedule).await.status, 200);
    assert_eq!(server.get("/v1/schedules/s").await.body["flow"], "f");
    let gone = server.ask(Method::DELETE, "/v1/schedules/s", None).await;
    let never = server.ask(Method::DELETE, "/v1/schedules/s", None).await;
    assert_eq!((gone.status, never.code()), (204, (404, "NoSuchSchedule")));
    let history = server.get("/v1/executions/none/history").await;
    assert_eq!(history.code(), (404, "NoSuchExecution"));
    for path in ["state", "steps"] {
        let answer = server.get(&format!("/v1/executions/none/{path}")).await;
        assert_eq!(answer.code(), (404, "NoSuchExecution"), "{path}");
    }
    assert_eq!(server.get("/v1/flows/none/versions").await.code(), (404, "NoSuchFlow"));
    let named = server.get("/v1/flows/f/executions/none").await;
    assert_eq!(named.code(), (404, "NoSuchExecution"));
    let after = json!({"after": ["0190b3e4-8c1d-7abc-9def-0123456789ab"]});
    let refused = server.post("/v1/flows/f/executions", after).await;
    assert_eq!(refused.code(), (422, "UnknownDependency"));
    let alone = json!({"name": "alone", "after": ["alone"]});
    let refused = server.post("/v1/flows/f/executions", alone).await;
    assert_eq!(refused.code(), (422, "DependencyCycle"));
    let keyed = r#"{"version": "v1", "type": "flow", "concurrency": [{"key": "$input.a", "limit": 1}],
        "steps": [{"type": "pass", "name": "a"}]}"#;
    let now = Timestamp::default();
    server.node.store().put_flow("keyed", keyed, "hash", now, None).unwrap();
    server.node.refresh_flows().unwrap();
    for input in [json!({}), json!({"a": true}), json!({"a": "x".repeat(257)})] {
        let refused = server.post("/v1/flows/keyed/executions", json!({"input": input})).await;
        assert_eq!(refused.code(), (422, "InvalidConcurrencyKey"));
    }
    let set = server.put("/v1/queues/q", json!({"maxConcurrent": 0})).await;
    assert_eq!(set.code(), (422, "InvalidQueue"));
    let drained = server.post("/v1/cluster/nodes/a/drain", json!({})).await;
    assert_eq!(drained.code(), (404, "NoSuchNode"));
    assert_eq!(server.put("/v1/queues/q", json!({"paused": true})).await.status, 200);
    assert_eq!(server.get("/v1/queues/q").await.body["paused"], true);
    let server = on(Held::over(in_memory()), |_| {}).await;
    server.flow("f", asleep()).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    let path = format!("/v1/executions/{}/logs", begun.body["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.code(), (422, "NotSupported"));
}

/// Problems that no request can cause as long as the interpreter has no fault, and their
/// conditions.
const FAULTS: [(&str, &str); 7] = [
    (
        "NoOtherNode",
        "a cluster of one node that is told to leave its work to others",
    ),
    ("NoOwner", "a cluster without a node that has the store"),
    (
        "NotATest",
        "a page of the console: it is said there, and not by the API",
    ),
    ("NotForkable", "a history that does not fit its own flow"),
    ("OwnerLost", "a node that ends while it has a request of another one"),
    ("Panicked", "a first turn that panics"),
    ("Rejected", "a signal that no route gives"),
];

/// Tests whose requests together cover everything in the document.
const TESTS: &[fn()] = &[
    access::who_fails_too_often_is_turned_away,
    audit::audit_list_says_who_did_what,
    audit::deletion_leaves_the_children,
    audit::deletion_of_what_has_not_ended_is_refused,
    answers::answers_have_a_budget_together,
    bodies::bodies_have_a_budget_together,
    bodies::a_body_of_too_many_small_values_is_refused,
    browsers::no_route_answers_under_another_name,
    browsers::a_page_from_elsewhere_starts_nothing,
    bulk::bulk_job_deals_with_what_matched,
    bulk::bulk_job_is_suspended_resumed_and_cancelled,
    bulk::bulk_request_that_makes_no_sense_is_refused,
    bulk::bulk_deletion_needs_the_scope_admin,
    connections::who_says_nothing_or_half_of_it_is_let_go,
    connections::health_is_answered_and_flows_go_on_while_everybody_waits,
    decisions::operator_resolves_a_step_once,
    decisions::undo_that_failed_is_skipped,
    decisions::redrive_gives_a_step_another_input,
    decisions::fork_runs_another_version_that_fits,
    decisions::redrive_goes_on_with_another_version_that_fits,
    executions::the_same_start_again_is_the_same_execution,
    executions::a_batch_answers_each_by_itself,
    executions::rubbish_is_refused_with_words,
    executions::what_failed_goes_on_from_where_it_failed,
    executions::a_fork_goes_on_from_an_event_of_another,
    executions::lists_come_in_pages_and_by_what_is_asked,
    flows::a_version_is_made_only_of_what_is_new,
    flows::a_hidden_flow_is_not_started_and_not_listed,
    flows::a_bad_definition_says_everything_that_is_wrong,
    flows::what_cannot_be_honoured_is_refused,
    flows::definition_is_checked_and_not_kept,
    inside::each_attempt_says_what_went_in_and_what_came_back,
    #[cfg(feature = "console")]
    inside::an_earlier_event_shows_what_was_known_then,
    inside::iterations_are_a_letter_each,
    inside::timeline_has_a_lane_for_each_visit_and_bands_for_many,
    inside::datum_comes_in_parts,
    inside::sender_is_told_its_name_and_scopes,
    keys::flow_is_limited_paused_and_resumed,
    keys::flows_that_share_a_pool_give_it_one_limit,
    keys::key_admits_as_many_as_its_limit_says,
    keys::keys_come_in_pages_and_rubbish_is_refused,
    keys::raised_limit_admits_at_once_and_a_lowered_one_stops_nobody,
    histories::pages_in_both_orders_hold_every_event_once,
    histories::a_state_is_that_at_the_end_of_the_turn,
    histories::schedules_start_flows,
    limits::an_input_and_its_body_have_their_limits,
    limits::an_input_is_so_deep_and_no_deeper,
    limits::a_batch_starts_a_thousand_at_most,
    order::what_means_nothing_is_refused,
    order::one_that_waits_for_a_time_or_for_others_begins_when_asked,
    outboxes::outbox_starts_what_it_can_and_says_why_not,
    pausing::execution_is_paused_and_goes_on,
    pressure::backpressure_turns_away_and_loses_nobody,
    queues::a_task_is_held_and_reported,
    queues::dead_tasks_are_queued_anew_or_dropped,
    queues::what_is_stopped_leaves_the_queue_and_its_worker_learns_it,
    queues::several_queues_are_asked_at_once,
    queues::nothing_is_known_of_a_queue_nobody_used,
    queues::queues_keep_to_what_is_set,
    schedules::only_what_is_named_of_a_schedule_changes,
    schedules::a_schedule_is_run_by_hand_also_while_it_is_paused,
    stats::stats_count_starts_ends_and_what_failed,
    stream::topics_that_are_not_known_or_too_many_are_refused,
    views::no_more_views_than_fit_are_saved,
    views::views_are_saved_shown_and_deleted,
    starts::delayed_start_waits_without_a_history_and_begins,
    reports::a_batch_is_answered_in_order_each_by_itself,
    reports::an_entry_that_says_two_things_says_nothing,
    reports::a_batch_has_an_end,
    reports::a_body_with_a_wrong_token_is_not_read,
    reports::log_of_a_report_is_shown_with_step_and_attempt,
    reports::operator_reports_without_the_token,
    reports::tasks_of_a_queue_are_listed_with_their_inputs_and_workers,
    waiters::limit_of_waiters,
    waits::a_list_says_what_each_one_that_runs_waits_for,
    waits::a_start_is_refused_where_too_many_wait,
    why::a_task_says_its_queue_and_then_its_worker_through_the_parent,
    problem_of_a_store_hides_what_the_store_says,
    panic_of_a_request_is_answered,
    set_aside_execution_refuses_a_report,
    problem_of_a_node_that_has_ended,
    execution_lease_of_another_process_is_respected,
    openapi_problems_are_answered,
];

/// All tests that are run here are also run by themselves. Their coverage counts only in their own
/// thread.
#[test]
fn openapi_routes_and_problems_are_all_seen() {
    take_seen();
    for test in TESTS {
        test();
    }
    let seen = take_seen();
    // Only a node of a cluster answers it; tests of clusters ask one.
    let of_clusters = |answer: &&(String, String, u16)| answer.1.starts_with("/v1/cluster") && answer.2 != 404;
    let named = named_answers();
    let missing: Vec<_> = named
        .difference(&seen.answers)
        .filter(|answer| !of_clusters(answer))
        .collect();
    assert!(missing.is_empty(), "no request met {missing:#?}");
    let faults: BTreeSet<String> = FAULTS.iter().map(|(code, _)| (*code).to_owned()).collect();
    let unseen: BTreeSet<String> = named_codes().difference(&seen.codes).cloned().collect();
    assert_eq!(
        unseen, faults,
        "problems that no request met, and those that need a fault"
    );
}
