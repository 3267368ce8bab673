//! The timers of loaded executions.

use super::Shard;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::Signal;

impl Shard {
    pub(super) fn note_wakeup(&mut self, id: &Text) {
        if let Some(live) = self.executions.get_mut(id) {
            let next = live.state.next_wakeup();
            if next != live.wakeup {
                if let Some(old) = live.wakeup {
                    self.wakeups.remove(&(old, id.clone()));
                }
                if let Some(next) = next {
                    self.wakeups.insert((next, id.clone()));
                }
                live.wakeup = next;
            }
        }
    }

    /// Fires the timer that is due first. Returns false if none is due at `now`.
    pub fn fire_next(&mut self, now: Timestamp) -> bool {
        let Some((due, id)) = self.wakeups.first().cloned() else {
            return false;
        };
        if due > now {
            return false;
        }
        let timer = self.executions.get(&id).and_then(|live| live.state.due(now).next());
        match timer {
            Some(timer) => self.signal(&id, Signal::TimerDue(timer), now).is_ok(),
            None => false,
        }
    }

    /// When the next timer of a loaded execution is due.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        self.wakeups.first().map(|(due, _)| *due)
    }
}
