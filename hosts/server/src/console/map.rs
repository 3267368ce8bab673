//! How each iteration of a foreach stands, for the picture that a script draws.

use super::asked::{Asked, Parameters};
use super::page::Page;
use axum::extract::Path;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use starbridge_flow::value::Value;

/// `GET /executions/{id}/map`: a letter for each iteration, in order.
pub async fn map(page: Page, Path(id): Path<String>, query: Parameters) -> Response {
    let made = async {
        let asked = Asked::of(query, &["event", "at"])?;
        let query = asked.pairs(&[("limit", "1")]);
        page.ask.get("/v1/executions/{id}/iterations", &[&id], &query).await
    };
    match made.await {
        Ok(found) => {
            let letters = found.get("map").and_then(Value::as_str).unwrap_or_default().to_owned();
            let kind = HeaderValue::from_static("text/plain; charset=utf-8");
            ([(header::CONTENT_TYPE, kind)], letters).into_response()
        }
        Err(refusal) => refusal.page(&page.frame),
    }
}
