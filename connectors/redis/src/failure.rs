//! Failures of Redis: their names for `retry` and `catch`, and their causes.

use redis::{ErrorKind, RedisError};
use starbridge_ports::Outcome;
use std::io;
use std::sync::Arc;

/// How many characters of Redis' own message are quoted. Redis repeats arguments that it does not understand.
const QUOTED_CHARS: usize = 200;

/// Why Redis did not carry out a request.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The name of the error.
    pub error: String,
    /// What happened, for people.
    pub cause: String,
    /// Redis' own error code, if it answered.
    pub code: Option<String>,
    /// Whether the cause may be gone in a moment.
    pub passing: bool,
    /// Whether the connection can't be used any more.
    pub lost: bool,
}

impl Failure {
    /// The failure that there is no connection, or that it was lost.
    pub(crate) fn connection(server: &str, reason: &str) -> Self {
        Self {
            error: "Redis.ConnectionFailed".to_owned(),
            cause: format!("`{server}`: {reason}"),
            code: None,
            passing: true,
            lost: true,
        }
    }

    pub(crate) fn of_io(server: &str, error: &io::Error) -> Self {
        Self::connection(server, &reason(error))
    }

    pub(crate) fn of(server: &str, error: &RedisError) -> Self {
        if error.kind() == ErrorKind::AuthenticationFailed {
            return Self::refused(server, "WRONGPASS", "");
        }
        // A failed transaction contains the errors of its commands.
        let inner = error.clone().into_server_errors();
        if let Some((_, first)) = inner.as_deref().and_then(<[_]>::first) {
            return Self::refused(server, first.code(), first.details().unwrap_or_default());
        }
        match error.kind() {
            ErrorKind::Server(_) => Self::refused(
                server,
                error.code().unwrap_or("ERR"),
                error.detail().unwrap_or_default(),
            ),
            ErrorKind::Io => {
                let source = std::error::Error::source(error).and_then(below);
                match source {
                    Some(broken) => Self::of_io(server, broken),
                    None => Self::connection(server, "the connection was closed"),
                }
            }
            _ => Self::connection(server, "what answers there does not speak as Redis does"),
        }
    }

    /// The failure for an error that Redis answered.
    fn refused(server: &str, code: &str, words: &str) -> Self {
        // Redis says this to long commands of clients that have not logged in, and then cuts them off.
        let code = match words.contains("unauthenticated") {
            true => "NOAUTH",
            false => code,
        };
        let (error, reason) = match code {
            "READONLY" => ("ReadOnly", "it is a replica, which takes no writes"),
            "OOM" => (
                "OutOfMemory",
                "its memory is full, and it may drop nothing to make room",
            ),
            "WRONGTYPE" => ("WrongType", "what is kept under that name is no stream"),
            "NOAUTH" => ("AccessDenied", "it wants a password"),
            "WRONGPASS" => ("AccessDenied", "user or password were refused"),
            "NOPERM" => ("AccessDenied", "this user may not do that"),
            "LOADING" => ("Loading", "it has started and is still reading its data"),
            "MISCONF" => (
                "MISCONF",
                "it can't write its data to disk, and takes no writes until it can",
            ),
            "NOREPLICAS" => ("NOREPLICAS", "too few of its replicas are there for it to take writes"),
            "MASTERDOWN" => ("MASTERDOWN", "it is a replica without a connection to its primary"),
            "BUSY" => ("BUSY", "a script runs and lets nobody else in"),
            other => (other, "it refused"),
        };
        let words: String = words.chars().filter(|c| !c.is_control()).take(QUOTED_CHARS).collect();
        let quoted = match words.is_empty() {
            true => String::new(),
            false => format!(" ({words})"),
        };
        Self {
            error: format!("Redis.{error}"),
            cause: format!("`{server}`: {reason}{quoted}"),
            code: Some(code.to_owned()),
            passing: matches!(code, "LOADING" | "BUSY" | "TRYAGAIN" | "CLUSTERDOWN" | "MASTERDOWN"),
            // A primary may have the same name by now; and a client that is not logged in is cut off.
            lost: matches!(code, "READONLY" | "NOAUTH"),
        }
    }

    pub(crate) fn outcome(self) -> Outcome {
        Outcome::failed(self.error, self.cause)
    }
}

/// The I/O error below an error. The client library keeps the wrapped error behind a reference count.
fn below<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a io::Error> {
    if let Some(shared) = error.downcast_ref::<Arc<dyn std::error::Error + Send + Sync>>() {
        return below(shared.as_ref());
    }
    error
        .downcast_ref::<io::Error>()
        .or_else(|| error.source().and_then(below))
}

/// The reason of an I/O error, for people.
fn reason(error: &io::Error) -> String {
    use io::ErrorKind;
    let words = match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::ConnectionReset => "connection reset by the other side",
        ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof | ErrorKind::ConnectionAborted => "the connection was closed",
        ErrorKind::TimedOut => "the connection timed out",
        ErrorKind::HostUnreachable => "the host cannot be reached",
        ErrorKind::NetworkUnreachable => "the network cannot be reached",
        _ => {
            // TLS errors are wrapped, and the number of a system error tells people nothing.
            let text = error.to_string();
            return text.split(" (os error").next().unwrap_or(&text).to_owned();
        }
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(code: &str, words: &str) -> Failure {
        let error = redis::make_extension_error(code.to_owned(), Some(words.to_owned()));
        Failure::of("h:1", &error)
    }

    #[test]
    fn errors_have_names_and_reasons() {
        let refused = failure("OOM", "command not allowed when used memory > 'maxmemory'.");
        assert_eq!(refused.error, "Redis.OutOfMemory");
        assert_eq!(
            refused.cause,
            "`h:1`: its memory is full, and it may drop nothing to make room (command not allowed when used memory > \
             'maxmemory'.)"
        );
        assert!(!refused.passing && !refused.lost);
        assert_eq!(failure("SOMETHING", "x").error, "Redis.SOMETHING");
        assert!(failure("CLUSTERDOWN", "").passing);
        assert!(failure("ERR", &"x".repeat(1000)).cause.len() < 300);
        let login = RedisError::from((ErrorKind::AuthenticationFailed, "Password authentication failed"));
        assert_eq!(Failure::of("h:1", &login).error, "Redis.AccessDenied");
        let broken = RedisError::from(io::Error::from(io::ErrorKind::ConnectionReset));
        let broken = Failure::of("h:1", &broken);
        assert_eq!(broken.cause, "`h:1`: connection reset by the other side");
        assert!(broken.passing && broken.lost);
    }
}
