//! The calls of an execution: those in flight, and those given up whose report may still come.

use super::FrameId;
use crate::event::EventId;
use serde::{Deserialize, Serialize};
use starbridge_flow::time::{Millis, Timestamp};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// A call that is not over.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct InFlight {
    pub(crate) frame: FrameId,
    pub(crate) rollback: bool,
    /// The resource acknowledged the call.
    pub(crate) submitted: bool,
    pub(crate) timeout_at: Option<Timestamp>,
    /// The call is a task of a queue: a worker takes it, and it is not sent.
    #[serde(default)]
    pub(crate) queued: bool,
    /// How long a worker may hold the task.
    #[serde(default, rename = "timeout_ms")]
    pub(crate) timeout: Option<Millis>,
    /// Since when the task is in its queue, not counting pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queued_since: Option<Timestamp>,
    /// The bytes of the call's resource and parameters, and of the input of a task of a queue, which has a copy; 0 if they are few.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) bytes: usize,
}

fn is_zero(bytes: &usize) -> bool {
    *bytes == 0
}

impl InFlight {
    /// Whether the call still has to be sent.
    fn is_unsent(&self) -> bool {
        !self.submitted && !self.queued
    }

    /// The bytes that the execution holds for the call: none once the resource acknowledged it.
    fn weight(&self) -> usize {
        if self.submitted { 0 } else { self.bytes }
    }
}

/// All calls, each under the number of its `TaskScheduled`.
///
/// A call is in flight from [`Calls::open`] to [`Calls::close`]. [`Calls::give_up`] also closes it; the first report
/// that comes afterwards is noted by [`Calls::note_late_report`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    in_flight: BTreeMap<EventId, InFlight>,
    /// Calls given up whose report, if it comes, is to be noted.
    abandoned: BTreeSet<EventId>,
    /// Calls given up whose report came and was noted.
    noted: BTreeSet<EventId>,
    /// How many calls in flight still have to be sent.
    unsent: usize,
    /// How many calls in flight are tasks of queues.
    queued: usize,
    /// The bytes of all calls in flight.
    bytes: usize,
}

/// The calls in the form of a checkpoint, without the counts, which follow from the rest.
pub(super) struct WrittenCalls<'a> {
    pub(super) in_flight: Cow<'a, BTreeMap<EventId, InFlight>>,
    pub(super) abandoned: Cow<'a, BTreeSet<EventId>>,
    pub(super) noted: Cow<'a, BTreeSet<EventId>>,
}

impl Calls {
    /// Adds a call that is in flight from now on.
    pub(crate) fn open(&mut self, call: EventId, in_flight: InFlight) {
        self.unsent += usize::from(in_flight.is_unsent());
        self.queued += usize::from(in_flight.queued);
        self.bytes = self.bytes.saturating_add(in_flight.weight());
        if let Some(before) = self.in_flight.insert(call, in_flight) {
            self.uncount(before);
        }
    }

    /// Records that the sending of a call was acknowledged. `None`: the call is not in flight.
    pub(crate) fn acknowledge(&mut self, call: EventId) -> Option<()> {
        let in_flight = self.in_flight.get_mut(&call)?;
        self.unsent -= usize::from(in_flight.is_unsent());
        self.bytes = self.bytes.saturating_sub(in_flight.weight());
        in_flight.submitted = true;
        Some(())
    }

    /// Removes a call that is over. `None`: the call is not in flight.
    pub(crate) fn close(&mut self, call: EventId) -> Option<InFlight> {
        let in_flight = self.in_flight.remove(&call)?;
        self.uncount(in_flight);
        Some(in_flight)
    }

    fn uncount(&mut self, in_flight: InFlight) {
        self.unsent -= usize::from(in_flight.is_unsent());
        self.queued -= usize::from(in_flight.queued);
        self.bytes = self.bytes.saturating_sub(in_flight.weight());
    }

    /// Removes a call that is over without its report; a late report is to be noted. Returns what was in flight.
    pub(crate) fn give_up(&mut self, call: EventId) -> Option<InFlight> {
        self.abandoned.insert(call);
        self.close(call)
    }

    /// Notes the report on a call that was given up. `None`: it was not given up, or an earlier report was noted.
    pub(crate) fn note_late_report(&mut self, call: EventId) -> Option<()> {
        self.abandoned.remove(&call).then_some(())?;
        self.noted.insert(call);
        Some(())
    }

    /// Moves the timeouts of the calls in flight by `span`.
    pub(crate) fn postpone(&mut self, span: Millis) {
        for call in self.in_flight.values_mut() {
            call.timeout_at = call.timeout_at.map(|at| at.plus(span));
            call.queued_since = call.queued_since.map(|at| at.plus(span));
        }
    }

    /// Makes the calls those of a fork: each is sent again `now`, and no report can come on those
    /// given up. The timeouts move by `span`.
    pub(crate) fn reissue(&mut self, span: Millis, now: Timestamp) {
        self.abandoned.clear();
        self.noted.clear();
        self.postpone(span);
        for call in self.in_flight.values_mut() {
            call.submitted = false;
            call.queued_since = call.queued.then_some(now);
        }
        (self.unsent, self.queued, self.bytes) = counts(&self.in_flight);
    }

    /// A call that is in flight.
    pub(crate) fn get(&self, call: EventId) -> Option<&InFlight> {
        self.in_flight.get(&call)
    }

