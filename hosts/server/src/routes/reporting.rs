//! Reporting a callback by hand, in place of whoever has its token.

use super::operating::{answered, audit};
use super::route::Route;
use super::steps::{entered, row_of};
use crate::App;
use crate::scope::Scope;
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use starbridge_flow::value::{Text, Value};
use starbridge_node::http::body::Sent;
use starbridge_node::http::reading::Body;
use starbridge_node::node::Operator;
use starbridge_node::offload;
use starbridge_node::problem::{Answer, Problem};
use starbridge_runtime::{Reply, Report};

pub(super) const ROUTES: &[Route] = &[Route {
    method: "POST",
    path: "/v1/executions/{id}/steps/{event}/report",
    scope: Some(Scope::Operate),
    summary: "Reports the call of a step that waits for a report with its token, without that token",
    query: &[],
    body: Some("ReportByHand"),
    answers: &[
        (200, "the execution", Some("Execution")),
        (404, "there is no such execution or visit", Some("Problem")),
        (
            409,
            "`NotAwaited`: the visit of that event waits for no report; `TaskAlreadyCompleted`: another report came first",
            Some("Problem"),
        ),
    ],
    handler: Some(|| post(report)),
}];

/// `POST /v1/executions/{id}/steps/{event}/report`
async fn report(
    State(app): State<App>,
    Extension(operator): Extension<Operator>,
    Path((id, event)): Path<(String, String)>,
    mut body: Sent,
) -> Answer {
    let event = entered(&event)?;
    let body = body.read(&["action", "output", "error", "cause", "note"]).await?;
    // Only the audit list has the note: it is the operator's, not a part of the report.
    body.text("note")?;
    let report = read_report(&body)?;
    let mut entry = audit(&app, &operator, "report", &id, &body);
    entry.detail.insert("event".into(), event.into());
    let (of, folds) = (id.clone(), app.clone());
    let call = offload::work(usize::MAX, move || {
        let folded = folds.folds.get(&folds.node, &of, None)?;
        let visits = folded.visits();
        Ok::<_, Problem>(row_of(&visits, event)?.awaited_report())
    });
    let call = call.await??.ok_or_else(|| {
        let detail = "the visit of that event waits for no report: `GET …/steps` says what each waits for";
        Problem::conflict("NotAwaited", detail)
    })?;
    let execution = Text::from(id.as_str());
    match app.node.report_by_hand(&execution, call, report, entry).await? {
        Reply::AlreadyCompleted => Err(Problem::conflict("TaskAlreadyCompleted", "another report came first")),
        Reply::TimedOut => {
            let detail = "the call was given up before";
            Err(Problem::new(StatusCode::GONE, "TaskTimedOut", detail))
        }
        reply => answered(&app, &id, reply).await,
    }
}

/// What is reported.
fn read_report(body: &Body) -> Answer<Report> {
    let refuse = |members: &[&str], action: &str| match members.iter().find(|member| body.get(member).is_some()) {
        None => Ok(()),
        Some(member) => Err(Problem::bad(format!(
            "`{member}` has no meaning with `{action}`: leave it out"
        ))),
    };
    match body.text("action")?.as_deref() {
        Some("succeed") => {
            refuse(&["error", "cause"], "succeed")?;
            let output = body.object("output")?.map(Value::from);
            Ok(Report::Succeed(output.unwrap_or_else(Value::empty_object)))
        }
        Some("fail") => {
            refuse(&["output"], "fail")?;
            let error = body.text("error")?;
            let error = error.ok_or_else(|| Problem::bad("`error` is missing: the name of the error"))?;
            Ok(Report::Fail {
                error: error.to_string(),
                cause: body.text("cause")?.map(|cause| cause.to_string()).unwrap_or_default(),
            })
        }
        _ => Err(Problem::bad("`action` must be `succeed` or `fail`")),
    }
}
