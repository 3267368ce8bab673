//! Answers to the senders of commands. An answer leaves only when what it reports is durable.

use super::Engine;
use super::replies::{Reply, Snapshot, StartFailure, StartedExecution};
use starbridge_flow::value::Text;
use starbridge_machine::Status;
use starbridge_ports::{Refusal, ShardSet};
use std::collections::BTreeMap;
use tokio::sync::oneshot;

/// The number of waiters for ends at which those that have gone are dropped.
const SWEEP_FROM: usize = 1024;

/// The senders of commands that wait for answers.
#[derive(Default)]
pub(super) struct Waiters {
    starts: BTreeMap<Text, Starter>,
    ends: BTreeMap<Text, Vec<oneshot::Sender<Snapshot>>>,
    /// How many waiters for ends there are, gone or not, and the number at which those that have gone are dropped.
    waiting: usize,
    sweep_at: usize,
    marks: BTreeMap<u64, DurableAnswer>,
    next: u64,
}

/// An answer that leaves once what it reports is durable.
pub(super) struct DurableAnswer {
    pub(super) reply: oneshot::Sender<Reply>,
    pub(super) answer: Reply,
    /// The execution that it is about.
    pub(super) of: Option<Text>,
}

struct Starter {
    reply: oneshot::Sender<Result<StartedExecution, StartFailure>>,
    /// Whether the sender also waits for the end.
    wait: bool,
}

impl Waiters {
    pub(super) fn await_start(
        &mut self,
        execution: Text,
        wait: bool,
        reply: oneshot::Sender<Result<StartedExecution, StartFailure>>,
    ) {
        self.starts.insert(execution, Starter { reply, wait });
    }

    pub(super) fn await_end(&mut self, execution: Text, reply: oneshot::Sender<Snapshot>) {
        self.ends.entry(execution).or_default().push(reply);
        self.waiting += 1;
        if self.waiting > self.sweep_at.max(SWEEP_FROM) {
            self.sweep();
        }
    }

    /// Gives the execution when it has ended.
    fn end_of(&mut self, execution: &Text) -> oneshot::Receiver<Snapshot> {
        let (reply, end) = oneshot::channel();
        self.await_end(execution.clone(), reply);
        end
    }

    /// Drops waiters that have gone. This goes through all of them, so it waits until their number has doubled.
    fn sweep(&mut self) {
        self.waiting = 0;
        self.ends.retain(|_, ends| {
            ends.retain(|reply| !reply.is_closed());
            self.waiting += ends.len();
            !ends.is_empty()
        });
        self.sweep_at = self.waiting * 2;
    }

    fn take_ends(&mut self, execution: &Text) -> Vec<oneshot::Sender<Snapshot>> {
        let ends = self.ends.remove(execution).unwrap_or_default();
        self.waiting -= ends.len();
        ends
    }

    /// Returns the number of a new mark. When the mark comes back, the answer leaves.
    pub(super) fn await_mark(&mut self, answer: DurableAnswer) -> u64 {
        self.next += 1;
        self.marks.insert(self.next, answer);
        self.next
    }

    pub(super) fn marked(&mut self, number: u64) {
        if let Some(DurableAnswer { reply, answer, .. }) = self.marks.remove(&number) {
            // The sender of the command may have gone.
            let _ = reply.send(answer);
        }
    }

    /// Tells whoever sent a command for an execution, and waits for it to be durable, that another one has the execution.
    fn refuse_marks(&mut self, is_lost: impl Fn(&Text) -> bool) {
        let lost = |_: &u64, waiting: &mut DurableAnswer| waiting.of.as_ref().is_some_and(&is_lost);
        for (_, DurableAnswer { reply, .. }) in self.marks.extract_if(.., lost) {
            // The sender of the command may have gone.
            let _ = reply.send(Reply::Held);
        }
    }

    /// Drops all who wait for executions of these shards, which another owner has. They are told to look for it.
    pub(super) fn refuse_those_of(&mut self, shards: &ShardSet) {
        self.refuse_marks(|execution| shards.has_execution(execution));
        for (_, starter) in self
            .starts
            .extract_if(.., |execution, _| shards.has_execution(execution))
        {
            let _ = starter.reply.send(Err(StartFailure::Busy));
        }
        drop(self.take_ends_of(shards));
    }

