//! Reports by token over HTTP (section "tasks"): the routes, for the listener of one process and for a server.

use crate::node::NotTaken;
use crate::offload;
use crate::problem::{Answer, INVALID_TOKEN, Problem, whole};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::post;
use axum::{Extension, Router};
use starbridge_flow::value::{Object, Value};
use starbridge_runtime::{Command, Reply, Report, SignedCall, TokenKeys, read_entry, read_report};
use std::future::Future;
use std::net::IpAddr;
use tokio::sync::{mpsc, oneshot};

/// The answer to a submitted report: a receiver for the result, which comes once it is durable.
pub type ReportOutcome = Result<oneshot::Receiver<Reply>, NotTaken>;

/// Takes reports: [`Reports::verify`] first, then [`Reports::hand_in`].
pub trait Reports: Clone + Send + Sync + 'static {
    /// The call that a token was signed for. A server counts wrong tokens for each sender here.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if the token is not one of ours.
    fn verify(&self, token: &str, from: Option<Client>) -> Result<SignedCall, Problem>;

    /// Hands in the report of a call, in the order in which this is called.
    fn hand_in(&self, call: SignedCall, report: Report) -> impl Future<Output = ReportOutcome> + Send;
}

/// The sender of a request. It is an extension of requests whose senders are distinguished.
#[derive(Clone, Copy, Debug)]
pub struct Client(pub IpAddr);

/// Submits reports to one engine.
#[derive(Clone, Debug)]
pub struct EngineReports {
    /// The engine's commands.
    pub commands: mpsc::Sender<Command>,
    /// The keys of the engine's task tokens.
    pub tokens: TokenKeys,
}

impl Reports for EngineReports {
    fn verify(&self, token: &str, _from: Option<Client>) -> Result<SignedCall, Problem> {
        self.tokens.verify(token).map_err(|_| invalid_token())
    }

    async fn hand_in(&self, call: SignedCall, report: Report) -> ReportOutcome {
        let (reply, answer) = oneshot::channel();
        let command = Command::Report {
            execution: call.execution,
            call: call.call,
            report,
            audit: None,
            reply,
        };
        self.commands.send(command).await.map_err(|_| NotTaken::Stopping)?;
        Ok(answer)
    }
}

async fn reply(handed_in: ReportOutcome) -> Result<Reply, NotTaken> {
    handed_in?.await.map_err(|_| NotTaken::Stopping)
}

/// The largest number of reports in one batch.
const BATCH: usize = 1_000;

/// The routes of reports, under `/v1`.
pub fn routes<R: Reports>(reports: R, body_limit: usize) -> Router {
    Router::new()
        .route("/callbacks/{token}/{verb}", post(report::<R>))
        .route("/callbacks", post(batch::<R>))
        .layer(DefaultBodyLimit::max(body_limit))
        .with_state(reports)
}

/// The answer to a report: a problem if the report was not accepted.
fn answer(reply: Result<Reply, NotTaken>) -> Result<StatusCode, Problem> {
    match reply? {
        Reply::Taken => Ok(StatusCode::NO_CONTENT),
        Reply::AlreadyCompleted => Err(Problem::new(
            StatusCode::CONFLICT,
            "TaskAlreadyCompleted",
            "another report came first",
        )),
        Reply::TimedOut => Err(Problem::new(
            StatusCode::GONE,
            "TaskTimedOut",
            "the call was given up before",
        )),
        Reply::Left => Ok(StatusCode::ACCEPTED),
        Reply::Held | Reply::NoRoom => Err(Problem::held()),
        Reply::SetAside => Err(Problem::set_aside()),
        Reply::InvalidToken | Reply::NoSuchExecution | Reply::NotEnded | Reply::Rejected(_) => Err(invalid_token()),
    }
}

/// The problem of a token that this node has not signed, or whose task is gone.
pub fn invalid_token() -> Problem {
    Problem::missing("InvalidToken", INVALID_TOKEN)
}

fn bad_report(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "BadReport", detail)
}

async fn report<R: Reports>(
    State(reports): State<R>,
    Path((token, verb)): Path<(String, String)>,
    verified: Option<Extension<SignedCall>>,
    body: Result<Bytes, BytesRejection>,
) -> Answer<StatusCode> {
    // A server verifies the token before it reads the body.
    let call = match verified {
        Some(Extension(call)) => call,
        None => reports.verify(&token, None)?,
    };
    let body = whole(body)?;
    let report = offload::work(body.len(), move || read_report(&verb, &body)).await?;
    let report = report.map_err(bad_report)?;
    answer(reply(reports.hand_in(call, report).await).await)
}

/// Takes `{"reports": [{token, output | error, cause? | heartbeat: true}]}`. The answers are in the same order.
async fn batch<R: Reports>(
    State(reports): State<R>,
    from: Option<Extension<Client>>,
    body: Result<Bytes, BytesRejection>,
) -> Answer {
    let from = from.map(|Extension(client)| client);
    let body = whole(body)?;
    let size = body.len();
    let reading = move || {
        let read = serde_json::from_slice::<Object>(&body).ok();
        read.and_then(|body| body.get("reports")?.as_array().cloned())
    };
    let entries = offload::work(size, reading).await?;
    let entries = entries.ok_or_else(|| bad_report("expected `{\"reports\": [...]}`"))?;
    if entries.len() > BATCH {
        offload::discard(size, entries);
        let detail = format!("a batch has at most {BATCH} reports");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "TooManyReports", detail));
    }
    let mut under_way = Vec::new();
    for entry in entries.values() {
        under_way.push(match read_entry(entry) {
            Ok((token, report)) => match reports.verify(&token, from) {
                Ok(call) => Ok(reports.hand_in(call, report).await),
                Err(problem) => Err(problem),
            },
            Err(detail) => Err(bad_report(detail)),
        });
    }
    offload::discard(size, entries);
    let mut results = Vec::new();
    for report in under_way {
        let answered = match report {
            Err(problem) => Err(problem),
            Ok(handed_in) => answer(reply(handed_in).await),
        };
        let mut result = Object::new();
        let status = answered.as_ref().map_or_else(Problem::status, |status| *status);
        result.insert("status".into(), u32::from(status.as_u16()).into());
        if let Err(problem) = answered {
            result.insert("code".into(), problem.code().into());
            result.insert("detail".into(), problem.detail().into());
        }
        results.push(Value::Object(result));
    }
    let answer: Object = [("results".into(), Value::from(results))].into_iter().collect();
    Ok(([("content-type", "application/json")], Value::from(answer).to_json()).into_response())
}
