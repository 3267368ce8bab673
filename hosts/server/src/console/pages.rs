//! The pages: each asks the API for what it shows.

use super::answer::Refusal;
use super::asked::{Asked, Parameters};
use super::compress::takes_gzip;
use super::inspected::inspected;
use super::page::Page;
use super::questions::{Waiting, waiting};
use crate::App;
use crate::answers::aside;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use starbridge_console::{
    ExecutionParts, FILTERS, FlowParts, Language, ListParts, OverviewParts, QUEUE_TABS, QueueParts, TABS, View,
    address_of, asset,
};
use starbridge_diagram::{Words, svg_in_page};
use starbridge_flow::value::Value;
use starbridge_machine::EventId;
use starbridge_node::node::{Node, filter_pairs};
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
    let made: Result<String, Refusal> = made.await;
    page.answer(made)
}

/// `GET /executions`
pub async fn executions(page: Page, query: Parameters) -> Response {
    let known: Vec<&str> = FILTERS.into_iter().chain(["cursor", "view", "done"]).collect();
    let asked = match Asked::of(query, &known) {
        Ok(asked) => asked,
        Err(refusal) => return page.answer(Err(refusal)),
    };
    if let Some(view) = asked.get("view") {
        let view = page.ask.get("/v1/views/{name}", &[view], &[]).await;
        return page.lead(view.map(|view| address_of(&filter_of(&view))));
    }
    let made = listed(&page, &asked).await;
    page.answer(made)
}

async fn listed(page: &Page, asked: &Asked) -> Result<String, Refusal> {
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
    "tab", "at", "visit", "attempt", "lanes", "steps", "events", "failed", "step", "type", "item", "items", "done",
];

/// A number in the address of a page.
fn counted<T: FromStr>(asked: &Asked, key: &str, what: &str) -> Result<Option<T>, Refusal> {
    match asked.get(key).map(str::parse) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => Err(Problem::bad(format!("`{key}` must be {what}")).into()),
    }
}

/// What the address of an execution's page asks for.
fn view<'a>(asked: &'a Asked, id: &'a str) -> Result<View<'a>, Refusal> {
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
    })
}

async fn shown(page: &Page, id: &str, query: Parameters) -> Result<String, Refusal> {
    let asked = Asked::of(query, PLACES)?;
    let ask = &page.ask;
    let view = view(&asked, id)?;
    let execution = described(page, id, view.tab == "data").await?;
    let at = view.at.map(|at| at.to_string());
    let with_at = |mut query: Vec<(&'static str, String)>| {
        query.extend(at.clone().map(|at| ("at", at)));
        query
    };
    let get = async |route: &'static str, query: Vec<(&'static str, String)>| {
        let query: Vec<(&str, &str)> = query.iter().map(|(key, value)| (*key, value.as_str())).collect();
        ask.get(route, &[id], &query).await
    };
    let cursor = |key: &str| ("cursor", asked.get(key).unwrap_or("0").to_owned());
    let only = |tab: &str| view.tab == tab;
    let (mut timeline, mut steps, mut events, mut children) = (Value::Null, Value::Null, Value::Null, Value::Null);
    if only("timeline") {
        let query = vec![("lanes", STEPS.to_owned()), cursor("lanes")];
        timeline = get("/v1/executions/{id}/timeline", with_at(query)).await?;
    }
    if only("steps") {
        let query = vec![("limit", STEPS.to_owned()), cursor("steps")];
        steps = get("/v1/executions/{id}/steps", with_at(query)).await?;
    }
    let failed = asked.get("failed") == Some("true");
    if only("events") || only("raw") {
        events = get("/v1/executions/{id}/history", of_events(&asked, &view, failed)).await?;
    }
    if only("children") {
        let query = [("parent", id), ("limit", EVENTS)];
        children = ask.get("/v1/executions", &[], &query).await?;
    }
    let inspected = inspected(page, &view, &asked, &execution).await?;
    let ended = execution.get("endedTime").is_some();
    let Waiting { open, manual, awaiting } = waiting(page, id, &execution, ended).await?;
    let of = id.to_owned();
    let (app, at, words) = (page.app.clone(), view.at, words(page));
    let drawing = aside(&page.app.node, move |node| drawn(&app, node, &of, at, words));
    let (graph, definition, end) = drawing.await??;
    let parts = ExecutionParts {
        view,
        end,
        execution: &execution,
        timeline: &timeline,
        steps: &steps,
        events: &events,
        failed_only: failed,
        event_filter: [
            asked.get("step").unwrap_or_default(),
            asked.get("type").unwrap_or_default(),
        ],
        visit: &inspected.visit,
        iterations: &inspected.iterations,
        log: &inspected.log,
        source: &inspected.source,
        items_only: asked.get("items").unwrap_or_default(),
        children: &children,
        open: &open,
        manual: &manual,
        awaiting: &awaiting,
        definition: &definition,
        graph: &graph,
        done: asked.get("done").unwrap_or_default(),
    };
    Ok(starbridge_console::execution(&page.frame, &parts))
}

/// Which events are asked for: the latest, unless a place is named.
fn of_events(asked: &Asked, view: &View<'_>, failed: bool) -> Vec<(&'static str, String)> {
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
    let around = view.at.map(|at| at.saturating_sub(AROUND).max(1).to_string());
    match asked.get("events").map(str::to_owned).or(around) {
        Some(from) => query.push(("from", from)),
        None if is_filtered => {}
        None => query.push(("order", "desc".to_owned())),
    }
    query
}

/// An execution, with its data if they are wanted and not too many.
async fn described(page: &Page, id: &str, data: bool) -> Result<Value, Refusal> {
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

/// The picture of an execution after an event, its definition, and the number of its last event. A long history has no
/// picture.
fn drawn(app: &App, node: &Node, id: &str, at: Option<u64>, words: Words) -> Result<(String, Value, u64), Problem> {
    let last = node.last_event(id)?;
    let folded = match at.unwrap_or(last.0) {
        0..=DRAWN_EVENTS => Some(app.folds.get(node, id, at.map(EventId))?),
        _ => None,
    };
    let graph = folded.as_ref().map(|folded| {
        let status = folded.fold.marks.clone().finish();
        svg_in_page(&folded.flow, Some(&status), words)
    });
    let flow = match folded {
        Some(folded) => folded.flow,
        None => {
            let record = node.store().record(id)?;
            let record = record.ok_or_else(|| Problem::missing("NoSuchExecution", "there is no such execution"))?;
            node.flow_of(id, &record)?
        }
    };
    Ok((graph.unwrap_or_default(), flow.definition.clone(), last.0))
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
        let graph = running
            .map(|flow| svg_in_page(&flow, None, words(&page)))
            .unwrap_or_default();
        let parts = FlowParts {
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
    let made: Result<String, Refusal> = made.await;
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
    let made: Result<String, Refusal> = made.await;
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
            let made: Result<String, Refusal> = made.await;
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
    let made: Result<String, Refusal> = made.await;
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
    let made: Result<String, Refusal> = made.await;
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