    /// Takes those who wait for the ends of executions of these shards.
    pub(super) fn take_ends_of(&mut self, shards: &ShardSet) -> Vec<(Text, oneshot::Sender<Snapshot>)> {
        let of = self.ends.extract_if(.., |execution, _| shards.has_execution(execution));
        let ends: Vec<_> = of
            .flat_map(|(execution, ends)| ends.into_iter().map(move |reply| (execution.clone(), reply)))
            .collect();
        self.waiting -= ends.len();
        ends
    }

    /// Drops all waiters for an execution that another process has.
    pub(super) fn lose(&mut self, execution: &Text) {
        self.refuse_marks(|of| of == execution);
        self.forget(execution);
    }

    /// Drops all waiters for an execution.
    pub(super) fn forget(&mut self, execution: &Text) {
        self.starts.remove(execution);
        self.take_ends(execution);
    }

    pub(super) fn refused(&mut self, execution: &Text, refusal: &Refusal) {
        if let Some(starter) = self.starts.remove(execution) {
            let failure = match refusal {
                Refusal::Exists { execution, .. } => StartFailure::Exists(execution.clone()),
                Refusal::Conflict => StartFailure::Stopping,
                Refusal::Fenced => StartFailure::Busy,
            };
            let _ = starter.reply.send(Err(failure));
        }
    }
}

impl Engine {
    pub(super) fn answer_started(&mut self, execution: &Text, status: Status) {
        let Some(starter) = self.waiters.starts.remove(execution) else {
            return;
        };
        let Some(begun) = self.snapshot_of(execution, Some(status)) else {
            return;
        };
        let end = (starter.wait && !status.is_ended()).then(|| self.waiters.end_of(execution));
        // The sender of the command may have gone.
        let _ = starter.reply.send(Ok(StartedExecution { snapshot: begun, end }));
    }

    /// Answers the starter of an execution that waits to begin, and remembers when to look at it.
    pub(super) fn answer_requested(&mut self, execution: &Text) {
        let Some((record, input)) = self.shard.waiting_start(execution) else {
            return;
        };
        if let Some(due) = record.wake_at {
            self.sleepers.know(due, execution.clone());
        }
        let Some(starter) = self.waiters.starts.remove(execution) else {
            return;
        };
        let snapshot = Snapshot {
            execution: execution.clone(),
            record: record.clone(),
            input: input.clone(),
            output: None,
        };
        let end = starter.wait.then(|| self.waiters.end_of(execution));
        // The sender of the command may have gone.
        let _ = starter.reply.send(Ok(StartedExecution { snapshot, end }));
    }

    pub(super) fn answer_ended(&mut self, execution: &Text) {
        let mut ends = self.waiters.take_ends(execution);
        ends.retain(|reply| !reply.is_closed());
        if ends.is_empty() {
            return;
        }
        if let Some(begun) = self.snapshot_of(execution, None) {
            for reply in ends {
                let _ = reply.send(begun.clone());
            }
        }
    }

    /// What the store and callers can know of a loaded execution. If `only` is given, the execution has just begun,
    /// with this status.
    fn snapshot_of(&self, execution: &Text, only: Option<Status>) -> Option<Snapshot> {
        let mut record = self.shard.record(execution)?;
        let state = self.shard.state(execution)?;
        let mut output = state.output().cloned();
        if let Some(status) = only {
            record.status = status;
            if !status.is_ended() {
                record.ended = None;
                record.failure = None;
                output = None;
            }
        }
        Some(Snapshot {
            execution: execution.clone(),
            record,
            input: state.started()?.input.clone(),
            output,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiters_that_have_gone_are_not_kept() {
        let mut waiters = Waiters::default();
        let stays: Vec<_> = (0..3)
            .map(|number| {
                let (reply, end) = oneshot::channel();
                waiters.await_end(Text::from(format!("stays{number}")), reply);
                end
            })
            .collect();
        for number in 0..5 * SWEEP_FROM {
            let (reply, _) = oneshot::channel();
            waiters.await_end(Text::from(format!("e{}", number % 500)), reply);
        }
        assert!(waiters.waiting <= SWEEP_FROM + stays.len(), "{}", waiters.waiting);
        let kept: usize = waiters.ends.values().map(Vec::len).sum();
        assert_eq!(kept, waiters.waiting);
        assert!((0..3).all(|number| waiters.ends.contains_key(format!("stays{number}").as_str())));
        assert_eq!(waiters.take_ends(&Text::from("stays0")).len(), 1);
        assert_eq!(waiters.waiting, kept - 1);
    }
}
