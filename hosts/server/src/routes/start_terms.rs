//! What a start says of its order and time.

use crate::reading::Body;
use starbridge_flow::limits::ONCE_KEY_BYTES;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Text, Value};
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_runtime::{StartRequest, StartTime, read_after};

/// The highest priority.
const PRIORITIES: u64 = 9;

/// Reads the members of a start's body that say when and in which order it runs.
pub(super) fn read_terms(body: &Body, request: &mut StartRequest) -> Answer<()> {
    if let Some(after) = body.get("after") {
        request.after = read_after(after, &request.flow).map_err(Problem::bad)?;
    }
    request.once_key = once_key(body)?;
    request.priority = priority(body)?;
    request.order_time = order_time(body)?;
    request.time = time(body)?;
    request.deadline = match body.number("startDeadlineSeconds")? {
        Some(0) => {
            let detail = "`startDeadlineSeconds` must be at least 1: leave it out to wait without an end";
            return Err(Problem::bad(detail));
        }
        seconds => seconds.map(Millis::from_secs),
    };
    Ok(())
}

fn once_key(body: &Body) -> Answer<Option<Text>> {
    let key = body.text("onceKey")?;
    match key.as_ref().map(|key| key.len()) {
        Some(0) => Err(Problem::bad(
            "`onceKey` must not be empty: leave it out to start anew each time",
        )),
        Some(bytes) if bytes > ONCE_KEY_BYTES => Err(Problem::bad(format!(
            "`onceKey` has {bytes} bytes, more than the limit of {ONCE_KEY_BYTES}"
        ))),
        _ => Ok(key),
    }
}

fn priority(body: &Body) -> Answer<Option<u8>> {
    let given = body.number("priority")?;
    match given.filter(|priority| *priority > PRIORITIES) {
        Some(priority) => Err(Problem::bad(format!(
            "`priority` must be a whole number from 0 to {PRIORITIES}, not {priority}"
        ))),
        None => Ok(given.and_then(|priority| u8::try_from(priority).ok())),
    }
}

/// A whole number, or the milliseconds since 1970 of a time.
fn order_time(body: &Body) -> Answer<Option<i64>> {
    let Some(value) = body.get("orderTime") else {
        return Ok(None);
    };
    let read = match value {
        Value::String(text) => Timestamp::parse(text).map(|time| time.0),
        other => other.as_number().and_then(|number| number.as_i64()),
    };
    read.map(Some).ok_or_else(|| {
        let detail = format!(
            "`orderTime` must be a whole number or an RFC 3339 time, not {}",
            given(value)
        );
        Problem::bad(detail)
    })
}

fn time(body: &Body) -> Answer<StartTime> {
    let delay = body.number("delaySeconds")?;
    match (body.text("startAt")?, delay) {
        (Some(_), Some(_)) => Err(Problem::bad(
            "`startAt` and `delaySeconds` both say when it begins: give one of them",
        )),
        (None, Some(seconds)) => Ok(StartTime::After(Millis::from_secs(seconds))),
        (None, None) => Ok(StartTime::Now),
        (Some(time), None) => Timestamp::parse(&time).map(StartTime::At).ok_or_else(|| {
            let time = quoted(&time);
            Problem::bad(format!("`startAt` must be an RFC 3339 time, not {time}"))
        }),
    }
}

/// A value as a problem shows it.
fn given(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) => quoted(&number.to_string()),
        other => other.kind().to_owned(),
    }
}
