//! Turns a program's output and exit into an outcome.

use crate::task::End;
use starbridge_flow::graph::{FaultKind, Origin, Pattern};
use starbridge_flow::value::{Object, Value};
use starbridge_ports::Outcome;
use std::time::Duration;

/// How many characters of stderr a cause has, from the end.
const CAUSE_CHARS: usize = 2_000;
/// How many characters are quoted of output that should have been JSON.
const QUOTED_CHARS: usize = 60;

/// A program that has ended.
pub(crate) struct Ended<'a> {
    /// The name of the program, for messages.
    pub name: &'a str,
    /// The way in which it ended.
    pub end: &'a End,
    /// Its whole stdout.
    pub out: &'a [u8],
    /// The end of its stderr.
    pub err: &'a [u8],
}

/// The outcome of a program that ended like this.
pub(crate) fn of(ended: &Ended<'_>, pattern: Pattern) -> Outcome {
    match ended.end {
        End::Code(0) => succeeded(ended, pattern),
        End::Code(code) => {
            let (error, cause) = named(ended).unwrap_or_else(|| {
                (
                    FaultKind::from(format!("CMD.{code}")),
                    cause(ended.err, &format!("`{}` ended with {code}", ended.name)),
                )
            });
            Outcome::failed(error, cause)
        }
        End::Signal(signal) => {
            let killed = format!("`{}` was killed by signal {signal}", ended.name);
            Outcome::failed(format!("CMD.Signal{signal}"), cause(ended.err, &killed))
        }
        End::Lost(reason) => lost(ended.name, reason),
        End::NotStarted(reason) => Outcome::not_sent(format!("`{}` can't be run: {reason}", ended.name)),
    }
}

/// The outcome if the end of the program was not observed.
pub(crate) fn lost(name: &str, reason: &str) -> Outcome {
    Outcome::failed(FaultKind::Runtime, format!("`{name}` can't be waited for: {reason}"))
}

/// The outcome if the program took longer than [`CommandSettings::timeout`](crate::CommandSettings::timeout).
pub(crate) fn too_late(name: &str, timeout: Duration) -> Outcome {
    let seconds = timeout.as_secs_f64();
    let cause = format!(
        "`{name}` has not ended within {seconds} s: give the step a `timeoutSeconds`, or set `commands.timeout_seconds`"
    );
    Outcome::failed(FaultKind::Timeout, cause)
}

fn succeeded(ended: &Ended<'_>, pattern: Pattern) -> Outcome {
    let result = match ended.out.trim_ascii() {
        [] => Ok(Object::new().into()),
        out => serde_json::from_slice::<Value>(out),
    };
    match (pattern, result) {
        (Pattern::RequestResponse, Ok(result)) => Outcome::Result(result),
        (Pattern::RequestResponse, Err(error)) => Outcome::failed(FaultKind::Result, no_json(ended, &error)),
        // A regular end means acceptance, regardless of the output.
        (Pattern::Sync | Pattern::WaitForCallback, result) => Outcome::Accepted { receipt: result.ok() },
    }
}

fn no_json(ended: &Ended<'_>, error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    let whole = error.to_string();
    let reason = whole
        .strip_suffix(&format!(" at line {line} column {column}"))
        .unwrap_or(&whole);
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let out = ended.out.trim_ascii();
    let start = String::from_utf8_lossy(out.get(..QUOTED_CHARS * 4).unwrap_or(out));
    let begins: String = start.chars().take(QUOTED_CHARS).map(plain).collect();
    let name = ended.name;
    format!("what `{name}` printed is no JSON: {reason} at line {line}, column {column}; begins with `{begins}`")
}

/// The end of stderr, or `otherwise` if it is empty.
fn cause(err: &[u8], otherwise: &str) -> String {
    let text = String::from_utf8_lossy(err.trim_ascii());
    if text.is_empty() {
        return otherwise.to_owned();
    }
    let surplus = text.chars().count().saturating_sub(CAUSE_CHARS);
    text.chars().skip(surplus).collect()
}

/// The error that a failed program names in its output.
fn named(ended: &Ended<'_>) -> Option<(FaultKind, String)> {
    [ended.out, last_line(ended.out), last_line(ended.err)]
        .into_iter()
        .find_map(|text| {
            let object: Object = serde_json::from_slice(text).ok()?;
            let error = object.get("error")?.as_str().filter(|name| !name.trim().is_empty())?;
            let cause = object.get("cause").map(Value::to_plain_text).unwrap_or_default();
            Some((FaultKind::Outside(Origin::Program, error.into()), cause))
        })
}

fn last_line(text: &[u8]) -> &[u8] {
    let text = text.trim_ascii();
    text.rsplit(|byte| *byte == b'\n').next().unwrap_or(text)
}
