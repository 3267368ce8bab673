//! Parallel.
//!
//! | children | what comes |
//! |---|---|
//! | one may begin | `BranchEntered` |
//! | all over, or as many as wanted | what runs is closed, `StepSucceeded` |
//! | too many failed, or time over | what runs is closed, undone, `StepFailed` |

use crate::event::Detail;
use crate::state::{FrameId, Outcome, State};
use crate::turn::Turn;
use starbridge_fdl::graph::Parallel;
use starbridge_fdl::value::{Object, Value};

impl State {
    pub(super) fn step_parallel(&mut self, turn: &mut Turn<'_>, id: FrameId, parallel: &Parallel) {
        let Some(children) = self.visit_and_step(turn, id).and_then(|(visit, _)| visit.children()) else {
            return;
        };
        if children.closing.is_some() {
            return self.step_closing(turn, id);
        }
        let Some(branch) = children.next_branch(parallel) else {
            return self.complete(turn, id);
        };
        let depends_on = parallel
            .branches
            .get(branch as usize)
            .map(|branch| branch.depends_on.as_slice())
            .unwrap_or_default();
        let deps: Object = depends_on
            .iter()
            .filter_map(|&on| {
                let name = parallel.branches.get(on as usize)?.name.clone()?;
                match children.outcome(on) {
                    Outcome::Done(result) => Some((name, Value::from(result.clone()))),
                    _ => None,
                }
            })
            .collect();
        let deps = (!depends_on.is_empty()).then_some(deps);
        self.emit(turn, self.place(id), Detail::BranchEntered { branch, deps });
    }
}
