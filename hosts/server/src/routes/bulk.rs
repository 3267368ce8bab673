//! Bulk jobs: an act on many executions.

use super::route::{PAGE, Route};
use super::views::missing;
use crate::App;
use crate::answers::aside;
use crate::caller::MayAll;
use crate::scope::Scope;
use crate::shapes;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::http::body::Sent;
use starbridge_node::http::reading::Query;
use starbridge_node::node::{BulkAction, BulkPreview, BulkRefusal, ExecutionFilter, Operator, WantedBulk};
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_ports::{BulkItem, BulkItems, BulkJob, BulkResult, BulkState};

type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// The largest number of ids in one request.
const MOST_IDS: usize = 10_000;
/// The largest size of an id, in bytes.
const ID_BYTES: usize = 36;
/// The largest number of executions asked in a second.
const MOST_RATE: u64 = 10_000;

/// The routes of bulk jobs.
pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "POST",
        path: "/v1/bulk",
        scope: Some(Scope::Operate),
        summary: "Does something to many executions, as a job that is kept; `delete` needs the scope `admin`",
        query: &[],
        body: Some("Bulk"),
        answers: &[
            (201, "the job", Some("BulkJob")),
            (200, "with `dryRun`: what it would be for", Some("BulkPreview")),
            (403, "to delete, a token needs the scope `admin`", Some("Problem")),
            (422, "`NotSupported`: the store has no bulk jobs", Some("Problem")),
        ],
        handler: Some(|| post(put)),
    },
    Route {
        method: "GET",
        path: "/v1/bulk",
        scope: Some(Scope::Read),
        summary: "Bulk jobs, the newest first",
        query: PAGE,
        body: None,
        answers: &[(200, "a page", Some("BulkJobPage"))],
        handler: Some(|| get(list)),
    },
    Route {
        method: "GET",
        path: "/v1/bulk/{id}",
        scope: Some(Scope::Read),
        summary: "A bulk job",
        query: &[],
        body: None,
        answers: &[
            (200, "the job", Some("BulkJob")),
            (404, "there is no such bulk job", Some("Problem")),
        ],
        handler: Some(|| get(show)),
    },
    Route {
        method: "GET",
        path: "/v1/bulk/{id}/items",
        scope: Some(Scope::Read),
        summary: "The executions of a bulk job, and what became of each",
        query: &[
            ("result", "only those that are `open`, `done`, `skipped` or `failed`"),
            PAGE[0],
            PAGE[1],
        ],
        body: None,
        answers: &[
            (200, "a page", Some("BulkItemPage")),
            (404, "there is no such job", Some("Problem")),
        ],
        handler: Some(|| get(items)),
    },
    Route {
        method: "POST",
        path: "/v1/bulk/{id}/suspend",
        scope: Some(Scope::Operate),
        summary: "Lets a bulk job begin nothing more until it is resumed",
        query: &[],
        body: None,
        answers: CHANGED,
        handler: Some(|| post(suspend)),
    },
    Route {
        method: "POST",
        path: "/v1/bulk/{id}/resume",
        scope: Some(Scope::Operate),
        summary: "Lets a suspended bulk job go on; one that deletes needs the scope `admin`",
        query: &[],
        body: None,
        answers: &[
            (200, "the job", Some("BulkJob")),
            (403, "to delete, a token needs the scope `admin`", Some("Problem")),
            (404, "there is no such bulk job", Some("Problem")),
            (409, "`WrongBulkState`: it is in another state", Some("Problem")),
        ],
        handler: Some(|| post(resume)),
    },
    Route {
        method: "POST",
        path: "/v1/bulk/{id}/cancel",
        scope: Some(Scope::Operate),
        summary: "Ends a bulk job; what was done stays done",
        query: &[],
        body: None,
        answers: CHANGED,
        handler: Some(|| post(cancel)),
    },
];

const CHANGED: &[(u16, &str, Option<&str>)] = &[
    (200, "the job", Some("BulkJob")),
    (404, "there is no such bulk job", Some("Problem")),
    (409, "`WrongBulkState`: it is in another state", Some("Problem")),
];

