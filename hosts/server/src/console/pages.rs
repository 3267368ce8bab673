//! The pages: each asks the API for what it shows.

use super::answer::PageRefusal;
use super::asked::{Asked, Parameters};
use super::compress::takes_gzip;
use super::inspected::inspected;
use super::page::Page;
use super::questions::waiting;
use crate::App;
use crate::answers::aside;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use starbridge_console::{
    ExecutionParts, FILTERS, FlowPageParts, Language, ListParts, OverviewParts, QUEUE_TABS, QueueParts, TABS, View,
    address_of, asset, path_part,
};
use starbridge_diagram::{InPage, Words, svg_in_page};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Value;
use starbridge_machine::EventId;
use starbridge_node::node::filter_pairs;
use starbridge_node::offload;
use starbridge_node::problem::{Problem, quoted};
use std::num::NonZero;
use std::str::FromStr;

/// A history that is longer is not drawn.
const DRAWN_EVENTS: u64 = 1_000_000;
/// More data of an execution does not become a part of its page.
const DATA_BYTES: usize = 1024 * 1024;
/// So many rows has a page of the list, and of an execution's steps and events.
const ROWS: &str = "50";
const STEPS: &str = "200";
const EVENTS: &str = "100";
/// So many events before the one that is looked at are shown.
const AROUND: u64 = 50;

/// `GET /`
pub async fn overview(page: Page) -> Response {
    let made = async {
        let few = |key: &'static str, value: &'static str| {
            let query = [(key, value), ("limit", "8")];
            let ask = &page.ask;
            async move { ask.get("/v1/executions", &[], &query).await }
        };
        Ok(starbridge_console::overview(
            &page.frame,
            &OverviewParts {
                stats: &page.ask.get("/v1/stats", &[], &[]).await?,
                counts: &page.ask.get("/v1/executions/counts", &[], &[]).await?,
                failed: &few("status", "Failed,TimedOut,RollbackFailed").await?,
                manual: &few("reason", "manual").await?,
                queues: &page.ask.get("/v1/queues", &[], &[("limit", "10")]).await?,
                schedules: &page.ask.get("/v1/schedules", &[], &[]).await?,
            },
        ))
    };
    let made: Result<String, PageRefusal> = made.await;
    page.answer(made)
}

/// `GET /executions`
pub async fn executions(page: Page, query: Parameters) -> Response {
    let known: Vec<&str> = FILTERS.into_iter().chain(["cursor", "view", "done"]).collect();
    let mut asked = match Asked::of(query, &known) {
        Ok(asked) => asked,
        Err(refusal) => return page.answer(Err(refusal)),
    };
    if let Some(view) = asked.get("view") {
        let view = page.ask.get("/v1/views/{name}", &[view], &[]).await;
        return page.lead(view.map(|view| address_of(&filter_of(&view))));
    }
    by_clocks(&page, &mut asked);
    let made = listed(&page, &asked).await;
    page.answer(made)
}

/// The filters that are times.
const TIMES: [&str; 4] = ["from", "to", "endedFrom", "endedTo"];

/// Times of a filter as the API takes them: whoever writes one by hand means the clocks of the page.
fn by_clocks(page: &Page, asked: &mut Asked) {
    for (key, value) in &mut asked.given {
        if TIMES.contains(&key.as_str())
            && Timestamp::parse(value).is_none()
            && let Some(time) = page.frame.zone.read(value)
        {
            *value = time.to_string();
        }
    }
}

async fn listed(page: &Page, asked: &Asked) -> Result<String, PageRefusal> {
    let ask = &page.ask;
    let found = ask.get("/v1/executions", &[], &asked.pairs(&[("limit", ROWS)])).await?;
    let flow: Vec<(&str, &str)> = asked.get("flow").map(|flow| ("flow", flow)).into_iter().collect();
    let stats = ask.get("/v1/stats", &[], &flow).await?;
    let counts = ask.get("/v1/executions/counts", &[], &[]).await?;
    let views = ask.get("/v1/views", &[], &[]).await?;
    let views = views.get("items").and_then(Value::as_array).into_iter();
    let views = views.flat_map(|views| views.values().iter());
    let views = views.map(|view| {
        let name = view.get("name").and_then(Value::as_str).unwrap_or_default();
        (name.to_owned(), filter_of(view))
    });
    let parts = ListParts {
        filter: &asked.given,
        page: &found,
        stats: &stats,
        counts: &counts,
        views: &views.collect::<Vec<_>>(),
    };
    Ok(starbridge_console::executions(&page.frame, &parts))
}

