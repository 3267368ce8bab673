//! The configuration of the server, for operators with the scope `admin`.

use super::route::Route;
use crate::App;
use crate::scope::Scope;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::problem::Answer;

pub(super) const ROUTES: &[Route] = &[Route {
    method: "GET",
    path: "/v1/config",
    scope: Some(Scope::Admin),
    summary: "What the server is: its version, what it was built with, and its configuration without secrets",
    query: &[],
    body: None,
    answers: &[(
        200,
        "the server; `config` is null where it has no configuration",
        Some("ServerConfig"),
    )],
    handler: Some(|| get(config)),
}];

/// `GET /v1/config`
async fn config(State(app): State<App>) -> Answer {
    let features = app.built.features.iter().map(|feature| Text::from(*feature).into());
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let config = app.built.config.as_deref();
    let members = [
        ("version", Text::from(env!("CARGO_PKG_VERSION")).into()),
        ("target", Text::from(target).into()),
        ("features", features.collect::<Vec<Value>>().into()),
        (
            "config",
            config.map(|config| Text::from(config).into()).unwrap_or_default(),
        ),
    ];
    let members = members.into_iter().map(|(key, value)| (Text::from(key), value));
    app.answers
        .value(StatusCode::OK, members.collect::<Object>().into())
        .await
}
