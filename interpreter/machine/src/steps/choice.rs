//! Choice.
//!
//! | run | what comes |
//! |---|---|
//! | deciding | `ChoiceTaken` |
//! | running | its arm's steps; when its time is over, closing and undoing |
//! | ended | `StepSucceeded` |

use crate::event::Detail;
use crate::state::{ArmRun, FrameId, Inside, Phase, State};
use crate::turn::Turn;
use starbridge_fdl::graph::{Choice, Root};

impl State {
    pub(super) fn step_choice(&mut self, turn: &mut Turn<'_>, id: FrameId, choice: &Choice) {
        let Some((visit, _)) = self.visit_and_step(turn, id) else {
            return;
        };
        match &visit.phase {
            Phase::Started(Inside::Choice(ArmRun::Deciding)) => {
                let input = Root::Overlay(&visit.input);
                let taken = (0u32..)
                    .zip(&choice.arms)
                    .find(|(_, arm)| arm.condition.as_ref().is_some_and(|condition| condition.holds(input)))
                    .map(|(number, _)| Some(number));
                let arm = taken.or(choice.default.as_ref().map(|_| None));
                self.emit(turn, self.place(id), Detail::ChoiceTaken { arm });
            }
            Phase::Started(Inside::Choice(ArmRun::Running { .. })) => self.step_closing(turn, id),
            _ => self.complete(turn, id),
        }
    }
}