    /// The calls in flight, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EventId, &InFlight)> {
        self.in_flight.iter().map(|(call, in_flight)| (*call, in_flight))
    }

    /// The calls in flight that were scheduled after `event`, in order.
    pub(crate) fn after(&self, event: EventId) -> impl Iterator<Item = (EventId, &InFlight)> {
        let range = self.in_flight.range(event.next()..);
        range.map(|(call, in_flight)| (*call, in_flight))
    }

    /// Whether no call is in flight.
    pub(crate) fn is_empty(&self) -> bool {
        self.in_flight.is_empty()
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent > 0
    }

    /// The bytes of the resources and parameters of calls that are not sent or taken yet.
    pub(super) fn held(&self) -> usize {
        self.bytes
    }

    pub(crate) fn has_queued(&self) -> bool {
        self.queued > 0
    }

    /// Whether a call was given up and no report on it was noted.
    pub(crate) fn is_abandoned(&self, call: EventId) -> bool {
        self.abandoned.contains(&call)
    }

    /// Whether a call was given up and a report on it was noted.
    pub(crate) fn is_noted(&self, call: EventId) -> bool {
        self.noted.contains(&call)
    }

    /// The calls given up on which no report was noted, in order.
    pub(crate) fn abandoned(&self) -> impl Iterator<Item = EventId> + '_ {
        self.abandoned.iter().copied()
    }

    /// Returns `None` if no history leads to these calls.
    pub(super) fn validate_invariants(&self, last: EventId) -> Option<()> {
        let all = self.in_flight.keys().chain(&self.abandoned).chain(&self.noted);
        let scheduled_before = all.into_iter().all(|call| *call <= last);
        let over = |call: &EventId| !self.in_flight.contains_key(call);
        let given_up_once = self.abandoned.is_disjoint(&self.noted) && self.abandoned.iter().all(over);
        let counted = (self.unsent, self.queued, self.bytes) == counts(&self.in_flight);
        (scheduled_before && given_up_once && counted).then_some(())
    }

    pub(super) fn to_written(&self) -> WrittenCalls<'_> {
        WrittenCalls {
            in_flight: Cow::Borrowed(&self.in_flight),
            abandoned: Cow::Borrowed(&self.abandoned),
            noted: Cow::Borrowed(&self.noted),
        }
    }

    pub(super) fn from_written(written: WrittenCalls<'_>) -> Self {
        let in_flight = written.in_flight.into_owned();
        let (unsent, queued, bytes) = counts(&in_flight);
        Self {
            in_flight,
            abandoned: written.abandoned.into_owned(),
            noted: written.noted.into_owned(),
            unsent,
            queued,
            bytes,
        }
    }
}

/// How many calls still have to be sent, how many are tasks of queues, and the bytes of all.
fn counts(in_flight: &BTreeMap<EventId, InFlight>) -> (usize, usize, usize) {
    let unsent = in_flight.values().filter(|call| call.is_unsent()).count();
    let queued = in_flight.values().filter(|call| call.queued).count();
    let weights = in_flight.values().map(InFlight::weight);
    (unsent, queued, weights.fold(0, usize::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(queued: bool) -> InFlight {
        InFlight {
            frame: EventId(1),
            rollback: false,
            submitted: false,
            timeout_at: None,
            queued,
            timeout: None,
            queued_since: None,
            bytes: 10,
        }
    }

    #[test]
    fn calls_count_what_is_in_flight() {
        let mut calls = Calls::default();
        calls.open(EventId(4), sent(false));
        calls.open(EventId(5), sent(true));
        assert_eq!((calls.has_unsent(), calls.has_queued(), calls.held()), (true, true, 20));
        calls.acknowledge(EventId(4)).unwrap();
        assert_eq!(
            (calls.has_unsent(), calls.has_queued(), calls.held()),
            (false, true, 10)
        );
        calls.give_up(EventId(5)).unwrap();
        assert_eq!(
            (calls.has_unsent(), calls.has_queued(), calls.held()),
            (false, false, 0)
        );
        calls.reissue(Millis::ZERO, Timestamp(9));
        assert_eq!((calls.has_unsent(), calls.is_abandoned(EventId(5))), (true, false));
        assert_eq!(calls.held(), 10);
        calls.close(EventId(4)).unwrap();
        assert!(calls.is_empty() && !calls.has_unsent());
        assert_eq!(calls.validate_invariants(EventId(5)), Some(()));
    }

    #[test]
    fn late_report_is_noted_once_and_only_on_a_call_given_up() {
        let mut calls = Calls::default();
        calls.open(EventId(4), sent(false));
        assert_eq!(calls.note_late_report(EventId(4)), None);
        calls.give_up(EventId(4));
        assert_eq!(calls.note_late_report(EventId(4)), Some(()));
        assert_eq!(calls.note_late_report(EventId(4)), None);
        assert!(calls.is_noted(EventId(4)) && calls.abandoned().next().is_none());
    }

    #[test]
    fn invariants_refuse_calls_that_contradict_each_other() {
        let mut calls = Calls::default();
        calls.open(EventId(4), sent(false));
        assert_eq!(calls.validate_invariants(EventId(3)), None);
        assert_eq!(calls.validate_invariants(EventId(4)), Some(()));
        calls.abandoned.insert(EventId(4));
        assert_eq!(calls.validate_invariants(EventId(4)), None);
        calls.close(EventId(4));
        assert_eq!(calls.validate_invariants(EventId(4)), Some(()));
        calls.noted.insert(EventId(4));
        assert_eq!(calls.validate_invariants(EventId(4)), None);
    }
}
