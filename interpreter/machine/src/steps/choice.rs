//! Choice.
//!
//! | run | what comes |
//! |---|---|
//! | deciding | `ChoiceTaken`; `StepFailed` where the conditions take too many steps |
//! | running | its arm's steps; when its time is over, closing and undoing |
//! | ended | `StepSucceeded` |

use crate::event::EventKind;
use crate::state::{ArmRun, FrameId, State, StepRun, VisitPhase};
use crate::turn::Turn;
use starbridge_flow::graph::{Budget, Choice, Fault, Root};

impl State {
    pub(super) fn step_choice(&mut self, turn: &mut Turn<'_>, id: FrameId, choice: &Choice) {
        let Some((visit, _)) = self.visit_and_step(turn, id) else {
            return;
        };
        match &visit.phase {
            VisitPhase::Started(StepRun::Choice(ArmRun::Deciding)) => {
                let input = Root::from(&visit.input);
                let budget = self.budget(&[input]);
                let taken = first_that_holds(choice, input, &budget);
                turn.spend(&budget);
                match taken {
                    Ok(taken) => {
                        let arm = taken.map(Some).or(choice.default.as_ref().map(|_| None));
                        self.emit(turn, self.place(id), EventKind::ChoiceTaken { arm });
                    }
                    Err(fault) => {
                        let failure = turn.failure(&fault);
                        self.fail_current(turn, id, failure);
                    }
                }
            }
            VisitPhase::Started(StepRun::Choice(ArmRun::Running { .. })) => self.step_closing(turn, id),
            _ => self.complete(turn, id),
        }
    }
}

/// The number of the first arm whose condition holds.
fn first_that_holds(choice: &Choice, input: Root<'_>, budget: &Budget) -> Result<Option<u32>, Fault> {
    for (number, arm) in (0u32..).zip(&choice.arms) {
        if let Some(condition) = &arm.condition
            && condition.holds(input, budget)?
        {
            return Ok(Some(number));
        }
    }
    Ok(None)
}
