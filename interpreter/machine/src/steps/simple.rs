//! Pass, succeed and fail.
//!
//! | step | what comes |
//! |---|---|
//! | pass, succeed | `StepSucceeded` at once; after `succeed` its list ends |
//! | fail | `StepFailed` with the error given |

use crate::state::{FrameId, State};
use crate::turn::{Turn, failure};
use starbridge_fdl::graph::{Fail, FaultKind, Root, Source};
use starbridge_fdl::value::Value;

impl State {
    pub(super) fn step_fail(&mut self, turn: &mut Turn<'_>, id: FrameId, fail: &Fail) {
        let Some((visit, _)) = self.visit_and_step(turn, id) else {
            return;
        };
        let resolve = |source: &Option<Source>| -> Option<Value> {
            match source.as_ref()? {
                Source::Constant(value) => Some(value.clone()),
                Source::Query(query) => query.find(Root::Overlay(&visit.input)),
            }
        };
        let text = |value: Option<Value>| value.map(|value| value.to_plain_text());
        let error = text(resolve(&fail.error))
            .filter(|error| !error.is_empty())
            .unwrap_or_else(|| turn.flow.fault_names.name(&FaultKind::Failed).to_string());
        let cause = text(resolve(&fail.cause)).unwrap_or_default();
        self.fail_current(turn, id, failure(&error, &cause));
    }
}
