//! Deadlines of heartbeats. They are not events, so they are only in memory and start again after a
//! restart.

use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use std::collections::{BTreeMap, BTreeSet};

/// The deadlines by which heartbeats must come.
#[derive(Debug, Default)]
pub(super) struct Heartbeats {
    calls: BTreeMap<(Text, EventId), (Timestamp, Millis)>,
    deadlines: BTreeSet<(Timestamp, Text, EventId)>,
}

impl Heartbeats {
    /// Expects a heartbeat at least every `every`; the first one within that time after `since`.
    pub(super) fn expect(&mut self, execution: &Text, call: EventId, every: Millis, since: Timestamp) {
        let deadline = since.plus(every);
        self.forget(execution, call);
        self.calls.insert((execution.clone(), call), (deadline, every));
        self.deadlines.insert((deadline, execution.clone(), call));
    }

    /// Takes a heartbeat.
    pub(super) fn heartbeat(&mut self, execution: &Text, call: EventId, now: Timestamp) {
        if let Some((_, every)) = self.calls.get(&(execution.clone(), call)).copied() {
            self.expect(execution, call, every, now);
        }
    }

    /// Expects no more heartbeats for a call.
    pub(super) fn forget(&mut self, execution: &Text, call: EventId) {
        if let Some((deadline, _)) = self.calls.remove(&(execution.clone(), call)) {
            self.deadlines.remove(&(deadline, execution.clone(), call));
        }
    }

    /// Expects no more heartbeats for an execution.
    pub(super) fn forget_all_of(&mut self, execution: &Text) {
        let calls: Vec<EventId> = self.of(execution).map(|(call, ..)| call).collect();
        for call in calls {
            self.forget(execution, call);
        }
    }

    /// The calls of an execution that heartbeats are expected for, with their deadlines and intervals.
    pub(super) fn of(&self, execution: &Text) -> impl Iterator<Item = (EventId, Timestamp, Millis)> {
        let all = (execution.clone(), EventId(0))..=(execution.clone(), EventId(u64::MAX));
        let of = self.calls.range(all);
        of.map(|((_, call), (deadline, every))| (*call, *deadline, *every))
    }

    /// When the next deadline has passed.
    pub(super) fn next(&self) -> Option<Timestamp> {
        // A heartbeat exactly at the deadline is in time, so it is missed a millisecond later.
        self.deadlines.first().map(|(deadline, ..)| deadline.plus(Millis(1)))
    }

    /// Removes the calls whose deadline has passed, and returns them.
    pub(super) fn silent(&mut self, now: Timestamp) -> Vec<(Text, EventId)> {
        let mut silent = Vec::new();
        while let Some((deadline, execution, call)) = self.deadlines.first().cloned() {
            if deadline >= now {
                break;
            }
            self.forget(&execution, call);
            silent.push((execution, call));
        }
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expecting(millis: u64) -> (Heartbeats, Text, EventId) {
        let (mut heartbeats, execution, call) = (Heartbeats::default(), Text::from("e"), EventId(4));
        heartbeats.expect(&execution, call, Millis(millis), Timestamp(0));
        (heartbeats, execution, call)
    }

    #[test]
    fn heartbeat_at_the_deadline_counts() {
        let (mut heartbeats, execution, call) = expecting(1_000);
        assert!(heartbeats.silent(Timestamp(1_000)).is_empty());
        assert_eq!(heartbeats.next(), Some(Timestamp(1_001)));
        heartbeats.heartbeat(&execution, call, Timestamp(1_000));
        assert!(heartbeats.silent(Timestamp(2_000)).is_empty());
        assert_eq!(heartbeats.silent(Timestamp(2_001)), [(execution, call)]);
    }

    #[test]
    fn heartbeat_silence_is_told_once() {
        let (mut heartbeats, execution, call) = expecting(10);
        assert_eq!(heartbeats.silent(Timestamp(11)), [(execution.clone(), call)]);
        assert!(heartbeats.silent(Timestamp(i64::MAX)).is_empty());
        // A heartbeat for a call that was given up does not bring it back.
        heartbeats.heartbeat(&execution, call, Timestamp(12));
        assert_eq!(heartbeats.next(), None);
    }

    #[test]
    fn heartbeat_of_a_call_that_is_over_is_not_expected() {
        let (mut heartbeats, execution, call) = expecting(10);
        heartbeats.expect(&execution, EventId(9), Millis(20), Timestamp(0));
        let other = Text::from("f");
        heartbeats.expect(&other, EventId(1), Millis(30), Timestamp(0));
        heartbeats.forget(&execution, call);
        let of: Vec<_> = heartbeats.of(&execution).collect();
        assert_eq!(of, [(EventId(9), Timestamp(20), Millis(20))]);
        heartbeats.forget_all_of(&execution);
        assert_eq!(heartbeats.silent(Timestamp(1_000)), [(other, EventId(1))]);
    }
}
