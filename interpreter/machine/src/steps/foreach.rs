//! Foreach.
//!
//! | children | what comes |
//! |---|---|
//! | no collection | `StepFailed` |
//! | one may begin | `IterationEntered` |
//! | all over | `StepSucceeded` |
//! | too many failed, or time over | what runs is closed, undone, `StepFailed` |

use crate::event::EventKind;
use crate::state::{Children, FrameId, State};
use crate::turn::Turn;
use starbridge_flow::graph::{FaultKind, Foreach, Root, Tolerance};
use starbridge_flow::value::Value;

impl State {
    pub(super) fn step_foreach(&mut self, turn: &mut Turn<'_>, id: FrameId, foreach: &Foreach) {
        let Some((visit, _)) = self.visit_and_step(turn, id) else {
            return;
        };
        let Some(children) = visit.children() else {
            return;
        };
        if children.closing.is_some() {
            return self.step_closing(turn, id);
        }
        let most = self.limits.foreach_items;
        let items = match &children.collection {
            Some(items) if items.len() > most => {
                let cause = format!(
                    "the collection has {} items, more than the limit of {most}",
                    items.len()
                );
                let failure = turn.fault(FaultKind::Limit, cause);
                return self.fail_current(turn, id, failure);
            }
            Some(items) => items,
            None => {
                let input = Root::from(&visit.input);
                let found = foreach.collection.find(input, &self.budget(&[input])).ok().flatten();
                let found = found.as_ref().map_or("nothing", Value::kind);
                let cause = format!(
                    "the collection `{}` is {found}, not an array",
                    foreach.collection.text()
                );
                let failure = turn.fault(FaultKind::Input, cause);
                return self.fail_current(turn, id, failure);
            }
        };
        if children.is_over() {
            return self.complete(turn, id);
        }
        let Some(index) = next_iteration(foreach, children) else {
            return;
        };
        let item = items.values().get(index as usize).cloned().unwrap_or_default();
        self.emit(turn, self.place(id), EventKind::IterationEntered { index, item });
    }
}

/// How many iterations may run at once.
pub(super) fn max_running(foreach: &Foreach, children: &Children) -> usize {
    children.most_of(Some(&foreach.concurrency))
}

/// The number of the iteration to begin next. Iterations begin in their order, as far as the concurrency allows.
pub(super) fn next_iteration(foreach: &Foreach, children: &Children) -> Option<u32> {
    let begins = children.entered < children.total && children.live.len() < max_running(foreach, children);
    begins.then_some(children.entered)
}

/// Whether the step goes on after this many of its iterations failed.
pub(crate) fn tolerates(foreach: &Foreach, failed: u32, total: u32) -> bool {
    match foreach.tolerance {
        None => false,
        Some(Tolerance::Count(count)) => u64::from(failed) <= count,
        Some(Tolerance::Percent(percent)) => f64::from(failed) * 100.0 <= percent * f64::from(total),
    }
}
