//! Reports by token over HTTP (section "tasks"): for a listener of one process and for a server alike.

mod reading;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use reading::{read_entry, read_report};
use starbridge_fdl::value::{Object, Value};
use starbridge_runtime::{Command, Reply, Report};
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Takes reports.
pub trait Reports: Clone + Send + Sync + 'static {
    /// Hands in a report, in the order of calls. What became of it comes once that is durable; nothing when no more is taken.
    fn hand_in(&self, token: String, report: Report) -> impl Future<Output = Option<oneshot::Receiver<Reply>>> + Send;
}

impl Reports for mpsc::Sender<Command> {
    async fn hand_in(&self, token: String, report: Report) -> Option<oneshot::Receiver<Reply>> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Report { token, report, reply }).await.ok()?;
        Some(answer)
    }
}

async fn reply(answer: Option<oneshot::Receiver<Reply>>) -> Option<Reply> {
    answer?.await.ok()
}

/// Most reports in one batch.
const BATCH: usize = 1_000;

/// A listener for reports.
pub struct Listener {
    /// Where it listens.
    pub address: SocketAddr,
    end: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// How long answers under way may take when a listener is closed.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

impl Listener {
    /// Takes no more; who reported last still gets an answer.
    pub async fn close(self) {
        // A listener that broke has ended already.
        let _ = self.end.send(());
        let _ = tokio::time::timeout(LAST_ANSWERS, self.serving).await;
    }
}

/// Listens for reports and hands them to an engine.
pub async fn listen(
    address: SocketAddr,
    commands: mpsc::Sender<Command>,
    body_limit: usize,
) -> std::io::Result<Listener> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let router = Router::new().nest("/v1", routes(commands, body_limit));
    let (end, ended) = oneshot::channel();
    let serving = tokio::spawn(async move {
        let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
            let _ = ended.await;
        });
        // A listener that breaks is seen by who reports.
        let _ = serving.await;
    });
    Ok(Listener { address, end, serving })
}

/// The routes under `/v1`.
pub fn routes<R: Reports>(reports: R, body_limit: usize) -> Router {
    Router::new()
        .route("/callbacks/{token}/{verb}", post(report::<R>))
        .route("/callbacks", post(batch::<R>))
        .layer(DefaultBodyLimit::max(body_limit))
        .with_state(reports)
}

/// An answer's status, and its code and words where it is an error.
fn answer(reply: Option<&Reply>) -> (StatusCode, &'static str, &'static str) {
    match reply {
        Some(Reply::Taken) => (StatusCode::NO_CONTENT, "", ""),
        Some(Reply::AlreadyCompleted) => (
            StatusCode::CONFLICT,
            "TaskAlreadyCompleted",
            "another report came first",
        ),
        Some(Reply::TimedOut) => (StatusCode::GONE, "TaskTimedOut", "the call was given up before"),
        Some(Reply::InvalidToken | Reply::NoSuchExecution | Reply::Rejected(_)) => {
            (StatusCode::NOT_FOUND, "InvalidToken", "the token is not one of ours")
        }
        None => (
            StatusCode::SERVICE_UNAVAILABLE,
            "Unavailable",
            "no report is taken just now: try again later",
        ),
    }
}

async fn report<R: Reports>(
    State(reports): State<R>,
    Path((token, verb)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    let report = match read_report(&verb, &body) {
        Ok(report) => report,
        Err(message) => return problem(StatusCode::BAD_REQUEST, "BadReport", &message),
    };
    match answer(reply(reports.hand_in(token, report).await).await.as_ref()) {
        (status, "", _) => status.into_response(),
        (status, code, detail) => problem(status, code, detail),
    }
}

/// `{"reports": [{token, output | error, cause? | heartbeat: true}]}`, answered in order.
async fn batch<R: Reports>(State(reports): State<R>, body: Bytes) -> Response {
    let entries = serde_json::from_slice::<Object>(&body)
        .ok()
        .and_then(|body| body.get("reports")?.as_array().cloned());
    let Some(entries) = entries else {
        return problem(StatusCode::BAD_REQUEST, "BadReport", "expected `{\"reports\": [...]}`");
    };
    if entries.len() > BATCH {
        let detail = format!("a batch has at most {BATCH} reports");
        return problem(StatusCode::PAYLOAD_TOO_LARGE, "TooManyReports", &detail);
    }
    let mut under_way = Vec::new();
    for entry in entries.values() {
        let entry = entry.as_object();
        let token = entry.and_then(|entry| entry.get("token")?.as_str().map(str::to_owned));
        under_way.push(match token.zip(entry.and_then(read_entry)) {
            Some((token, report)) => Some(reports.hand_in(token, report).await),
            None => None,
        });
    }
    let mut results = Vec::new();
    for report in under_way {
        let (status, code) = match report {
            None => (StatusCode::BAD_REQUEST, "BadReport"),
            Some(handed_in) => {
                let (status, code, _) = answer(reply(handed_in).await.as_ref());
                (status, code)
            }
        };
        let mut result = Object::new();
        result.insert("status".into(), u32::from(status.as_u16()).into());
        if !code.is_empty() {
            result.insert("code".into(), code.into());
        }
        results.push(Value::Object(result));
    }
    let answer: Object = [("results".into(), Value::from(results))].into_iter().collect();
    ([("content-type", "application/json")], Value::from(answer).to_json()).into_response()
}

/// An error as RFC 9457 has it, with a stable code.
pub fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    let body: Object = [
        ("type".into(), Value::from("about:blank")),
        (
            "title".into(),
            Value::from(status.canonical_reason().unwrap_or_default()),
        ),
        ("status".into(), Value::from(u32::from(status.as_u16()))),
        ("code".into(), code.into()),
        ("detail".into(), detail.into()),
    ]
    .into_iter()
    .collect();
    let headers = [("content-type", "application/problem+json")];
    (status, headers, Value::from(body).to_json()).into_response()
}
