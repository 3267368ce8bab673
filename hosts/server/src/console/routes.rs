//! The pages' part of the table of routes.

use super::{
    acts, bulk, export, find, flow_acts, live, map, pages, questions, queue_acts, schedule_acts, signing_in, strips,
    view_acts,
};
use crate::App;
use crate::routes::Route;
use crate::scope::Scope;
use axum::routing::{MethodRouter, get, post};

/// What makes the handler of a route.
type Make = fn() -> MethodRouter<App>;

/// A route that is answered with a page of HTML.
const fn page(path: &'static str, scope: Option<Scope>, summary: &'static str, handler: Make) -> Route {
    route("GET", path, scope, summary, handler)
}

/// A form that is sent.
const fn act(path: &'static str, scope: Option<Scope>, summary: &'static str, handler: Make) -> Route {
    route("POST", path, scope, summary, handler)
}

const fn route(
    method: &'static str,
    path: &'static str,
    scope: Option<Scope>,
    summary: &'static str,
    handler: Make,
) -> Route {
    Route {
        method,
        path,
        scope,
        summary,
        query: &[],
        body: None,
        answers: &[(200, "a page", Some("text/html"))],
        handler: Some(handler),
    }
}

const READ: Option<Scope> = Some(Scope::Read);
const START: Option<Scope> = Some(Scope::Start);
const OPERATE: Option<Scope> = Some(Scope::Operate);
const ADMIN: Option<Scope> = Some(Scope::Admin);

/// The console's routes.
pub const ROUTES: &[Route] = &[
    page("/", READ, "The overview", || get(pages::overview)),
    page("/executions", READ, "The list of executions", || get(pages::executions)),
    page("/executions/{id}", READ, "An execution", || get(pages::execution)),
    page("/stream", READ, "Word of changes", || get(live::stream)),
    page("/executions/{id}/history.jsonl", READ, "Its history as a file", || {
        get(export::history)
    }),
    page(
        "/executions/{id}/map",
        READ,
        "How its iterations stand, as letters",
        || get(map::map),
    ),
    page("/executions/{id}/case.test.json", READ, "It as a test case", || {
        get(export::test_case)
    }),
    page("/flows", READ, "The flows", || get(pages::flows)),
    page("/flows/{name}", READ, "A flow, and how it is started", || {
        get(pages::flow)
    }),
    page("/queues", READ, "The queues", || get(pages::queues)),
    page("/queues/{queue}", READ, "A queue", || get(pages::queue)),
    page("/keys", READ, "The concurrency keys", || get(pages::keys)),
    page("/keys/{pool}/{key}", READ, "Who holds a key", || get(pages::key)),
    page("/schedules", READ, "The schedules", || get(pages::schedules)),
    page("/schedules/{name}", READ, "A schedule", || get(schedule_acts::schedule)),
    page("/find", READ, "Leads to what is called so", || get(find::find)),
    page("/strips", READ, "The steps of executions of a list", || {
        get(strips::strips)
    }),
    page("/inbox", READ, "What asks a person", || get(questions::inbox)),
    page("/bulk", READ, "The bulk jobs", || get(pages::bulk)),
    page("/bulk/new", OPERATE, "What a bulk job would be for", || {
        get(bulk::preview)
    }),
    page("/bulk/{id}", READ, "A bulk job", || get(bulk::job)),
    page("/settings", READ, "Who one is, and what serves", || {
        get(pages::settings)
    }),
    page("/audit", ADMIN, "What operators did", || get(pages::audit)),
    page("/signin", None, "The form that takes a token", || get(signing_in::form)),
    page("/console/{file}", None, "A file that pages need", || get(pages::file)),
    act("/signin", None, "Signs in", || post(signing_in::sign_in)),
    act("/signout", None, "Signs out", || post(signing_in::sign_out)),
    act("/settings", None, "Sets language and colours", || {
        post(signing_in::settings)
    }),
    act("/flows/{name}/start", START, "Starts an execution", || {
        post(acts::start)
    }),
    act("/flows/{name}/check", ADMIN, "Shows what a definition changes", || {
        post(flow_acts::check)
    }),
    act("/flows/{name}/put", ADMIN, "Puts a version of a flow", || {
        post(flow_acts::put)
    }),
    act("/flows/{name}/pause", ADMIN, "Pauses a flow", || post(flow_acts::pause)),
    act("/flows/{name}/resume", ADMIN, "Ends a flow's pause", || {
        post(flow_acts::resume)
    }),
    act("/flows/{name}/limit", ADMIN, "Sets how many run at a time", || {
        post(flow_acts::limit)
    }),
    act("/flows/{name}/hide", ADMIN, "Hides a flow", || post(flow_acts::hide)),
    act("/executions/{id}/stop", OPERATE, "Stops it", || post(acts::stop)),
    act("/executions/{id}/redrive", OPERATE, "Lets it go on", || {
        post(acts::redrive)
    }),
    act(
        "/executions/{id}/fork",
        OPERATE,
        "Begins another from one of its events",
        || post(acts::fork),
    ),
    act("/executions/{id}/report", OPERATE, "Reports a callback by hand", || {
        post(acts::report)
    }),
    act("/executions/{id}/pause", OPERATE, "Pauses it", || post(acts::pause)),
    act("/executions/{id}/resume", OPERATE, "Ends a pause", || {
        post(acts::resume)
    }),
    act("/executions/{id}/skip", OPERATE, "Leaves out an undo", || {
        post(acts::skip)
    }),
    act("/executions/{id}/resolve", OPERATE, "Decides for a step", || {
        post(acts::resolve)
    }),
    act("/views", OPERATE, "Saves a view", || post(view_acts::save)),
    act("/views/delete", OPERATE, "Deletes a view", || post(view_acts::delete)),
    act("/bulk/new", OPERATE, "Makes a bulk job", || post(bulk::make)),
    act("/bulk/{id}/suspend", OPERATE, "Suspends a bulk job", || {
        post(bulk::suspend)
    }),
    act("/bulk/{id}/resume", OPERATE, "Resumes a bulk job", || {
        post(bulk::resume)
    }),
    act("/bulk/{id}/cancel", OPERATE, "Cancels a bulk job", || {
        post(bulk::cancel)
    }),
    act("/queues/{queue}/pause", OPERATE, "Pauses a queue", || {
        post(queue_acts::pause)
    }),
    act("/queues/{queue}/resume", OPERATE, "Resumes a queue", || {
        post(queue_acts::resume)
    }),
    act("/queues/{queue}/set", OPERATE, "Sets a queue", || post(queue_acts::set)),
    act(
        "/queues/{queue}/dead",
        OPERATE,
        "Queues dead tasks anew, or drops them",
        || post(queue_acts::dead),
    ),
    act("/keys/{pool}/{key}/set", ADMIN, "Sets the limit of a key", || {
        post(queue_acts::set_key)
    }),
    act("/schedules/{name}/change", ADMIN, "Changes a schedule", || {
        post(schedule_acts::change)
    }),
    act("/schedules/{name}/pause", OPERATE, "Pauses a schedule", || {
        post(acts::pause_schedule)
    }),
    act("/schedules/{name}/resume", OPERATE, "Resumes a schedule", || {
        post(acts::resume_schedule)
    }),
    act(
        "/schedules/{name}/run",
        OPERATE,
        "Starts what a schedule starts",
        || post(acts::run_schedule),
    ),
];
