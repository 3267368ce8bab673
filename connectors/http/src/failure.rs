//! Calls without an answer: the names and causes of their errors.

use crate::dialer::ConnectTimeout;
use crate::resolver::Unreachable;
use crate::target::shown;
use hyper_util::client::legacy;
use starbridge_flow::graph::FaultKind;
use starbridge_ports::Outcome;
use std::error::Error;
use std::io::ErrorKind;
use std::time::Duration;
use url::Url;

/// The outcome of a call that failed.
pub(crate) fn outcome(url: &Url, error: &(dyn Error + 'static)) -> Outcome {
    let cause = format!("`{}`: {}", shown(url), reason(error));
    match found::<Unreachable>(error) {
        Some(Unreachable::Forbidden { .. }) => Outcome::not_sent(cause),
        // No process listens there, so the call reached nothing.
        _ if is_refused(error) => Outcome::NotSent {
            error: "HTTP.ConnectionFailed".into(),
            cause,
        },
        _ => Outcome::failed("HTTP.ConnectionFailed", cause),
    }
}

/// Whether there was no connection because it was refused.
fn is_refused(error: &(dyn Error + 'static)) -> bool {
    let connecting = found::<legacy::Error>(error).is_some_and(legacy::Error::is_connect);
    let kind = found::<std::io::Error>(error).map(std::io::Error::kind);
    connecting && kind == Some(ErrorKind::ConnectionRefused)
}

/// The outcome of a call that took longer than the settings allow.
pub(crate) fn too_late(target: &str, timeout: Duration) -> Outcome {
    let url = Url::parse(target).map_or_else(|_| String::new(), |url| shown(&url));
    let seconds = timeout.as_secs_f64();
    let cause = format!(
        "`{url}`: no whole answer within {seconds} s: give the step a `timeoutSeconds`, or set `http.timeout_seconds`"
    );
    Outcome::failed(FaultKind::Timeout, cause)
}

/// Why a call failed, without the URL.
pub(crate) fn reason(error: &(dyn Error + 'static)) -> String {
    if let Some(unreachable) = found::<Unreachable>(error) {
        return unreachable.to_string();
    }
    if let Some(tls) = found::<rustls::Error>(error) {
        return format!("TLS: {tls}");
    }
    let broken = found::<std::io::Error>(error);
    let connecting = found::<legacy::Error>(error).is_some_and(legacy::Error::is_connect);
    let late = connecting && broken.is_some_and(|broken| broken.kind() == ErrorKind::TimedOut);
    if late || found::<ConnectTimeout>(error).is_some() {
        return "no connection within the time for it".to_owned();
    }
    if let Some(words) = broken.and_then(|broken| words(broken.kind())) {
        return words.to_owned();
    }
    let last = innermost(error).to_string();
    match last.as_str() {
        "connection closed before message completed" => {
            "the connection was closed before there was an answer".to_owned()
        }
        _ => last,
    }
}

fn words(kind: ErrorKind) -> Option<&'static str> {
    Some(match kind {
        ErrorKind::ConnectionRefused => "connection refused",
        ErrorKind::ConnectionReset => "connection reset by the other side",
        ErrorKind::ConnectionAborted => "connection aborted",
        ErrorKind::BrokenPipe => "the connection was closed while the request was sent",
        ErrorKind::UnexpectedEof => "the connection was closed early",
        ErrorKind::TimedOut => "the connection timed out",
        ErrorKind::HostUnreachable => "the host cannot be reached",
        ErrorKind::NetworkUnreachable => "the network cannot be reached",
        ErrorKind::AddrNotAvailable => "no local address is free for it",
        _ => return None,
    })
}

/// The first error of a type among the sources of an error, including those inside I/O errors.
fn found<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = below(error);
    }
    None
}

fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut error = error;
    while let Some(next) = below(error) {
        error = next;
    }
    error
}

/// The source of an error. An I/O error that wraps another error gives that one, not its source.
fn below<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    match wrapped {
        Some(wrapped) => Some(wrapped),
        None => error.source(),
    }
}
