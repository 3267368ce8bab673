//! `exec` on a terminal: its user decides for steps that wait for an operator.

use super::{Options, Watch};
use crate::output::Output;
use crate::progress::place;
use starbridge_flow::graph::Flow;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::{Decision, EventId, Failure, Resolution, Signal, State};
use starbridge_node::escaping::escaped;
use starbridge_runtime::{Command, Reply};
use std::io::{BufRead, IsTerminal};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

const HOW: &str = "answer `retry`, `succeed`, `succeed {\"an\": \"output\"}`, `fail`, or `fail ERROR CAUSE`";

/// Whether there is a person to ask: on a terminal, and only if time does not jump ahead of the
/// answer.
pub(super) fn is_there(options: &Options) -> bool {
    !options.fast_forward && std::io::stdin().is_terminal()
}

/// Asks for decisions, one after the other.
pub(super) struct Operator {
    requests: Sender<Request>,
}

/// A step that waits for a decision.
struct Request {
    execution: Text,
    event: EventId,
    /// The step, and the reason for the question.
    question: String,
}

impl Operator {
    /// An operator whose decisions go to the run.
    pub(super) fn new(commands: tokio::sync::mpsc::Sender<Command>, output: Output, watch: Arc<Mutex<Watch>>) -> Self {
        let (requests, asked) = channel();
        let asking = Asking {
            commands,
            output,
            watch,
        };
        // Reading a line can't be ended from outside. This thread ends with the program.
        std::thread::spawn(move || asking.ask_all(&asked));
        Self { requests }
    }

    /// Asks for the requested ones of a state's open decisions.
    pub(super) fn ask(&self, execution: &Text, flow: &Flow, state: &State, wanted: impl Fn(EventId) -> bool) {
        for request in state.manual_requests().filter(|request| wanted(request.event)) {
            let step = flow.step(request.step).map(|step| step.name.as_str());
            let Failure { error, cause } = &request.failure;
            let colon = if cause.is_empty() { "" } else { ": " };
            let (step, error, cause) = (escaped(step.unwrap_or_default()), escaped(error), escaped(cause));
            // Several iterations may ask at the same time.
            let place = place(flow, &request.path);
            let question = format!("{step}{place} failed with {error}{colon}{cause}");
            // A thread that has ended has already reported it.
            let _ = self.requests.send(Request {
                execution: execution.clone(),
                event: request.event,
                question,
            });
        }
    }
}

/// The thread that asks.
struct Asking {
    commands: tokio::sync::mpsc::Sender<Command>,
    output: Output,
    watch: Arc<Mutex<Watch>>,
}

impl Asking {
    fn say(&self, line: &str) {
        if self.output.quiet() {
            return self.output.say(&format!("{line}\n"));
        }
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        watch.progress.line(line);
    }

    fn ask_all(&self, asked: &Receiver<Request>) {
        for request in asked {
            self.say(&format!("{}: {HOW}", request.question));
            let Some(decision) = self.read() else {
                return self.say("no answer can be read any more: the step waits until its timeout or Ctrl-C");
            };
            if let Some(problem) = self.give(request, decision) {
                self.say(&problem);
            }
        }
    }

    /// The next decision; `None` if nothing more can be read.
    fn read(&self) -> Option<Decision> {
        loop {
            let mut line = Vec::new();
            if std::io::stdin().lock().read_until(b'\n', &mut line).ok()? == 0 {
                return None;
            }
            match parse(&String::from_utf8_lossy(&line)) {
                Ok(decision) => return Some(decision),
                Err(problem) => self.say(&problem),
            }
        }
    }

    /// Gives a decision to the run. Returns why it was not accepted, if it was not.
    fn give(&self, request: Request, decision: Decision) -> Option<String> {
        let resolution = Resolution {
            decision,
            by: "local".into(),
            note: None,
        };
        let signal = Signal::Resolve {
            request: request.event,
            resolution: Box::new(resolution),
        };
        let (reply, answer) = oneshot::channel();
        let command = Command::Signal {
            execution: request.execution,
            signal: Box::new(signal),
            audit: None,
            reply: Some(reply),
        };
        // A run that is over accepts no decision and needs none.
        self.commands.blocking_send(command).ok()?;
        match answer.blocking_recv() {
            Ok(Reply::Rejected(rejection)) => Some(rejection.to_string()),
            _ => None,
        }
    }
}

/// Reads a typed decision.
fn parse(line: &str) -> Result<Decision, String> {
    let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let rest = rest.trim();
    match (word, rest) {
        ("retry", "") => Ok(Decision::Retry),
        ("succeed", "") => Ok(Decision::Succeed { output: None }),
        ("succeed", output) => match serde_json::from_str::<Object>(output) {
            Ok(output) => Ok(Decision::Succeed {
                output: Some(output.into()),
            }),
            Err(error) => Err(format!("the output is no JSON object: {error}")),
        },
        ("fail", "") => Ok(Decision::Fail { failure: None }),
        ("fail", failure) => {
            let (error, cause) = failure.split_once(char::is_whitespace).unwrap_or((failure, ""));
            let failure = Failure {
                error: error.into(),
                cause: cause.trim().into(),
            };
            Ok(Decision::Fail { failure: Some(failure) })
        }
        _ => Err(HOW.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_read_as_they_are_typed() {
        let failed = |error: &str, cause: &str| Decision::Fail {
            failure: Some(Failure {
                error: error.into(),
                cause: cause.into(),
            }),
        };
        for (line, decision) in [
            (" retry\n", Decision::Retry),
            ("succeed", Decision::Succeed { output: None }),
            ("fail\n", Decision::Fail { failure: None }),
            ("fail Bank.Gone\n", failed("Bank.Gone", "")),
            ("fail Bank.Gone  for good\n", failed("Bank.Gone", "for good")),
        ] {
            assert_eq!(parse(line).as_ref(), Ok(&decision), "{line}");
        }
        let paid = parse("succeed {\"paid\": true}").unwrap();
        assert!(matches!(paid, Decision::Succeed { output: Some(output) } if output.get("paid").is_some()));
        for wrong in ["", "again", "retry now", "succeed [1]", "succeed {"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
