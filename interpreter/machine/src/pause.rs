//! Pausing and resuming (section "operating executions"). While an execution is paused, it takes
//! reports from outside but decides nothing. What follows from them is decided after the resume.

use crate::event::EventKind;
use crate::signal::{Rejection, Signal};
use crate::state::{Paused, ROOT, State};
use crate::turn::{Turn, cut};
use starbridge_flow::limits::ERROR_CAUSE_CHARS;
use starbridge_flow::value::Text;

impl State {
    /// The pause, while the execution is paused.
    pub fn paused(&self) -> Option<&Paused> {
        self.data.paused.as_deref()
    }

    /// Takes a pause or a resume.
    pub(crate) fn change_pause(&mut self, turn: &mut Turn<'_>, change: Signal) -> Result<(), Rejection> {
        if self.data.status.is_ended() {
            return Err(Rejection::Finished);
        }
        match change {
            Signal::Pause { by, cause, with_parent } => self.take_pause(turn, by, &cause, with_parent),
            Signal::Resume { by, with_parent } => self.take_resume(turn, by, with_parent),
            _ => Err(Rejection::Unknown),
        }
    }

    /// A missing report is no report. While the execution is paused, a missed heartbeat only counts
    /// for a worker that holds a task.
    pub(crate) fn check_silence(&self, report: &Signal) -> Result<(), Rejection> {
        match report {
            Signal::HeartbeatMissed { call } if self.data.paused.is_some() && !self.is_queued(*call) => {
                Err(Rejection::Unknown)
            }
            _ => Ok(()),
        }
    }

    fn take_pause(
        &mut self,
        turn: &mut Turn<'_>,
        by: Option<String>,
        cause: &str,
        with_parent: bool,
    ) -> Result<(), Rejection> {
        if self.data.paused.is_some() {
            return Err(Rejection::AlreadyPaused);
        }
        let place = self.flow_place(ROOT);
        let detail = EventKind::ExecutionPaused {
            by: Text::from(by.unwrap_or_default()),
            cause: cut(cause, ERROR_CAUSE_CHARS),
            with_parent,
        };
        self.emit(turn, place, detail);
        Ok(())
    }

    fn take_resume(&mut self, turn: &mut Turn<'_>, by: Option<String>, with_parent: bool) -> Result<(), Rejection> {
        // An execution that an operator paused itself does not go on when its parent does.
        let paused = self.paused().filter(|paused| paused.with_parent || !with_parent);
        let place = self.flow_place(paused.ok_or(Rejection::NotPaused)?.event);
        let by = Text::from(by.unwrap_or_default());
        self.emit(turn, place, EventKind::ExecutionResumed { by });
        Ok(())
    }
}
