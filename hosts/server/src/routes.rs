//! The routes: one table, from which the router, the check of tokens and the OpenAPI document are made.

mod audit;
mod batch;
mod briefs;
mod bulk;
mod cluster;
mod configuration;
mod counts;
mod data;
mod executions;
mod flows;
mod history;
mod keys;
mod operating;
mod order;
pub mod outbox_rows;
mod outboxes;
#[cfg(feature = "console")]
mod picture;
mod queue_tasks;
mod queue_waits;
mod queues;
mod reporting;
mod route;
mod schedules;
mod service;
mod start_terms;
mod stats;
mod steps;
mod stream;
mod timeline;
mod views;
mod waiting;
mod why;

#[cfg(feature = "cluster")]
pub use cluster::metrics as metrics_of;
pub use counts::LatestCount;
pub(crate) use queues::{OF_SEVERAL, QUEUE};
pub use route::{Route, largest_body};
pub use stream::Looked;
#[cfg(feature = "console")]
pub use stream::open as open_stream;

use crate::answers::aside;
use crate::scope::Scope;
use axum::routing::{delete, get, patch, post, put};
use route::PAGE;

/// The table of which the router and the OpenAPI document are made.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    let areas = [
        queues::ROUTES,
        queue_tasks::ROUTES,
        keys::ROUTES,
        bulk::ROUTES,
        schedules::ROUTES,
        order::ROUTES,
        outboxes::ROUTES,
        why::ROUTES,
        steps::ROUTES,
        timeline::ROUTES,
        stats::ROUTES,
        views::ROUTES,
        stream::ROUTES,
        reporting::ROUTES,
        #[cfg(feature = "console")]
        picture::ROUTES,
        data::ROUTES,
        cluster::ROUTES,
        configuration::ROUTES,
    ];
    ROUTES.iter().chain(areas.into_iter().flatten())
}

