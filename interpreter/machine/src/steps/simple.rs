//! Pass, succeed and fail.
//!
//! | step | what comes |
//! |---|---|
//! | pass, succeed | `StepSucceeded` at once; after `succeed` its list ends |
//! | fail | `StepFailed` with the error given |

use crate::state::{FrameId, State};
use crate::turn::{Turn, failure};
use starbridge_flow::graph::{Fail, Fault, FaultKind, Root, Source};
use starbridge_flow::value::Value;

impl State {
    pub(super) fn step_fail(&mut self, turn: &mut Turn<'_>, id: FrameId, fail: &Fail) {
        let Some((visit, _)) = self.visit_and_step(turn, id) else {
            return;
        };
        let input = Root::from(&visit.input);
        let budget = self.budget(&[input]);
        let text = |source: &Option<Source>| -> Result<Option<String>, Fault> {
            let value = match source {
                None => None,
                Some(Source::Constant(value)) => Some(value.clone()),
                Some(Source::Lookup(lookup)) => lookup.find(input, &budget)?,
            };
            budget.check_made(value.as_ref().map_or(0, Value::json_len))?;
            Ok(value.map(|value| value.to_plain_text()))
        };
        let said = text(&fail.error).and_then(|error| Ok((error, text(&fail.cause)?)));
        turn.spend(&budget);
        let failure = match said {
            Ok((error, cause)) => {
                let error = error
                    .filter(|error| !error.is_empty())
                    .unwrap_or_else(|| turn.flow.fault_names.name(&FaultKind::Failed).to_string());
                failure(&error, &cause.unwrap_or_default())
            }
            Err(fault) => turn.failure(&fault),
        };
        self.fail_current(turn, id, failure);
    }
}
