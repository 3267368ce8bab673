//! Carrying out what a row of an outbox asks for, with the rules of the request over HTTP that asks for the same.

use super::executions::{START, check_dependencies, known_start, not_started, read_start};
use super::flows::no_such_flow;
use crate::App;
use axum::body::Bytes;
use axum::http::StatusCode;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::Rejection;
use starbridge_node::http::body::Sent;
use starbridge_node::http::reading::Body;
use starbridge_node::node::{Operator, operator_signals};
use starbridge_node::problem::{Answer, INVALID_TOKEN, Problem, quoted};
use starbridge_ports::{AuditKind, OutboxRights, OutboxRow};
use starbridge_runtime::{Reply, Report, StartError, StartFailure, fits};

/// What became of a row.
pub enum RowOutcome {
    /// Its consequence is durable now.
    Done,
    /// Its consequence was durable before, when this server was killed or the database went.
    Before,
    /// It can be carried out later.
    Again,
    /// It can't be carried out.
    Refused(Problem),
}

/// Whose rows are carried out.
#[derive(Clone)]
pub struct Asks {
    /// The name of the outbox.
    pub outbox: Text,
    /// What its rows may ask for.
    pub rights: OutboxRights,
}

impl Asks {
    /// Who asks, for histories and the audit list. No token has such a name.
    fn by(&self, row: &OutboxRow) -> Text {
        format!("outbox {}: {}", self.outbox, row.by).into()
    }

    fn allows_action(&self, action: &str) -> Answer<()> {
        match self.rights.actions.iter().any(|allowed| allowed == action) || !OutboxRights::ACTIONS.contains(&action) {
            true => Ok(()),
            false => Err(self.forbids(&format!("`{action}` is not among its `actions`"))),
        }
    }

    fn allows_flow(&self, flow: &str) -> Answer<()> {
        match self.rights.flows.iter().any(|pattern| fits(pattern, flow)) {
            true => Ok(()),
            false => Err(self.forbids(&format!("the flow {} is not among its `flows`", quoted(flow)))),
        }
    }

    /// Whether the flow of this execution is allowed. What is wrong with one that is not there is found later.
    fn allows_execution(&self, app: &App, id: &str) -> Answer<()> {
        if self.rights.flows.iter().any(|pattern| pattern == "*") {
            return Ok(());
        }
        let record = app.node.store().record(id)?;
        record.map_or(Ok(()), |record| self.allows_flow(&record.flow))
    }

    fn forbids(&self, why: &str) -> Problem {
        let detail = format!(
            "the outbox `{}` may not ask for that: {why} in the configuration of the server",
            self.outbox
        );
        Problem::new(StatusCode::FORBIDDEN, "Forbidden", detail)
    }
}

/// Carries a row out, and waits until that is durable.
pub async fn carry_out(app: &App, asks: &Asks, row: &OutboxRow) -> RowOutcome {
    let carried_out = match (asks.allows_action(&row.action), row.action.as_str()) {
        (Err(forbidden), _) => Err(forbidden),
        (_, "start") => start(app, asks, row).await,
        (_, "succeed" | "fail") => report(app, asks, row).await,
        (_, "stop") => stop(app, asks, row).await,
        (_, other) => Err(Problem::bad(format!(
            "the outbox asks for {}, which this server does not know",
            quoted(other)
        ))),
    };
    carried_out.unwrap_or_else(|problem| match (problem.status(), problem.code()) {
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, _) | (_, "Internal" | "Corrupt") => {
            RowOutcome::Again
        }
        _ => RowOutcome::Refused(problem),
    })
}

/// The members, and what keeps room for them as long as they are used: a row is bounded as a body is.
async fn members(app: &App, row: &OutboxRow) -> Answer<(Object, Sent)> {
    let mut sent = app.bodies.hold(Bytes::copy_from_slice(row.body.as_bytes()))?;
    match sent.value().await? {
        Value::Object(members) => Ok((members, sent)),
        _ => Err(Problem::bad("the row of the outbox is no JSON object")),
    }
}

