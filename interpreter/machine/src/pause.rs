//! Pausing and resuming (section "operating executions"). While an execution is paused, it takes what comes from outside and
//! decides nothing: what follows is decided after it was resumed.

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

    /// Silence is no report: while the execution is paused, it only counts of a worker that holds a task.
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
        // What an operator paused by itself does not go on because the parent does.
        let paused = self.paused().filter(|paused| paused.with_parent || !with_parent);
        let place = self.flow_place(paused.ok_or(Rejection::NotPaused)?.event);
        let by = Text::from(by.unwrap_or_default());
        self.emit(turn, place, EventKind::ExecutionResumed { by });
        Ok(())
    }
}
