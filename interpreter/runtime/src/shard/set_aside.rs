//! Executions that are set aside because they panicked. After a panic the execution's state and everything that was
//! not appended is dropped; the store's copy counts.

use super::children::Incoming;
use super::{Outgoing, Shard};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::Signal;
use starbridge_ports::{Append, Broken};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// After this many panics in a row an execution is set aside for good.
pub(crate) const MAX_TRIES: u32 = 3;
/// The pause before it is tried again, times the number of panics.
const RETRY_PAUSE: Millis = Millis(500);
/// How many characters of a panic's message are kept.
const PANIC_CHARS: usize = 300;

/// An execution that panicked.
pub(super) struct SetAside {
    /// How often in a row it panicked.
    tries: u32,
    cause: Text,
    /// When to try it again or to set it aside for good; `None` if that is done.
    again: Option<Timestamp>,
    /// The messages posted to it meanwhile.
    incoming: Vec<Incoming>,
}

/// An execution that panicked and whose pause is over.
pub(crate) struct Due {
    pub(crate) execution: Text,
    pub(crate) tries: u32,
    pub(crate) cause: Text,
}

impl Shard {
    /// Does some work for an execution. If the work panics, the execution's state, its pending
    /// appends and its pending output are dropped.
    pub(crate) fn guarded<T>(&mut self, id: &Text, now: Timestamp, work: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let (pending, held, continuing) = (self.pending.len(), self.held.len(), self.continuing.len());
        match catch_unwind(AssertUnwindSafe(|| work(self))) {
            Ok(done) => Some(done),
            Err(panic) => {
                self.pending.truncate(pending);
                self.held.truncate(held);
                self.continuing.truncate(continuing);
                self.leave_alone(id, panic.as_ref(), now);
                None
            }
        }
    }

    fn leave_alone(&mut self, id: &Text, panic: &(dyn Any + Send), now: Timestamp) {
        self.drop_state(id);
        let tries = self.tries.entry(id.clone()).or_insert(0);
        *tries += 1;
        let aside = SetAside {
            tries: *tries,
            cause: said(panic),
            again: Some(now.plus(RETRY_PAUSE.saturating_mul(u64::from(*tries)))),
            incoming: Vec::new(),
        };
        tracing::error!(execution = %id, tries = aside.tries, cause = %aside.cause, "going on with an execution panicked");
        self.aside.insert(id.clone(), aside);
        self.panicked.push(id.clone());
    }

    /// Drops a state that may be half changed, without reading it.
    fn drop_state(&mut self, id: &Text) {
        let removed = self.executions.remove(id);
        self.uncount(removed.as_deref());
        if let Some(at) = removed.and_then(|live| live.wakeup) {
            self.wakeups.remove(&(at, id.clone()));
        }
        self.sync_calls.retain(|(of, _)| of != id);
    }

    /// Drops an execution and all its data that is not on its way to the store.
    pub(crate) fn throw_away(&mut self, id: &Text) {
        self.drop_state(id);
        self.pending.retain(|append| append.execution != *id);
        self.recount_pending();
        self.held.retain(|outgoing| outgoing.execution() != Some(id));
        self.continuing.retain(|of| of != id);
    }

    /// Resets the count of panics after the execution went on.
    pub(super) fn went_on(&mut self, id: &Text) {
        if !self.tries.is_empty() {
            self.tries.remove(id);
        }
    }

    /// Records that an execution is set aside.
    pub(crate) fn set_aside(&mut self, id: &Text, broken: &Broken) {
        self.tries.remove(id);
        let incoming = self.aside.remove(id).map(|aside| aside.incoming).unwrap_or_default();
        let aside = SetAside {
            tries: 0,
            cause: broken.cause.clone(),
            again: None,
            incoming,
        };
        self.aside.insert(id.clone(), aside);
    }

    /// Whether an execution panicked and is not running.
    pub(crate) fn is_aside(&self, id: &str) -> bool {
        !self.aside.is_empty() && self.aside.contains_key(id)
    }

    /// Whether an execution is set aside for good: it is not tried again by itself.
    pub(crate) fn is_set_aside(&self, id: &str) -> bool {
        let aside = (!self.aside.is_empty()).then(|| self.aside.get(id)).flatten();
        aside.is_some_and(|aside| aside.again.is_none())
    }

    /// Keeps a signal for an execution that is not running until it goes on.
    pub(crate) fn retain_signal(&mut self, id: &Text, signal: Signal) {
        self.keep_incoming(id, Incoming::Signal(Box::new(signal)));
    }

    /// Why an execution that never began is set aside.
    pub(super) fn take_cause(&mut self, id: &Text) -> Option<Text> {
        self.tries.remove(id);
        self.panicked.retain(|panicked| panicked != id);
        self.aside.remove(id).map(|aside| aside.cause)
    }