/// The filter of a view, as an address has it.
fn filter_of(view: &Value) -> Vec<(String, String)> {
    let filter = view.get("filter").and_then(Value::as_object);
    filter.map(filter_pairs).unwrap_or_default()
}

/// `GET /executions/{id}`
pub async fn execution(page: Page, Path(id): Path<String>, query: Parameters) -> Response {
    let made = shown(&page, &id, query).await;
    page.answer(made)
}

/// What an execution's page knows of in its address.
const PLACES: &[&str] = &[
    "tab", "at", "visit", "of", "attempt", "from", "to", "lanes", "steps", "events", "failed", "step", "type", "when",
    "item", "items", "done",
];

/// A number in the address of a page.
fn counted<T: FromStr>(asked: &Asked, key: &str, what: &str) -> Result<Option<T>, PageRefusal> {
    match asked.get(key).map(str::parse) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => Err(Problem::bad(format!("`{key}` must be {what}")).into()),
    }
}

/// A time in the address of a page.
fn time(asked: &Asked, key: &str) -> Result<Option<Timestamp>, PageRefusal> {
    match asked.get(key).map(Timestamp::parse) {
        None => Ok(None),
        Some(Some(time)) => Ok(Some(time)),
        Some(None) => Err(Problem::bad(format!("`{key}` must be a time, as `2026-01-31T12:00:00Z`")).into()),
    }
}

/// What the address of an execution's page asks for.
fn view<'a>(asked: &'a Asked, id: &'a str) -> Result<View<'a>, PageRefusal> {
    let event = "the number of an event";
    let tab = asked.get("tab").unwrap_or(TABS[0]);
    if !TABS.contains(&tab) {
        let detail = format!("there is no tab {}: known are {}", quoted(tab), TABS.join(", "));
        return Err(Problem::bad(detail).into());
    }
    Ok(View {
        id,
        tab,
        at: counted::<NonZero<u64>>(asked, "at", event)?.map(NonZero::get),
        visit: counted(asked, "visit", event)?,
        attempt: counted(asked, "attempt", "a number")?,
        from: time(asked, "from")?,
        to: time(asked, "to")?,
    })
}

/// What the open tab shows. What it does not show is null.
#[derive(Default)]
struct Open {
    timeline: Value,
    steps: Value,
    events: Value,
    children: Value,
}

impl Open {
    async fn of(
        page: &Page,
        view: &View<'_>,
        asked: &Asked,
        execution: &Value,
        failed: bool,
    ) -> Result<Self, PageRefusal> {
        let at = view.at.map(|at| ("at", at.to_string()));
        let get = async |route: &'static str, query: Vec<(&'static str, String)>| {
            let query: Vec<(&str, &str)> = query.iter().map(|(key, value)| (*key, value.as_str())).collect();
            page.ask.get(route, &[view.id], &query).await
        };
        let cursor = |key: &str| ("cursor", asked.get(key).unwrap_or("0").to_owned());
        let mut open = Self::default();
        match view.tab {
            "timeline" => {
                let stretch = [("from", view.from), ("to", view.to)];
                let stretch = stretch
                    .into_iter()
                    .filter_map(|(key, time)| Some((key, time?.to_string())));
                let query = [("lanes", STEPS.to_owned()), cursor("lanes")];
                let query = query.into_iter().chain(stretch).chain(at).collect();
                open.timeline = get("/v1/executions/{id}/timeline", query).await?;
            }
            "steps" => {
                let query = [("limit", STEPS.to_owned()), cursor("steps")];
                let query = query.into_iter().chain(at).collect();
                open.steps = get("/v1/executions/{id}/steps", query).await?;
            }
            "events" | "raw" => {
                let query = of_events(page, asked, view, failed)?;
                open.events = get("/v1/executions/{id}/history", query).await?;
            }
            "children" => {
                open.children = below(page, view.id, execution).await?;
            }
            _ => {}
        }
        Ok(open)
    }
}

/// All executions below one; only its own children, where the family is large.
async fn below(page: &Page, id: &str, execution: &Value) -> Result<Value, PageRefusal> {
    let root = execution.get("root").and_then(Value::as_str).unwrap_or(id);
    let family = [("root", root), ("limit", STEPS)];
    let family = page.ask.get("/v1/executions", &[], &family).await?;
    if matches!(family.get("next"), None | Some(Value::Null)) {
        return Ok(family);
    }
    let own = [("parent", id), ("limit", STEPS)];
    page.ask.get("/v1/executions", &[], &own).await
}

