//! The field that leads to what is called so: an execution, a flow, a queue, a page, or the list of what begins so.

use super::answer::PageRefusal;
use super::asked::{Asked, Parameters};
use super::page::Page;
use axum::http::StatusCode;
use axum::response::Response;
use starbridge_console::path_part;
use starbridge_flow::value::Value;

/// `GET /find`
pub async fn find(page: Page, query: Parameters) -> Response {
    let found = async {
        let asked = Asked::of(query, &["q"])?;
        let wanted = asked.get("q").map(str::trim).unwrap_or_default();
        if wanted.is_empty() {
            return Ok("/executions".to_owned());
        }
        place_of(&page, wanted).await
    };
    let found: Result<String, PageRefusal> = found.await;
    page.lead(found)
}

/// Where something with this name is.
async fn place_of(page: &Page, wanted: &str) -> Result<String, PageRefusal> {
    let ask = &page.ask;
    let none = [("data", "none")];
    if let Some((flow, name)) = wanted.split_once('/') {
        let route = "/v1/flows/{name}/executions/{executionName}";
        if let Some(found) = known(ask.get(route, &[flow, name], &[]).await)? {
            let id = found.get("id").and_then(Value::as_str).unwrap_or_default();
            return Ok(format!("/executions/{}", path_part(id)));
        }
    }
    let part = path_part(wanted);
    if known(ask.get("/v1/executions/{id}", &[wanted], &none).await)?.is_some() {
        return Ok(format!("/executions/{part}"));
    }
    if known(ask.get("/v1/flows/{name}", &[wanted], &[]).await)?.is_some() {
        return Ok(format!("/flows/{part}"));
    }
    if known(ask.get("/v1/queues/{queue}", &[wanted], &[]).await)?.is_some() {
        return Ok(format!("/queues/{part}"));
    }
    if known(ask.get("/v1/schedules/{name}", &[wanted], &[]).await)?.is_some() {
        return Ok(format!("/schedules/{part}"));
    }
    match page.frame.place_called(wanted) {
        Some(path) => Ok(path.to_owned()),
        None => Ok(format!("/executions?name={part}")),
    }
}

/// What was found; nothing where there is none of that name, or where nothing can have that name.
fn known(found: Result<Value, PageRefusal>) -> Result<Option<Value>, PageRefusal> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(refusal) if matches!(refusal.status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}
