//! Requests and messages of executions to admission, and its decisions
//! (section "operating executions").

use super::loaded::LoadedExecution;
use super::{Outgoing, Shard, StartError};
use crate::admission::{AdmissionCommand, AdmissionHandle};
use starbridge_flow::graph::{Budget, DEFAULT_PRIORITY, FaultKind, Flow, Root, Source};
use starbridge_flow::limits::{CONCURRENCY_KEY_BYTES, Limits};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{EventId, StartRecord, Status};
use starbridge_ports::{
    ADMISSION, Append, Ask, DeclineReason, Dependency, KeptStart, Message, MessageBody, MessageId, NeededKey, PoolKey,
};

/// The number under which an execution reports that it has a name that others wait for.
const APPEARED: EventId = EventId(0);
/// Redrives ask under numbers above this one. The numbers contain the time, so that no event and no
/// earlier redrive has them.
const REDRIVES: u64 = 1 << 42;

/// The keys of which an execution of this flow with this input needs a slot; or why there can be
/// none.
pub(super) fn needed_keys(
    flow: &Flow,
    name: &Text,
    input: &Value,
    limits: &Limits,
) -> Result<Vec<NeededKey>, StartError> {
    let mut keys: Vec<NeededKey> = Vec::new();
    for wanted in &flow.concurrency {
        let (found, written) = match &wanted.key {
            Source::Constant(value) => (Some(value.clone()), value.to_plain_text()),
            Source::Lookup(lookup) => {
                let budget = Budget::new(limits, input.json_len());
                let found = lookup.find(Root::from(input), &budget);
                let found = found.map_err(|fault| StartError::InvalidKey(fault.cause))?;
                (found, lookup.text().to_string())
            }
        };
        let invalid = |what: String| StartError::InvalidKey(format!("the concurrency key `{written}` {what}"));
        let text = match found {
            Some(Value::String(text)) => text,
            Some(Value::Number(number)) => Text::from(number.to_string()),
            Some(other) => return Err(invalid(format!("is {}, not a string or a number", other.kind()))),
            None => {
                return Err(invalid(
                    "finds nothing in the input: give it a string or a number there".to_owned(),
                ));
            }
        };
        if text.is_empty() || text.len() > CONCURRENCY_KEY_BYTES {
            let bytes = text.len();
            return Err(invalid(format!(
                "has {bytes} bytes, and must have 1 to {CONCURRENCY_KEY_BYTES}"
            )));
        }
        let key = PoolKey {
            pool: wanted.pool.clone().unwrap_or_else(|| name.clone()),
            key: text,
        };
        if keys.iter().any(|known| known.key == key) {
            return Err(invalid(format!(
                "is `{}`, as another one of the flow is: an execution needs different keys",
                key.key
            )));
        }
        keys.push(NeededKey {
            key,
            limit: wanted.limit,
        });
    }
    Ok(keys)
}

/// Whether the concurrency keys of a flow can be made of this input.
///
/// # Errors
///
/// [`StartError::InvalidKey`] names the key that can't, and the reason.
pub fn check_keys(flow: &Flow, name: &Text, input: &Value, limits: &Limits) -> Result<(), StartError> {
    needed_keys(flow, name, input, limits).map(drop)
}

/// The message to admission about an execution that ended this way.
pub(crate) fn ended_message(execution: &Text, event: EventId, status: Status) -> Message {
    message_to_admission(execution, event, MessageBody::Ended { status })
}

pub(super) fn message_to_admission(execution: &Text, event: EventId, body: MessageBody) -> Message {
    Message {
        id: MessageId {
            from: execution.clone(),
            event,
            to: ADMISSION.into(),
        },
        body,
    }
}

/// The request to admission of an execution that waits to begin.
pub(super) fn ask_of_start(kept: &KeptStart, waited_for: usize) -> Ask {
    let terms = &kept.start.terms;
    Ask {
        flow: kept.start.flow.clone(),
        keys: kept.keys.clone(),
        after: kept.open_after().to_vec(),
        priority: terms.priority.unwrap_or(DEFAULT_PRIORITY),
        order: terms.order_time.unwrap_or(kept.requested.0),
        requested: kept.requested,
        ancestors: kept.ancestors.iter().take(waited_for).cloned().collect(),
    }
}