async fn shown(page: &Page, id: &str, query: Parameters) -> Result<String, PageRefusal> {
    let asked = Asked::of(query, PLACES)?;
    let mut view = view(&asked, id)?;
    if let Some(step) = asked.get("of").filter(|_| view.visit.is_none()) {
        view.visit = visit_of(page, &view, step).await?;
    }
    let view = view;
    let execution = described(page, id, view.tab == "data").await?;
    let failed = asked.get("failed") == Some("true");
    let open = Open::of(page, &view, &asked, &execution, failed).await?;
    let inspected = inspected(page, &view, &asked, &execution).await?;
    let ended = execution.get("endedTime").is_some();
    let waits = waiting(page, id, &execution, ended).await?;
    let of = id.to_owned();
    let (app, at, words) = (page.app.clone(), view.at, words(page));
    let chosen = inspected.visit.get("step").and_then(Value::as_str).map(str::to_owned);
    let drawing = offload::read(usize::MAX, move || drawn(&app, &of, at, (words, chosen)));
    let drawn = drawing.await.map_err(Problem::from)??;
    let parts = ExecutionParts {
        view,
        end: drawn.end,
        incidents: &drawn.incidents,
        execution: &execution,
        timeline: &open.timeline,
        steps: &open.steps,
        events: &open.events,
        failed_only: failed,
        event_filter: [
            asked.get("step").unwrap_or_default(),
            asked.get("type").unwrap_or_default(),
        ],
        events_when: asked.get("when").unwrap_or_default(),
        visit: &inspected.visit,
        iterations: &inspected.iterations,
        log: &inspected.log,
        source: &inspected.source,
        items_only: asked.get("items").unwrap_or_default(),
        children: &open.children,
        open: &waits.open,
        manual: &waits.manual,
        awaiting: &waits.awaiting,
        definition: &drawn.definition,
        graph: &drawn.graph,
        done: asked.get("done").unwrap_or_default(),
    };
    Ok(starbridge_console::execution(&page.frame, &parts))
}

/// The visit that is shown for a step of the graph: the last, or the last that failed.
async fn visit_of(page: &Page, view: &View<'_>, step: &str) -> Result<Option<u64>, PageRefusal> {
    let at = view.at.map(|at| at.to_string());
    let mut query = vec![("step", step), ("limit", STEPS)];
    query.extend(at.as_deref().map(|at| ("at", at)));
    let rows = page.ask.get("/v1/executions/{id}/steps", &[view.id], &query).await?;
    let rows = rows.get("items").and_then(Value::as_array);
    let rows = rows.map_or(&[][..], |rows| rows.values());
    let failed = |row: &&Value| row.get("status").and_then(Value::as_str) == Some("failed");
    let row = rows.iter().rfind(failed).or_else(|| rows.last());
    Ok(row.and_then(|row| row.get("event")?.as_number()?.as_u64()))
}

/// Which events are asked for: the latest, unless a place is named.
fn of_events(
    page: &Page,
    asked: &Asked,
    view: &View<'_>,
    failed: bool,
) -> Result<Vec<(&'static str, String)>, PageRefusal> {
    let mut query = vec![("limit", EVENTS.to_owned())];
    if failed {
        query.push(("failed", "true".to_owned()));
    }
    let some = ["step", "type"].map(|key| (key, asked.get(key)));
    let is_filtered = failed || some.iter().any(|(_, value)| value.is_some());
    query.extend(
        some.into_iter()
            .filter_map(|(key, value)| Some((key, value?.to_owned()))),
    );
    let when = asked.get("when").map(|when| {
        let time = Timestamp::parse(when).or_else(|| page.frame.zone.read(when));
        time.ok_or_else(|| Problem::bad("`when` must be a time, as `2026-01-31 12:00:00`"))
    });
    let when = when.transpose()?;
    let is_filtered = is_filtered || when.is_some();
    query.extend(when.map(|when| ("at", when.to_string())));
    let around = view.at.map(|at| at.saturating_sub(AROUND).max(1).to_string());
    match asked.get("events").map(str::to_owned).or(around) {
        Some(from) => query.push(("from", from)),
        None if is_filtered => {}
        None => query.push(("order", "desc".to_owned())),
    }
    Ok(query)
}

/// An execution, with its data if they are wanted and not too many.
async fn described(page: &Page, id: &str, data: bool) -> Result<Value, PageRefusal> {
    let of = id.to_owned();
    let kept = aside(&page.app.node, move |node| node.stored_if_begun(&of)).await?;
    let kept = kept.map_err(Problem::from)?;
    let bytes = match kept {
        Some(kept) => kept.bytes(),
        None => {
            let (node, of) = (page.app.node.clone(), id.to_owned());
            let read = offload::read(usize::MAX, move || node.stored(&of).map(|kept| kept.bytes())).await;
            read.map_err(Problem::from)?.map_err(Problem::from)?
        }
    };
    let without: &[(&str, &str)] = match bytes {
        0..=DATA_BYTES if data => &[],
        _ => &[("data", "none")],
    };
    page.ask.get("/v1/executions/{id}", &[id], without).await
}

