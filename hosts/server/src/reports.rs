//! Reading the bodies of reports by token, within the limits of their sender.

use crate::App;
use axum::extract::{RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use starbridge_node::http::body::{Charge, Sender, receive, receive_from_stranger};
use starbridge_node::http::report_body::counted;
use starbridge_node::problem::Answer;

/// Admits reports with a token of ours, and batches, in which each report has its own.
pub async fn check(State(app): State<App>, parameters: RawPathParams, request: Request, next: Next) -> Response {
    let token = parameters.iter().find(|(name, _)| *name == "token");
    let read = match token {
        // Its token was checked when the request arrived.
        Some(_) => read_known(&app, request).await,
        None => {
            let receive = receive_from_stranger(request, app.largest_report, &app.bodies);
            receive.await.and_then(|(parts, sent)| counted(parts, sent))
        }
    };
    match read {
        Err(problem) => problem.into_response(),
        Ok((request, charge)) => {
            let response = next.run(request).await;
            drop(charge);
            response
        }
    }
}

async fn read_known(app: &App, request: Request) -> Answer<(Request, Option<Charge>)> {
    let (parts, body) = request.into_parts();
    let sent = receive(body, app.largest_report, &app.bodies, Sender::Known).await?;
    counted(parts, sent)
}
