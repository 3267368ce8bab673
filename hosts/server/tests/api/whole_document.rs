//! A check that the tests cover everything in the document of the API. Its name is late in the order of tests: most of those that it
//! asks have ended before it begins.

use crate::document::{named_answers, named_codes, seen_by};
use crate::{
    access, answers, audit, bodies, browsers, bulk, configuration, connections, decisions, executions, flows,
    histories, inside, keys, limits, order, outboxes, pausing, pressure, problems, queues, reports, schedules,
    sleepers, starts, stats, stream, views, waiters, waits, why,
};
use std::collections::BTreeSet;

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

/// Names of tests, and the tests.
macro_rules! tests {
    ($($(#[$on:meta])? $test:path,)*) => {
        &[$($(#[$on])? (stringify!($test), $test)),*]
    };
}

/// Tests whose requests together cover everything in the document.
const TESTS: &[(&str, fn())] = tests![
    access::who_fails_too_often_is_turned_away,
    audit::audit_list_says_who_did_what,
    audit::deletion_leaves_the_children,
    audit::deletion_of_what_has_not_ended_is_refused,
    answers::answers_have_a_budget_together,
    sleepers::large_executions_have_room_together,
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
    configuration::configuration_is_told_to_who_may_do_everything,
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
    problems::problem_of_a_store_hides_what_the_store_says,
    problems::panic_of_a_request_is_answered,
    problems::set_aside_execution_refuses_a_report,
    problems::problem_of_a_node_that_has_ended,
    problems::execution_lease_of_another_process_is_respected,
    problems::openapi_problems_are_answered,
];

/// The tests are also run by themselves. One that has ended is not run again: what it saw is known by its name.
#[test]
fn openapi_routes_and_problems_are_all_seen() {
    let (mut answers, mut codes) = (BTreeSet::new(), BTreeSet::new());
    for &(name, test) in TESTS {
        let seen = seen_by(name, test);
        answers.extend(seen.answers);
        codes.extend(seen.codes);
    }
    // Only a node of a cluster answers it; tests of clusters ask one.
    let of_clusters = |answer: &&(String, String, u16)| answer.1.starts_with("/v1/cluster") && answer.2 != 404;
    let named = named_answers();
    let missing: Vec<_> = named
        .difference(&answers)
        .filter(|answer| !of_clusters(answer))
        .collect();
    assert!(missing.is_empty(), "no request met {missing:#?}");
    let faults: BTreeSet<String> = FAULTS.iter().map(|(code, _)| (*code).to_owned()).collect();
    let unseen: BTreeSet<String> = named_codes().difference(&codes).cloned().collect();
    assert_eq!(
        unseen, faults,
        "problems that no request met, and those that need a fault"
    );
}
