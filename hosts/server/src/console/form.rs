//! Forms that pages send.

use super::answer::PageRefusal;
use super::page::Page;
use super::session::Visitor;
use crate::App;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use starbridge_flow::value::{Text, Value};
use starbridge_node::http::body::{Sender, receive, receive_from_stranger};
use starbridge_node::offload;
use starbridge_node::problem::{Problem, quoted};

/// The longest form of somebody who is not signed in, and of one that carries no data.
pub const SMALL_FORM_BYTES: usize = 16 * 1024;
/// The longest form with data. Its fields stand beside its body for a while, and more is nothing to edit in a page.
const FORM_BYTES: usize = 1024 * 1024;
/// The most fields of a form.
const FORM_FIELDS: usize = 256;
/// The forms that everybody may send.
const OPEN: [&str; 2] = ["/settings", "/signout"];

/// The field with the number that makes a form of a page be done once.
const NUMBER: &str = "once";

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
        let is_open = OPEN.contains(&parts.uri.path());
        let here = parts.uri.path().to_owned();
        let mut page = match Page::from_request_parts(&mut parts, app).await {
            Ok(page) => page,
            Err(never) => match never {},
        };
        let is_form = is_form(&parts.headers);
        let received = if is_open || matches!(page.ask.visitor, Visitor::Stranger) {
            let request = Request::from_parts(parts, body);
            let received = receive_from_stranger(request, SMALL_FORM_BYTES, &app.bodies).await;
            received.map(|(_, sent)| sent)
        } else {
            receive(body, FORM_BYTES, &app.bodies, Sender::Known).await
        };
        // The body counts until its fields are read.
        let fields = match received {
            Ok(mut sent) => Fields::read(is_form, sent.take()).await,
            Err(problem) => Err(problem.into()),
        };
        let fields = match fields.and_then(|fields| checked(&page, fields)) {
            Ok(fields) => fields,
            Err(refusal) => return Err(refusal.page(&page.frame)),
        };
        if !fields.get(NUMBER).is_empty() {
            match app.sent_forms.claim(&here, &fields.0).await {
                Ok(claim) => page.claim = Some(claim),
                Err(to) => return Err(Redirect::to(&to).into_response()),
            }
        }
        Ok(Self { page, fields })
    }
}

/// The fields, if the form was made for whoever sent it.
fn checked(page: &Page, fields: Fields) -> Result<Fields, PageRefusal> {
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
    pub async fn read(is_form: bool, bytes: Bytes) -> Result<Self, PageRefusal> {
        if !is_form {
            return Err(Problem::bad("a form is sent as `application/x-www-form-urlencoded`").into());
        }
        if bytes.split(|byte| *byte == b'&').nth(FORM_FIELDS).is_some() {
            return Err(Problem::bad(format!("a form has at most {FORM_FIELDS} fields")).into());
        }
        let read = offload::work(bytes.len(), move || {
            let pairs = form_urlencoded::parse(&bytes);
            let owned = pairs.map(|(key, value)| (key.into_owned(), value.into_owned()));
            Self(owned.collect())
        });
        read.await.map_err(|not_done| Problem::from(not_done).into())
    }

    /// A field; empty where there is none.
    pub fn get(&self, key: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map_or("", |(_, value)| value)
    }

    /// All fields.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// All that was given for a field.
    pub fn each(&self, key: &str) -> impl Iterator<Item = &str> {
        let given = self.0.iter().filter(move |(known, _)| known == key);
        given.map(|(_, value)| value.as_str())
    }

    /// A field as a value, if something was written into it.
    pub fn text(&self, key: &str) -> Option<Value> {
        let text = self.get(key).trim();
        (!text.is_empty()).then(|| Value::from(Text::from(text)))
    }

    /// A field with JSON, if something was written into it.
    pub async fn json(&self, key: &str) -> Result<Option<Value>, PageRefusal> {
        let text = self.get(key).trim();
        if text.is_empty() {
            return Ok(None);
        }
        let text = text.to_owned();
        let read = offload::work(text.len(), move || {
            Value::read_bounded(text.as_bytes(), Value::most_memory(text.len()))
        });
        let read = read.await.map_err(Problem::from)?;
        read.map(Some).map_err(|error| {
            let detail = format!("the field {} can't be read as JSON: {error}", quoted(key));
            Problem::bad(detail).into()
        })
    }
}