const MEMBERS: &[&str] = &[
    "action",
    "arguments",
    "filter",
    "executions",
    "all",
    "dryRun",
    "ratePerSecond",
];

/// Refuses those who may not do what needs the scope `admin`.
fn permitted(app: &App, needs_admin: bool, may_all: Option<Extension<MayAll>>, headers: &HeaderMap) -> Answer<()> {
    let may_all = || match may_all {
        Some(Extension(MayAll(may))) => may,
        None => app.access.allows(headers, Scope::Admin),
    };
    if needs_admin && !may_all() {
        let detail = "to delete executions, a token needs the scope `admin`";
        return Err(Problem::new(StatusCode::FORBIDDEN, "Forbidden", detail));
    }
    Ok(())
}

/// `POST /v1/bulk`
async fn put(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    may_all: Option<Extension<MayAll>>,
    headers: HeaderMap,
    mut body: Sent,
) -> Answer {
    let body = body.read(MEMBERS).await?;
    let action = body.text("action")?.unwrap_or_default();
    let arguments = body.object("arguments")?.unwrap_or_default();
    let known = BulkAction::read(&action, &arguments).map_err(Problem::bad)?;
    permitted(&app, known.needs_admin(), may_all, &headers)?;
    let filter = body.object("filter")?.unwrap_or_default();
    let filter = with_view(&app, filter).await?;
    let chosen = read_filter(&filter)?;
    let executions = body.get("executions").map(read_ids).transpose()?;
    let all = body.flag("all")?.unwrap_or(false);
    match (&executions, chosen.is_empty()) {
        (Some(_), false) => return Err(Problem::bad("give either `filter` or `executions`, not both")),
        (Some(_), true) if all => return Err(Problem::bad("give either `executions` or `all`, not both")),
        (None, true) if !all => {
            let detail =
                "`filter` has no condition, so this is for every execution: say `\"all\": true` if that is meant";
            return Err(Problem::bad(detail));
        }
        _ => {}
    }
    let rate = body.number("ratePerSecond")?;
    if rate.is_some_and(|rate| !(1..=MOST_RATE).contains(&rate)) {
        return Err(Problem::bad(format!(
            "`ratePerSecond` must be a whole number from 1 to {MOST_RATE}"
        )));
    }
    let wanted = WantedBulk {
        action,
        arguments,
        filter,
        executions,
        rate: rate.and_then(|rate| u32::try_from(rate).ok()),
    };
    if body.flag("dryRun")?.unwrap_or(false) {
        let preview = aside(&app.node, move |node| node.preview_bulk(&wanted)).await?;
        let preview = preview.map_err(refused)?;
        return app.answers.value(StatusCode::OK, preview_shape(&preview)).await;
    }
    let room = app.answers.room_before(0)?;
    let job = aside(&app.node, move |node| node.put_bulk(wanted, &operator)).await?;
    let shape = job_shape(&app, &job.map_err(refused)?);
    room.write(StatusCode::CREATED, shape.json_len(), move || Ok(shape))
        .await
}

/// The filter with what the view in it shows. The job keeps what the view means now.
async fn with_view(app: &App, filter: Object) -> Answer<Object> {
    let Some(view) = filter.get("view") else {
        return Ok(filter);
    };
    let wrong = || Problem::bad("`filter`: `view` must be the name of a view");
    let name = view.as_text().ok_or_else(wrong)?.clone();
    let rest = filter.iter().filter(|(key, _)| **key != *"view");
    let mut filter: Object = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
    let of = name.clone();
    let view = aside(&app.node, move |node| node.saved_view(&of)).await??;
    let view = view.ok_or_else(|| missing(&name))?;
    for (key, value) in &view.filter {
        if filter.contains_key(key) {
            let detail = format!(
                "`filter`: the view {} has `{}` itself: leave it out",
                quoted(&name),
                key.as_str()
            );
            return Err(Problem::bad(detail));
        }
        filter.insert(key.clone(), value.clone());
    }
    Ok(filter)
}