impl Shard {
    /// Makes executions wait for admission. Without it, concurrency keys are not looked at.
    pub fn admit_through(&mut self, admission: AdmissionHandle) {
        self.admission = Some(admission);
    }

    /// Tells admission something that is durable.
    pub(crate) fn tell_admission(&self, message: Message) {
        if let Some(admission) = &self.admission {
            admission.send(AdmissionCommand::Deliver(message));
        }
    }

    /// Whether an execution of this flow has to be admitted.
    pub(super) fn must_ask(&self, flow: &str, keys: &[NeededKey], after: &[Dependency]) -> bool {
        let admission = self.admission.as_ref();
        admission.is_some_and(|admission| !keys.is_empty() || !after.is_empty() || admission.governs(flow))
    }

    /// Whether a flow has a limit or a pause, for which its executions may have to wait.
    pub(super) fn is_limited(&self, flow: &str) -> bool {
        self.admission.as_ref().is_some_and(|admission| admission.governs(flow))
    }

    /// Refuses a start that may have to wait if too many executions wait. Children are not refused,
    /// because their parents already run.
    pub(super) fn check_room(&self, start: &StartRecord) -> Result<(), StartError> {
        let admission = self.admission.as_ref().filter(|_| start.parent.is_none());
        match admission.and_then(AdmissionHandle::full_at) {
            Some(most) => Err(StartError::TooManyWaiting(most)),
            None => Ok(()),
        }
    }

    /// The number under which a redrive asks.
    pub(super) fn ask_number(&mut self, now: Timestamp) -> EventId {
        let time = REDRIVES.saturating_add(u64::try_from(now.0).unwrap_or(0));
        // The next number stays free for the message that follows the question.
        self.last_ask = time.max(self.last_ask.saturating_add(2));
        EventId(self.last_ask)
    }

    /// The request to admission of an ended execution that goes on; nothing if it need not ask.
    pub(super) fn ask_of_redrive(&self, id: &Text, live: &LoadedExecution, now: Timestamp) -> Option<Ask> {
        let started = live.state.started()?;
        // It had these keys when it was started.
        let keys = needed_keys(&live.flow, &started.flow, &started.input, self.limits()).unwrap_or_default();
        let after = declined_after(live, started);
        // No call waits for an execution that had ended, except the call that undoes it.
        let above = self.undoing.get(id).map(|(parent, _)| {
            let parent = self.executions.get(parent);
            parent.map_or(live.origin.depth, |parent| parent.origin.depth.saturating_add(1))
        });
        let above = usize::try_from(above.unwrap_or(0)).unwrap_or(usize::MAX);
        self.must_ask(&started.flow, &keys, &after).then(|| Ask {
            flow: started.flow.clone(),
            keys,
            after,
            priority: started.terms.priority.unwrap_or(DEFAULT_PRIORITY),
            order: started.terms.order_time.unwrap_or(now.0),
            requested: now,
            ancestors: live.origin.family.iter().skip(1).take(above).cloned().collect(),
        })
    }

    /// Handles a message of admission. Returns any other message.
    pub(super) fn take_word_of_admission(&mut self, message: Message, now: Timestamp) -> Option<Message> {
        let Message { id, body } = message;
        match body {
            MessageBody::Admit if self.waits_to_begin(&id.to) => self.take_admit(id, now),
            MessageBody::Admit => self.redrive_admitted(id, now),
            MessageBody::Decline { reason } if self.waits_to_begin(&id.to) => self.take_decline(id, &reason, now),
            MessageBody::Decline { reason } => self.redrive_declined(id, &reason, now),
            MessageBody::Met => self.take_met(id),
            MessageBody::Watch => self.take_watch(id),
            body => return Some(Message { id, body }),
        }
        None
    }

    /// Takes a message to an execution that does not exist.
    pub(super) fn take_message_of_absent(&mut self, message: Message) {
        let Message { id, body } = message;
        match body {
            // It was deleted meanwhile. No one must wait for it forever.
            MessageBody::Watch => self.answer_watch(id, EventId(0), Status::New),
            _ => self.drop_message(id),
        }
    }

