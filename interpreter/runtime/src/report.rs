//! Reading reports. A report with an unknown or wrong member is refused, so that no part of a
//! worker's report is lost.

use crate::engine::Report;
use starbridge_flow::diagnostics::nearest;
use starbridge_flow::diagnostics::quoted;
use starbridge_flow::value::{Object, Value};

/// Reads a report from its verb (the last part of the path) and its body.
///
/// # Errors
///
/// What is wrong with it, for people.
pub fn read_report(verb: &str, body: &[u8]) -> Result<Report, String> {
    let known: &[&str] = match verb {
        "heartbeat" => &["log"],
        "succeed" => &["output", "log"],
        "fail" => &["error", "cause", "log"],
        other => {
            return Err(format!(
                "there is no report {}: use `succeed`, `fail` or `heartbeat`",
                quoted(other)
            ));
        }
    };
    let body: Object = match body {
        [] => Object::new(),
        body => serde_json::from_slice(body).map_err(|error| format!("the body is no JSON object: {error}"))?,
    };
    check_members(&body, known)?;
    let report = match verb {
        "heartbeat" => Ok(Report::Heartbeat),
        "succeed" => body
            .get("output")
            .map_or(Ok(Report::Succeed(Value::empty_object())), read_output),
        _ => read_failure(&body),
    };
    with_log(report?, &body)
}

/// Reads a token and its report from one entry of a batch.
///
/// # Errors
///
/// What is wrong with the entry, for people.
pub fn read_entry(entry: &Value) -> Result<(String, Report), String> {
    let entry = entry
        .as_object()
        .ok_or_else(|| format!("a report is an object, not {}", entry.kind()))?;
    check_members(entry, &["token", "output", "error", "cause", "heartbeat", "log"])?;
    let token = entry.get("token").and_then(Value::as_str);
    let token = token.ok_or("`token` must be a string")?;
    let report = match (entry.get("output"), entry.get("error"), entry.get("heartbeat")) {
        (Some(output), None, None) => read_output(output),
        (None, Some(_), None) => read_failure(entry),
        (None, None, Some(Value::Bool(true))) => Ok(Report::Heartbeat),
        (None, None, Some(_)) => Err("`heartbeat` can only be true".to_owned()),
        _ => Err("a report has one of `output`, `error` and `heartbeat`".to_owned()),
    };
    Ok((token.to_owned(), with_log(report?, entry)?))
}

/// The report with the member `log`, if there is one.
fn with_log(report: Report, body: &Object) -> Result<Report, String> {
    let Some(log) = body.get("log") else {
        return Ok(report);
    };
    let log = log.as_str().ok_or("`log` must be a string")?.to_owned();
    let report = Box::new(report);
    Ok(Report::Logged { report, log })
}

fn check_members(body: &Object, known: &[&str]) -> Result<(), String> {
    let Some((key, _)) = body.iter().find(|(key, _)| !known.contains(&key.as_str())) else {
        return Ok(());
    };
    let hint = match (nearest(key, known.iter().copied()), known) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, known) => format!("known are {}", known.join(", ")),
    };
    Err(format!("there is no member {} here: {hint}", quoted(key)))
}

fn read_output(output: &Value) -> Result<Report, String> {
    let object = output.as_object().map(|_| Report::Succeed(output.clone()));
    object.ok_or_else(|| format!("`output` must be an object, not {}", output.kind()))
}

fn read_failure(body: &Object) -> Result<Report, String> {
    let error = body.get("error").and_then(Value::as_str);
    Ok(Report::Fail {
        error: error.ok_or("`error` must be a string")?.to_owned(),
        cause: body.get("cause").map(Value::to_plain_text).unwrap_or_default(),
    })
}