/// The filter of a job. An empty text in it would match everything.
fn read_filter(filter: &Object) -> Answer<ExecutionFilter> {
    if filter.contains_key("all") {
        return Err(Problem::bad("`all` stands beside `filter`, not in it"));
    }
    let wrong = |why: String| Problem::bad(format!("`filter`: {why}"));
    let chosen = ExecutionFilter::read(filter).map_err(wrong)?;
    chosen.check_texts().map_err(|why| {
        wrong(format!(
            "{why}, or say `\"all\": true` beside `filter` if every execution is meant"
        ))
    })?;
    Ok(chosen)
}

/// A list of ids, each once.
fn read_ids(ids: &Value) -> Answer<Vec<Text>> {
    let wrong = || Problem::bad(format!("`executions` must be a list of 1 to {MOST_IDS} ids"));
    let ids = ids.as_array().ok_or_else(wrong)?;
    let mut seen = std::collections::HashSet::new();
    let mut read = Vec::new();
    for id in ids.values() {
        let id = id.as_text().ok_or_else(wrong)?;
        if id.len() > ID_BYTES {
            let shown: String = id.chars().take(ID_BYTES).collect();
            return Err(Problem::bad(format!(
                "`executions`: {}… is no id: an id has at most {ID_BYTES} characters",
                quoted(&shown)
            )));
        }
        if seen.insert(id.clone()) {
            read.push(id.clone());
        }
    }
    match (1..=MOST_IDS).contains(&read.len()) {
        true => Ok(read),
        false => Err(wrong()),
    }
}

fn refused(refusal: BulkRefusal) -> Problem {
    match refusal {
        BulkRefusal::NotSupported => {
            let detail = "the store of this server has no bulk jobs: act on each execution by itself";
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "NotSupported", detail)
        }
        BulkRefusal::NoSuchJob => Problem::missing("NoSuchBulkJob", "there is no such bulk job"),
        BulkRefusal::State(state) => {
            let detail = match state {
                BulkState::Collecting => "the job is collecting its executions",
                BulkState::Running => "the job is running",
                BulkState::Suspended | BulkState::Unfinished => "the job is suspended",
                BulkState::Done | BulkState::Cancelled => "the job is over: make a new one for what is left",
            };
            Problem::conflict("WrongBulkState", detail)
        }
        BulkRefusal::Bad(why) => Problem::bad(why),
        BulkRefusal::Store(error) => error.into(),
    }
}

/// `GET /v1/bulk`
async fn list(State(app): State<App>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["cursor", "limit"])?;
    let limit = usize::try_from(query.number("limit", 100, 1, 1000)?).unwrap_or(100);
    let cursor = query.get("cursor").map(str::to_owned);
    let page = aside(&app.node, move |node| node.bulk_page(cursor.as_deref(), limit)).await?;
    let page = page.map_err(refused)?;
    let items = page.items.iter().map(|job| job_shape(&app, job)).collect();
    let page = shapes::page(items, page.next.map(Value::from));
    app.answers.value(StatusCode::OK, page).await
}

/// `GET /v1/bulk/{id}`
async fn show(State(app): State<App>, Path(id): Path<String>) -> Answer {
    let job = aside(&app.node, move |node| node.bulk_job(&id)).await?;
    let job = job.map_err(refused)?;
    app.answers.value(StatusCode::OK, job_shape(&app, &job)).await
}

/// `GET /v1/bulk/{id}/items`
async fn items(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["result", "cursor", "limit"])?;
    let limit = usize::try_from(query.number("limit", 100, 1, 1000)?).unwrap_or(100);
    let after = query.number("cursor", 0, 0, u64::MAX)?;
    let which = query.get("result").map(which_items).transpose()?.unwrap_or_default();
    let items = aside(&app.node, move |node| node.bulk_items(&id, which, after, limit + 1)).await?;
    let mut items = items.map_err(refused)?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|item| Value::from(item.number));
    let page = shapes::page(items.iter().map(item_shape).collect(), next);
    app.answers.value(StatusCode::OK, page).await
}

