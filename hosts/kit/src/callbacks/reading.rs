//! Reading reports.

use starbridge_fdl::value::{Object, Value};
use starbridge_runtime::Report;

/// A report from its verb and body.
pub(super) fn read_report(verb: &str, body: &[u8]) -> Result<Report, String> {
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
        "fail" => read_failure(&body).ok_or_else(|| "`error` must be a string".to_owned()),
        other => Err(format!(
            "there is no report `{other}`: use `succeed`, `fail` or `heartbeat`"
        )),
    }
}

/// A report from an entry of a batch.
pub(super) fn read_entry(entry: &Object) -> Option<Report> {
    if entry.contains_key("heartbeat") {
        return Some(Report::Heartbeat);
    }
    match entry.get("output") {
        Some(output) => output.as_object().cloned().map(Report::Succeed),
        None => read_failure(entry),
    }
}

fn read_failure(body: &Object) -> Option<Report> {
    Some(Report::Fail {
        error: body.get("error")?.as_str()?.to_owned(),
        cause: body.get("cause").map(Value::to_plain_text).unwrap_or_default(),
    })
}
