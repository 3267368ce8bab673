//! Ends that admission hears of before they are durable.

use super::{Job, State, World};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::Status;
use starbridge_ports::{Append, ExecutionRecord, History, Message, MessageId};

/// An end whose append is not made yet.
pub(super) struct End {
    append: Append,
    /// The execution, and what it did before.
    execution: Text,
    before: State,
}

impl World {
    /// A turn of an execution.
    pub(super) fn append_of(
        &self,
        id: &Text,
        status: Option<Status>,
        received: Vec<MessageId>,
        sent: Option<&Message>,
    ) -> Append {
        let record = status.map(|status| ExecutionRecord {
            status,
            ended: status.is_ended().then_some(Timestamp(self.now)),
            ..self.record(id)
        });
        Append {
            execution: id.clone(),
            record,
            received,
            sent: sent.into_iter().cloned().collect(),
            ..Append::default()
        }
    }

    /// Admission hears of some ends at once. Their appends stand in front of its next one.
    pub(super) fn end_ahead(&mut self, id: &Text, status: Status, append: Append, message: Message) {
        let ended = State::Ended(status);
        let before = self
            .jobs
            .get_mut(id)
            .map(|job| std::mem::replace(&mut job.state, ended));
        if let Some(before) = before {
            let execution = id.clone();
            self.ahead.push(End {
                append,
                execution,
                before,
            });
            self.admission.deliver_ahead(message);
            self.findings.count("ends heard of before they were durable", 1);
        }
    }

    /// Makes the appends of these ends.
    pub(super) fn catch_up(&mut self) {
        for End { append, .. } in std::mem::take(&mut self.ahead) {
            match self.store.append(&[append]) {
                Ok(refusals) if refusals.is_empty() => {}
                refused => self.problem(super::Law::Store, format!("{refused:?}")),
            }
        }
    }

    /// The process ended: none, some or all of these appends were made.
    pub(super) fn lose_ahead(&mut self) {
        let most = u32::try_from(self.ahead.len()).unwrap_or(u32::MAX);
        let kept = self.chance.below(most.saturating_add(1)) as usize;
        for End { execution, before, .. } in self.ahead.split_off(kept).into_iter().rev() {
            let job = self.jobs.get_mut(&execution);
            job.into_iter().for_each(|job: &mut Job| job.state = before);
            self.findings.count("ends that were lost", 1);
        }
        self.catch_up();
    }
}