/// The words of a page's picture.
fn words(page: &Page) -> Words {
    match page.frame.language {
        Language::English => Words::English,
        Language::Chinese => Words::Chinese,
    }
}

/// What is read of the whole history.
struct Drawn {
    /// The picture of the execution after an event; empty for a long history.
    graph: String,
    definition: Value,
    /// The number of the last event.
    end: u64,
    incidents: Value,
}

/// A long history has no picture.
fn drawn(app: &App, id: &str, at: Option<u64>, (words, chosen): (Words, Option<String>)) -> Result<Drawn, Problem> {
    let node = app.node.as_ref();
    let last = node.last_event(id)?;
    let folded = match at.unwrap_or(last.0) {
        0..=DRAWN_EVENTS => Some(app.folds.get(node, id, at.map(EventId))?),
        _ => None,
    };
    let graph = folded.as_ref().map(|folded| {
        let status = folded.fold.marks.clone().finish();
        let here = at.map_or_else(String::new, |at| format!("&at={at}"));
        let link = |step: &str| format!("?of={}{here}#visit", path_part(step));
        let look = InPage {
            words,
            link: Some(&link),
            chosen: chosen.as_deref(),
            ..InPage::default()
        };
        svg_in_page(&folded.flow, Some(&status), &look)
    });
    let incidents = folded.as_ref().map(|folded| folded.incidents.to_value());
    let flow = match folded {
        Some(folded) => folded.flow,
        None => {
            let record = node.store().record(id)?;
            let record = record.ok_or_else(|| Problem::missing("NoSuchExecution", "there is no such execution"))?;
            node.flow_of(id, &record)?
        }
    };
    Ok(Drawn {
        graph: graph.unwrap_or_default(),
        definition: flow.definition.clone(),
        end: last.0,
        incidents: incidents.unwrap_or_default(),
    })
}

/// `GET /flows/{name}`
pub async fn flow(page: Page, Path(name): Path<String>, query: Parameters) -> Response {
    let made = async {
        let asked = Asked::of(query, &["version", "like", "compare", "done"])?;
        let ask = &page.ask;
        let text = ("text", "true");
        let of = async |version: Option<&str>| {
            let version = version.map(|version| ("version", version));
            let query: Vec<_> = version.into_iter().chain([text]).collect();
            ask.get("/v1/flows/{name}", &[&name], &query).await
        };
        let flow = of(asked.get("version")).await?;
        let other = match asked.get("compare") {
            None => Value::Null,
            other => of(other).await?,
        };
        let versions = ask.get("/v1/flows/{name}/versions", &[&name], &[]).await?;
        let stats = ask.get("/v1/stats", &[], &[("flow", &name)]).await?;
        let like = match asked.get("like") {
            None => Value::Null,
            Some(id) => {
                let like = described(&page, id, true).await?;
                like.get("input").cloned().unwrap_or(Value::Null)
            }
        };
        let number = flow
            .get("version")
            .and_then(Value::as_number)
            .and_then(serde_json::Number::as_u64);
        let running = page.app.node.flows().running(&name, number.unwrap_or_default());
        let words = words(&page);
        let drawing = offload::read(usize::MAX, move || {
            let look = InPage {
                words,
                ..InPage::default()
            };
            running.map(|flow| svg_in_page(&flow, None, &look)).unwrap_or_default()
        });
        let graph = drawing.await.map_err(Problem::from)?;
        let parts = FlowPageParts {
            flow: &flow,
            versions: &versions,
            other: &other,
            graph: &graph,
            stats: &stats,
            like: &like,
            done: asked.get("done").unwrap_or_default(),
        };
        Ok(starbridge_console::flow(&page.frame, &parts))
    };
    let made: Result<String, PageRefusal> = made.await;
    page.answer(made)
}