    /// The error and cause of a start that is not admitted.
    pub(super) fn decline_error(&self, execution: &str, reason: &DeclineReason) -> (String, String) {
        let (kind, cause) = match reason {
            DeclineReason::Dependency { execution, status } => {
                let how = match status {
                    Status::New => "is not there".to_owned(),
                    ended => format!("ended as `{}`", ended.as_str()),
                };
                (
                    FaultKind::Dependency,
                    format!("the execution `{execution}`, which it waited for, {how}"),
                )
            }
            DeclineReason::Cycle { executions } => (
                FaultKind::Dependency,
                format!(
                    "the executions {} wait for one another",
                    executions
                        .iter()
                        .map(|id| format!("`{id}`"))
                        .collect::<Vec<_>>()
                        .join(", ")
                ),
            ),
            DeclineReason::TooManyDependencies => (
                FaultKind::Dependency,
                "more than 10000 executions stand behind those it waited for, so nobody can say whether one of them waits for it; \
                 wait for fewer, or start it once they have ended"
                    .to_owned(),
            ),
            DeclineReason::Deadlock { key } => (
                FaultKind::Deadlock,
                format!(
                    "the executions that hold the key `{}` of the pool `{}` wait for it",
                    key.key, key.pool
                ),
            ),
        };
        (self.error_name(execution, &kind), cause)
    }

    /// Records that admission must be told of an execution's end, or tells it at once.
    fn take_watch(&mut self, id: MessageId) {
        let to = id.to.clone();
        if self.watch_waiting(&id) {
            return;
        }
        let Some(live) = self.executions.get_mut(&to).filter(|live| !live.deleted) else {
            return self.answer_watch(id, EventId(0), Status::New);
        };
        let (status, last) = (live.state.status(), live.state.last_event());
        if status.is_ended() && live.asking.is_none() {
            return self.answer_watch(id, last, status);
        }
        live.watched = true;
        let standing = live.standing();
        live.kept = Some(standing.clone());
        live.unsettled += 1;
        let record = live.record(&standing);
        self.pending.push(Append {
            execution: to,
            expected: last,
            record: Some(record),
            received: vec![id],
            ..Append::default()
        });
    }

    fn answer_watch(&mut self, id: MessageId, last: EventId, status: Status) {
        let to = id.to.clone();
        self.drop_message(id);
        let message = ended_message(&to, last, status);
        if let Some(append) = self.pending.last_mut() {
            append.sent.push(message.clone());
            self.held.push(Outgoing::Message(message));
        }
    }

    /// The message to admission about a start whose name others wait for.
    pub(super) fn appeared(&self, execution: &Text, start: &StartRecord) -> Option<Message> {
        let (flow, name) = (start.flow.clone(), start.name.clone());
        let awaited = self.admission.as_ref()?.awaits(&flow, &name);
        awaited.then(|| message_to_admission(execution, APPEARED, MessageBody::Appeared { flow, name }))
    }

    /// Tells admission of a durable start if others wait for its name. Admission first records that
    /// it waits for a name, and then looks for it. So either admission finds the start, or this
    /// code finds the name recorded.
    pub(super) fn tell_of_appearance(&mut self, execution: &Text) {
        let start = self.start_of(execution);
        if let Some(message) = start.and_then(|start| self.appeared(execution, start)) {
            self.tell_admission(message);
        }
    }
}

/// The dependencies that a redriven execution waits for once more: all of them, if it never began
/// because of them.
fn declined_after(live: &LoadedExecution, started: &StartRecord) -> Vec<Dependency> {
    const DECLINED: EventId = EventId(2);
    let waited = started.terms.waited.as_ref();
    let waited = waited.filter(|_| live.state.last_event() <= DECLINED);
    let after = waited.map(|waited| waited.after.as_slice()).unwrap_or_default();
    let dependency = |other: &starbridge_machine::WaitedFor| Dependency {
        flow: other.flow.clone(),
        execution: other.execution.clone(),
        any_end: other.any_end,
    };
    after.iter().map(dependency).collect()
}
