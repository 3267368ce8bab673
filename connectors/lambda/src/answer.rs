//! Turns a function's answer into an outcome.

use starbridge_aws::{ServiceError, ServiceErrorKind};
use starbridge_flow::graph::{FaultKind, Origin, Pattern};
use starbridge_flow::value::{Object, Value};
use starbridge_ports::{Outcome, Request, ResourceFamily};

/// How many characters of an answer are quoted in a message.
const QUOTED_CHARS: usize = 200;

/// The answer of Lambda to an invocation.
pub(crate) struct Answer {
    /// Set if the function itself failed.
    pub error: Option<String>,
    pub payload: Vec<u8>,
    pub status: i32,
}

/// The outcome of a call with this answer. `awaited`: the answer is the function's own.
pub(crate) fn outcome(request: &Request, answer: &Answer, awaited: bool) -> Outcome {
    if answer.error.is_some() {
        return function_error(request, &answer.payload);
    }
    if request.pattern == Pattern::WaitForCallback {
        // The answer is the acceptance. Its content can't take it back.
        return Outcome::Accepted {
            receipt: Some(status(answer)),
        };
    }
    if !awaited {
        return Outcome::Result(status(answer));
    }
    let limit = request.answer_limit;
    if answer.payload.len() > limit {
        let cause = format!("the answer has more than the {limit} bytes it may have");
        return Outcome::failed(FaultKind::TooLarge, cause);
    }
    match parse(&answer.payload) {
        // A function without a return value answers `null`.
        Ok(Value::Null) => Outcome::Result(Object::new().into()),
        Ok(value) => Outcome::Result(value),
        Err(error) => {
            let cause = format!(
                "the answer is no JSON: {error}; begins with `{}`",
                excerpt(&answer.payload)
            );
            Outcome::failed(FaultKind::Result, cause)
        }
    }
}

fn status(answer: &Answer) -> Value {
    let mut said = Object::new();
    said.insert("StatusCode".into(), i64::from(answer.status).into());
    said.into()
}

fn parse(payload: &[u8]) -> Result<Value, serde_json::Error> {
    match payload.trim_ascii() {
        [] => Ok(Value::Null),
        text => serde_json::from_slice(text),
    }
}

/// The failure of a function that answered with an error, under the name from the answer.
fn function_error(request: &Request, payload: &[u8]) -> Outcome {
    let body = match parse(payload) {
        Ok(Value::Object(body)) => body,
        _ => Object::new(),
    };
    let member = |names: [&str; 2]| {
        let found = names.into_iter().find_map(|name| body.get(name));
        found.map(Value::to_plain_text).filter(|text| !text.trim().is_empty())
    };
    let cause = member(["errorMessage", "cause"]).unwrap_or_else(|| excerpt(payload));
    let named = member(["errorType", "error"]);
    // Old runtimes report a timeout with a message and without a type.
    let timed_out = match &named {
        Some(name) => name == "Sandbox.Timedout",
        None => cause.contains("Task timed out after"),
    };
    let error = match named {
        _ if timed_out => "Lambda.Timedout".into(),
        Some(name) => FaultKind::Outside(Origin::Function, name.into()),
        None if request.via == ResourceFamily::FunctionCompute => "FC.Unknown".into(),
        None => "Lambda.Unknown".into(),
    };
    Outcome::failed(error, cause)
}

/// The outcome of a call that did not reach the function, or whose answer did not arrive.
pub(crate) fn failed(request: &Request, mut fault: ServiceError, shown: &str) -> Outcome {
    let of_compute = request.via == ResourceFamily::FunctionCompute;
    let name = match &fault.kind {
        ServiceErrorKind::Throttled if of_compute => Some("FC.ResourceThrottled"),
        ServiceErrorKind::Other(_) if of_compute && !fault.refused => Some("FC.InternalServerError"),
        _ => None,
    };
    if let Some(name) = name {
        return Outcome::Failed {
            error: name.into(),
            cause: format!("{shown}: {}", fault.cause),
            retry_after: fault.retry_after,
        };
    }
    if fault.kind == ServiceErrorKind::Throttled {
        // The service's own name for it, which existing flows match.
        fault.kind = ServiceErrorKind::Other("TooManyRequestsException".to_owned());
    }
    fault.outcome("Lambda", shown)
}