/// `GET /queues/{queue}`
pub async fn queue(page: Page, Path(name): Path<String>, query: Parameters) -> Response {
    let made = async {
        let asked = Asked::of(query, &["tab", "done"])?;
        let tab = asked.get("tab").unwrap_or(QUEUE_TABS[0]);
        if !QUEUE_TABS.contains(&tab) {
            let detail = format!("there is no tab {}: known are {}", quoted(tab), QUEUE_TABS.join(", "));
            return Err(Problem::bad(detail).into());
        }
        let queue = page.ask.get("/v1/queues/{queue}", &[&name], &[]).await?;
        let list = match tab {
            "workers" => page.ask.get("/v1/queues/{queue}/workers", &[&name], &[]).await?,
            state => {
                let query = [("state", state), ("limit", "100")];
                page.ask.get("/v1/queues/{queue}/tasks", &[&name], &query).await?
            }
        };
        let parts = QueueParts {
            queue: &queue,
            list: &list,
            tab,
            done: asked.get("done").unwrap_or_default(),
        };
        Ok(starbridge_console::queue(&page.frame, &parts))
    };
    let made: Result<String, PageRefusal> = made.await;
    page.answer(made)
}

/// So many holders of a key are shown.
const HOLDERS: usize = 50;

/// `GET /keys/{pool}/{key}`
pub async fn key(page: Page, Path((pool, key)): Path<(String, String)>) -> Response {
    let made = async {
        let key = page.ask.get("/v1/keys/{pool}/{key}", &[&pool, &key], &[]).await?;
        let ids = key.get("holders").and_then(Value::as_array);
        let mut holders = Vec::new();
        for id in ids.map_or(&[][..], |ids| ids.values()).iter().take(HOLDERS) {
            let id = id.as_str().unwrap_or_default();
            let without = [("data", "none")];
            match page.ask.get("/v1/executions/{id}", &[id], &without).await {
                Ok(holder) => holders.push(holder),
                Err(gone) if gone.code == "NoSuchExecution" => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(starbridge_console::key(&page.frame, &key, &holders))
    };
    let made: Result<String, PageRefusal> = made.await;
    page.answer(made)
}

/// A page that is one table of what the API lists.
macro_rules! table {
    ($($(#[$doc:meta])* $name:ident $route:literal [$($known:literal),*] [$($fixed:expr),*];)*) => {
        $($(#[$doc])*
        pub async fn $name(page: Page, query: Parameters) -> Response {
            let made = async {
                let asked = Asked::of(query, &[$($known),*])?;
                let found = page.ask.get($route, &[], &asked.pairs(&[$($fixed),*])).await?;
                Ok(starbridge_console::$name(&page.frame, &found))
            };
            let made: Result<String, PageRefusal> = made.await;
            page.answer(made)
        })*
    };
}

table! {
    /// `GET /queues`
    queues "/v1/queues" ["cursor"] [("limit", "100")];
    /// `GET /keys`
    keys "/v1/keys" ["cursor", "done"] [("limit", "100")];
    /// `GET /schedules`
    schedules "/v1/schedules" ["done"] [("next", "5")];
    /// `GET /bulk`
    bulk "/v1/bulk" ["cursor"] [("limit", "100")];
    /// `GET /audit`
    audit "/v1/audit" ["cursor"] [("limit", "100")];
}

/// `GET /flows`
pub async fn flows(page: Page, query: Parameters) -> Response {
    let made = async {
        Asked::of(query, &["done"])?;
        let flows = page.ask.get("/v1/flows", &[], &[]).await?;
        let stats = page.ask.get("/v1/stats", &[], &[]).await?;
        Ok(starbridge_console::flows(&page.frame, &flows, &stats))
    };
    let made: Result<String, PageRefusal> = made.await;
    page.answer(made)
}

/// `GET /settings`
pub async fn settings(page: Page) -> Response {
    let made = async {
        let me = page.ask.get("/v1/me", &[], &[]).await?;
        let stats = page.ask.get("/v1/stats", &[], &[]).await?;
        let config = match page.frame.may("admin") {
            true => page.ask.get("/v1/config", &[], &[]).await?,
            false => Value::Null,
        };
        Ok(starbridge_console::settings(&page.frame, &me, &stats, &config))
    };
    let made: Result<String, PageRefusal> = made.await;
    page.answer(made)
}

/// `GET /console/{file}`
pub async fn file(page: Page, Path(name): Path<String>, sent: HeaderMap) -> Response {
    let Some(asset) = asset(&name) else {
        return page.answer(Err(Problem::missing("NoSuchRoute", "there is no such file").into()));
    };
    // The name has the hash of what it contains, so that it never changes.
    let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.kind)),
        (header::CACHE_CONTROL, kept),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
    ];
    let small = takes_gzip(&sent).then(|| page.app.compressed.of(&asset.name, asset.bytes));
    match small.flatten() {
        Some(small) => {
            let coding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
            (StatusCode::OK, headers, coding, Bytes::from_owner(small)).into_response()
        }
        None => (StatusCode::OK, headers, asset.bytes).into_response(),
    }
}
