//! Forks: an execution that begins in the middle of another one's history (section "operating executions").

use super::live::Live;
use super::{Outgoing, Shard, StartRequest};
use starbridge_fdl::graph::Flow;
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::Text;
use starbridge_machine::{Event, EventId, Fork, ForkError, State, history};
use starbridge_ports::{Append, Turn};
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

impl Shard {
    /// Begins a fork and answers its id. It has begun when [`Outgoing::Started`] leaves.
    pub fn fork(&mut self, request: &ForkRequest, now: Timestamp) -> Result<Text, ForkError> {
        let id = (self.births)(&StartRequest::default(), now).id;
        let fork = Fork {
            of: request.of.clone(),
            event: request.event,
            execution: id.clone(),
            name: request.name.clone().unwrap_or_else(|| id.clone()),
            version: None,
        };
        let flow = &request.flow;
        let forked = State::fork(flow, flow, &request.events, &fork, self.limits.clone(), now)?;
        let mut live = Live::new(flow.clone(), forked.state, vec![id.clone()], false);
        let standing = live.standing();
        live.kept = Some(standing);
        let mut record = Some(live.record(standing));
        let calls: Vec<_> = live.state.calls_to_send_after(flow, EventId(0)).collect();
        let must_continue = live.state.must_continue();
        let mut before = EventId(0);
        for events in forked.turns {
            live.unsettled += 1;
            let text = history::write_turn(flow, &events);
            let checkpoint = live.count(events.len() as u64, text.len(), self.checkpoint_events);
            self.pending.push(Append {
                execution: id.clone(),
                expected: before,
                turn: Some(Turn {
                    first: before.next(),
                    events: u32::try_from(events.len()).unwrap_or(u32::MAX),
                    time: events.first().map(|event| event.time).unwrap_or_default(),
                    text,
                }),
                record: record.take(),
                // The state is that of the last turn: only there is a checkpoint of it true.
                checkpoint: checkpoint.filter(|_| events.last().map(|last| last.id) == Some(live.state.last_event())),
                ..Append::default()
            });
            before = events.last().map_or(before, |last| last.id);
            self.held.push(Outgoing::Turn {
                execution: id.clone(),
                events,
            });
        }
        self.executions.insert(id.clone(), live);
        self.held.push(Outgoing::Started {
            execution: id.clone(),
            status: standing.status,
        });
        for call in calls {
            self.note_sync(&id, &call);
            self.held.push(Outgoing::Send {
                execution: id.clone(),
                call: Box::new(call),
            });
        }
        if must_continue {
            self.continuing.push_back(id.clone());
        }
        self.note_wakeup(&id);
        Ok(id)
    }
}
