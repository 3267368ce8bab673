//! Forks: an execution that begins in the middle of another one's history (section "operating executions").

use super::admission::needed_keys;
use super::batch::stored_turn;
use super::loaded::{LoadedExecution, Origin};
use super::{Outgoing, Shard, StartRequest};
use starbridge_flow::graph::{FaultKind, Flow};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EndBeforeStart, Event, EventId, EventKind, Fork, ForkError, Forked, Parent, State};
use starbridge_ports::{Append, AuditEntry, KeptFork, KeptStart, MessageId, RequestChange};
use std::sync::Arc;

/// What to fork.
#[derive(Clone, Debug)]
pub struct ForkRequest {
    /// The id of the execution to fork.
    pub of: Text,
    /// The flow that the fork runs.
    pub flow: Arc<Flow>,
    /// The flow of the old execution. `events` belong to it.
    pub old_flow: Arc<Flow>,
    /// The version of the flow that the fork runs, if it is another one.
    pub version: Option<u64>,
    /// The durable events of that execution, at least to the end of the turn of `event`.
    pub events: Vec<Event>,
    /// The number of the event to go on from.
    pub event: EventId,
    /// The name of the fork; `None`: its id.
    pub name: Option<Text>,
    /// The audit entry; the id of the fork is added.
    pub audit: Option<AuditEntry>,
    /// The name of the operator, if it is known.
    pub by: Option<Text>,
}

/// Why a fork is not possible.
#[derive(Clone, Debug, PartialEq)]
pub enum ForkFailure {
    /// The history does not allow it, or the machine rejects it.
    Refused(ForkError),
    /// A concurrency key of the flow can't be made of the input. The text says why.
    InvalidKey(String),
    /// Making the fork panicked, and nothing of it was kept. The text is what the panic said.
    Panicked(Text),
}

impl Shard {
    /// Begins a fork and returns its id. The fork has begun when [`Outgoing::Started`] leaves, and waits to be admitted when
    /// [`Outgoing::Requested`] does.
    ///
    /// # Errors
    ///
    /// [`ForkFailure`] if the history does not allow the fork, the machine rejects it, or making it panics.
    pub fn fork(&mut self, request: &ForkRequest, now: Timestamp) -> Result<Text, ForkFailure> {
        let kept = self.fork_to_keep(request, now)?;
        let id = self.new_seed(&StartRequest::default(), now).id;
        let forked = self.guarded(&id, now, |shard| match kept {
            None => shard.fork_as(&id, request, None, now),
            Some(kept) => shard.keep_fork(&id, request, kept, now),
        });
        match forked {
            Some(Ok(())) => Ok(id),
            Some(Err(error)) => Err(ForkFailure::Refused(error)),
            None => Err(ForkFailure::Panicked(self.take_cause(&id).unwrap_or_default())),
        }
    }

    /// The stored form of a fork that has to be admitted.
    fn fork_to_keep(&self, request: &ForkRequest, now: Timestamp) -> Result<Option<KeptStart>, ForkFailure> {
        let first = request.events.first().map(|event| &event.detail);
        let Some(EventKind::ExecutionStarted(started)) = first else {
            return Ok(None);
        };
        let keys = needed_keys(&request.flow, &started.flow, &started.input, self.limits());
        let keys = keys.map_err(|error| ForkFailure::InvalidKey(error.to_string()))?;
        if !self.must_ask(&started.flow, &keys, &[]) {
            return Ok(None);
        }
        let mut start = started.clone();
        start.version = request.version.unwrap_or(start.version);
        start.name = request.name.clone().unwrap_or_default();
        // The key belongs to the old execution, and no parent waits for the fork.
        start.parent = None;
        start.terms.once_key = None;
        start.terms.report_to = None;
        let fork = KeptFork {
            of: request.of.clone(),
            event: request.event,
            by: request.by.clone(),
        };
        Ok(Some(KeptStart {
            start,
            requested: now,
            start_at: now,
            deadline: None,
            keys,
            after: Vec::new(),
            ancestors: Vec::new(),
            admitted: false,
            given_back: false,
            met: false,
            flow_limited: false,
            fork: Some(fork),
        }))
    }

