//! The kinds of events: a direct invocation, messages of a queue, a request over HTTP, or a scheduled sweep.

use crate::Failure;
use starbridge_flow::value::Value;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request to run a flow.
    Direct,
    /// Messages of SQS.
    Batch,
    /// A request to a function URL, or to API Gateway with payloads of version 2.0.
    Web,
    /// A schedule of EventBridge.
    Sweep,
}

/// Distinguishes events by members that only one kind has.
pub(crate) fn kind(event: &Value) -> Result<Kind, Failure> {
    let member = |key: &str| event.get(key);
    let text = |key: &str| member(key).and_then(Value::as_str);
    if let Some(records) = member("Records").and_then(Value::as_array) {
        let source = records.values().first().and_then(|record| record.get("eventSource"));
        return match source.and_then(Value::as_str) {
            Some("aws:sqs") | None => Ok(Kind::Batch),
            Some(other) => Err(unknown(&format!("records of `{other}`"))),
        };
    }
    if let Some(context) = member("requestContext") {
        return match (context.get("http"), text("version")) {
            (Some(_), _) => Ok(Kind::Web),
            (None, version) => Err(unknown(&format!(
                "an HTTP request in payload version {}; this reads 2.0",
                version.unwrap_or("1.0")
            ))),
        };
    }
    if let Some("aws.events" | "aws.scheduler") = text("source") {
        return Ok(Kind::Sweep);
    }
    if member("flow").is_some() || member("definition").is_some() {
        return Ok(Kind::Direct);
    }
    Err(unknown(match event {
        Value::Object(_) => "an object of another kind",
        other => other.kind(),
    }))
}

fn unknown(what: &str) -> Failure {
    Failure::new(
        "UnknownEvent",
        format!(
            "the event is {what}: expected `{{\"flow\": NAME, \"input\": {{…}}}}` or `{{\"definition\": {{…}}}}`, records of SQS, \
             a request of a function URL, or a schedule of EventBridge"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Kind, Failure> {
        kind(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn each_kind_is_known_by_its_members() {
        for (text, expected) in [
            (r#"{"flow": "order"}"#, Kind::Direct),
            (r#"{"definition": {}}"#, Kind::Direct),
            (r#"{"Records": [{"eventSource": "aws:sqs"}]}"#, Kind::Batch),
            (r#"{"Records": []}"#, Kind::Batch),
            (r#"{"version": "2.0", "requestContext": {"http": {}}}"#, Kind::Web),
            (
                r#"{"source": "aws.events", "detail-type": "Scheduled Event"}"#,
                Kind::Sweep,
            ),
        ] {
            assert_eq!(of(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_named() {
        for (text, word) in [
            (r#"{"Records": [{"eventSource": "aws:s3"}]}"#, "records of `aws:s3`"),
            (r#"{"requestContext": {"stage": "x"}}"#, "payload version 1.0"),
            ("[]", "an array"),
            ("7", "a number"),
            ("{}", "an object of another kind"),
        ] {
            let failure = of(text).unwrap_err();
            assert_eq!(failure.kind, "UnknownEvent");
            assert!(failure.words.contains(word), "{text}: {}", failure.words);
        }
    }
}
