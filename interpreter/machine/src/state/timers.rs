//! The points in time an execution waits for.

use super::{FrameId, pairs};
use crate::event::EventId;
use serde::{Deserialize, Serialize};
use starbridge_flow::time::{Millis, Timestamp};
use std::collections::BTreeMap;

/// When a timer is due, and the event that set it.
pub(crate) type TimerKey = (Timestamp, EventId);

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TimerFor {
    /// The execution's own timeout.
    Execution,
    /// The timeout of the call that set it.
    Call,
    /// Anything a frame waits for: a wait, a retry, a poll, or a composite's timeout.
    Frame(FrameId),
    /// A retry of the rollback in that frame.
    Rollback(FrameId),
}

/// All timers that are set, in the order in which they are due. At most one is the execution's own timeout.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Timers {
    #[serde(with = "pairs")]
    by_due: BTreeMap<TimerKey, TimerFor>,
}

impl Timers {
    /// Sets a timer for `due`. `set_by` is the event that is being folded.
    pub(crate) fn set(&mut self, due: Timestamp, set_by: EventId, what: TimerFor) {
        self.by_due.insert((due, set_by), what);
    }

    /// Cancels timers. A key of a timer that is not set is ignored.
    pub(crate) fn cancel(&mut self, keys: impl IntoIterator<Item = TimerKey>) {
        for key in keys {
            self.by_due.remove(&key);
        }
    }

    /// Sets the execution's own timeout; it replaces an earlier one.
    pub(crate) fn set_execution_bound(&mut self, due: Timestamp, set_by: EventId) {
        self.cancel_execution_bound();
        self.set(due, set_by, TimerFor::Execution);
    }

    /// Cancels the execution's own timeout.
    pub(crate) fn cancel_execution_bound(&mut self) {
        self.by_due.retain(|_, what| *what != TimerFor::Execution);
    }

    pub(crate) fn has_execution_bound(&self) -> bool {
        self.by_due.values().any(|what| *what == TimerFor::Execution)
    }

    /// Cancels all timers, because the execution has ended.
    pub(crate) fn clear(&mut self) {
        self.by_due.clear();
    }

    /// Postpones every timer for which `moves` is true by this much.
    pub(crate) fn postpone(&mut self, span: Millis, moves: impl Fn(TimerKey, TimerFor) -> bool) {
        let timers = std::mem::take(&mut self.by_due).into_iter();
        self.by_due = timers
            .map(|(key, what)| match (key, moves(key, what)) {
                ((due, set_by), true) => ((due.plus(span), set_by), what),
                (key, false) => (key, what),
            })
            .collect();
    }

    /// What the timer with this key is for; `None` if it is not set.
    pub(crate) fn get(&self, key: TimerKey) -> Option<TimerFor> {
        self.by_due.get(&key).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_due.is_empty()
    }

    /// When the next timer is due; `None` if none is set.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.by_due.first_key_value().map(|((due, _), _)| *due)
    }

    /// The timers due at `now`, in order.
    pub(crate) fn due(&self, now: Timestamp) -> impl Iterator<Item = TimerKey> + '_ {
        self.by_due.range(..=(now, EventId(u64::MAX))).map(|(key, _)| *key)
    }

    /// All timers, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TimerKey, TimerFor)> + '_ {
        self.by_due.iter().map(|(key, what)| (*key, *what))
    }

    /// Returns `None` if no history leads to these timers.
    pub(super) fn validate_invariants(&self, last: EventId) -> Option<()> {
        let bounds = self.by_due.values().filter(|what| **what == TimerFor::Execution);
        let set_before = self.by_due.keys().all(|(_, set_by)| *set_by <= last);
        (set_before && bounds.count() <= 1).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXECUTION: TimerKey = (Timestamp(900), EventId(1));
    const WAIT: TimerKey = (Timestamp(50), EventId(3));

    fn timers() -> Timers {
        let mut timers = Timers::default();
        timers.set_execution_bound(EXECUTION.0, EXECUTION.1);
        timers.set(WAIT.0, WAIT.1, TimerFor::Frame(EventId(1)));
        timers
    }

    #[test]
    fn timers_are_due_in_their_order() {
        let timers = timers();
        assert_eq!(timers.next_due(), Some(Timestamp(50)));
        assert_eq!(timers.due(Timestamp(49)).count(), 0);
        assert_eq!(timers.due(Timestamp(50)).collect::<Vec<_>>(), [WAIT]);
        assert_eq!(timers.due(Timestamp(900)).collect::<Vec<_>>(), [WAIT, EXECUTION]);
    }

    #[test]
    fn timeout_of_an_execution_is_one() {
        let mut timers = timers();
        timers.set_execution_bound(Timestamp(70), EventId(8));
        assert_eq!(timers.get(EXECUTION), None);
        assert_eq!(timers.validate_invariants(EventId(8)), Some(()));
        timers.set(Timestamp(71), EventId(9), TimerFor::Execution);
        assert_eq!(timers.validate_invariants(EventId(9)), None);
        timers.cancel_execution_bound();
        assert_eq!(timers.iter().map(|(key, _)| key).collect::<Vec<_>>(), [WAIT]);
    }

    #[test]
    fn timers_postponed_are_only_those_that_move() {
        let mut timers = timers();
        timers.postpone(Millis(1_000), |_, what| what == TimerFor::Execution);
        let due: Vec<TimerKey> = timers.iter().map(|(key, _)| key).collect();
        assert_eq!(due, [WAIT, (Timestamp(1_900), EventId(1))]);
    }
}