/// Starts an execution that has the row's id.
async fn start(app: &App, asks: &Asks, row: &OutboxRow) -> Answer<RowOutcome> {
    // It was taken before, or came back with a restored database.
    if app.node.store().record(&row.id)?.is_some() {
        return Ok(RowOutcome::Before);
    }
    let (members, _room) = members(app, row).await?;
    let flow = members.get("flow").and_then(Value::as_text).cloned();
    let flow = flow.ok_or_else(|| Problem::bad("`flow` must be a string: which one to start"))?;
    asks.allows_flow(&flow)?;
    let others = members.iter().filter(|(key, _)| key.as_str() != "flow");
    let others = others.map(|(key, value)| (key.clone(), value.clone())).collect();
    let mut request = read_start(&flow, &Body::of(others, START)?, None)?;
    request.id = Some(row.id.clone());
    request.by = Some(asks.by(row));
    check_dependencies(app, &request)?;
    let (name, version) = (request.name.clone(), request.version);
    if let Some(known) = known_start(app, &request)? {
        return Err(taken(&flow, &known));
    }
    match app.node.begin(request, false).await {
        Ok(_) => Ok(RowOutcome::Done),
        Err(StartFailure::Exists(known)) if known == row.id => Ok(RowOutcome::Before),
        Err(StartFailure::Exists(known)) => Err(taken(&flow, &known)),
        Err(StartFailure::Refused(StartError::Refused(Rejection::AlreadyStarted))) => Ok(RowOutcome::Before),
        Err(StartFailure::Refused(StartError::NoSuchFlow)) => Err(match version {
            None => no_such_flow(&flow),
            Some(version) => {
                let detail = format!("there is no version {version} of the flow `{flow}`");
                Problem::missing("NoSuchFlow", detail)
            }
        }),
        Err(failure) => Err(not_started(&flow, name.as_ref(), failure)),
    }
}

/// The problem with a name or a key that an execution has.
fn taken(flow: &str, known: &str) -> Problem {
    let detail = format!("the flow `{flow}` has an execution with that name or `onceKey` already: {known}");
    Problem::conflict("ExecutionAlreadyExists", detail)
}

/// Completes a call by its task token.
async fn report(app: &App, asks: &Asks, row: &OutboxRow) -> Answer<RowOutcome> {
    let (members, _room) = members(app, row).await?;
    let text = |key: &str| members.get(key).and_then(Value::as_str).unwrap_or_default();
    let call = app.node.verify(text("token"));
    let call = call.map_err(|_| Problem::missing("InvalidToken", INVALID_TOKEN))?;
    asks.allows_execution(app, &call.execution)?;
    let report = match row.action.as_str() {
        "succeed" => Report::Succeed(members.get("output").cloned().unwrap_or_else(Value::empty_object)),
        _ => Report::Fail {
            error: text("error").to_owned(),
            cause: text("cause").to_owned(),
        },
    };
    let reply = app.node.report(call, report).await?.await;
    match reply.map_err(|_| Problem::stopping())? {
        Reply::Taken | Reply::Left => Ok(RowOutcome::Done),
        // The report that came first may be this one.
        Reply::AlreadyCompleted | Reply::TimedOut if row.again => Ok(RowOutcome::Before),
        Reply::AlreadyCompleted => Err(Problem::conflict("TaskAlreadyCompleted", "another report came first")),
        Reply::TimedOut => {
            let detail = "the call was given up before";
            Err(Problem::new(StatusCode::GONE, "TaskTimedOut", detail))
        }
        Reply::Held | Reply::NoRoom => Err(Problem::held()),
        Reply::SetAside => Err(Problem::set_aside()),
        Reply::InvalidToken | Reply::NoSuchExecution | Reply::NotEnded | Reply::Rejected(_) => {
            Err(Problem::missing("InvalidToken", INVALID_TOKEN))
        }
    }
}

/// Stops an execution.
async fn stop(app: &App, asks: &Asks, row: &OutboxRow) -> Answer<RowOutcome> {
    let (members, _room) = members(app, row).await?;
    let body = Body::of(members, &["id", "error", "cause", "rollback"])?;
    let id = body.text("id")?.unwrap_or_default();
    asks.allows_execution(app, &id)?;
    let cause = body.text("cause")?.map(|cause| cause.to_string()).unwrap_or_default();
    let error = body.text("error")?.map(|error| error.to_string());
    let rollback = body.flag("rollback")?.unwrap_or(false);
    let signal = operator_signals::stop(Some(asks.by(row).to_string()), error, cause, rollback);
    let operator = Operator {
        by: asks.by(row),
        request: Some(row.id.clone()),
    };
    let audit = app.node.audit_entry(&operator, "stop", AuditKind::Execution, &id);
    match app.node.signal_audited(&id, signal, Some(audit)).await? {
        Reply::Taken | Reply::Left => Ok(RowOutcome::Done),
        Reply::Held | Reply::NoRoom => Err(Problem::held()),
        Reply::SetAside => Err(Problem::set_aside()),
        // The stop that ended it may be this one.
        Reply::Rejected(Rejection::Finished) if row.again => Ok(RowOutcome::Before),
        Reply::Rejected(rejection) => Err(rejection.into()),
        _ => {
            let detail = format!("there is no execution {}", quoted(&id));
            Err(Problem::missing("NoSuchExecution", detail))
        }
    }
}
