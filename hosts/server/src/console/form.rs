//! Forms that pages send.

use super::answer::Refusal;
use super::page::Page;
use crate::App;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use starbridge_flow::value::{Text, Value};
use starbridge_node::http::body::Sent;
use starbridge_node::problem::{Problem, quoted};

/// A form with the page it is sent to. It was made for whoever sent it.
pub struct Form {
    pub page: Page,
    pub fields: Fields,
}

/// The fields of a form.
pub struct Fields(Vec<(String, String)>);

impl FromRequest<App> for Form {
    type Rejection = Response;

    async fn from_request(request: Request, app: &App) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let page = match Page::from_request_parts(&mut parts, app).await {
            Ok(page) => page,
            Err(never) => match never {},
        };
        let is_form = is_form(&parts.headers);
        let sent = Sent::from_request(Request::from_parts(parts, body), app).await;
        let fields = sent
            .map_err(Refusal::from)
            .and_then(|mut sent| Fields::read(is_form, &sent.take()))
            .and_then(|fields| checked(&page, fields));
        match fields {
            Ok(fields) => Ok(Self { page, fields }),
            Err(refusal) => Err(refusal.page(&page.frame)),
        }
    }
}

/// The fields, if the form was made for whoever sent it.
fn checked(page: &Page, fields: Fields) -> Result<Fields, Refusal> {
    let sessions = page.app.sessions.as_ref();
    match sessions.is_some_and(|sessions| sessions.is_ours(&page.ask.visitor, fields.get("forgery"))) {
        true => Ok(fields),
        false => Err(forged().into()),
    }
}

/// The problem with a form that was made for somebody else, or before the server was started anew.
pub fn forged() -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        "CrossSite",
        "the form was made for another session: load the page again, and send it from there",
    )
}

/// Whether a body is a form, as its headers say.
pub fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"))
}

impl Fields {
    /// Reads a form.
    pub fn read(is_form: bool, bytes: &[u8]) -> Result<Self, Refusal> {
        if !is_form {
            return Err(Problem::bad("a form is sent as `application/x-www-form-urlencoded`").into());
        }
        let pairs = form_urlencoded::parse(bytes);
        let owned = pairs.map(|(key, value)| (key.into_owned(), value.into_owned()));
        Ok(Self(owned.collect()))
    }

    /// A field; empty where there is none.
    pub fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map_or("", |(_, value)| value)
    }

    /// A field as a value, if something was written into it.
    pub fn text(&self, key: &str) -> Option<Value> {
        let text = self.get(key).trim();
        (!text.is_empty()).then(|| Value::from(Text::from(text)))
    }

    /// A field with JSON, if something was written into it.
    pub fn json(&self, key: &str) -> Result<Option<Value>, Refusal> {
        let text = self.get(key).trim();
        if text.is_empty() {
            return Ok(None);
        }
        let read = Value::read_bounded(text.as_bytes(), Value::most_memory(text.len()));
        read.map(Some).map_err(|_| {
            let detail = format!("the field {} is not JSON, or nested too deep", quoted(key));
            Problem::bad(detail).into()
        })
    }
}
