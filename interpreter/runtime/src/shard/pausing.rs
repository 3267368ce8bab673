//! Pausing (section "operating executions"): what is held back, and how a pause reaches queues and children.
//!
//! The state alone says whether an execution is paused. Calls that had not left when the pause
//! began are held back here, in memory only. After a crash they are the calls in the state that
//! still have to be sent.

use super::execution_ids::parent_of;
use super::{Outgoing, Shard};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{CallToSend, Event, EventId, EventKind, Parent, Rejection, Signal};
use starbridge_ports::{Append, Message, MessageBody, MessageId, QueuedTask, RecordedPause};

/// What a turn did to its execution's pause.
pub(super) enum PauseChange {
    /// Nothing.
    None,
    Began,
    /// It ended: by a resume, or by a stop.
    Over,
}

impl Shard {
    pub(super) fn is_paused(&self, execution: &str) -> bool {
        self.state(execution).is_some_and(|state| state.paused().is_some())
    }

    /// Keeps a call of a paused execution until the pause is over.
    pub(crate) fn hold_back(&mut self, execution: &str, call: EventId) {
        if let Some(live) = self.executions.get_mut(execution) {
            live.held_back.insert(call);
        }
    }

    /// What the turn that was just decided did to the execution's pause.
    pub(super) fn pause_change(&self, id: &Text) -> PauseChange {
        let Some(live) = self.executions.get(id) else {
            return PauseChange::None;
        };
        let before = live.kept.as_ref().is_some_and(|kept| kept.paused);
        match (before, live.state.paused().is_some()) {
            (false, true) => PauseChange::Began,
            (true, false) => PauseChange::Over,
            _ => PauseChange::None,
        }
    }

    /// The calls that go on after a pause: those that leave, and the tasks that go back into their queues. A task that a worker
    /// holds is still in its queue and stays unchanged.
    pub(super) fn after_pause(&mut self, id: &Text, now: Timestamp) -> (Vec<CallToSend>, Vec<QueuedTask>) {
        let Some(live) = self.executions.get_mut(id) else {
            return (Vec::new(), Vec::new());
        };
        let held_back = std::mem::take(&mut live.held_back);
        let (state, flow) = (&live.state, &live.flow);
        let leaving = held_back.into_iter().filter(|call| state.is_to_be_sent(*call));
        let leaving: Vec<_> = leaving.filter_map(|call| state.call_to_send(flow, call)).collect();
        let queues = live.queued.iter();
        let tasks: Vec<_> = queues
            .filter_map(|(call, queue)| Some((queue.clone(), state.call_to_send(flow, *call)?)))
            .collect();
        let tasks = tasks.into_iter();
        let queued = tasks
            .filter_map(|(queue, call)| self.task(id, queue, call, now))
            .collect();
        if let Some(live) = self.executions.get_mut(id) {
            live.prepared.clear();
        }
        (leaving, queued)
    }

    /// Adds the consequences of a changed pause to the append of a turn.
    pub(super) fn spread_pause(&mut self, id: &Text, change: &PauseChange, events: &[Event], append: &mut Append) {
        let begins = match change {
            PauseChange::None => return,
            PauseChange::Began => true,
            PauseChange::Over => false,
        };
        if begins && let Some(live) = self.executions.get(id) {
            append.withdrawn = live.queued.keys().copied().collect();
            let withdrawn = live.queued.iter().map(|(call, queue)| Outgoing::Withdrawn {
                queue: queue.clone(),
                execution: id.clone(),
                call: *call,
            });
            self.held.extend(withdrawn);
        }
        let body = pause_message(events, begins);
        for to in self.awaited_children(id) {
            append.sent.push(Message {
                id: MessageId {
                    from: id.clone(),
                    event: append.expected.next(),
                    to,
                },
                body: body.clone(),
            });
        }
    }

    /// The children that calls in flight wait for, to end or to be rolled back. One that has not begun may be among them.
    fn awaited_children(&mut self, id: &Text) -> Vec<Text> {
        let Some(live) = self.executions.get(id) else {
            return Vec::new();
        };
        let calls = live.state.calls_in_flight();
        let calls = calls.filter_map(|call| live.state.call_to_send(&live.flow, call));
        let calls: Vec<_> = calls.map(|call| (call.call, call.child)).collect();
        let mut children = Vec::new();
        for (call, child) in calls {
            match child {
                Some(child) => children.push(child),
                None if self.sync_calls.contains(&(id.clone(), call)) => {
                    children.push(self.id_of_child(parent_of(id, call)));
                }
                None => {}
            }
        }
        children
    }

    /// Whether a call for a child is held back, because the execution that it belongs to is paused.
    pub(super) fn holds_back(&mut self, call: &Parent) -> bool {
        let paused = self.is_paused(&call.execution);
        if paused {
            self.hold_back(&call.execution, call.event);
        }
        paused
    }

    /// Pauses an execution that waits to begin, or lets it go on. Its times stay as they are.
    pub(super) fn pause_waiting(
        &mut self,
        id: &Text,
        signal: Signal,
        message: Option<MessageId>,
        now: Timestamp,
    ) -> Result<(), Rejection> {
        let record = self.waiting_record(id).ok_or(Rejection::Unknown)?;
        record.paused = match (signal, &record.paused) {
            (Signal::Pause { .. }, Some(_)) => return Err(Rejection::AlreadyPaused),
            (Signal::Resume { .. }, None) => return Err(Rejection::NotPaused),
            (Signal::Pause { by, cause, .. }, None) => Some(RecordedPause {
                since: now,
                by: Text::from(by.unwrap_or_default()),
                cause: starbridge_machine::cut(&cause, starbridge_flow::limits::ERROR_CAUSE_CHARS),
            }),
            (Signal::Resume { .. }, Some(_)) => None,
            _ => return Err(Rejection::NotStarted),
        };
        let audit = self.audited.take();
        self.rest_waiting(id, message, audit, now);
        Ok(())
    }
}

/// The message to children about a turn that began or ended a pause.
fn pause_message(turn: &[Event], begins: bool) -> MessageBody {
    let (by, cause) = match turn.first().map(|event| &event.detail) {
        Some(EventKind::ExecutionPaused { by, cause, .. }) => (Some(by.clone()), cause.clone()),
        Some(EventKind::ExecutionResumed { by }) => (Some(by.clone()), Text::default()),
        Some(EventKind::ExecutionStopped { by, .. }) => (by.clone(), Text::default()),
        _ => (None, Text::default()),
    };
    let by = by.filter(|by| !by.is_empty());
    match begins {
        true => MessageBody::Pause { by, cause },
        false => MessageBody::Resume { by },
    }
}

/// The signal to a child whose parent was paused.
pub(super) fn pause_child(by: Option<Text>, cause: &Text) -> Signal {
    Signal::Pause {
        by: by.map(|by| by.to_string()),
        cause: cause.to_string(),
        with_parent: true,
    }
}

/// The signal to a child whose parent goes on.
pub(super) fn resume_child(by: Option<Text>) -> Signal {
    Signal::Resume {
        by: by.map(|by| by.to_string()),
        with_parent: true,
    }
}
