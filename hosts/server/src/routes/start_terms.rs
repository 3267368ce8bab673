//! The order and time of a start.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use starbridge_flow::limits::{ONCE_KEY_BYTES, START_DELAY};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Text, Value};
use starbridge_node::http::reading::Body;
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_runtime::{StartRequest, StartTime, read_after};
use std::convert::Infallible;

/// Bytes of a trace context of a later version.
const LONGEST: usize = 256;
/// The header with a trace context.
static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The highest priority.
const PRIORITIES: u64 = 9;

/// Reads the members of a start's body about its order and time.
pub(super) fn read_terms(body: &Body, request: &mut StartRequest) -> Answer<()> {
    if let Some(after) = body.get("after") {
        request.after = read_after(after, &request.flow).map_err(Problem::bad)?;
    }
    request.once_key = once_key(body)?;
    request.priority = priority(body)?;
    request.traceparent = traceparent(body)?.or(request.traceparent.take());
    request.order_time = order_time(body)?;
    request.time = time(body)?;
    request.deadline = match span(body, "startDeadlineSeconds")? {
        Some(Millis::ZERO) => {
            let detail = "`startDeadlineSeconds` must be at least 1: leave it out to wait without an end";
            return Err(Problem::bad(detail));
        }
        span => span,
    };
    Ok(())
}

/// A number of seconds within reasonable bounds.
fn span(body: &Body, member: &str) -> Answer<Option<Millis>> {
    match body.number(member)? {
        Some(seconds) if seconds > START_DELAY.0 => {
            let most = START_DELAY.0;
            let detail = format!("`{member}` must be at most {most}, a hundred years, not {seconds}");
            Err(Problem::bad(detail))
        }
        seconds => Ok(seconds.map(Millis::from_secs)),
    }
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

fn traceparent(body: &Body) -> Answer<Option<Text>> {
    let given = body.text("traceparent")?;
    match given.as_ref().filter(|text| !is_traceparent(text)) {
        None => Ok(given),
        Some(text) => Err(Problem::bad(format!(
            "`traceparent` must be a W3C trace context such as `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`, not {}",
            quoted(text)
        ))),
    }
}

/// The trace context of a request. An invalid one is ignored, as W3C requires.
pub(super) fn traceparent_of(headers: &HeaderMap) -> Option<Text> {
    let given = headers.get(&TRACEPARENT)?.to_str().ok()?.trim();
    is_traceparent(given).then(|| given.into())
}

/// The trace context of a request, as [`traceparent_of`] reads it.
pub(super) struct TraceParent(pub(super) Option<Text>);

impl<S: Sync> FromRequestParts<S> for TraceParent {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(traceparent_of(&parts.headers)))
    }
}

/// Whether this is a W3C trace context of version 00, or begins like one in a later version.
fn is_traceparent(text: &str) -> bool {
    let mut parts = text.splitn(5, '-');
    let mut part = |len: usize| {
        let part = parts.next().unwrap_or_default();
        let hex = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (hex && part.len() == len).then_some(part)
    };
    let (Some(version), Some(trace), Some(parent), Some(_)) = (part(2), part(32), part(16), part(2)) else {
        return false;
    };
    let zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    let more = parts.next();
    version != "ff" && !zero(trace) && !zero(parent) && (version != "00" || more.is_none()) && text.len() <= LONGEST
}

pub(super) fn priority(body: &Body) -> Answer<Option<u8>> {
    let given = body.number("priority")?;
    match given.filter(|priority| *priority > PRIORITIES) {
        Some(priority) => Err(Problem::bad(format!(
            "`priority` must be a whole number from 0 to {PRIORITIES}, not {priority}"
        ))),
        None => Ok(given.and_then(|priority| u8::try_from(priority).ok())),
    }
}

/// A whole number, or the milliseconds since 1970 of a time.
pub(super) fn order_time(body: &Body) -> Answer<Option<i64>> {
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
    let delay = span(body, "delaySeconds")?;
    match (body.text("startAt")?, delay) {
        (Some(_), Some(_)) => Err(Problem::bad(
            "`startAt` and `delaySeconds` both say when it begins: give one of them",
        )),
        (None, Some(delay)) => Ok(StartTime::After(delay)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trace_contexts_are_taken() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let zero = "0".repeat(32);
        for (text, taken) in [
            (format!("00-{trace}-00f067aa0ba902b7-01"), true),
            (format!("01-{trace}-00f067aa0ba902b7-01-more"), true),
            (format!("00-{trace}-00f067aa0ba902b7-01-more"), false),
            (format!("ff-{trace}-00f067aa0ba902b7-01"), false),
            (format!("00-{zero}-00f067aa0ba902b7-01"), false),
            (format!("00-{trace}-0000000000000000-01"), false),
            (format!("00-{trace}-00F067AA0BA902B7-01"), false),
            (format!("00-{trace}-00f067aa0ba902b7"), false),
            (format!("00-{trace}-00f067aa0ba902b7-01\r\nx: y"), false),
            (format!("01-{trace}-00f067aa0ba902b7-01-{}", "x".repeat(300)), false),
            (String::new(), false),
        ] {
            assert_eq!(is_traceparent(&text), taken, "{text}");
        }
    }
}
