//! What the page of an execution shows of a visit that is looked into.

use super::answer::PageRefusal;
use super::asked::Asked;
use super::page::Page;
use starbridge_console::View;
use starbridge_flow::value::Value;

/// So many iterations are listed.
const ITEMS: &str = "50";

/// A visit, and what belongs to it.
#[derive(Default)]
pub(super) struct Inspected {
    pub(super) visit: Value,
    /// How its iterations stand.
    pub(super) iterations: Value,
    /// What the program of the attempt that is shown printed; null where nothing is kept.
    pub(super) log: Value,
    /// The text of the definition; empty if it is gone.
    pub(super) source: String,
}

/// The visit that an address names; nothing where it names none.
pub(super) async fn inspected(
    page: &Page,
    view: &View<'_>,
    asked: &Asked,
    execution: &Value,
) -> Result<Inspected, PageRefusal> {
    let Some(event) = view.visit.map(|visit| visit.to_string()) else {
        return Ok(Inspected::default());
    };
    let ask = &page.ask;
    let at = view.at.map(|at| at.to_string());
    let at: Vec<(&str, &str)> = at.iter().map(|at| ("at", at.as_str())).collect();
    let visit = ask
        .get("/v1/executions/{id}/steps/{event}", &[view.id, &event], &at)
        .await?;
    let mut query = at;
    query.extend([("event", event.as_str()), ("limit", ITEMS)]);
    query.extend(asked.get("item").map(|from| ("cursor", from)));
    query.extend(asked.get("items").map(|status| ("status", status)));
    let iterations = ask.get("/v1/executions/{id}/iterations", &[view.id], &query).await?;
    Ok(Inspected {
        log: log(page, view, &visit).await?,
        source: source(page, execution).await?,
        visit,
        iterations,
    })
}

/// The log of the attempt that is shown. A log stands under the event that ended the attempt, or under the call if that was
/// given up.
async fn log(page: &Page, view: &View<'_>, visit: &Value) -> Result<Value, PageRefusal> {
    let tries = visit.get("tries").and_then(Value::as_array);
    let tries = tries.map_or(&[][..], |tries| tries.values());
    let Some(shown) = view.attempt_of(tries.len()).and_then(|place| tries.get(place)) else {
        return Ok(Value::Null);
    };
    for key in ["resultEvent", "endEvent", "callEvent"] {
        let Some(event) = shown.get(key) else { continue };
        let from = event.to_json();
        let query = [("from", from.as_str()), ("limit", "1")];
        let found = match page.ask.get("/v1/executions/{id}/logs", &[view.id], &query).await {
            Ok(found) => found,
            Err(refusal) if refusal.code == "NotSupported" => return Ok(Value::Null),
            Err(refusal) => return Err(refusal),
        };
        let first = found.get("items").and_then(Value::as_array);
        let first = first.and_then(|items| items.values().first());
        if let Some(log) = first.filter(|log| log.get("event") == Some(event)) {
            return Ok(log.clone());
        }
    }
    Ok(Value::Null)
}

/// The text of the version that an execution runs.
async fn source(page: &Page, execution: &Value) -> Result<String, PageRefusal> {
    let flow = execution.get("flow").and_then(Value::as_str).unwrap_or_default();
    let version = execution.get("version").map(Value::to_json).unwrap_or_default();
    let query = [("version", version.as_str()), ("text", "true")];
    match page.ask.get("/v1/flows/{name}", &[flow], &query).await {
        Ok(flow) => Ok(flow.get("text").and_then(Value::as_str).unwrap_or_default().to_owned()),
        Err(refusal) if refusal.code == "NoSuchFlow" => Ok(String::new()),
        Err(refusal) => Err(refusal),
    }
}