    /// Keeps a fork until it is admitted. The fork is refused now, or else it is carried out later.
    fn keep_fork(
        &mut self,
        id: &Text,
        request: &ForkRequest,
        mut kept: KeptStart,
        now: Timestamp,
    ) -> Result<(), ForkError> {
        self.forked(id, request, now)?;
        if request.name.is_none() {
            kept.start.name = id.clone();
        }
        let origin = fork_origin(id, request, now);
        self.keep(id, request.flow.clone(), kept, &origin, Some(request.clone()), now);
        Ok(())
    }

    /// Begins a fork that waited. It fails if the history that it goes on from is gone.
    pub(super) fn begin_kept_fork(&mut self, id: &Text, of: &Text, message: Option<MessageId>, now: Timestamp) {
        let fork = self.waiting.get_mut(id).and_then(|waiting| waiting.fork.take());
        let forked = fork.map(|fork| self.guarded(id, now, |shard| shard.fork_as(id, &fork, message.clone(), now)));
        let cause = match forked {
            Some(Some(Ok(()))) => return,
            // It is tried again.
            Some(None) => return,
            Some(Some(Err(error))) => format!("it can't go on from the history of `{of}` any more: {error}"),
            None => format!("the execution `{of}`, from which it was to go on, is not there any more"),
        };
        let error = self.error_name(id, &FaultKind::Runtime);
        // A start that is declined is always taken.
        let _ = self.end_waiting(id, EndBeforeStart::Failed { error, cause }, message, now);
    }

    /// The fork as the machine makes it.
    fn forked(&self, id: &Text, request: &ForkRequest, now: Timestamp) -> Result<Forked, ForkError> {
        let fork = Fork {
            of: request.of.clone(),
            event: request.event,
            execution: id.clone(),
            name: request.name.clone().unwrap_or_else(|| id.clone()),
            version: request.version,
            by: request.by.clone(),
        };
        let (flow, old_flow) = (&request.flow, &request.old_flow);
        State::fork(flow, old_flow, &request.events, &fork, self.limits.clone(), now)
    }

    /// Begins a fork. `message` is the admission, if the fork waited for one.
    pub(super) fn fork_as(
        &mut self,
        id: &Text,
        request: &ForkRequest,
        message: Option<MessageId>,
        now: Timestamp,
    ) -> Result<(), ForkError> {
        let flow = &request.flow;
        let forked = self.forked(id, request, now)?;
        let origin = fork_origin(id, request, now);
        let mut live = LoadedExecution::new(flow.clone(), forked.state, origin);
        live.queues = self.fair_queue.is_some();
        let (mut begins, mut received) = (RequestChange::None, message);
        if let Some(waited) = self.waiting.remove(id) {
            live.unsettled = waited.unsettled;
            live.watched = true;
            begins = RequestChange::Begin;
        }
        let standing = live.standing();
        live.kept = Some(standing.clone());
        let mut record = Some(live.record(&standing));
        let calls: Vec<_> = live.state.calls_to_send_after(flow, EventId(0)).collect();
        let mut before = EventId(0);
        let waited = begins == RequestChange::Begin;
        let mut audit = request.audit_of(id).filter(|_| !waited);
        for events in forked.turns {
            live.unsettled += 1;
            let turn = stored_turn(flow, before, &events);
            self.pending.push(Append {
                execution: id.clone(),
                expected: before,
                record: record.take(),
                // The next turn writes one: the state here is the one after the last of these
                // turns.
                checkpoint: None,
                turn: Some(turn),
                request: std::mem::take(&mut begins),
                received: received.take().into_iter().collect(),
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
            self.collect_notices(id, None, &[], &mut last);
            self.pending.push(last);
        }
        self.held.push(Outgoing::Started {
            execution: id.clone(),
            status: standing.status,
        });
        self.take_up_calls(id, calls, now, true);
        Ok(())
    }
}

impl ForkRequest {
    /// The audit entry of the fork that got this id.
    pub(super) fn audit_of(&self, id: &Text) -> Option<AuditEntry> {
        self.audit.clone().map(|entry| entry.with("fork", id.clone()))
    }
}

fn fork_origin(id: &Text, request: &ForkRequest, now: Timestamp) -> Origin {
    Origin {
        family: vec![id.clone()],
        forked: Some(Parent {
            execution: request.of.clone(),
            event: request.event,
        }),
        forked_time: Some(now),
        ..Origin::default()
    }
}
