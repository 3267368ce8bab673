//! Signing in and out, and what a visitor chooses for themselves.

use super::answer::{PageRefusal, html, is_local};
use super::asked::no_zone;
use super::form::{Fields, Form, SMALL_FORM_BYTES, forged, is_form};
use super::page::{LANGUAGE, Page, THEME, ZONE};
use super::session::{Visitor, set_cookie};
use crate::App;
use crate::access::failed;
use axum::Extension;
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use starbridge_console::{Language, Theme, Zone};
use starbridge_node::callbacks::Client;
use starbridge_node::http::body::receive_from_stranger;
use starbridge_node::problem::Problem;

/// `GET /signin`
pub async fn form(page: Page, Query(query): Query<Vec<(String, String)>>) -> Response {
    let to = query.iter().find(|(key, _)| key == "to").map_or("/", |(_, to)| to);
    let to = if is_local(to) { to } else { "/" };
    match page.ask.visitor {
        Visitor::Stranger => html(StatusCode::OK, starbridge_console::sign_in(&page.frame, to, false)),
        Visitor::Anybody | Visitor::Known { .. } => Redirect::to(to).into_response(),
    }
}

/// `POST /signin`
pub async fn sign_in(
    State(app): State<App>,
    Extension(Client(client)): Extension<Client>,
    page: Page,
    request: Request,
) -> Response {
    let secure = is_secure(request.headers());
    let is_form = is_form(request.headers());
    let sent = receive_from_stranger(request, SMALL_FORM_BYTES, &app.bodies).await;
    let fields = match sent {
        Ok((_, mut sent)) => Fields::read(is_form, sent.take()).await,
        Err(problem) => Err(problem.into()),
    };
    let fields = match fields {
        Ok(fields) => fields,
        Err(refusal) => return refusal.page(&page.frame),
    };
    let to = fields.get("to");
    let to = if is_local(to) { to } else { "/" };
    let Some(sessions) = app.sessions.as_ref() else {
        return PageRefusal::from(Problem::not_done()).page(&page.frame);
    };
    // The form was made for somebody who was not signed in, whoever sends it now.
    if !sessions.is_ours(&Visitor::Stranger, fields.get("forgery")) {
        return PageRefusal::from(forged()).page(&page.frame);
    }
    let token = app.access.known(fields.get("token").trim());
    if let Some(cookie) = token.and_then(|token| sessions.begin(token, app.node.now())) {
        return leading(to, &[set_cookie(Some(&cookie), secure)]);
    }
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "Unauthorized", "");
    let problem = failed(&app, client, problem);
    match problem.status() {
        StatusCode::UNAUTHORIZED => html(problem.status(), starbridge_console::sign_in(&page.frame, to, true)),
        _ => PageRefusal::from(problem).page(&page.frame),
    }
}

/// `POST /signout`
pub async fn sign_out(_: Form) -> Response {
    // Under which name it was set is not known any more.
    leading("/signin", &[set_cookie(None, false), set_cookie(None, true)])
}

/// `POST /settings`
pub async fn settings(headers: HeaderMap, form: Form) -> Response {
    let secure = if is_secure(&headers) { "; Secure" } else { "" };
    // A year: it says nothing about anybody.
    let cookie = |name: &str, value: &str| {
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000{secure}")
    };
    let mut cookies = Vec::new();
    if let Some(language) = Language::parse(form.fields.get("language")) {
        cookies.push(cookie(LANGUAGE, language.tag()));
    }
    if let Some(theme) = Theme::parse(form.fields.get("theme")) {
        cookies.push(cookie(THEME, theme.as_str()));
    }
    // A button names another zone than the field beside it.
    let zone = match form.fields.get("otherZone") {
        "" => form.fields.get("zone").trim(),
        other => other,
    };
    if !zone.is_empty() {
        match Zone::parse(zone) {
            Some(zone) => cookies.push(cookie(ZONE, zone.name())),
            None => return PageRefusal::from(no_zone(zone)).page(&form.page.frame),
        }
    }
    let to = form.fields.get("to");
    leading(if is_local(to) { to } else { "/" }, &cookies)
}

/// Whether the browser came with TLS: it says so in the origin of the page that sends a form.
fn is_secure(headers: &HeaderMap) -> bool {
    let origin = headers.get(header::ORIGIN);
    origin.is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

/// An answer that leads to a page and sets cookies.
fn leading(to: &str, cookies: &[String]) -> Response {
    let mut answer = Redirect::to(to).into_response();
    for cookie in cookies {
        if let Ok(cookie) = HeaderValue::from_str(cookie) {
            answer.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    answer
}
