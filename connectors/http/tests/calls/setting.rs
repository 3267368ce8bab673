//! Calls and connectors for tests.

use starbridge_connector_http::{HttpConnector, HttpSettings};
use starbridge_fdl::FAULT_NAMES;
use starbridge_flow::graph::{FaultKind, Pattern};

use starbridge_flow::value::Value;
use starbridge_ports::{CallIds, Connector, Outcome, Request, ResourceFamily};

/// A JSON value from its text.
pub fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// An ordinary call with the input `{"a":1}`.
pub fn request(target: &str) -> Request {
    Request {
        target: target.to_owned(),
        via: ResourceFamily::Direct,
        pattern: Pattern::RequestResponse,
        input: value("{\"a\":1}"),
        params: None,
        keys: CallIds {
            idempotency: "exec-1:7".to_owned(),
            step_visit: "exec-1:5".to_owned(),
            execution: "exec-1".to_owned(),
            flow: "order".to_owned(),
            step: "take the money".to_owned(),
            traceparent: None,
        },
        attempt: 2,
        rollback: false,
        polling: false,
        follow: false,
        timeout_at: None,
        answer_limit: 1024,
    }
}

/// A connector with the settings of `exec`.
pub fn connector() -> HttpConnector {
    HttpConnector::new(HttpSettings::default())
}

/// The outcome of one call.
pub async fn outcome(request: Request) -> Outcome {
    connector().call(request).await
}

/// Name, cause and delay of a failure.
pub fn failure(outcome: Outcome) -> (String, String, Option<u64>) {
    match outcome {
        Outcome::Failed {
            error,
            cause,
            retry_after,
        } => {
            assert_ne!(error, FaultKind::Resource, "who names it so was not called: {cause}");
            (
                FAULT_NAMES.name(&error).to_string(),
                cause,
                retry_after.map(|asked| asked.0),
            )
        }
        Outcome::NotSent { error, cause } => (FAULT_NAMES.name(&error).to_string(), cause, None),
        other => panic!("expected a failure, not {other:?}"),
    }
}