fn excerpt(payload: &[u8]) -> String {
    let start = payload.get(..QUOTED_CHARS * 4).unwrap_or(payload);
    let text = String::from_utf8_lossy(start);
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(QUOTED_CHARS).map(plain).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use starbridge_fdl::FAULT_NAMES;
    use starbridge_ports::CallIds;

    pub(crate) fn request() -> Request {
        let input: Value = serde_json::from_str(r#"{"a": "é"}"#).unwrap();
        Request {
            target: "lambda:f".to_owned(),
            via: ResourceFamily::Direct,
            pattern: Pattern::RequestResponse,
            input,
            params: None,
            keys: CallIds {
                idempotency: "e/3".to_owned(),
                step_visit: "e/2".to_owned(),
                execution: "e".to_owned(),
                flow: "f".to_owned(),
                step: "schritt ü".to_owned(),
                traceparent: None,
            },
            attempt: 1,
            rollback: false,
            polling: false,
            follow: false,
            timeout_at: None,
            answer_limit: 100,
        }
    }

    fn answer(payload: &str, error: bool) -> Answer {
        Answer {
            error: error.then(|| "Unhandled".to_owned()),
            payload: payload.as_bytes().to_vec(),
            status: 200,
        }
    }

    #[test]
    fn answers_are_results() {
        let of = |payload: &str| outcome(&request(), &answer(payload, false), true);
        let result = |json: &str| Outcome::Result(serde_json::from_str(json).unwrap());
        assert_eq!(of(r#"{"b": "星"}"#), result(r#"{"b": "星"}"#));
        assert_eq!(of("null"), result("{}"));
        assert_eq!(of(""), result("{}"));
        assert_eq!(of("[1]"), result("[1]"), "the machine says what is wrong with it");
        let failed = |payload: &str| match of(payload) {
            Outcome::Failed { error, .. } => FAULT_NAMES.name(&error),
            other => panic!("{other:?}"),
        };
        assert_eq!(failed("nonsense"), "FnF.InvalidLocal");
        assert_eq!(failed(&format!("\"{}\"", "x".repeat(99))), "FnF.PayloadTooLarge");
        let mut waiting = request();
        waiting.pattern = Pattern::WaitForCallback;
        let receipt = Some(serde_json::from_str(r#"{"StatusCode": 200}"#).unwrap());
        assert_eq!(
            outcome(&waiting, &answer("nonsense", false), true),
            Outcome::Accepted { receipt }
        );
        assert_eq!(
            outcome(&request(), &answer("", false), false),
            result(r#"{"StatusCode": 200}"#)
        );
    }

    #[test]
    fn function_errors_keep_their_names() {
        for (payload, error, cause) in [
            (
                r#"{"errorType": "NoMoney", "errorMessage": "too little"}"#,
                "NoMoney",
                "too little",
            ),
            (
                r#"{"error": "NoMoney", "cause": "too little"}"#,
                "NoMoney",
                "too little",
            ),
            (
                r#"{"errorType": "Sandbox.Timedout", "errorMessage": "Task timed out after 3.00 seconds"}"#,
                "Lambda.Timedout",
                "Task timed out after 3.00 seconds",
            ),
            (
                r#"{"errorMessage": "2026 id Task timed out after 3.00 seconds"}"#,
                "Lambda.Timedout",
                "2026 id Task timed out after 3.00 seconds",
            ),
            (r#"{"errorMessage": "boom"}"#, "Lambda.Unknown", "boom"),
            (
                r#"{"errorType": " ", "errorMessage": "boom"}"#,
                "Lambda.Unknown",
                "boom",
            ),
            (
                r#"{"errorType": "FnF.Stopped", "errorMessage": "boom"}"#,
                "Function.FnF.Stopped",
                "boom",
            ),
            ("boom", "Lambda.Unknown", "boom"),
        ] {
            let found = match outcome(&request(), &answer(payload, true), true) {
                Outcome::Failed { error, cause, .. } => (FAULT_NAMES.name(&error).to_string(), cause),
                other => panic!("{other:?}"),
            };
            assert_eq!(found, (error.to_owned(), cause.to_owned()), "{payload}");
        }
        let mut compute = request();
        compute.via = ResourceFamily::FunctionCompute;
        let unknown = outcome(&compute, &answer("boom", true), true);
        assert_eq!(unknown, Outcome::failed("FC.Unknown", "boom"));
    }

    #[test]
    fn refusals_have_the_services_names() {
        let of = |via: ResourceFamily, code: &str, refused: bool| {
            let mut request = request();
            request.via = via;
            let mut fault = ServiceError::of_code(code, "why");
            fault.refused = refused;
            match failed(&request, fault, "function `f`") {
                Outcome::Failed { error, cause, .. } => {
                    assert_eq!(cause, "function `f`: why");
                    FAULT_NAMES.name(&error)
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            of(ResourceFamily::Direct, "ResourceNotFoundException", true),
            "Lambda.ResourceNotFoundException"
        );
        assert_eq!(
            of(ResourceFamily::Direct, "TooManyRequestsException", true),
            "Lambda.TooManyRequestsException"
        );
        assert_eq!(
            of(ResourceFamily::Direct, "AccessDeniedException", true),
            "Lambda.AccessDenied"
        );
        assert_eq!(
            of(ResourceFamily::FunctionCompute, "TooManyRequestsException", true),
            "FC.ResourceThrottled"
        );
        assert_eq!(
            of(ResourceFamily::FunctionCompute, "ServiceException", false),
            "FC.InternalServerError"
        );
        assert_eq!(
            of(ResourceFamily::FunctionCompute, "ResourceNotFoundException", true),
            "Lambda.ResourceNotFoundException"
        );
    }
}