/// All routes except those of the areas above.
const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/v1/flows",
        scope: Some(Scope::Read),
        summary: "The flows that can be started",
        query: &[],
        body: None,
        answers: &[(200, "the latest version of each", Some("FlowList"))],
        handler: Some(|| get(flows::list)),
    },
    Route {
        method: "PUT",
        path: "/v1/flows/{name}",
        scope: Some(Scope::Admin),
        summary: "Puts a definition as the flow's latest version",
        query: &[(
            "newLimits",
            "`true`: also if it gives a pool of concurrency keys another limit than other flows do, which have to follow",
        )],
        body: Some("Definition"),
        answers: &[
            (201, "a new version", Some("PutFlow")),
            (200, "the latest version is the same", Some("PutFlow")),
            (
                422,
                "the definition has errors; `DifferentLimits`: another flow gives one of its pools another limit",
                Some("Problem"),
            ),
        ],
        handler: Some(|| put(flows::put)),
    },
    Route {
        method: "POST",
        path: "/v1/flows/{name}/check",
        scope: Some(Scope::Read),
        summary: "Checks a definition as if it was put, and keeps nothing",
        query: &[],
        body: Some("Definition"),
        answers: &[
            (200, "it can be put", Some("CheckedFlow")),
            (422, "the definition has errors", Some("Problem")),
        ],
        handler: Some(|| post(flows::check)),
    },
    Route {
        method: "GET",
        path: "/v1/flows/{name}",
        scope: Some(Scope::Read),
        summary: "A flow with its definition",
        query: &[
            ("version", "which one; the latest where none is given"),
            ("text", "`true`: with the text of the definition as it was given"),
        ],
        body: None,
        answers: &[
            (200, "the flow", Some("Flow")),
            (404, "there is no such flow", Some("Problem")),
        ],
        handler: Some(|| get(flows::get)),
    },
    Route {
        method: "PATCH",
        path: "/v1/flows/{name}",
        scope: Some(Scope::Admin),
        summary: "Sets how many executions of a flow run at a time, and whether new ones begin; what is left out stays as it is",
        query: &[],
        body: Some("FlowChanges"),
        answers: &[
            (200, "what is set now", Some("FlowLimits")),
            (404, "there is no such flow", Some("Problem")),
            (422, "`NotSupported`: the server has no admission", Some("Problem")),
        ],
        handler: Some(|| patch(flows::change)),
    },
    Route {
        method: "DELETE",
        path: "/v1/flows/{name}",
        scope: Some(Scope::Admin),
        summary: "Hides a flow from starts and lists; what runs goes on",
        query: &[],
        body: None,
        answers: &[(204, "done", None), (404, "there is no such flow", Some("Problem"))],
        handler: Some(|| delete(flows::hide)),
    },
    Route {
        method: "GET",
        path: "/v1/flows/{name}/versions",
        scope: Some(Scope::Read),
        summary: "The versions of a flow, the newest first",
        query: &[],
        body: None,
        answers: &[(200, "the versions", Some("FlowList"))],
        handler: Some(|| get(flows::versions)),
    },
    Route {
        method: "POST",
        path: "/v1/flows/{name}/executions",
        scope: Some(Scope::Start),
        summary: "Starts an execution",
        query: &[(
            "wait",
            "answers when it has ended or so many seconds have passed, at most 60",
        )],
        body: Some("Start"),
        answers: &[
            (201, "started", Some("Execution")),
            (
                200,
                "an execution of that name was started with that input before; it runs or has ended",
                Some("Execution"),
            ),
            (
                409,
                "the name is taken by an execution with another input or version",
                Some("Problem"),
            ),
            (422, "the input does not fit", Some("Problem")),
        ],
        handler: Some(|| post(executions::start)),
    },
    Route {
        method: "GET",
        path: "/v1/flows/{name}/executions/{executionName}",
        scope: Some(Scope::Read),
        summary: "An execution by its name",
        query: &[],
        body: None,
        answers: &[
            (200, "the execution", Some("Execution")),
            (404, "there is no such execution", Some("Problem")),
        ],
        handler: Some(|| get(executions::named)),
    },
    Route {
        method: "POST",
        path: "/v1/executions/batch",
        scope: Some(Scope::Start),
        summary: "Starts up to 1000 executions, each by itself",
        query: &[],
        body: Some("Batch"),
        answers: &[(200, "one answer each, in order", Some("BatchAnswer"))],
        handler: Some(|| post(batch::batch)),
    },
    Route {
        method: "GET",
        path: "/v1/executions",
        scope: Some(Scope::Read),
        summary: "Executions, the newest first; a page may be short or empty and still have a `next`",
        query: &[
            ("flow", "of this flow"),
            ("status", "in one of these states"),
            ("reason", "why it does not go on, as `waitingFor` says"),
            ("reasonOf", "of this key, flow, queue, step or execution"),
            ("name", "whose name begins so"),
            ("parent", "started by the execution with this id"),
            (
                "root",
                "of the family that began with the execution with this id, without that one",
            ),
            (
                "label",
                "with this label, as `key:value`; given several times, all must be there",
            ),
            ("from", "started at this time or after (RFC 3339)"),
            ("to", "started before this time (RFC 3339)"),
            ("error", "that ended with the error of this name"),
            ("step", "whose error arose in the step of this name"),
            ("endedFrom", "ended at this time or after (RFC 3339)"),
            ("endedTo", "ended before this time (RFC 3339)"),
            PAGE[0],
            PAGE[1],
        ],
        body: None,
        answers: &[(200, "a page", Some("ExecutionPage"))],
        handler: Some(|| get(executions::list)),
    },
    Route {
        method: "GET",
        path: "/v1/executions/counts",
        scope: Some(Scope::Read),
        summary: "How many executions have each status, and how many do not go on for each reason; up to ten seconds old where counting takes long",
        query: &[],
        body: None,
        answers: &[(
            200,
            "the counts; `reasons` is null where the store has none",
            Some("ExecutionCounts"),
        )],
        handler: Some(|| get(counts::counts)),
    },
    Route {
        method: "DELETE",
        path: "/v1/executions/{id}",
        scope: Some(Scope::Admin),
        summary: "Deletes one that has ended, with everything that belongs to it; executions that it started stay",
        query: &[],
        body: None,
        answers: &[
            (204, "done", None),
            (404, "there is no such execution", Some("Problem")),
            (409, "`NotEnded`: it runs", Some("Problem")),
        ],
        handler: Some(|| delete(operating::delete)),
    },
    Route {
        method: "GET",
        path: "/v1/audit",
        scope: Some(Scope::Admin),
        summary: "What operators did, the newest first; starts and reports are in histories only",
        query: &[
            ("from", "at this time or after (RFC 3339)"),
            ("to", "before this time (RFC 3339)"),
            (
                "by",
                "by whoever has the token of this name; `local` where none is needed",
            ),
            ("action", "what was done, in one word"),
            (
                "kind",
                "to an `execution`, a `flow`, a `queue`, a `schedule`, a `key` or a `bulk` job",
            ),
            ("object", "to the object of this name; an execution's is its id"),
            PAGE[0],
            PAGE[1],
        ],
        body: None,
        answers: &[(200, "a page", Some("AuditPage"))],
        handler: Some(|| get(audit::list)),
    },
    Route {
        method: "GET",
        path: "/v1/executions/{id}/history",
        scope: Some(Scope::Read),
        summary: "Its history; as `text/event-stream` it goes on until the execution has ended",
        query: &[
            ("from", "number of the first event; of the last one with `order=desc`"),
            ("order", "`asc` (usual) or `desc`, the newest first"),
            (
                "expand",
                "`true`: with the input and local data that events of steps had to do with; a page may have fewer events then",
            ),
            (
                "at",
                "from the first event on that came at this time or later (RFC 3339)",
            ),
            (
                "type",
                "only events of these types; a page may then be short or empty and still have a `next`",
            ),
            ("step", "only events of the step of this name"),
            ("failed", "`true`: only events that tell of an error"),
            PAGE[1],
        ],
        body: None,
        answers: &[
            (200, "a page of events, or all of them as they come", Some("EventPage")),
            (200, "the same", Some("text/event-stream")),
            (404, "there is no such execution", Some("Problem")),
        ],
        handler: Some(|| get(history::history)),
    },
    Route {
        method: "GET",
        path: "/v1/executions/{id}/logs",
        scope: Some(Scope::Read),
        summary: "What programs of its attempts printed on stderr: the last 64 KiB of each attempt",
        query: &[
            ("from", "from the attempt on that ended with this event"),
            (
                "step",
                "only of the step of this name; a page may have fewer than `limit`, and `next` all the same",
            ),
            ("limit", "how many at most: 1 to 100, 20 where none is given"),
        ],
        body: None,
        answers: &[
            (
                200,
                "a page, in order of the events that ended the attempts",
                Some("LogPage"),
            ),
            (404, "there is no such execution", Some("Problem")),
            (422, "`NotSupported`: the store keeps no logs", Some("Problem")),
        ],
        handler: Some(|| get(history::logs)),
    },
    Route {
        method: "GET",
        path: "/v1/executions/{id}/state",
        scope: Some(Scope::Read),
        summary: "Where it stood at the end of the turn with that event",
        query: &[("at", "number of the event; the last where none is given")],
        body: None,
        answers: &[
            (
                200,
                "status, input, local and open steps: the first 20,000, and with 16 MiB of data together; `/steps` has all",
                Some("State"),
            ),
            (404, "there is no such execution", Some("Problem")),
        ],
        handler: Some(|| get(history::state)),
    },
    Route {
        method: "POST",
        path: "/v1/executions/{id}/stop",
        scope: Some(Scope::Operate),
        summary: "Stops it; with `rollback` what it did is undone",
        query: &[],
        body: Some("Stop"),
        answers: &[
            (200, "the execution", Some("Execution")),
            (202, "whoever works on it is told", Some("Execution")),
            (409, "it has ended", Some("Problem")),
        ],
        handler: Some(|| post(operating::stop)),
    },
    Route {
        method: "POST",
        path: "/v1/executions/{id}/redrive",
        scope: Some(Scope::Operate),
        summary: "Lets one that ended without success go on from what was not undone",
        query: &[],
        body: Some("Redrive"),
        answers: &[
            (200, "the execution", Some("Execution")),
            (409, "`NotRedrivable`: it runs or has succeeded", Some("Problem")),
            (
                422,
                "`NotEnteredAgain`: an input is for a step that is not entered again; `DefinitionDoesNotFit`: with that version \
                 something else would have been done; `InvalidConcurrencyKey`: a key of that version can't be made of the input",
                Some("Problem"),
            ),
        ],
        handler: Some(|| post(operating::redrive)),
    },
    Route {
        method: "POST",
        path: "/v1/executions/{id}/fork",
        scope: Some(Scope::Operate),
        summary: "Begins an execution that goes on from an event of this one; with `definition`, which becomes the latest version, `admin` is needed",
        query: &[],
        body: Some("Fork"),
        answers: &[
            (201, "the new execution", Some("Execution")),
            (404, "there is no such execution or event", Some("Problem")),
            (409, "the name is taken", Some("Problem")),
            (
                422,
                "`DefinitionDoesNotFit`: with that version, definition or input something else would have been done before the event; \
                 `InvalidConcurrencyKey`: a key of the flow can't be made of the input",
                Some("Problem"),
            ),
        ],
        handler: Some(|| post(operating::fork)),
    },
    Route {
        method: "POST",
        path: "/v1/executions/{id}/skip",
        scope: Some(Scope::Operate),
        summary: "Leaves out the undo that failed; the rollback goes on with the next",
        query: &[],
        body: Some("Skip"),
        answers: &[
            (200, "the execution", Some("Execution")),
            (409, "`NothingToSkip`: no undo of it has failed", Some("Problem")),
        ],
        handler: Some(|| post(operating::skip)),
    },
    Route {
        method: "POST",
        path: "/v1/executions/{id}/pause",
        scope: Some(Scope::Operate),
        summary: "Lets nothing new begin in it and the children it waits for; the same where it is paused already",
        query: &[],
        body: Some("Pause"),
        answers: &[
            (200, "the execution", Some("Execution")),
            (409, "`NotRunning`: it has ended", Some("Problem")),
        ],
        handler: Some(|| post(operating::pause)),
    },
    Route {
        method: "POST",
        path: "/v1/executions/{id}/resume",
        scope: Some(Scope::Operate),
        summary: "Ends a pause; the same where it is not paused",
        query: &[],
        body: Some("Resume"),
        answers: &[
            (200, "the execution", Some("Execution")),
            (409, "`NotRunning`: it has ended", Some("Problem")),
        ],
        handler: Some(|| post(operating::resume)),
    },
    Route {
        method: "POST",
        path: "/v1/executions/{id}/steps/{event}/resolve",
        scope: Some(Scope::Operate),
        summary: "Decides for a step that waits for an operator, given by `waitingFor.request` or `event` among the steps",
        query: &[],
        body: Some("Resolve"),
        answers: &[
            (200, "the execution", Some("Execution")),
            (404, "there is no such execution or event", Some("Problem")),
            (
                409,
                "`AlreadyResolved`: somebody answered that request before; `NotManual`: it does not wait for an operator",
                Some("Problem"),
            ),
        ],
        handler: Some(|| post(operating::resolve)),
    },
    Route {
        method: "POST",
        path: "/v1/callbacks/{token}/{verb}",
        scope: None,
        summary: "Reports a task with its token: `succeed`, `fail` or `heartbeat`",
        query: &[],
        body: Some("Report"),
        answers: &[
            (202, "whoever works on the execution is told", None),
            (204, "it counts", None),
            (404, "`InvalidToken`: not one of ours", Some("Problem")),
            (
                409,
                "`TaskAlreadyCompleted`: another report came first; `ExecutionSetAside`: an operator has to see to its execution",
                Some("Problem"),
            ),
            (410, "`TaskTimedOut`: the call was given up before", Some("Problem")),
        ],
        handler: None,
    },
    Route {
        method: "POST",
        path: "/v1/callbacks",
        scope: None,
        summary: "Reports up to 1000 tasks",
        query: &[],
        body: Some("Reports"),
        answers: &[(200, "what became of each, in order", Some("ReportAnswers"))],
        handler: None,
    },
    Route {
        method: "GET",
        path: "/v1/openapi.json",
        scope: None,
        summary: "This document",
        query: &[],
        body: None,
        answers: &[(200, "OpenAPI 3.1", Some("Document"))],
        handler: Some(|| get(service::openapi)),
    },
    Route {
        method: "GET",
        path: "/metrics",
        scope: Some(Scope::Read),
        summary: "Numbers for Prometheus",
        query: &[],
        body: None,
        answers: &[(200, "text", Some("text/plain"))],
        handler: Some(|| get(service::metrics)),
    },
    Route {
        method: "GET",
        path: "/healthz",
        scope: None,
        summary: "Whether the process lives",
        query: &[],
        body: None,
        answers: &[
            (200, "it does", Some("text/plain")),
            (503, "it is coming to its end", Some("Problem")),
        ],
        handler: Some(|| get(service::healthz)),
    },
    Route {
        method: "GET",
        path: "/readyz",
        scope: None,
        summary: "Whether it takes requests",
        query: &[],
        body: None,
        answers: &[
            (200, "it does", Some("text/plain")),
            (503, "not any more", Some("Problem")),
        ],
        handler: Some(|| get(service::readyz)),
    },
];
