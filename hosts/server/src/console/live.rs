//! Word of changes for pages: the stream of the API, under the cookie that pages have.

use super::answer::PageRefusal;
use super::asked::Parameters;
use super::page::Page;
use crate::routes::open_stream;
use crate::scope::Scope;
use axum::http::HeaderMap;
use axum::response::Response;

/// `GET /stream`
pub async fn stream(page: Page, headers: HeaderMap, query: Parameters) -> Response {
    match open_stream(&page.app, &headers, query.0, page.ask.visitor.may(Scope::Admin)).await {
        Ok(answer) => answer,
        Err(problem) => PageRefusal::from(problem).page(&page.frame),
    }
}
