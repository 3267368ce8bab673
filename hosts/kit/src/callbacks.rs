//! A listener for callbacks of one process: reports by token over HTTP (section "tasks").

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use starbridge_fdl::value::{Object, Value};
use starbridge_runtime::{Command, Reply, Report};
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// Listens for reports and hands them to an engine. Answers the address it listens on; it stops with the runtime.
pub async fn listen(
    address: SocketAddr,
    commands: mpsc::Sender<Command>,
    body_limit: usize,
) -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/v1/callbacks/{token}/{verb}", post(report))
        .route("/v1/callbacks", post(batch))
        .layer(DefaultBodyLimit::max(body_limit))
        .with_state(commands);
    tokio::spawn(async move {
        // Ends with the process; a listener that breaks is seen by who reports.
        let _ = axum::serve(listener, router).await;
    });
    Ok(address)
}

async fn report(
    State(commands): State<mpsc::Sender<Command>>,
    Path((token, verb)): Path<(String, String)>,
    body: axum::body::Bytes,
) -> Response {
    let report = match parse(&verb, &body) {
        Ok(report) => report,
        Err(message) => return problem(StatusCode::BAD_REQUEST, "BadReport", &message),
    };
    match hand_in(&commands, token, report).await {
        Some(Reply::Taken) => StatusCode::NO_CONTENT.into_response(),
        Some(Reply::AlreadyCompleted) => problem(
            StatusCode::CONFLICT,
            "TaskAlreadyCompleted",
            "another report came first",
        ),
        Some(Reply::TimedOut) => problem(StatusCode::GONE, "TaskTimedOut", "the call was given up before"),
        Some(Reply::InvalidToken | Reply::NoSuchExecution | Reply::Rejected(_)) => problem(
            StatusCode::NOT_FOUND,
            "InvalidToken",
            "the token is not of this process",
        ),
        None => problem(
            StatusCode::SERVICE_UNAVAILABLE,
            "Stopping",
            "the execution is coming to its end",
        ),
    }
}

/// `{"reports": [{token, output | error, cause? | heartbeat: true}]}`, answered in order.
async fn batch(State(commands): State<mpsc::Sender<Command>>, body: axum::body::Bytes) -> Response {
    let reports = serde_json::from_slice::<Object>(&body)
        .ok()
        .and_then(|body| body.get("reports")?.as_array().cloned());
    let Some(reports) = reports else {
        return problem(StatusCode::BAD_REQUEST, "BadReport", "expected `{\"reports\": [...]}`");
    };
    let mut results = Vec::new();
    for entry in reports.values() {
        let token = entry
            .as_object()
            .and_then(|entry| entry.get("token")?.as_str().map(str::to_owned));
        let (status, code) = match (token, entry.as_object().and_then(of_entry)) {
            (Some(token), Some(report)) => match hand_in(&commands, token, report).await {
                Some(Reply::Taken) => (204u32, None),
                Some(Reply::AlreadyCompleted) => (409, Some("TaskAlreadyCompleted")),
                Some(Reply::TimedOut) => (410, Some("TaskTimedOut")),
                Some(Reply::InvalidToken | Reply::NoSuchExecution | Reply::Rejected(_)) => (404, Some("InvalidToken")),
                None => (503, Some("Stopping")),
            },
            _ => (400, Some("BadReport")),
        };
        let mut result = Object::new();
        result.insert("status".into(), status.into());
        if let Some(code) = code {
            result.insert("code".into(), code.into());
        }
        results.push(Value::Object(result));
    }
    let answer: Object = [("results".into(), Value::from(results))].into_iter().collect();
    ([("content-type", "application/json")], Value::from(answer).to_json()).into_response()
}

async fn hand_in(commands: &mpsc::Sender<Command>, token: String, report: Report) -> Option<Reply> {
    let (reply, answer) = oneshot::channel();
    commands.send(Command::Report { token, report, reply }).await.ok()?;
    answer.await.ok()
}

fn parse(verb: &str, body: &[u8]) -> Result<Report, String> {
    let body: Object = match body {
        [] => Object::new(),
        body => serde_json::from_slice(body).map_err(|error| format!("the body is no JSON object: {error}"))?,
    };
    match verb {
        "heartbeat" => Ok(Report::Heartbeat),
        "succeed" => match body.get("output") {
            None => Ok(Report::Succeed(Object::new())),
            Some(Value::Object(output)) => Ok(Report::Succeed(output.clone())),
            Some(other) => Err(format!("`output` must be an object, not {}", other.kind())),
        },
        "fail" => fail_of(&body).ok_or_else(|| "`error` must be a string".to_owned()),
        other => Err(format!(
            "there is no report `{other}`: use `succeed`, `fail` or `heartbeat`"
        )),
    }
}

fn fail_of(body: &Object) -> Option<Report> {
    Some(Report::Fail {
        error: body.get("error")?.as_str()?.to_owned(),
        cause: body.get("cause").map(Value::to_plain_text).unwrap_or_default(),
    })
}

fn of_entry(entry: &Object) -> Option<Report> {
    if entry.contains_key("heartbeat") {
        return Some(Report::Heartbeat);
    }
    match entry.get("output") {
        Some(output) => output.as_object().cloned().map(Report::Succeed),
        None => fail_of(entry),
    }
}

/// An error as RFC 9457 has it.
fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    let body: Object = [
        ("status".into(), Value::from(u32::from(status.as_u16()))),
        ("code".into(), code.into()),
        ("detail".into(), detail.into()),
    ]
    .into_iter()
    .collect();
    let headers = [("content-type", "application/problem+json")];
    (status, headers, Value::from(body).to_json()).into_response()
}
