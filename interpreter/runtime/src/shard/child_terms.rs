//! Reading the order and time of a child from the parameters of the call that starts it.

use super::{StartRequest, StartTime};
use crate::after::read_after;
use crate::flows::FlowTable;
use starbridge_flow::limits::{ONCE_KEY_BYTES, START_DELAY};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Object, Text, Value};

/// The highest priority.
const PRIORITIES: u64 = 9;

/// Reads these parameters into the start of a child.
///
/// # Errors
///
/// Which parameter is wrong, and what it should be.
pub(super) fn read_terms(params: &Object, request: &mut StartRequest) -> Result<(), String> {
    if let Some(value) = params.get("OnceKey") {
        let key = value.as_str().filter(|key| (1..=ONCE_KEY_BYTES).contains(&key.len()));
        let wrong = || format!("the child's `OnceKey` must be a text of 1 to {ONCE_KEY_BYTES} bytes");
        request.once_key = Some(Text::from(key.ok_or_else(wrong)?));
    }
    if let Some(value) = params.get("Priority") {
        let priority = whole(value).filter(|priority| *priority <= PRIORITIES);
        let priority = priority.and_then(|priority| u8::try_from(priority).ok());
        let wrong = || format!("the child's `Priority` must be a whole number from 0 to {PRIORITIES}");
        request.priority = Some(priority.ok_or_else(wrong)?);
    }
    if let Some(value) = params.get("OrderTime") {
        let order = match value {
            Value::String(text) => Timestamp::parse(text).map(|time| time.0),
            other => other.as_number().and_then(|number| number.as_i64()),
        };
        let wrong = || "the child's `OrderTime` must be a whole number or an RFC 3339 time".to_owned();
        request.order_time = Some(order.ok_or_else(wrong)?);
    }
    request.time = match (params.get("StartAt"), params.get("DelaySeconds")) {
        (None, None) => StartTime::Now,
        (Some(_), Some(_)) => return Err("the child has `StartAt` and `DelaySeconds`: give one of them".to_owned()),
        (Some(time), None) => {
            let time = time.as_str().and_then(Timestamp::parse);
            StartTime::At(time.ok_or_else(|| "the child's `StartAt` must be an RFC 3339 time".to_owned())?)
        }
        (None, Some(delay)) => StartTime::After(seconds("DelaySeconds", delay, 0)?),
    };
    if let Some(value) = params.get("StartDeadlineSeconds") {
        request.deadline = Some(seconds("StartDeadlineSeconds", value, 1)?);
    }
    if let Some(value) = params.get("After") {
        request.after = read_after(value, &request.flow).map_err(|why| format!("the child's `After`: {why}"))?;
    }
    Ok(())
}

/// The error of a child that would wait for an execution of a flow that does not exist: it would wait forever.
/// A start over the API is refused earlier.
pub(super) fn unknown_dependency(request: &StartRequest, flows: &FlowTable) -> Option<String> {
    let mut others = request
        .after
        .iter()
        .filter_map(|other| Some((other.flow.as_ref()?, other)));
    let (flow, other) = others.find(|(flow, _)| **flow != request.flow && !flows.has(flow))?;
    Some(format!(
        "UnknownDependency: the child's `After` has `{flow}/{}`, and there is no flow `{flow}`: put it first",
        other.execution
    ))
}

fn whole(value: &Value) -> Option<u64> {
    value.as_number().and_then(|number| number.as_u64())
}

fn seconds(name: &str, value: &Value, least: u64) -> Result<Millis, String> {
    let most = START_DELAY.0;
    let seconds = whole(value).filter(|seconds| (least..=most).contains(seconds));
    let wrong = || format!("the child's `{name}` must be a whole number from {least} to {most}");
    seconds.map(Millis::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<StartRequest, String> {
        let mut request = StartRequest {
            flow: "child".into(),
            ..StartRequest::default()
        };
        read_terms(&serde_json::from_str(json).unwrap(), &mut request).map(|()| request)
    }

    #[test]
    fn parameters_are_the_members_of_a_start() {
        let read = read(
            r#"{"OnceKey": "k", "Priority": 9, "OrderTime": "1970-01-01T00:00:01Z", "DelaySeconds": 2, "StartDeadlineSeconds": 3,
                "After": ["a", "other/b"], "Input": {}}"#,
        )
        .unwrap();
        assert_eq!(read.once_key.as_deref(), Some("k"));
        assert_eq!((read.priority, read.order_time), (Some(9), Some(1_000)));
        assert_eq!(
            (read.time, read.deadline),
            (StartTime::After(Millis(2_000)), Some(Millis(3_000)))
        );
        let flows: Vec<_> = read.after.iter().map(|after| after.flow.as_deref()).collect();
        assert_eq!(flows, [Some("child"), Some("other")]);
    }

    #[test]
    fn wrong_parameters_are_named() {
        for (json, name) in [
            (r#"{"Priority": 10}"#, "`Priority`"),
            (r#"{"OnceKey": ""}"#, "`OnceKey`"),
            (r#"{"OnceKey": 7}"#, "1 to 256 bytes"),
            (r#"{"OrderTime": 1.5}"#, "`OrderTime`"),
            (r#"{"StartAt": 7}"#, "`StartAt`"),
            (r#"{"StartAt": "2030-01-01T00:00:00Z", "DelaySeconds": 1}"#, "give one"),
            (r#"{"DelaySeconds": -1}"#, "`DelaySeconds`"),
            (r#"{"DelaySeconds": 3153600001}"#, "from 0 to 3153600000"),
            (r#"{"StartDeadlineSeconds": 0}"#, "`StartDeadlineSeconds`"),
            (r#"{"StartDeadlineSeconds": 99999999999999}"#, "from 1 to 3153600000"),
            (r#"{"After": "a"}"#, "`After`"),
        ] {
            let error = read(json).unwrap_err();
            assert!(error.contains(name), "{json}: {error}");
        }
    }
}
