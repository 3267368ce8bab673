//! Faults of calls to AWS: their names, and their causes in words.

use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use starbridge_flow::time::Seconds;
use starbridge_ports::{Outcome, outside_wait_of};
use std::error::Error;
use std::io::ErrorKind;

/// How many characters of a service's message are repeated. One about a signature fills a page.
const QUOTED_CHARS: usize = 400;

/// The kind of a service error, as far as it matters to callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceErrorKind {
    /// There was no answer, or none that could be read.
    ConnectionFailed,
    /// There are no credentials.
    CredentialsMissing,
    /// No region is known.
    RegionMissing,
    /// The service refuses the credentials or the requested access.
    AccessDenied,
    /// There are too many requests.
    Throttled,
    /// Anything else, with the service's own code.
    Other(String),
}

impl ServiceErrorKind {
    /// The second part of the error's name in a flow, after the service.
    pub fn name(&self) -> &str {
        match self {
            Self::ConnectionFailed => "ConnectionFailed",
            Self::CredentialsMissing => "CredentialsMissing",
            Self::RegionMissing => "RegionMissing",
            Self::AccessDenied => "AccessDenied",
            Self::Throttled => "Throttled",
            Self::Other(code) => code,
        }
    }

    /// The kind of fault that a service's code means.
    pub fn of_code(code: &str) -> Self {
        // A namespace may precede the code, and a link may follow it.
        let code = code.rsplit('#').next().unwrap_or(code);
        let code = code.split(':').next().unwrap_or(code);
        let code = code.strip_prefix("AWS.SimpleQueueService.").unwrap_or(code);
        // Codes of the key management service are reported under the name of the queue.
        match code.strip_prefix("KMS.").unwrap_or(code) {
            "AccessDenied" | "AccessDeniedException" | "KmsAccessDenied" => Self::AccessDenied,
            bare if REFUSED_CREDENTIALS.contains(&bare) => Self::AccessDenied,
            bare if THROTTLED.contains(&bare) => Self::Throttled,
            _ => Self::Other(code.to_owned()),
        }
    }
}

/// Codes for credentials that are not accepted.
const REFUSED_CREDENTIALS: [&str; 11] = [
    "ExpiredToken",
    "ExpiredTokenException",
    "IncompleteSignature",
    "IncompleteSignatureException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "OptInRequired",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

/// Codes that ask the caller to slow down.
const THROTTLED: [&str; 9] = [
    "EC2ThrottledException",
    "KmsThrottled",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// A call to AWS that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceError {
    /// Why it failed, which says whether to try it again.
    pub kind: ServiceErrorKind,
    /// What happened, for people.
    pub cause: String,
    /// Seconds to wait, if the service gives them.
    pub retry_after: Option<Seconds>,
    /// Whether the service looked at the request and refused it. It then did nothing.
    pub refused: bool,
}

impl ServiceError {
    /// A fault without an answer from the service.
    pub fn new(kind: ServiceErrorKind, cause: impl Into<String>) -> Self {
        Self {
            kind,
            cause: cause.into(),
            retry_after: None,
            refused: false,
        }
    }

    /// A refusal of the service with this code.
    pub fn of_code(code: &str, message: &str) -> Self {
        let kind = ServiceErrorKind::of_code(code);
        let cause = match message.trim() {
            "" => format!("the service answered `{code}` and said no more"),
            message => excerpt(message),
        };
        Self {
            kind,
            cause,
            retry_after: None,
            refused: true,
        }
    }

    /// The fault for an error of the SDK.
    pub fn of<E: ProvideErrorMetadata + Error + 'static>(error: &SdkError<E, HttpResponse>) -> Self {
        if let Some(credentials) = found::<CredentialsError>(error) {
            return Self::new(ServiceErrorKind::CredentialsMissing, credentials_words(credentials));
        }
        match error {
            SdkError::ServiceError(answer) => Self::of_answer(answer.err(), answer.raw()),
            SdkError::TimeoutError(_) => {
                Self::new(ServiceErrorKind::ConnectionFailed, "no answer within the time for it")
            }
            SdkError::DispatchFailure(failure) if failure.is_timeout() => Self::new(
                ServiceErrorKind::ConnectionFailed,
                "no connection within the time for it",
            ),
            SdkError::ConstructionFailure(_) => Self::new(
                ServiceErrorKind::Other("InvalidRequest".to_owned()),
                format!("the request can't be made: {}", innermost(error)),
            ),
            SdkError::ResponseError(answer) => Self::unreadable(answer.raw().status().as_u16()),
            other => Self::new(ServiceErrorKind::ConnectionFailed, reason(other)),
        }
    }

    fn unreadable(status: u16) -> Self {
        let cause = format!("an answer with status {status} that can't be read: is it the service that is there?");
        Self::new(ServiceErrorKind::ConnectionFailed, cause)
    }

    fn of_answer<E: ProvideErrorMetadata>(error: &E, raw: &HttpResponse) -> Self {
        let status = raw.status().as_u16();
        let code = error.code().filter(|code| !code.is_empty());
        if code.is_none() && status < 400 {
            return Self::unreadable(status);
        }
        let mut fault = Self::of_code(code.unwrap_or(&status.to_string()), error.message().unwrap_or_default());
        fault.refused = (400..500).contains(&status);
        if code.is_none() {
            match status {
                401 | 403 => fault.kind = ServiceErrorKind::AccessDenied,
                429 => fault.kind = ServiceErrorKind::Throttled,
                _ => {}
            }
        }
        fault.retry_after = raw.headers().get("retry-after").and_then(outside_wait_of);
        fault
    }

    /// The outcome of the call: the error `<service>.<name>`, with a cause that says what the call was about.
    pub fn outcome(self, service: &str, about: &str) -> Outcome {
        Outcome::Failed {
            error: format!("{service}.{}", self.kind.name()).into(),
            cause: format!("{about}: {}", self.cause),
            retry_after: self.retry_after,
        }
    }
}

