//! What steps ask of a person: for the page of an execution, and for the inbox.

use super::answer::PageRefusal;
use super::asked::{Asked, Parameters};
use super::page::Page;
use axum::response::Response;
use starbridge_console::InboxParts;
use starbridge_flow::value::Value;

/// So many steps are looked at, and so many inputs are shown.
const ROWS: &str = "200";
const INPUTS: usize = 5;

/// What the steps of an execution wait for.
#[derive(Default)]
pub(super) struct Waiting {
    /// All that wait, where the execution itself names no reason.
    pub(super) open: Value,
    /// Those that wait for an operator.
    pub(super) manual: Value,
    /// Those among which some wait for a report.
    pub(super) awaiting: Value,
}

/// What steps of an execution that has not ended wait for, and those that somebody can do something about.
pub(super) async fn waiting(page: &Page, id: &str, execution: &Value, ended: bool) -> Result<Waiting, PageRefusal> {
    let mut waiting = Waiting::default();
    if ended {
        return Ok(waiting);
    }
    let rows = async |query: &[(&str, &str)]| page.ask.get("/v1/executions/{id}/steps", &[id], query).await;
    if execution.get("status").and_then(Value::as_str) == Some("Manual") {
        waiting.manual = rows(&[("limit", "20"), ("status", "manual")]).await?;
    }
    let reason = execution.get("waitingFor").and_then(|why| why.get("reason"));
    match reason.and_then(Value::as_str) {
        None => {
            waiting.open = rows(&[("limit", ROWS)]).await?;
            waiting.awaiting = waiting.open.clone();
        }
        Some("callback") => waiting.awaiting = rows(&[("limit", "20"), ("status", "running")]).await?,
        Some(_) => {}
    }
    Ok(waiting)
}

/// `GET /inbox`
pub async fn inbox(page: Page, query: Parameters) -> Response {
    let made = async {
        let asked = Asked::of(query, &["cursor", "of", "done"])?;
        let list = async |reason: &'static str, cursor: Option<&str>| {
            let mut query = vec![("reason", reason), ("limit", "100")];
            query.extend(cursor.map(|cursor| ("cursor", cursor)));
            page.ask.get("/v1/executions", &[], &query).await
        };
        let manual = list("manual", asked.get("cursor")).await?;
        let callbacks = list("callback", None).await?;
        let (mut chosen, mut asks, mut visits) = (Value::Null, Waiting::default(), Vec::new());
        if let Some(id) = asked.get("of") {
            let without = [("data", "none")];
            chosen = page.ask.get("/v1/executions/{id}", &[id], &without).await?;
            let ended = chosen.get("endedTime").is_some();
            asks = waiting(&page, id, &chosen, ended).await?;
            visits = looked_into(&page, id, &asks).await?;
        }
        let parts = InboxParts {
            manual: &manual,
            callbacks: &callbacks,
            chosen: &chosen,
            deciding: &asks.manual,
            awaiting: &asks.awaiting,
            visits: &visits,
        };
        Ok(starbridge_console::inbox(&page.frame, &parts))
    };
    let made: Result<String, PageRefusal> = made.await;
    page.answer(made)
}

/// The visits of the steps that ask: whoever answers has to see what it is about.
async fn looked_into(page: &Page, id: &str, asks: &Waiting) -> Result<Vec<Value>, PageRefusal> {
    let rows = [&asks.manual, &asks.awaiting]
        .into_iter()
        .filter_map(|rows| rows.get("items")?.as_array());
    let asking = rows.flat_map(|rows| rows.values()).filter(|row| {
        let reason = row.get("waitingFor").and_then(|why| why.get("reason"));
        matches!(reason.and_then(Value::as_str), Some("operator" | "callback"))
    });
    let mut visits = Vec::new();
    for row in asking.take(INPUTS) {
        let event = row.get("event").map(Value::to_json).unwrap_or_default();
        let route = "/v1/executions/{id}/steps/{event}";
        visits.push(page.ask.get(route, &[id, &event], &[]).await?);
    }
    Ok(visits)
}
