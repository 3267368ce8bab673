//! Changing the order of an execution.

use super::operating::{answered, audit};
use super::route::Route;
use super::start_terms::{order_time, priority};
use crate::App;
use crate::scope::Scope;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use starbridge_flow::value::Text;
use starbridge_machine::{NewOrder, Rejection, Signal};
use starbridge_node::http::body::Sent;
use starbridge_node::node::Operator;
use starbridge_node::problem::{Answer, Problem};
use starbridge_runtime::Reply;

/// The routes of the order.
pub(super) const ROUTES: &[Route] = &[Route {
    method: "POST",
    path: "/v1/executions/{id}/order",
    scope: Some(Scope::Operate),
    summary: "Changes its place: of one that waits also when it begins and whom it waits for; of one that runs, its tasks that nobody holds",
    query: &[],
    body: Some("Order"),
    answers: &[
        (200, "the execution", Some("Execution")),
        (
            409,
            "`NotRunning`: it has ended, and no redrive of it waits; `AlreadyBegun`: it has begun, so only its place can change",
            Some("Problem"),
        ),
    ],
    handler: Some(|| post(order)),
}];

/// `POST /v1/executions/{id}/order`
async fn order(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(id): Path<String>,
    mut body: Sent,
) -> Answer {
    let body = body.read(&["priority", "orderTime", "startNow", "after"]).await?;
    let drop_after = match body.get("after") {
        None => false,
        Some(after) if after.as_array().is_some_and(|after| after.values().is_empty()) => true,
        Some(_) => {
            let detail = "`after` must be an empty list, which lets it wait for nobody: others are not added, only a start names them";
            return Err(Problem::bad(detail));
        }
    };
    let order = NewOrder {
        priority: priority(&body)?,
        order_time: order_time(&body)?,
        start_now: body.flag("startNow")?.unwrap_or(false),
        drop_after,
    };
    if order == NewOrder::default() {
        let detail = "nothing is to change: give `priority`, `orderTime`, `startNow` (true) or `after` (an empty list)";
        return Err(Problem::bad(detail));
    }
    let by = Some(operator.by.to_string());
    let entry = audit(&app, &operator, "order", &id, &body);
    let signal = Signal::Reorder { by, order };
    let reply = app
        .node
        .signal_audited(&Text::from(id.as_str()), signal, Some(entry))
        .await?;
    match reply {
        Reply::Rejected(Rejection::Finished) => {
            let detail = "the execution has ended: only one that has not ended, or whose redrive waits, has a place";
            Err(Problem::new(StatusCode::CONFLICT, "NotRunning", detail))
        }
        Reply::Rejected(Rejection::AlreadyStarted) => {
            let detail = "the execution has begun: only its `priority` and `orderTime` can be changed, and `after` while a redrive of it waits";
            Err(Problem::new(StatusCode::CONFLICT, "AlreadyBegun", detail))
        }
        reply => answered(&app, &id, reply).await,
    }
}
