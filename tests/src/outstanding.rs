//! What a state asks of its host, in the terms of the runtime.

use starbridge_flow::graph::Flow;
use starbridge_flow::time::Timestamp;
use starbridge_machine::{CallToSend, EventId, State, Timer};

/// Everything that is outstanding.
#[derive(Debug, PartialEq)]
pub struct Outstanding {
    /// Calls to be sent.
    pub calls: Vec<CallToSend>,
    /// Timers, the first to be due first.
    pub timers: Vec<Timer>,
    /// When the first is due.
    pub wakeup: Option<Timestamp>,
    /// Whether the state is to continue at once.
    pub goes_on: bool,
}

impl Outstanding {
    /// The outstanding work of a state.
    pub fn of(state: &State, flow: &Flow) -> Self {
        Self {
            calls: state.calls_to_send_after(flow, EventId(0)).collect(),
            timers: state.due(Timestamp(i64::MAX)).collect(),
            wakeup: state.next_wakeup(),
            goes_on: state.must_continue(),
        }
    }

    /// How much that is.
    pub fn count(&self) -> usize {
        self.calls.len() + self.timers.len() + usize::from(self.goes_on)
    }

    /// Calls and timers stand once and in order, each question finds what it asks for, and an end leaves nothing.
    pub fn check(&self, state: &State, flow: &Flow) -> Result<(), String> {
        if !self.calls.is_sorted_by(|one, next| one.call < next.call) {
            return Err("calls to send out of order, or one twice".to_owned());
        }
        if !self
            .timers
            .is_sorted_by(|one, next| (one.due, one.set_by) < (next.due, next.set_by))
        {
            return Err("timers out of order, or one twice".to_owned());
        }
        if self.wakeup != self.timers.first().map(|timer| timer.due) {
            return Err(format!(
                "the next wakeup is {:?}, the timers are {:?}",
                self.wakeup, self.timers
            ));
        }
        for timer in &self.timers {
            let due: Vec<Timer> = state.due(timer.due).collect();
            let expected = self.timers.iter().take_while(|other| other.due <= timer.due);
            if !due.iter().eq(expected) {
                return Err(format!("at {} the timers {due:?} are due", timer.due));
            }
        }
        for (sent, call) in self.calls.iter().enumerate() {
            let later = state.calls_to_send_after(flow, call.call).map(|call| call.call);
            if !later.eq(self.calls.iter().skip(sent + 1).map(|call| call.call)) {
                return Err(format!("after call {} others are to be sent than before", call.call));
            }
        }
        if state.status().is_ended() && self.count() > 0 {
            return Err(format!("outstanding after the end: {self:?}"));
        }
        Ok(())
    }
}
