//! Who may see a page, and the headers that all pages have.

use super::answer::{PageRefusal, html, is_local};
use super::compress::{compressed, takes_gzip};
use super::page::frame;
use super::routes::ROUTES;
use super::session::{Visitor, set_cookie};
use crate::App;
use crate::caller::Caller;
use crate::routes::Route;
use crate::scope::lacks;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use starbridge_node::callbacks::Client;
use starbridge_node::offload::{INLINE_BYTES, for_sender};
use starbridge_node::problem::Problem;
use std::net::IpAddr;

/// What a page may load, and where it may stand.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types starbridge";

/// Whether a route is one of the console's.
pub fn is_page(path: &str) -> bool {
    ROUTES.iter().any(|route| route.path == path)
}

/// Lets a visitor in to a page, or says why not.
pub async fn enter(app: App, client: IpAddr, mut request: Request, next: Next) -> Response {
    let Some(sessions) = &app.sessions else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let visitor = sessions.visitor(&app.access, request.headers(), app.node.now());
    let is_forged =
        matches!(visitor, Visitor::Stranger) && sessions.is_forged(&app.access, request.headers(), app.node.now());
    if is_forged && !app.limiter.may_fail(client) {
        return dressed(StatusCode::TOO_MANY_REQUESTS.into_response());
    }
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let method = match request.method() {
        &Method::HEAD => &Method::GET,
        method => method,
    };
    let mut routes = ROUTES.iter().filter(|route| Some(route.path) == path);
    let route = routes.find(|route| route.method == method.as_str());
    if let Some(mut refused) = route.and_then(|route| refused(&app, &visitor, route, &request)) {
        if is_forged {
            forget(&mut refused);
        }
        return dressed(refused);
    }
    let sender = visitor.name().cloned();
    let caller = Caller(sender.clone());
    let operator = caller.operator(request.headers());
    let extensions = request.extensions_mut();
    extensions.insert(caller);
    extensions.insert(operator);
    extensions.insert(Client(client));
    extensions.insert(visitor);
    let takes = takes_gzip(request.headers());
    let answered = async {
        let answer = dressed(run(request, next).await);
        if takes { compressed(answer).await } else { answer }
    };
    let answer = for_sender(sender, answered).await;
    kept_room(&app, answer).await
}

/// An answer that takes room among all answers until it is sent, if it is a large page. A page is made as a whole before.
async fn kept_room(app: &App, answer: Response) -> Response {
    let is_large = answer
        .body()
        .size_hint()
        .exact()
        .is_some_and(|bytes| bytes > INLINE_BYTES as u64);
    if !is_large {
        return answer;
    }
    let (parts, body) = answer.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return Response::from_parts(parts, Body::empty());
    };
    match app.answers.part(bytes) {
        Ok(bytes) => Response::from_parts(parts, Body::from(bytes)),
        Err(problem) => dressed(problem.into_response()),
    }
}

/// Answers a request. What a form asks for is done to its end, even if the browser leaves, as it does when a form is sent twice.
async fn run(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let sender = request.extensions().get::<Caller>().and_then(|caller| caller.0.clone());
    match tokio::spawn(for_sender(sender, next.run(request))).await {
        Ok(answer) => answer,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Problem::stopping().into_response(),
        },
    }
}

/// Takes away a cookie that stands for no token any more: it would count as a wrong one at each page.
fn forget(answer: &mut Response) {
    for secure in [false, true] {
        if let Ok(ends) = HeaderValue::from_str(&set_cookie(None, secure)) {
            answer.headers_mut().append(header::SET_COOKIE, ends);
        }
    }
}

/// The answer to a visitor who may not see a page.
fn refused(app: &App, visitor: &Visitor, route: &Route, request: &Request) -> Option<Response> {
    let scope = route.scope?;
    if visitor.may(scope) {
        return None;
    }
    let here = request.uri().path_and_query().map_or("/", |here| here.as_str());
    let frame = frame(app, visitor, request.headers(), request.uri());
    if !matches!(visitor, Visitor::Stranger) {
        return Some(PageRefusal::from(lacks(scope)).page(&frame));
    }
    if route.method != "GET" || !is_local(here) {
        return Some(Redirect::to("/signin").into_response());
    }
    if is_from_elsewhere(request.headers()) {
        // The link stands on another site, and a strict cookie does not come with it. It comes if our own page asks.
        return Some(html(StatusCode::OK, starbridge_console::again(&frame, here)));
    }
    let to = starbridge_console::path_part(here);
    Some(Redirect::to(&format!("/signin?to={to}")).into_response())
}

fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    matches!(site, Some("cross-site" | "same-site"))
}

/// An answer with the headers that all pages have.
pub(super) fn dressed(mut answer: Response) -> Response {
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer`, browsers do not name the origin of a form of ours either.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    let headers = answer.headers_mut();
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    answer
}
