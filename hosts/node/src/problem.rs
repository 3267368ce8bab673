//! Problems: errors of the API in the form of RFC 9457, with stable codes.

use crate::codes;
use crate::node::{FollowError, ForkRefusal, NoWaitPermit, NotTaken, QueryError};
use crate::offload::NotDone;
use crate::replay::Divergence;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
pub use starbridge_flow::diagnostics::quoted;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::Rejection;
use starbridge_ports::StoreError;

/// Why a report with a token that is not ours changes nothing.
pub const INVALID_TOKEN: &str = "the token is not one of ours, or its execution is gone";

/// The detail of problems with an execution that is set aside.
pub const SET_ASIDE: &str = "the execution is set aside (`starbridge list --reason broken` says why): this can be sent \
                             again once an operator lets it go on (`starbridge redrive`), and is for nothing if they stop it";

/// Why a request fails.
#[derive(Debug)]
pub struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    more: serde_json::Map<String, serde_json::Value>,
}

/// An answer, or a problem.
pub type Answer<T = Response> = Result<T, Problem>;

impl Problem {
    /// A problem with this status, code and detail.
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            more: serde_json::Map::new(),
        }
    }

    /// The request is malformed.
    pub fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", detail)
    }

    /// The request names something that does not exist.
    pub fn missing(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, detail)
    }

    /// Too many requests are waiting.
    pub fn busy() -> Self {
        let detail = "too many requests wait already: try again later";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "Busy", detail)
    }

    /// Another process has the execution.
    pub fn held() -> Self {
        let detail = "the execution is being worked on elsewhere: try again in a few seconds";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ExecutionBusy", detail)
    }

    /// Large executions take all the memory they may have.
    pub fn no_room() -> Self {
        let detail = "large executions that run take all the memory there is for them (`runtime.hot_bytes`): try again when some of \
                      them have ended";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "TooManyLargeExecutions", detail)
    }

    /// The execution is set aside and only takes signals of operators.
    pub fn set_aside() -> Self {
        Self::new(StatusCode::CONFLICT, "ExecutionSetAside", SET_ASIDE)
    }

    /// The request does not fit the current state.
    pub fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// The execution has not ended.
    pub fn not_ended() -> Self {
        Self::conflict("NotEnded", "the execution has not ended: stop it first")
    }

    /// An execution is not deleted because its parent may need it.
    pub fn needed_by_parent() -> Self {
        let detail =
            "the execution that started it has not ended and may have to undo it: wait for that one, or stop it";
        Self::conflict("NotEnded", detail)
    }

    /// The server is stopping.
    pub fn stopping() -> Self {
        let detail = "the server is stopping: try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Stopping", detail)
    }

    /// The server failed, and the request is not the cause.
    pub fn not_done() -> Self {
        let detail = "the request could not be carried out";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal", detail)
    }

    /// Adds a member.
    #[must_use]
    pub fn with(mut self, key: &str, value: serde_json::Value) -> Self {
        self.more.insert(key.to_owned(), value);
        self
    }

    /// Changes the detail, which `words` gets as it is.
    #[must_use]
    pub fn with_detail(mut self, words: impl FnOnce(&str) -> String) -> Self {
        self.detail = words(&self.detail);
        self
    }

    /// The code, which programs can rely on.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The detail, for people.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    fn body(&self) -> serde_json::Value {
        let mut body = serde_json::json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Some(body) = body.as_object_mut() {
            body.extend(self.more.clone());
        }
        body
    }

    /// The problem as a part of another answer.
    pub fn to_value(&self) -> Value {
        Value::from(&self.body())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.body();
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if matches!(self.status.as_u16(), 429 | 503) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// Details of a store, such as its path, are only for the operator of the server.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let (status, code, detail) = match &error {
            StoreError::BadCursor => return Self::bad("`cursor` must be `next` of the page before"),
            StoreError::Corrupt(_) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "Corrupt",
                "what is kept can't be read: the server's log says why",
            ),
            StoreError::Unavailable(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "StoreUnavailable",
                "the store can't be reached just now: the server's log says why",
            ),
            StoreError::Conflict | StoreError::Held(_) | StoreError::Over => {
                return Self::new(StatusCode::SERVICE_UNAVAILABLE, "StoreUnavailable", error.to_string());
            }
        };
        tracing::error!(%error, code, "a request can't be answered");
        Self::new(status, code, detail)
    }
}

