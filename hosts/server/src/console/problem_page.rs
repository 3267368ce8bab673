//! Problems as pages: a browser that follows a link gets a page, not an answer for programs.

use super::answer::PageRefusal;
use super::gate::dressed;
use super::page::frame;
use super::session::Visitor;
use crate::App;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::Response;
use starbridge_flow::value::Value;

/// A longer answer says nothing that a page would say.
const MOST_BYTES: usize = 64 * 1024;

/// A request of a browser for a page.
pub struct BrowserRequest {
    headers: HeaderMap,
    uri: Uri,
}

impl BrowserRequest {
    /// The sender of a request, if it is a browser that goes to an address of no API.
    pub fn of(app: &App, request: &Request) -> Option<Self> {
        let wants = request.headers().get(header::ACCEPT)?.to_str().ok()?;
        let path = request.uri().path();
        let is_api = path == "/v1" || path.starts_with("/v1/");
        let looks = app.sessions.is_some() && request.method() == Method::GET && !is_api;
        (looks && wants.contains("text/html")).then(|| Self {
            headers: request.headers().clone(),
            uri: request.uri().clone(),
        })
    }

    /// The answer, as a page if it is a problem.
    pub async fn shown(self, app: &App, answer: Response) -> Response {
        let kind = answer.headers().get(header::CONTENT_TYPE);
        if kind.is_none_or(|kind| kind != "application/problem+json") {
            return answer;
        }
        let (parts, body) = answer.into_parts();
        let bytes = to_bytes(body, MOST_BYTES).await.unwrap_or_default();
        let problem = Value::read_bounded(&bytes, Value::most_memory(bytes.len())).unwrap_or_default();
        let text = |key: &str| problem.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let refusal = PageRefusal {
            status: parts.status,
            code: text("code"),
            detail: text("detail"),
            diagnostics: Value::Null,
        };
        let mut page = dressed(refusal.page(&frame(app, &Visitor::Stranger, &self.headers, &self.uri)));
        if let Some(later) = parts.headers.get(header::RETRY_AFTER) {
            page.headers_mut().insert(header::RETRY_AFTER, later.clone());
        }
        page
    }
}
