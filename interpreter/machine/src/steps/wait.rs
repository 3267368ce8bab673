//! Wait.
//!
//! | run | what comes |
//! |---|---|
//! | new | `WaitStarted`; `StepSucceeded` where the time is past; `StepFailed` where there is none |
//! | waiting | waits for its timer |
//! | over | `StepSucceeded` |

use crate::event::EventKind;
use crate::state::{FrameId, State, WaitRun};
use crate::turn::Turn;
use starbridge_flow::graph::{Budget, Fault, FaultKind, Root, Source, Wait};
use starbridge_flow::limits::ERROR_CAUSE_CHARS;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Overlay, Value};

impl State {
    pub(super) fn step_wait(&mut self, turn: &mut Turn<'_>, id: FrameId, wait: &Wait, run: &WaitRun) {
        if matches!(run, WaitRun::Over) {
            return self.complete(turn, id);
        }
        let Some((visit, _)) = self.visit_and_step(turn, id) else {
            return;
        };
        let budget = self.budget(&[Root::from(&visit.input)]);
        let until = until(wait, &visit.input, turn.now, &budget);
        turn.spend(&budget);
        match until {
            Err(fault) => {
                let failure = turn.failure(&fault);
                self.fail_current(turn, id, failure);
            }
            Ok(until) if until <= turn.now => self.complete(turn, id),
            Ok(until) if until.since(turn.now) > Millis::from_days(self.limits.wait_days) => {
                let cause = format!("the wait is longer than {} days", self.limits.wait_days);
                let failure = turn.fault(FaultKind::Limit, cause);
                self.fail_current(turn, id, failure);
            }
            Ok(until) => self.emit(turn, self.place(id), EventKind::WaitStarted { until }),
        }
    }
}

/// The end of a wait that begins now.
fn until(wait: &Wait, input: &Overlay, now: Timestamp, budget: &Budget) -> Result<Timestamp, Fault> {
    let resolve = |source: &Source| match source {
        Source::Constant(value) => Ok(Some(value.clone())),
        Source::Lookup(lookup) => lookup.find(Root::from(input), budget),
    };
    let found = |value: Option<Value>| match value {
        None => "nothing".to_owned(),
        Some(value) if value.json_len() > ERROR_CAUSE_CHARS => {
            format!("{} of {} bytes", value.kind(), value.json_len())
        }
        Some(value) => format!("`{value}`"),
    };
    match wait {
        Wait::Duration(source) => {
            let value = resolve(source)?;
            let seconds = value.as_ref().and_then(seconds_of).ok_or_else(|| {
                let cause = format!("the duration is no number of seconds, but {}", found(value.clone()));
                Fault::new(FaultKind::Input, cause)
            })?;
            let millis = (seconds * 1000.0 - 1e-6).ceil().max(0.0);
            Ok(now.plus(Millis(millis as u64)))
        }
        Wait::Timestamp(source) => {
            let value = resolve(source)?;
            value
                .as_ref()
                .and_then(Value::as_str)
                .and_then(Timestamp::parse)
                .ok_or_else(|| {
                    let cause = format!("the timestamp is no RFC 3339 text, but {}", found(value.clone()));
                    Fault::new(FaultKind::Input, cause)
                })
        }
    }
}

/// Reads seconds: a number, or a string that is a JSON number.
fn seconds_of(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => serde_json::from_str::<serde_json::Number>(text.trim()).ok()?.as_f64(),
        _ => None,
    }
}
