//! The pages: each asks the API for what it shows.

use super::answer::Refusal;
use super::page::Page;
use crate::answers::aside;
use axum::extract::{Path, Query};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use starbridge_console::{ExecutionParts, FILTERS, OverviewParts, asset};
use starbridge_diagram::{Folding, svg_in_page};
use starbridge_flow::value::Value;
use starbridge_machine::EventId;
use starbridge_node::node::Node;
use starbridge_node::problem::{Problem, quoted};

type Parameters = Query<Vec<(String, String)>>;

/// A history that is longer is not drawn.
const DRAWN_EVENTS: u64 = 100_000;
/// More data of an execution does not become a part of its page.
const DATA_BYTES: usize = 1024 * 1024;
/// So many rows has a page of the list, and of an execution's steps and events.
const ROWS: &str = "50";
const STEPS: &str = "200";
const EVENTS: &str = "100";

/// The parameters of a page that are not empty.
struct Asked(Vec<(String, String)>);

impl Asked {
    /// Refuses what the page does not know.
    fn of(given: Parameters, known: &[&str]) -> Result<Self, Refusal> {
        let given: Vec<_> = given.0.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        match given.iter().find(|(key, _)| !known.contains(&key.as_str())) {
            None => Ok(Self(given)),
            Some((key, _)) => {
                let known = known.join(", ");
                Err(Problem::bad(format!("this page has no parameter {}: known are {known}", quoted(key))).into())
            }
        }
    }

    fn get(&self, key: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.as_str())
    }

    /// The parameters as the API takes them.
    fn pairs<'a>(&'a self, more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
        let given = self.0.iter().filter(|(key, _)| key != "done");
        let given = given.map(|(key, value)| (key.as_str(), value.as_str()));
        given.chain(more.iter().copied()).collect()
    }
}

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
                failed: &few("status", "Failed,TimedOut,RollbackFailed").await?,
                manual: &few("reason", "manual").await?,
                running: &few("status", "Running").await?,
                waiting: &few("status", "Queued,Blocked,Delayed").await?,
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
    let known: Vec<&str> = FILTERS.into_iter().chain(["cursor"]).collect();
    let made = async {
        let asked = Asked::of(query, &known)?;
        let found = page
            .ask
            .get("/v1/executions", &[], &asked.pairs(&[("limit", ROWS)]))
            .await?;
        Ok(starbridge_console::executions(&page.frame, &asked.0, &found))
    };
    let made: Result<String, Refusal> = made.await;
    page.answer(made)
}

/// `GET /executions/{id}`
pub async fn execution(page: Page, Path(id): Path<String>, query: Parameters) -> Response {
    let made = shown(&page, &id, query).await;
    page.answer(made)
}

async fn shown(page: &Page, id: &str, query: Parameters) -> Result<String, Refusal> {
    let asked = Asked::of(query, &["at", "steps", "events", "done"])?;
    let ask = &page.ask;
    let execution = described(page, id).await?;
    let steps = [("limit", STEPS), ("cursor", asked.get("steps").unwrap_or("0"))];
    let steps = ask.get("/v1/executions/{id}/steps", &[id], &steps).await?;
    let events = match asked.get("events") {
        None => [("limit", EVENTS), ("order", "desc")],
        Some(from) => [("limit", EVENTS), ("from", from)],
    };
    let events = ask.get("/v1/executions/{id}/history", &[id], &events).await?;
    let manual = match execution.get("status").and_then(Value::as_str) {
        Some("Manual") => {
            let waiting = [("limit", "20"), ("status", "manual")];
            ask.get("/v1/executions/{id}/steps", &[id], &waiting).await?
        }
        _ => Value::Null,
    };
    let at = match asked.get("at").map(str::parse) {
        None => None,
        Some(Ok(at)) if at > 0 => Some(at),
        Some(_) => return Err(Problem::bad("`at` must be the number of an event").into()),
    };
    let of = id.to_owned();
    let (graph, definition) = aside(&page.app.node, move |node| drawn(node, &of, at)).await??;
    let parts = ExecutionParts {
        execution: &execution,
        steps: &steps,
        events: &events,
        manual: &manual,
        definition: &definition,
        graph: &graph,
        at,
        done: asked.get("done").unwrap_or_default(),
    };
    Ok(starbridge_console::execution(&page.frame, &parts))
}

