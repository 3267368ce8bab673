//! Forks: an execution that begins in the middle of another one's history (section "operating executions").

use super::admission::needed_keys;
use super::batch::stored_turn;
use super::loaded::{LoadedExecution, Origin};
use super::{Outgoing, Shard, StartRequest};
use starbridge_flow::graph::Flow;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{Event, EventId, EventKind, Fork, ForkError, Parent, State};
use starbridge_ports::{Append, AuditEntry};
use std::sync::Arc;

/// What to fork.
#[derive(Clone, Debug)]
pub struct ForkRequest {
    /// The id of the execution to fork.
    pub of: Text,
    /// The flow that the fork runs.
    pub flow: Arc<Flow>,
    /// The flow that the old execution runs, of which the events are.
    pub old_flow: Arc<Flow>,
    /// The version of the flow that the fork runs, if it is another one.
    pub version: Option<u64>,
    /// The durable events of that execution, at least to the end of the turn of `event`.
    pub events: Vec<Event>,
    /// The number of the event to go on from.
    pub event: EventId,
    /// The name of the fork; `None`: its id.
    pub name: Option<Text>,
    /// What the audit list says of it; the id of the fork is added.
    pub audit: Option<AuditEntry>,
    /// The name of the operator, where it is known.
    pub by: Option<Text>,
}

/// Why a fork is not possible.
#[derive(Clone, Debug, PartialEq)]
pub enum ForkFailure {
    /// The history does not allow it, or the machine rejects it.
    Refused(ForkError),
    /// The fork would have to be admitted.
    NeedsAdmission,
    /// Making the fork panicked, and nothing of it was kept. The text is what the panic said.
    Panicked(Text),
}

impl Shard {
    /// Begins a fork and returns its id. The fork has begun when [`Outgoing::Started`] leaves.
    ///
    /// # Errors
    ///
    /// [`ForkFailure`] if the history does not allow the fork, the machine rejects it, or making it panics.
    pub fn fork(&mut self, request: &ForkRequest, now: Timestamp) -> Result<Text, ForkFailure> {
        if self.fork_must_ask(request) {
            return Err(ForkFailure::NeedsAdmission);
        }
        let id = (self.id_source)(&StartRequest::default(), now).id;
        let forked = self.guarded(&id, now, |shard| shard.fork_as(&id, request, now));
        match forked {
            Some(forked) => forked.map_err(ForkFailure::Refused),
            None => Err(ForkFailure::Panicked(self.take_cause(&id).unwrap_or_default())),
        }
    }

    /// Whether a fork has concurrency keys or its flow is limited. It would run beside those that hold its slots.
    fn fork_must_ask(&self, request: &ForkRequest) -> bool {
        let first = request.events.first().map(|event| &event.detail);
        let Some(EventKind::ExecutionStarted(started)) = first else {
            return false;
        };
        let keys = needed_keys(&request.flow, &started.flow, &started.input, self.limits());
        keys.is_err() || self.must_ask(&started.flow, &keys.unwrap_or_default(), &[])
    }

    fn fork_as(&mut self, id: &Text, request: &ForkRequest, now: Timestamp) -> Result<Text, ForkError> {
        let id = id.clone();
        let fork = Fork {
            of: request.of.clone(),
            event: request.event,
            execution: id.clone(),
            name: request.name.clone().unwrap_or_else(|| id.clone()),
            version: request.version,
            by: request.by.clone(),
        };
        let flow = &request.flow;
        let forked = State::fork(
            flow,
            &request.old_flow,
            &request.events,
            &fork,
            self.limits.clone(),
            now,
        )?;
        let origin = Origin {
            family: vec![id.clone()],
            forked: Some(Parent {
                execution: request.of.clone(),
                event: request.event,
            }),
            forked_time: Some(now),
            ..Origin::default()
        };
        let mut live = LoadedExecution::new(flow.clone(), forked.state, origin);
        live.queues = self.fair_queue.is_some();
        let standing = live.standing();
        live.kept = Some(standing);
        let mut record = Some(live.record(standing));
        let calls: Vec<_> = live.state.calls_to_send_after(flow, EventId(0)).collect();
        let mut before = EventId(0);
        let mut audit = request.audit.clone().map(|entry| entry.with("fork", id.clone()));
        for events in forked.turns {
            live.unsettled += 1;
            let turn = stored_turn(flow, before, &events);
            self.pending.push(Append {
                execution: id.clone(),
                expected: before,
                record: record.take(),
                // The next turn brings one: the state here is that after the last of these turns.
                checkpoint: None,
                turn: Some(turn),
                audit: audit.take().into_iter().collect(),
                ..Append::default()
            });
            before = events.last().map_or(before, |last| last.id);
            self.held.push(Outgoing::Turn {
                execution: id.clone(),
                events,
            });
        }
        self.executions.insert(id.clone(), live);
        // Its status is the one after the last of these turns.
        if let Some(mut last) = self.pending.pop() {
            self.collect_notices(&id, None, &[], &mut last);
            self.pending.push(last);
        }
        self.held.push(Outgoing::Started {
            execution: id.clone(),
            status: standing.status,
        });
        self.take_up_calls(&id, calls, now, true);
        Ok(id)
    }
}
