//! The router: the routes of the table, and the checks before them.

use crate::routes::{Route, routes};
use crate::{App, access, reports};
use axum::Router;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use starbridge_node::callbacks::{self, Client, ReportOutcome, Reports};
use starbridge_node::problem::Problem;
use starbridge_runtime::{Report, SignedCall};
use std::net::SocketAddr;

impl Reports for App {
    fn verify(&self, token: &str, from: Option<Client>) -> Result<SignedCall, Problem> {
        access::verify_task_token(self, token, from)
    }

    async fn hand_in(&self, call: SignedCall, report: Report) -> ReportOutcome {
        self.node.report(call, report).await
    }
}

/// A router of some of the table's routes.
fn table(routes: impl Iterator<Item = &'static Route>) -> Router<App> {
    let mut router = Router::new();
    for route in routes {
        if let Some(handler) = route.handler {
            router = router.route(route.path, handler());
        }
    }
    router
}

/// All routes, with the checks that every request passes first.
pub fn router(app: App) -> Router {
    let router = table(routes());
    #[cfg(feature = "console")]
    let router = match app.sessions {
        // Pages use the API like programs, but not through a socket.
        Some(_) => {
            let api = crate::console::Api(table(routes()).with_state(app.clone()));
            router.merge(table(crate::console::ROUTES.iter()).layer(axum::Extension(api)))
        }
        None => router,
    };
    let reports = callbacks::routes(app.clone(), app.largest_report);
    let reports = reports.route_layer(from_fn_with_state(app.clone(), reports::check));
    let router = router.with_state(app.clone()).merge(Router::new().nest("/v1", reports));
    // The check is around everything, so that an unknown path can't bypass it.
    router
        .fallback(|| async {
            Problem::missing(
                "NoSuchRoute",
                "there is nothing here: /v1/openapi.json lists what there is",
            )
        })
        .method_not_allowed_fallback(|| async {
            let detail = "this can't be done here: /v1/openapi.json lists what can";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", detail)
        })
        .layer(from_fn_with_state(app, admit))
}

/// Admits a request to the API or to a page, or refuses it. People are told by a page why there is none.
async fn admit(
    state: State<App>,
    from: ConnectInfo<SocketAddr>,
    path: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    #[cfg(feature = "console")]
    if let Some(looking) = crate::console::BrowserRequest::of(&state, &request) {
        let app = state.0.clone();
        let answer = admitted(state, from, path, request, next).await;
        return looking.shown(&app, answer).await;
    }
    admitted(state, from, path, request, next).await
}

async fn admitted(
    state: State<App>,
    from: ConnectInfo<SocketAddr>,
    path: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    // The process is well; who asks whether it lives must not end it.
    if state.node.is_away() && path.as_ref().is_none_or(|path| path.as_str() != "/healthz") {
        let detail = "the store can't be reached just now: try again in a moment";
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "StoreUnavailable", detail).into_response();
    }
    #[cfg(feature = "console")]
    if let Some(path) = path.as_ref().map(MatchedPath::as_str)
        && state.sessions.is_some()
        && crate::console::is_page(path)
    {
        let checked = access::check_sender(&state, path, &request);
        let client = access::sender(&state, from.0, &request);
        return match checked {
            Ok(()) => crate::console::enter(state.0, client, request, next).await,
            Err(problem) => problem.into_response(),
        };
    }
    access::check(state, from, path, request, next).await
}