/// An execution, with its data unless there is much of it.
async fn described(page: &Page, id: &str) -> Result<Value, Refusal> {
    let of = id.to_owned();
    let bytes = aside(&page.app.node, move |node| node.stored(&of).map(|kept| kept.bytes())).await?;
    let without: &[(&str, &str)] = match bytes.map_err(Problem::from)? {
        0..=DATA_BYTES => &[],
        _ => &[("data", "none")],
    };
    page.ask.get("/v1/executions/{id}", &[id], without).await
}

/// The picture of an execution after an event, and its definition. A long history has no picture.
fn drawn(node: &Node, id: &str, at: Option<u64>) -> Result<(String, Value), Problem> {
    let last = node.last_event(id)?;
    if let Some(at) = at.filter(|at| *at > last.0) {
        let detail = format!("the history has no event {at}: its last is {last}");
        return Err(Problem::missing("NoSuchEvent", detail));
    }
    let record = node.store().record(id)?;
    let Some(record) = record else {
        return Err(Problem::missing("NoSuchExecution", "there is no such execution"));
    };
    let flow = node.flow_of(id, &record)?;
    let until = EventId(at.unwrap_or(last.0));
    if until.0 > DRAWN_EVENTS {
        return Ok((String::new(), flow.definition.clone()));
    }
    let mut folding = Folding::of(&flow);
    node.each_event(id, |flow, event| {
        let is_in = event.id <= until;
        if is_in {
            folding.see(flow, event);
        }
        is_in
    })?;
    Ok((svg_in_page(&flow, Some(&folding.finish())), flow.definition.clone()))
}

/// `GET /flows/{name}`
pub async fn flow(page: Page, Path(name): Path<String>, query: Parameters) -> Response {
    let made = async {
        let asked = Asked::of(query, &["version", "like"])?;
        let ask = &page.ask;
        let version: Vec<_> = asked
            .get("version")
            .map(|version| ("version", version))
            .into_iter()
            .collect();
        let flow = ask.get("/v1/flows/{name}", &[&name], &version).await?;
        let versions = ask.get("/v1/flows/{name}/versions", &[&name], &[]).await?;
        let like = match asked.get("like") {
            None => Value::Null,
            Some(id) => {
                let like = described(&page, id).await?;
                like.get("input").cloned().unwrap_or(Value::Null)
            }
        };
        let number = flow
            .get("version")
            .and_then(Value::as_number)
            .and_then(serde_json::Number::as_u64);
        let running = page.app.node.flows().running(&name, number.unwrap_or_default());
        let graph = running.map(|flow| svg_in_page(&flow, None)).unwrap_or_default();
        Ok(starbridge_console::flow(&page.frame, &flow, &versions, &graph, &like))
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
    /// `GET /flows`
    flows "/v1/flows" [] [];
    /// `GET /queues`
    queues "/v1/queues" ["cursor"] [("limit", "100")];
    /// `GET /keys`
    keys "/v1/keys" ["cursor"] [("limit", "100")];
    /// `GET /schedules`
    schedules "/v1/schedules" ["done"] [];
    /// `GET /inbox`
    inbox "/v1/executions" ["cursor"] [("reason", "manual"), ("limit", "100")];
    /// `GET /bulk`
    bulk "/v1/bulk" ["cursor"] [("limit", "100")];
    /// `GET /audit`
    audit "/v1/audit" ["cursor"] [("limit", "100")];
}

/// `GET /console/{file}`
pub async fn file(page: Page, Path(name): Path<String>) -> Response {
    let Some(asset) = asset(&name) else {
        return page.answer(Err(Problem::missing("NoSuchRoute", "there is no such file").into()));
    };
    // The name has the hash of what it contains, so that it never changes.
    let kept = HeaderValue::from_static("public, max-age=31536000, immutable");
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(asset.kind)),
        (header::CACHE_CONTROL, kept),
    ];
    (StatusCode::OK, headers, asset.bytes).into_response()
}
