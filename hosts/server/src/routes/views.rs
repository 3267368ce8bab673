//! Views: filters of the list of executions that have a name and are there for everybody.

use super::route::Route;
use crate::App;
use crate::answers::aside;
use crate::scope::Scope;
use crate::shapes;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing;
use starbridge_flow::value::{Object, Value};
use starbridge_node::http::body::Sent;
use starbridge_node::node::{Operator, PutViewError, SavedView, ViewName};
use starbridge_node::problem::{Answer, Problem, quoted};

/// The routes of views.
pub(super) const ROUTES: &[Route] = &[
    Route {
        method: "GET",
        path: "/v1/views",
        scope: Some(Scope::Read),
        summary: "The views: named filters for executions, shared by all who use the server",
        query: &[],
        body: None,
        answers: &[(200, "all of them, by name", Some("ViewList"))],
        handler: Some(|| routing::get(list)),
    },
    Route {
        method: "GET",
        path: "/v1/views/{name}",
        scope: Some(Scope::Read),
        summary: "A view",
        query: &[],
        body: None,
        answers: &[
            (200, "the view", Some("View")),
            (404, "there is no such view", Some("Problem")),
        ],
        handler: Some(|| routing::get(get)),
    },
    Route {
        method: "PUT",
        path: "/v1/views/{name}",
        scope: Some(Scope::Operate),
        summary: "Saves a view in place of an earlier one",
        query: &[],
        body: Some("ViewFilter"),
        answers: &[
            (201, "a new view", Some("View")),
            (200, "it replaces an earlier one", Some("View")),
            (409, "`TooManyViews`: delete one first", Some("Problem")),
        ],
        handler: Some(|| routing::put(put)),
    },
    Route {
        method: "DELETE",
        path: "/v1/views/{name}",
        scope: Some(Scope::Operate),
        summary: "Deletes a view",
        query: &[],
        body: None,
        answers: &[(204, "done", None), (404, "there is no such view", Some("Problem"))],
        handler: Some(|| routing::delete(delete)),
    },
];

pub(super) fn missing(name: &str) -> Problem {
    Problem::missing("NoSuchView", format!("there is no view {}", quoted(name)))
}

fn shape(view: SavedView) -> Value {
    let members = [
        ("name".into(), Value::from(view.name)),
        ("filter".into(), view.filter.into()),
        ("by".into(), view.by.into()),
        ("time".into(), view.time.to_string().into()),
    ];
    members.into_iter().collect::<Object>().into()
}

/// `GET /v1/views`
async fn list(State(app): State<App>) -> Answer {
    let views = aside(&app.node, |node| node.saved_views()).await??;
    let views = views.into_iter().map(shape).collect();
    app.answers.value(StatusCode::OK, shapes::page(views, None)).await
}

/// `GET /v1/views/{name}`
async fn get(State(app): State<App>, Path(name): Path<String>) -> Answer {
    let view = aside(&app.node, move |node| {
        let found = node.saved_view(&name)?;
        found.ok_or_else(|| missing(&name))
    });
    app.answers.value(StatusCode::OK, shape(view.await??)).await
}

/// `PUT /v1/views/{name}`
async fn put(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(name): Path<String>,
    mut body: Sent,
) -> Answer {
    let name = ViewName::read(&name).map_err(Problem::bad)?;
    let filter = body.read(&["filter"]).await?.object("filter")?;
    let filter = filter.ok_or_else(|| Problem::bad("`filter` is missing: an object, as a bulk job has it"))?;
    let put = aside(&app.node, move |node| node.put_view(&name, filter, &operator));
    match put.await? {
        Ok((view, is_new)) => {
            let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
            app.answers.value(status, shape(view)).await
        }
        Err(PutViewError::Filter(why)) => Err(Problem::bad(format!("`filter`: {why}"))),
        Err(PutViewError::TooMany(most)) => {
            let detail = format!("there are {most} views, and no more can be kept: delete one first");
            Err(Problem::new(StatusCode::CONFLICT, "TooManyViews", detail))
        }
        Err(PutViewError::Store(error)) => Err(error.into()),
    }
}

/// `DELETE /v1/views/{name}`
async fn delete(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path(name): Path<String>,
) -> Answer<Response> {
    let of = name.clone();
    match aside(&app.node, move |node| node.delete_view(&of, &operator)).await?? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(missing(&name)),
    }
}