impl From<QueryError> for Problem {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::NoSuchExecution => Self::missing("NoSuchExecution", error.to_string()),
            QueryError::NoSuchEvent(_) => Self::missing("NoSuchEvent", error.to_string()),
            QueryError::Store(error) => error.into(),
        }
    }
}

impl From<ForkRefusal> for Problem {
    fn from(refusal: ForkRefusal) -> Self {
        match refusal {
            ForkRefusal::Query(error) => error.into(),
            ForkRefusal::NoSuchVersion { flow, version } => {
                Self::missing("NoSuchFlow", format!("the flow `{flow}` has no version {version}"))
            }
            ForkRefusal::DoesNotFit(divergence) => (*divergence).into(),
            ForkRefusal::InvalidKey(why) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, "InvalidConcurrencyKey", why),
        }
    }
}

/// A different definition would have done something else.
impl From<Divergence> for Problem {
    fn from(divergence: Divergence) -> Self {
        let detail = format!(
            "the definition or the input does not fit what was done: something else would be done from event {} on{}",
            divergence.event,
            match divergence.event.0 {
                0 | 1 => "",
                _ => "; a fork from an earlier event can have it",
            }
        );
        let event = |event: Option<Object>| event.map_or(serde_json::Value::Null, |event| json_of(&event.into()));
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "DefinitionDoesNotFit", detail)
            .with("event", divergence.event.0.into())
            .with("recorded", event(divergence.recorded))
            .with("expected", event(divergence.expected));
        match divergence.refused {
            Some(why) => problem.with("why", why.into()),
            None => problem,
        }
    }
}

/// A value in the form of problems.
fn json_of(value: &Value) -> serde_json::Value {
    serde_json::from_str(&value.to_json()).unwrap_or_default()
}

impl From<NoWaitPermit> for Problem {
    fn from(NoWaitPermit { most, setting }: NoWaitPermit) -> Self {
        let detail = format!("as many requests wait already as may at a time ({most}, `{setting}`): try again later");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "TooManyWaiting", detail)
    }
}

impl From<FollowError> for Problem {
    fn from(error: FollowError) -> Self {
        match error {
            FollowError::Look(error) => error.into(),
            FollowError::NoWaitPermit(none) => none.into(),
        }
    }
}

impl From<NotTaken> for Problem {
    fn from(not_taken: NotTaken) -> Self {
        match not_taken {
            NotTaken::Stopping => Self::stopping(),
            NotTaken::Busy => Self::busy(),
        }
    }
}

impl From<NotDone> for Problem {
    fn from(_: NotDone) -> Self {
        Self::not_done()
    }
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Self {
        let (status, code) = codes::of_rejection(&rejection);
        let detail = match rejection {
            Rejection::NotStarted => {
                "the execution waits to begin: it can be stopped or paused, and everything else once it has begun"
                    .to_owned()
            }
            Rejection::NotRedrivable => {
                format!("{rejection}: stop one that has not ended, fork one that has succeeded")
            }
            other => other.to_string(),
        };
        Self::new(status, code, detail)
    }
}

/// A complete body.
///
/// # Errors
///
/// The problem to answer with: it is too large or was cut off.
pub fn whole(body: Result<Bytes, BytesRejection>) -> Answer<Bytes> {
    body.map_err(|error| match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "BodyTooLarge",
            "the body is larger than this server takes",
        ),
        _ => Problem::bad(format!("the body can't be read: {error}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_hides_what_a_store_says() {
        let why = || "/srv/flows.db: too many SQL variables".to_owned();
        for (error, status) in [(StoreError::Unavailable(why()), 503), (StoreError::Corrupt(why()), 500)] {
            let problem = Problem::from(error);
            assert_eq!(problem.status().as_u16(), status);
            let told = problem.to_value().to_json();
            assert!(!told.contains("flows.db") && !told.contains("SQL"), "{told}");
        }
        assert_eq!(Problem::from(StoreError::BadCursor).status().as_u16(), 400);
    }
}