fn which_items(word: &str) -> Answer<BulkItems> {
    if word == "open" {
        return Ok(BulkItems::Open);
    }
    let known = BulkResult::WORDS.into_iter().find(|known| *known == word);
    known.map(BulkItems::With).ok_or_else(|| {
        let known = BulkResult::WORDS.join(", ");
        Problem::bad(format!("there is no result {}: known are open, {known}", quoted(word)))
    })
}

/// `POST /v1/bulk/{id}/suspend`
async fn suspend(app: State<App>, operator: Extension<Operator>, id: Path<String>) -> Answer {
    change(app, operator, id, BulkState::Suspended).await
}

/// `POST /v1/bulk/{id}/resume`
async fn resume(
    app: State<App>,
    operator: Extension<Operator>,
    may_all: Option<Extension<MayAll>>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Answer {
    let asked = id.clone();
    let job = aside(&app.node, move |node| node.bulk_job(&asked)).await?;
    let job = job.map_err(refused)?;
    let known = BulkAction::read(&job.action, &job.arguments);
    // What this version does not know may delete.
    let needs_admin = known.map_or(true, |known| known.needs_admin());
    permitted(&app, needs_admin, may_all, &headers)?;
    change(app, operator, Path(id), BulkState::Running).await
}

/// `POST /v1/bulk/{id}/cancel`
async fn cancel(app: State<App>, operator: Extension<Operator>, id: Path<String>) -> Answer {
    change(app, operator, id, BulkState::Cancelled).await
}

async fn change(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    to: BulkState,
) -> Answer {
    let changed = aside(&app.node, move |node| node.change_bulk(&id, to, &operator)).await?;
    let job = changed.map_err(refused)?;
    app.answers.value(StatusCode::OK, job_shape(&app, &job)).await
}

fn job_shape(app: &App, job: &BulkJob) -> Value {
    let mut shape = Object::new();
    let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
    set("id", job.id.clone().into());
    set("action", job.action.clone().into());
    set("arguments", job.arguments.clone().into());
    set("filter", job.filter.clone().into());
    set("by", job.by.clone().into());
    set("state", job.state.as_str().into());
    if let Some(wait) = app.node.bulk_wait(job) {
        set("waitsFor", wait.as_str().into());
    }
    set("items", job.items.into());
    set("open", job.open().into());
    set("done", job.done.into());
    set("skipped", job.skipped.into());
    set("failed", job.failed.into());
    if let Some(rate) = job.rate {
        set("ratePerSecond", rate.into());
    }
    set("createdTime", job.created.to_string().into());
    if let Some(ended) = job.ended {
        set("endedTime", ended.to_string().into());
    }
    shape.into()
}

fn item_shape(item: &BulkItem) -> Value {
    let mut shape = Object::new();
    let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
    set("item", item.number.into());
    set("execution", item.execution.clone().into());
    set("result", item.result.as_ref().map_or("open", BulkResult::word).into());
    if let Some(code) = item.result.as_ref().and_then(BulkResult::code) {
        set("code", code.clone().into());
    }
    shape.into()
}

fn preview_shape(preview: &BulkPreview) -> Value {
    let counts = preview.counts.iter().map(|((flow, status), executions)| {
        let members = [
            ("flow".into(), Value::from(flow.clone())),
            ("status".into(), (*status).into()),
            ("executions".into(), (*executions).into()),
        ];
        Value::from(members.into_iter().collect::<Object>())
    });
    let examples = preview
        .examples
        .iter()
        .map(|listed| Value::from(shapes::record(&listed.id, &listed.record)));
    let members = [
        ("executions".into(), preview.executions.into()),
        ("counts".into(), counts.collect::<Vec<_>>().into()),
        ("examples".into(), examples.collect::<Vec<_>>().into()),
    ];
    Value::from(members.into_iter().collect::<Object>())
}