    /// Keeps messages posted to an execution that is not running.
    pub(super) fn retain_incoming(&mut self, id: &Text, incoming: Incoming) {
        if let Some(aside) = self.aside.get_mut(id) {
            aside.incoming.push(incoming);
        }
    }

    /// Takes the executions that panicked since the last call.
    pub(crate) fn take_panicked(&mut self) -> Vec<Text> {
        std::mem::take(&mut self.panicked)
    }

    /// When the next pause ends.
    pub(crate) fn next_aside(&self) -> Option<Timestamp> {
        self.aside.values().filter_map(|aside| aside.again).min()
    }

    /// Drops the list of executions that are not running. Returns those that would have been tried again.
    pub(crate) fn forget_aside(&mut self) -> Vec<Text> {
        self.tries.clear();
        let aside = std::mem::take(&mut self.aside).into_iter();
        aside
            .filter(|(_, aside)| aside.again.is_some())
            .map(|(id, _)| id)
            .collect()
    }

    /// The executions whose pause is over. One with appends in flight is left out until these are durable, because
    /// the store does not have its latest state yet.
    pub(crate) fn aside_due(&self, now: Timestamp) -> Vec<Due> {
        let due = self.aside.iter().filter(|(id, aside)| {
            let is_due = aside.again.is_some_and(|again| again <= now);
            is_due && !self.is_unsettled(id)
        });
        due.map(|(id, aside)| Due {
            execution: id.clone(),
            tries: aside.tries,
            cause: aside.cause.clone(),
        })
        .collect()
    }

    /// Whether an execution has appends that are not durable yet.
    pub(crate) fn is_unsettled(&self, id: &Text) -> bool {
        let under_way = self.in_flight.iter().any(|batch| batch.is_of(id));
        under_way || self.pending.iter().any(|append| append.execution == *id)
    }

    /// Lets an execution go on, and delivers the messages posted to it.
    pub(crate) fn take_back(&mut self, id: &Text) {
        if let Some(aside) = self.aside.remove(id) {
            let incoming = aside.incoming.into_iter().map(|incoming| (id.clone(), incoming));
            self.inbox.extend(incoming);
        }
    }

    /// Puts the tasks of an execution that is no longer set aside into their queues again. A restore took them out; a task that a
    /// worker holds stays as it is.
    pub(crate) fn put_tasks_again(&mut self, id: &Text, now: Timestamp) {
        let Some(live) = self.executions.get_mut(id).filter(|live| !live.queued.is_empty()) else {
            return;
        };
        let (expected, calls) = (live.state.last_event(), live.queued.clone());
        live.unsettled += 1;
        self.pending.push(Append {
            execution: id.clone(),
            expected,
            withdrawn: calls.keys().copied().collect(),
            ..Append::default()
        });
        let withdrawn = calls.iter().map(|(call, queue)| Outgoing::Withdrawn {
            queue: queue.clone(),
            execution: id.clone(),
            call: *call,
        });
        self.held.extend(withdrawn);
        if self.is_paused(id) {
            // They go into their queues when it goes on.
            return;
        }
        let Some(live) = self.executions.get(id) else {
            return;
        };
        let again = calls.into_iter();
        let again: Vec<_> = again
            .filter_map(|(call, queue)| Some((queue, live.state.call_to_send(&live.flow, call)?)))
            .collect();
        let again = again.into_iter();
        let queued: Vec<_> = again
            .filter_map(|(queue, call)| self.task(id, queue, call, now))
            .collect();
        let append = Append {
            execution: id.clone(),
            expected,
            queued,
            ..Append::default()
        };
        self.hold_tasks(&append);
        if let Some(live) = self.executions.get_mut(id) {
            live.unsettled += 1;
        }
        self.pending.push(append);
    }

    /// Appends the end of an execution that is not loaded and can't be loaded.
    pub(crate) fn end_unseen(&mut self, append: Append, outgoing: Vec<Outgoing>) {
        self.aside.remove(&append.execution);
        self.tries.remove(&append.execution);
        self.held.extend(outgoing);
        let incoming = append.sent.iter().cloned().map(Outgoing::Message);
        self.held.extend(incoming);
        self.pending.push(append);
    }
}

/// The message of a panic, shortened.
fn said(panic: &(dyn Any + Send)) -> Text {
    let said = panic.downcast_ref::<&str>().map(|text| said_of(text).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().map(|text| said_of(text).to_owned()));
    Text::from(said.unwrap_or_else(|| "it said nothing".to_owned()))
}

fn said_of(text: &str) -> &str {
    text.char_indices()
        .nth(PANIC_CHARS)
        .map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}
