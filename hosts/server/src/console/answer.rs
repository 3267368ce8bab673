//! What pages are answered with, and where they may lead.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use starbridge_console::{Frame, problem};
use starbridge_flow::value::Value;
use starbridge_node::problem::Problem;

/// Why a page cannot be shown, or something cannot be done.
#[derive(Debug)]
pub struct PageRefusal {
    pub status: StatusCode,
    pub code: String,
    pub detail: String,
    /// What is wrong with a definition; null where it is about something else.
    pub diagnostics: Value,
}

impl From<Problem> for PageRefusal {
    fn from(problem: Problem) -> Self {
        Self {
            status: problem.status(),
            code: problem.code().to_owned(),
            detail: problem.detail().to_owned(),
            diagnostics: Value::Null,
        }
    }
}

impl PageRefusal {
    /// The page that says it.
    pub fn page(&self, frame: &Frame) -> Response {
        html(
            self.status,
            problem(frame, self.status.as_u16(), &self.code, &self.detail),
        )
    }
}

/// Whether an address leads to a page of ours. Browsers read `//` and `/\` as the begin of another host.
pub fn is_local(to: &str) -> bool {
    /// Longer ones are nobody's.
    const LONGEST: usize = 4096;
    let rest = to.strip_prefix('/');
    let inside = rest.is_some_and(|rest| !rest.starts_with(['/', '\\']));
    inside && to.len() <= LONGEST && to.bytes().all(|byte| byte.is_ascii_graphic())
}

/// An answer with a page.
pub fn html(status: StatusCode, page: String) -> Response {
    let mut answer = (status, page).into_response();
    let kind = HeaderValue::from_static("text/html; charset=utf-8");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn only_our_own_pages_are_led_to() {
        for (to, ours) in [
            ("/", true),
            ("/executions?flow=a&status=Failed", true),
            ("//evil.example", false),
            ("/\\evil.example", false),
            ("https://evil.example", false),
            ("javascript:alert(1)", false),
            ("", false),
            ("/a b", false),
            ("/a\r\nSet-Cookie: x", false),
        ] {
            assert_eq!(is_local(to), ours, "{to}");
        }
    }
}
