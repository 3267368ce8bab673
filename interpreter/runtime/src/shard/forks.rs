//! Forks: an execution that begins in the middle of another one's history (section "operating executions").

use super::batch::stored_turn;
use super::loaded::{LoadedExecution, Origin};
use super::{Outgoing, Shard, StartRequest};
use starbridge_fdl::graph::Flow;
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::Text;
use starbridge_machine::{Event, EventId, Fork, ForkError, Parent, State};
use starbridge_ports::Append;
use std::sync::Arc;

/// What a fork is made of.
#[derive(Clone, Debug)]
pub struct ForkRequest {
    /// The execution it is of.
    pub of: Text,
    /// That one's flow; the fork runs it too.
    pub flow: Arc<Flow>,
    /// That one's durable events, at least to the end of the turn of `event`.
    pub events: Vec<Event>,
    /// The event to go on from.
    pub event: EventId,
    /// The fork's name; its id where none is given.
    pub name: Option<Text>,
}

/// Why there is no fork.
#[derive(Clone, Debug, PartialEq)]
pub enum ForkFailure {
    /// The history does not allow it.
    Refused(ForkError),
    /// Making it panicked, and nothing of it was kept.
    Panicked(Text),
}

impl Shard {
    /// Begins a fork and answers its id. It has begun when [`Outgoing::Started`] leaves.
    pub fn fork(&mut self, request: &ForkRequest, now: Timestamp) -> Result<Text, ForkFailure> {
        let id = (self.births)(&StartRequest::default(), now).id;
        let forked = self.guarded(&id, now, |shard| shard.fork_as(&id, request, now));
        match forked {
            Some(forked) => forked.map_err(ForkFailure::Refused),
            None => Err(ForkFailure::Panicked(self.take_cause(&id).unwrap_or_default())),
        }
    }

    fn fork_as(&mut self, id: &Text, request: &ForkRequest, now: Timestamp) -> Result<Text, ForkError> {
        let id = id.clone();
        let fork = Fork {
            of: request.of.clone(),
            event: request.event,
            execution: id.clone(),
            name: request.name.clone().unwrap_or_else(|| id.clone()),
            version: None,
        };
        let flow = &request.flow;
        let forked = State::fork(flow, flow, &request.events, &fork, self.limits.clone(), now)?;
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
        live.queues = self.rounds.is_some();
        let standing = live.standing();
        live.kept = Some(standing);
        let mut record = Some(live.record(standing));
        let calls: Vec<_> = live.state.calls_to_send_after(flow, EventId(0)).collect();
        let mut before = EventId(0);
        for events in forked.turns {
            live.unsettled += 1;
            let turn = stored_turn(flow, before, &events);
            self.pending.push(Append {
                execution: id.clone(),
                expected: before,
                record: record.take(),
                // Its next turn brings one: the state here is that of the last of these.
                checkpoint: None,
                turn: Some(turn),
                ..Append::default()
            });
            before = events.last().map_or(before, |last| last.id);
            self.held.push(Outgoing::Turn {
                execution: id.clone(),
                events,
            });
        }
        self.executions.insert(id.clone(), live);
        // Its status is that after the last of these turns.
        if let Some(mut last) = self.pending.pop() {
            self.tell(&id, None, &[], &mut last);
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
