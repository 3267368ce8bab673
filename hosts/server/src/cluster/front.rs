//! What a node does with a request: answers it as the owner, or passes it on.

use super::asking::{BROKEN_BODY, Front, Sent, unavailable};
use super::events::resumed;
use super::role::{FROM, Role};
use crate::routes::metrics_of;
use crate::scope::Scope;
use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use starbridge_node::problem::Problem;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long a request waits for an owner.
const PATIENCE: Duration = Duration::from_secs(5);
/// A body up to this size is kept until it is answered, so that it can be sent to the next owner.
const KEPT_BYTES: u64 = 64 * 1024;
/// How long such a body may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(30);
/// The kind of a stream of events.
const EVENTS: &str = "text/event-stream";

/// Everything that clients ask.
pub(super) fn router(front: Arc<Front>) -> Router {
    Router::new().fallback(answer).with_state(front)
}

async fn answer(
    State(front): State<Arc<Front>>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    mut request: Request<Body>,
) -> Response<Body> {
    // Only a node may say that.
    request.headers_mut().remove(FROM);
    let now = front.role.borrow().clone();
    if let Role::Owner(answering) = now {
        // Only what can go on at another node is kept.
        let parts = is_stream(request.headers()).then(|| parts_of(&request));
        let answered = answering.call(request).await;
        return match parts {
            Some(parts) if is_events(&answered) => resumed(front, parts, from, answered),
            _ => answered,
        };
    }
    if let Some(own) = own(&front, &now, &request) {
        return own;
    }
    let until = Instant::now() + PATIENCE;
    let (parts, body) = request.into_parts();
    let small = body.size_hint().upper().is_some_and(|most| most <= KEPT_BYTES);
    let body = match small {
        false => Sent::Once(Some(body)),
        true => match tokio::time::timeout(ARRIVAL, to_bytes(body, usize::MAX)).await {
            Ok(Ok(bytes)) => Sent::Kept(bytes),
            // The client has gone, or is too slow.
            Ok(Err(_)) | Err(_) => return Problem::bad(BROKEN_BODY).into_response(),
        },
    };
    let answered = front.ask(&parts, from, body, until).await;
    match is_events(&answered) {
        true => resumed(front, parts, from, answered),
        false => answered,
    }
}

/// Whether a stream is asked for.
fn is_stream(headers: &HeaderMap) -> bool {
    let accepts = headers.get(header::ACCEPT).and_then(|accepts| accepts.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains(EVENTS))
}

fn is_events(answered: &Response<Body>) -> bool {
    let kind = answered.headers().get(header::CONTENT_TYPE);
    answered.status() == StatusCode::OK && kind.is_some_and(|kind| kind == EVENTS)
}

/// The head of a request, to be sent again.
fn parts_of(request: &Request<Body>) -> Parts {
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = request.method().clone();
    parts.uri = request.uri().clone();
    parts.headers = request.headers().clone();
    parts
}

/// What a node that stands by answers itself.
fn own(front: &Front, role: &Role, request: &Request<Body>) -> Option<Response<Body>> {
    match request.uri().path() {
        // `OPTIONS *`, which is about no resource.
        path if !path.starts_with('/') => Some(Problem::bad("the path of a request begins with `/`").into_response()),
        "/healthz" => Some("alive\n".into_response()),
        "/readyz" => Some(match role {
            Role::Standby(peer) => format!("standing by, {} has the store\n", peer.name).into_response(),
            _ => unavailable("NoOwner", "no node has the store just now: try again in a moment"),
        }),
        "/metrics" => Some(match front.access.allows(request.headers(), Scope::Read) {
            true => (
                [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
                metrics_of(&front.cluster),
            )
                .into_response(),
            false => {
                let detail = "this needs a token: send it as `Authorization: Bearer …`";
                Problem::new(StatusCode::UNAUTHORIZED, "Unauthorized", detail).into_response()
            }
        }),
        _ => None,
    }
}
