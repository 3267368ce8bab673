//! The picture of an execution, and the status of each step of its flow.

use super::route::Route;
use super::steps::{AT, at};
use crate::App;
use crate::scope::Scope;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use starbridge_diagram::{InPage, Status, svg, svg_in_page};
use starbridge_flow::graph::StepId;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::EventId;
use starbridge_node::http::reading::Query;
use starbridge_node::offload;
use starbridge_node::problem::{Answer, Problem, quoted};

type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// The routes of the picture.
pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/v1/executions/{id}/graph.svg",
        scope: Some(Scope::Read),
        summary: "The graph of its flow, coloured by what happened",
        query: &[
            AT,
            (
                "look",
                "`alone` (usual): with its own colours, for a file; `page`: with classes only, for a page whose sheet has the colours; \
                 `compact`: the same with the names, states and ways of steps only",
            ),
        ],
        body: None,
        answers: &[
            (200, "a picture", Some("image/svg+xml")),
            (404, "there is no such execution", Some("Problem")),
        ],
        handler: Some(|| get(graph)),
    },
    Route {
        method: "GET",
        path: "/v1/executions/{id}/marks",
        scope: Some(Scope::Read),
        summary: "How each step of its flow stands, over all its visits, as the graph shows it; and at which events of all of the history something failed, \
                  was tried again or was paused",
        query: &[AT],
        body: None,
        answers: &[
            (200, "a mark for each step that was reached", Some("Marks")),
            (404, "there is no such execution", Some("Problem")),
        ],
        handler: Some(|| get(marks)),
    },
];

/// `GET /v1/executions/{id}/graph.svg`
async fn graph(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["at", "look"])?;
    let look = match query.get("look") {
        None | Some("alone") => None,
        Some(look @ ("page" | "compact")) => Some(look == "compact"),
        Some(other) => {
            let other = quoted(other);
            return Err(Problem::bad(format!(
                "`look` must be `alone`, `page` or `compact`, not {other}"
            )));
        }
    };
    let at = at(&query)?;
    let svg = app.answers.part(drawn(&app, id, at, look).await?.into())?;
    let headers = [
        (header::CONTENT_TYPE, "image/svg+xml; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        // Opened by itself, the picture is a document of this origin, so nothing in it may run or
        // load.
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'",
        ),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, svg).into_response())
}

/// `GET /v1/executions/{id}/marks`
async fn marks(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["at"])?;
    marked(&app, id, at(&query)?).await
}

/// A picture alone, or as a part of a page, compact or not.
async fn drawn(app: &App, id: String, at: Option<EventId>, in_page: Option<bool>) -> Answer<String> {
    let of = app.clone();
    let made = offload::read(usize::MAX, move || {
        let folded = of.folds.get(&of.node, &id, at)?;
        let status = folded.fold.marks.clone().finish();
        Ok::<_, Problem>(match in_page {
            Some(compact) => {
                let look = InPage {
                    compact,
                    ..InPage::default()
                };
                svg_in_page(&folded.flow, Some(&status), &look)
            }
            None => svg(&folded.flow, Some(&status)),
        })
    });
    made.await?
}

async fn marked(app: &App, id: String, at: Option<EventId>) -> Answer {
    let of = app.clone();
    let make = move || {
        let folded = of.folds.get(&of.node, &id, at)?;
        let status = folded.fold.marks.clone().finish();
        let mut items = Vec::new();
        for (number, step) in (0..).zip(folded.flow.steps.iter()) {
            let mark = status.marks(StepId(number));
            if mark.status == Status::NotReached {
                continue;
            }
            let mut item = Object::new();
            let mut set = |key: &str, value: Value| drop(item.insert(key.into(), value));
            set("step", step.name.clone().into());
            set("number", number.into());
            set("status", Text::from(mark.status.as_str()).into());
            set("words", Text::from(mark.words()).into());
            set("visits", mark.visits.into());
            set("attempts", mark.attempts.into());
            if let Some(error) = mark.error {
                set("error", error.into());
            }
            items.push(item.into());
        }
        let mut shape = Object::new();
        shape.insert("event".into(), folded.fold.last.0.into());
        shape.insert("end".into(), folded.end.0.into());
        let ending = status.ending().map(|ending| Text::from(ending).into());
        shape.insert("ending".into(), ending.unwrap_or_default());
        shape.insert("items".into(), items.into());
        shape.insert("incidents".into(), folded.incidents.to_value());
        Ok::<_, Problem>(shape.into())
    };
    app.answers.room().write_all(StatusCode::OK, make).await
}
