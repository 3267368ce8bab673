//! The router: the routes of the table, and what every request passes before it reaches one.

use crate::routes::routes;
use crate::{App, access, reports};
use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use starbridge_node::callbacks::{self, Client, ReportOutcome, Reports};
use starbridge_node::problem::Problem;
use starbridge_runtime::Report;

impl Reports for App {
    async fn hand_in(&self, token: String, report: Report) -> ReportOutcome {
        self.node.report(token, report).await
    }

    fn check(&self, token: &str, from: Option<Client>) -> Result<(), Problem> {
        access::check_task_token(self, token, from)
    }
}

/// All routes, with what every request passes first.
pub fn router(app: App) -> Router {
    let mut router: Router<App> = Router::new();
    for route in routes() {
        if let Some(handler) = route.handler {
            router = router.route(route.path, handler());
        }
    }
    let reports = callbacks::routes(app.clone(), app.largest_report);
    let reports = reports.route_layer(from_fn_with_state(app.clone(), reports::check));
    let router = router.with_state(app.clone()).merge(Router::new().nest("/v1", reports));
    // The check is around everything, so that an unknown path is no way past it.
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
        .layer(from_fn_with_state(app, access::check))
}