fn credentials_words(error: &CredentialsError) -> String {
    match error {
        CredentialsError::CredentialsNotLoaded(_) => {
            "no credentials are given: neither in the environment, nor in a profile, nor by the machine".to_owned()
        }
        CredentialsError::ProviderTimedOut(_) => "who should give credentials does not answer".to_owned(),
        other => format!(
            "the credentials can't be had: {}",
            excerpt(&innermost(other).to_string())
        ),
    }
}

/// Why there was no answer.
fn reason(error: &(dyn Error + 'static)) -> String {
    if let Some(broken) = found::<std::io::Error>(error)
        && let Some(words) = words(broken.kind())
    {
        return words.to_owned();
    }
    excerpt(&innermost(error).to_string())
}

fn words(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::ConnectionReset => "connection reset by the other side",
        ErrorKind::BrokenPipe => "the connection was closed while the request was sent",
        ErrorKind::UnexpectedEof => "the connection was closed early",
        ErrorKind::TimedOut => "the connection timed out",
        ErrorKind::HostUnreachable => "the host cannot be reached",
        ErrorKind::NetworkUnreachable => "the network cannot be reached",
        _ => return None,
    })
}

/// The first error of a type among the sources of an error, including those inside I/O errors.
fn found<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = deeper(error);
    }
    None
}

fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    std::iter::successors(Some(error), |error| deeper(*error))
        .last()
        .unwrap_or(error)
}

/// The source of an error. An I/O error that wraps another error gives that one, not its source.
fn deeper<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    wrapped
        .map(|inner| inner as &(dyn Error + 'static))
        .or_else(|| error.source())
}

/// The first line of a message, shortened.
fn excerpt(message: &str) -> String {
    let line = message.trim().lines().next().unwrap_or_default();
    line.chars().take(QUOTED_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lose_what_stands_around_them() {
        for (code, name) in [
            ("AWS.SimpleQueueService.NonExistentQueue", "NonExistentQueue"),
            ("com.amazonaws.sqs#QueueDoesNotExist", "QueueDoesNotExist"),
            (
                "ResourceNotFoundException:http://internal/",
                "ResourceNotFoundException",
            ),
            ("InvalidClientTokenId", "AccessDenied"),
            ("AccessDeniedException", "AccessDenied"),
            ("RequestThrottled", "Throttled"),
            ("KMS.ThrottlingException", "Throttled"),
            ("KMS.AccessDeniedException", "AccessDenied"),
            ("KMS.DisabledException", "KMS.DisabledException"),
            ("InternalError", "InternalError"),
        ] {
            assert_eq!(ServiceErrorKind::of_code(code).name(), name, "{code}");
        }
    }

    #[test]
    fn long_messages_are_cut_to_their_first_line() {
        let fault = ServiceError::of_code(
            "SignatureDoesNotMatch",
            "The signature does not match.\n\nThe canonical string …",
        );
        assert_eq!(fault.cause, "The signature does not match.");
        assert_eq!(
            ServiceError::of_code("X", "").cause,
            "the service answered `X` and said no more"
        );
        assert_eq!(
            ServiceError::of_code("X", &"é".repeat(500)).cause.chars().count(),
            QUOTED_CHARS
        );
    }
}
