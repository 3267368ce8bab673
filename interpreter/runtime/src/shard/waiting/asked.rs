//! The requests to admission of executions that wait to begin, and its answers.

use super::{Turn, WaitingStart, asked_turn_at};
use crate::shard::Shard;
use crate::shard::admission::{ask_of_start, message_to_admission};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EndBeforeStart, Status};
use starbridge_ports::{
    ASKED_AT_START, Append, DeclineReason, ExecutionRecord, KeptStart, Message, MessageBody, MessageId, RequestChange,
};

impl Shard {
    /// Asks admission for an execution whose time has come.
    pub(super) fn ask_for_waiting(&mut self, id: &Text, now: Timestamp) {
        let Some(waiting) = self.waiting.get(id) else {
            return;
        };
        let limited = self.is_limited(&waiting.kept.start.flow);
        let Some(waiting) = self.waiting.get_mut(id) else {
            return;
        };
        let question = question(id, &waiting.kept, &mut waiting.record, now);
        waiting.unsettled += 1;
        let was_limited = std::mem::replace(&mut waiting.kept.flow_limited, limited);
        let request = match std::mem::take(&mut waiting.kept.given_back) || was_limited != limited {
            true => RequestChange::Replace(serde_json::to_string(&waiting.kept).unwrap_or_default()),
            false => RequestChange::None,
        };
        let append = Append {
            execution: id.clone(),
            record: Some(waiting.record.clone()),
            request,
            ..Append::default()
        };
        self.send_with(append, question);
    }

    /// Begins an execution that is admitted.
    pub(in crate::shard) fn take_admit(&mut self, message: MessageId, now: Timestamp) {
        let id = message.to.clone();
        match self.waiting.get(&id).map(|waiting| waiting.asked_turn(&message, now)) {
            Some(Some(_)) if self.start_is_paused(&id) => self.give_back(&id, message, now),
            Some(Some(Turn::TooLate)) => self.end_late(&id, Some(message), now),
            Some(Some(_)) => self.begin_waiting(&id, Some(message), now),
            _ => self.drop_message(message),
        }
    }

    fn start_is_paused(&self, id: &str) -> bool {
        self.waiting
            .get(id)
            .is_some_and(|waiting| waiting.record.paused.is_some())
    }

    /// Gives back the slots of an execution that may begin but is paused, so that others get them.
    /// It asks again when it is resumed.
    fn give_back(&mut self, id: &Text, message: MessageId, now: Timestamp) {
        let number = self.ask_number(now);
        let Some(waiting) = self.waiting.get_mut(id) else {
            return;
        };
        waiting.kept.given_back = true;
        let append = waiting.met(id, message);
        self.send_with(append, message_to_admission(id, number, MessageBody::Withdrawn));
    }

    /// Records that everything an execution waited for has ended. It now waits for slots.
    pub(in crate::shard) fn take_met(&mut self, message: MessageId) {
        let id = message.to.clone();
        match self.waiting.get_mut(&id) {
            Some(waiting) if waiting.record.status == Status::Blocked => {
                let append = waiting.met(&id, message);
                self.pending.push(append);
            }
            _ => self.drop_message(message),
        }
    }

    /// Fails an execution that is not admitted.
    pub(in crate::shard) fn take_decline(&mut self, message: MessageId, reason: &DeclineReason, now: Timestamp) {
        let id = message.to.clone();
        let waiting = self.waiting.get(&id);
        if waiting.is_none_or(|waiting| waiting.asked_turn(&message, now).is_none()) {
            return self.drop_message(message);
        }
        let (error, cause) = self.decline_error(&id, reason);
        // A start that is declined is always taken.
        let _ = self.end_waiting(&id, EndBeforeStart::Failed { error, cause }, Some(message), now);
    }

    /// Records that admission must be told of the end of an execution that waits to begin. Returns
    /// whether it is such an execution.
    pub(in crate::shard) fn watch_waiting(&mut self, message: &MessageId) -> bool {
        let Some(waiting) = self.waiting.get_mut(&message.to) else {
            return false;
        };
        waiting.record.watched = true;
        waiting.unsettled += 1;
        self.pending.push(Append {
            execution: message.to.clone(),
            record: Some(waiting.record.clone()),
            received: vec![message.clone()],
            ..Append::default()
        });
        true
    }
}

impl WaitingStart {
    /// Records that everything it waited for has ended, as this message says.
    fn met(&mut self, id: &Text, message: MessageId) -> Append {
        self.kept.met = true;
        self.record.status = Status::Queued;
        self.unsettled += 1;
        Append {
            execution: id.clone(),
            record: Some(self.record.clone()),
            request: RequestChange::Replace(serde_json::to_string(&self.kept).unwrap_or_default()),
            received: vec![message],
            ..Append::default()
        }
    }

    /// What happens to it now, if this is the answer to its request.
    fn asked_turn(&self, answer: &MessageId, now: Timestamp) -> Option<Turn> {
        let asks = self.record.status != Status::Delayed && !self.kept.given_back;
        let asked = asks && answer.event == ASKED_AT_START;
        asked.then(|| asked_turn_at(&self.kept, now))
    }
}

/// The request of an execution to admission. Its record now says that it asked.
pub(super) fn question(id: &Text, kept: &KeptStart, record: &mut ExecutionRecord, now: Timestamp) -> Message {
    record.status = match kept.open_after().is_empty() {
        true => Status::Queued,
        false => Status::Blocked,
    };
    record.awake = false;
    record.wake_at = match asked_turn_at(kept, now) {
        Turn::WaitUntil(until) => Some(until),
        _ => None,
    };
    record.watched = true;
    let waited_for = usize::try_from(record.depth).unwrap_or(usize::MAX);
    let ask = ask_of_start(kept, waited_for);
    message_to_admission(id, ASKED_AT_START, MessageBody::Ask(Box::new(ask)))
}
