//! Asking the API in the name of whoever looks at a page.

use super::answer::PageRefusal;
use super::session::Visitor;
use crate::caller::{Caller, MayAll};
use crate::routes::routes;
use crate::scope::{Scope, lacks};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use starbridge_console::path_part;
use starbridge_flow::value::Value;
use starbridge_node::node::Operator;
use starbridge_node::offload;
use starbridge_node::problem::Problem;

/// The routes of the API, without the check of tokens before them.
#[derive(Clone)]
pub struct Api(pub Router);

/// Asks the API for a visitor.
pub struct Asker {
    pub api: Option<Api>,
    pub visitor: Visitor,
    pub operator: Option<Operator>,
}

/// A question: a route of the API, what stands in its places, and its query.
struct Question<'a> {
    method: &'static str,
    route: &'static str,
    places: &'a [&'a str],
    query: &'a [(&'a str, &'a str)],
    body: Option<String>,
}

/// An answer of the API that has more bytes does not become a page.
const MOST_BYTES: usize = 64 * 1024 * 1024;

impl Asker {
    /// What is read at a route.
    pub async fn get(
        &self,
        route: &'static str,
        places: &[&str],
        query: &[(&str, &str)],
    ) -> Result<Value, PageRefusal> {
        let question = Question {
            method: "GET",
            route,
            places,
            query,
            body: None,
        };
        self.ask(question).await
    }

    /// What comes of something that is done.
    pub async fn post(&self, route: &'static str, places: &[&str], body: Option<Value>) -> Result<Value, PageRefusal> {
        self.send("POST", route, places, body).await
    }

    /// What comes of something that is done with this method.
    pub async fn send(
        &self,
        method: &'static str,
        route: &'static str,
        places: &[&str],
        body: Option<Value>,
    ) -> Result<Value, PageRefusal> {
        let body = body.as_ref().map(Value::to_json);
        self.send_text(method, route, places, body).await
    }

    /// Sends a body as it was given.
    pub async fn send_text(
        &self,
        method: &'static str,
        route: &'static str,
        places: &[&str],
        body: Option<String>,
    ) -> Result<Value, PageRefusal> {
        let question = Question {
            method,
            route,
            places,
            query: &[],
            body,
        };
        self.ask(question).await
    }

    /// Asks. The scope that the route needs is checked here, too: a page with a wrong scope gives nothing away.
    async fn ask(&self, question: Question<'_>) -> Result<Value, PageRefusal> {
        let known = routes().find(|route| route.path == question.route && route.method == question.method);
        let (Some(route), Some(api)) = (known, &self.api) else {
            return Err(Problem::not_done().into());
        };
        if let Some(scope) = route.scope.filter(|scope| !self.visitor.may(*scope)) {
            return Err(lacks(scope).into());
        }
        // Whether a definition is JSON or YAML is seen from its text.
        let mut request = Request::builder()
            .method(question.method)
            .uri(address(&question))
            .header("content-type", "text/plain")
            .extension(Caller(self.visitor.name().cloned()))
            .extension(MayAll(self.visitor.may(Scope::Admin)));
        if let Some(operator) = &self.operator {
            request = request.extension(operator.clone());
        }
        let request = request
            .body(Body::from(question.body.unwrap_or_default()))
            .map_err(|_| Problem::bad("this can't be a part of an address"))?;
        let answer = match TowerToHyperService::new(api.0.clone()).call(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let status = answer.status();
        let bytes = to_bytes(answer.into_body(), MOST_BYTES).await;
        let bytes = bytes.map_err(|_| too_large())?;
        // A large answer is read where it delays nobody.
        let read = offload::work(bytes.len(), move || read(&bytes)).await;
        let value = read.map_err(Problem::from)??;
        match status.is_success() {
            true => Ok(value),
            false => Err(refusal(status, &value)),
        }
    }
}

fn too_large() -> Problem {
    let detail = "there is too much data for a page: `starbridge show` has it";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal", detail)
}

fn read(bytes: &[u8]) -> Result<Value, PageRefusal> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let value = Value::read_bounded(bytes, Value::most_memory(bytes.len()));
    value.map_err(|_| Problem::not_done().into())
}

fn refusal(status: StatusCode, problem: &Value) -> PageRefusal {
    let text = |key: &str| problem.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    PageRefusal {
        status,
        code: text("code"),
        detail: text("detail"),
        diagnostics: problem.get("diagnostics").cloned().unwrap_or_default(),
    }
}

fn address(question: &Question<'_>) -> String {
    let mut places = question.places.iter();
    let parts = question.route.split('/').map(|part| match part.starts_with('{') {
        true => places.next().map(|place| path_part(place)).unwrap_or_default(),
        false => part.to_owned(),
    });
    let mut address = parts.collect::<Vec<_>>().join("/");
    let mut sign = '?';
    for (key, value) in question.query {
        address.push(sign);
        address.push_str(&format!("{}={}", path_part(key), path_part(value)));
        sign = '&';
    }
    address
}
