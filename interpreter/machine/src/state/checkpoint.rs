//! Checkpoints: a state in bytes, so that loading does not have to fold the whole history. The history alone is
//! always enough.

use super::calls::WrittenCalls;
use super::frames::{FrameTree, WrittenFrames};
use super::{
    Calls, Children, Data, Ending, FrameId, Frames, InFlight, Paused, State, Status, StepRun, Timers, VisitPhase,
};
use crate::MACHINE_VERSION;
use crate::event::{Child, EventId, Failure, StartRecord, StepPath};
use serde::{Deserialize, Serialize};
use starbridge_flow::graph::{Flow, StepId, StepKind};
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Overlay, Text, Value};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The version of the form of checkpoints.
const FORMAT: u32 = 4;
/// The earliest form that is read. Form 2 does not say since when tasks are in their queues, form 3 not which call of an undo was its
/// last.
const EARLIEST_FORMAT: u32 = 2;

/// The head of a checkpoint. A checkpoint with another head is ignored and made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The version of the form.
    pub format: u32,
    /// The hash of the flow's definition.
    pub definition_hash: Text,
    /// The lowest version of the machine that reads the history up to here.
    pub machine: u32,
    /// The number of the last event in it.
    pub event: EventId,
}

/// Why a checkpoint can't be used. The history can be used instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointError {
    /// Its bytes are not a checkpoint, or no history leads to its state.
    Unreadable,
    /// It was written in another form, for another definition, or by another machine.
    Other(Checkpoint),
}

#[derive(Serialize, Deserialize)]
struct Written<'a> {
    #[serde(flatten)]
    head: Checkpoint,
    execution: Text,
    book: StateParts<'a>,
}

/// The parts of a state side by side, in the order and under the names that checkpoints have always had.
#[derive(Serialize, Deserialize)]
struct StateParts<'a> {
    started: Cow<'a, Option<Box<StartRecord>>>,
    started_time: Timestamp,
    last: EventId,
    last_time: Timestamp,
    status: Status,
    #[serde(
        serialize_with = "super::maybe_document::serialize",
        deserialize_with = "super::maybe_document::owned"
    )]
    output: Cow<'a, Option<Value>>,
    failure: Cow<'a, Option<Failure>>,
    failed_step: Option<StepId>,
    broken: Option<EventId>,
    frames: Cow<'a, FrameTree>,
    ready: Cow<'a, VecDeque<FrameId>>,
    calls: Cow<'a, BTreeMap<EventId, InFlight>>,
    timers: Cow<'a, Timers>,
    abandoned: Cow<'a, BTreeSet<EventId>>,
    #[serde(default, skip_serializing_if = "is_empty")]
    noted: Cow<'a, BTreeSet<EventId>>,
    ending: Cow<'a, Option<Ending>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    draining: bool,
    #[serde(default, skip_serializing_if = "not_paused")]
    paused: Cow<'a, Option<Box<Paused>>>,
    manual: Cow<'a, BTreeMap<EventId, FrameId>>,
    late_ending: Cow<'a, Option<Ending>>,
    #[serde(
        serialize_with = "super::maybe_document::serialize",
        deserialize_with = "super::maybe_document::owned"
    )]
    flow_input: Cow<'a, Option<Value>>,
    undoing: u32,
    #[serde(default, skip_serializing_if = "no_edits")]
    edits: Cow<'a, BTreeMap<EventId, Value>>,
}

fn not_paused(paused: &Option<Box<Paused>>) -> bool {
    paused.is_none()
}

fn no_edits(edits: &BTreeMap<EventId, Value>) -> bool {
    edits.is_empty()
}

fn is_empty(events: &BTreeSet<EventId>) -> bool {
    events.is_empty()
}

impl<'a> StateParts<'a> {
    fn of(state: &'a State) -> Self {
        let data = &state.data;
        let WrittenFrames {
            frames,
            ready,
            rollbacks,
        } = state.frames.to_written();
        let WrittenCalls {
            in_flight,
            abandoned,
            noted,
        } = state.calls.to_written();
        Self {
            started: Cow::Borrowed(&data.started),
            started_time: data.started_time,
            last: data.last,
            last_time: data.last_time,
            status: data.status,
            output: Cow::Borrowed(&data.output),
            failure: Cow::Borrowed(&data.failure),
            failed_step: data.failed_step,
            broken: data.broken,
            frames,
            ready,
            calls: in_flight,
            timers: Cow::Borrowed(&state.timers),
            abandoned,
            noted,
            ending: Cow::Borrowed(&data.ending),
            draining: data.draining,
            paused: Cow::Borrowed(&data.paused),
            manual: Cow::Borrowed(&data.manual),
            late_ending: Cow::Borrowed(&data.late_ending),
            flow_input: Cow::Borrowed(&data.flow_input),
            undoing: rollbacks,
            edits: Cow::Borrowed(&data.edits),
        }
    }

    fn into_state(self, execution: Text, needed_version: u32, limits: Arc<Limits>) -> State {
        State {
            execution,
            limits,
            data: Data {
                started: self.started.into_owned(),
                started_time: self.started_time,
                last: self.last,
                last_time: self.last_time,
                status: self.status,
                output: self.output.into_owned(),
                failure: self.failure.into_owned(),
                failed_step: self.failed_step,
                broken: self.broken,
                ending: self.ending.into_owned(),
                draining: self.draining,
                paused: self.paused.into_owned(),
                manual: self.manual.into_owned(),
                late_ending: self.late_ending.into_owned(),
                flow_input: self.flow_input.into_owned(),
                edits: self.edits.into_owned(),
                needed_version,
            },
            frames: Frames::from_written(WrittenFrames {
                frames: self.frames,
                ready: self.ready,
                rollbacks: self.undoing,
            }),
            calls: Calls::from_written(WrittenCalls {
                in_flight: self.calls,
                abandoned: self.abandoned,
                noted: self.noted,
            }),
            timers: self.timers.into_owned(),
        }
    }
}

impl State {
    /// Writes the state as bytes. The same state gives the same bytes.
    pub fn checkpoint(&self, flow: &Flow) -> Vec<u8> {
        serde_json::to_vec(&Written {
            head: Checkpoint {
                format: FORMAT,
                definition_hash: flow.hash.clone(),
                machine: self.needed_version(),
                event: self.data.last,
            },
            execution: self.execution.clone(),
            book: StateParts::of(self),
        })
        .unwrap_or_default()
    }

    /// Reads a state that [`State::checkpoint`] wrote under the same definition, by this machine or an older one.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Other`] if the form or definition differs or the machine is newer, [`CheckpointError::Unreadable`] if the
    /// bytes are damaged or no history leads to the state.
    pub fn from_checkpoint(flow: &Flow, bytes: &[u8], limits: Arc<Limits>) -> Result<Self, CheckpointError> {
        let head: Checkpoint = serde_json::from_slice(bytes).map_err(|_| CheckpointError::Unreadable)?;
        if !(EARLIEST_FORMAT..=FORMAT).contains(&head.format)
            || !(1..=MACHINE_VERSION).contains(&head.machine)
            || head.definition_hash != flow.hash
        {
            return Err(CheckpointError::Other(head));
        }
        let written: Written<'_> = serde_json::from_slice(bytes).map_err(|_| CheckpointError::Unreadable)?;
        let mut state = written.book.into_state(written.execution, head.machine, limits);
        state
            .validate_invariants(flow)
            .and_then(|()| state.rebuild(flow))
            .ok_or(CheckpointError::Unreadable)?;
        Ok(state)
    }

    /// Computes what is not written because it follows from the rest: paths and inputs, from outside in.
    fn rebuild(&mut self, flow: &Flow) -> Option<()> {
        for id in self.frames.ids() {
            self.rebuild_frame(flow, id)?;
        }
        Some(())
    }

    /// Computes the path and input of one frame. The frames around it must be complete.
    pub(crate) fn rebuild_frame(&mut self, flow: &Flow, id: FrameId) -> Option<()> {
        let parent = self.frames.get(id)?.parent;
        let (path, mut input) = match parent {
            None => (StepPath::default(), self.root_input()?),
            Some((outer, child)) => self.inside_of_parent(flow, outer, child)?,
        };
        let frame = self.frames.get_mut(id)?;
        for (key, value) in &frame.extra {
            input.insert(key.clone(), value.clone());
        }
        if frame.replaced {
            input = Overlay::new(frame.local.clone());
        }
        frame.path = path;
        frame.data = input.clone();
        frame.data.merge_document(&frame.local);
        frame.input = input;
        let visit = frame.visit().filter(|visit| visit.started > EventId::default());
        let step = visit.and_then(|visit| Some((flow.step(visit.step)?, visit.mapped.clone())));
        let input = step.map(|(step, mapped)| (step, frame.step_input(step, mapped).into_owned()));
        if let Some((step, input)) = input
            && let Some(visit) = frame.visit_mut()
        {
            visit.input = input;
            if let (StepKind::Foreach(foreach), VisitPhase::Started(StepRun::Children(children))) =
                (&step.kind, &mut visit.phase)
            {
                children.collection = Children::collected(foreach, &visit.input);
            }
        }
        Some(())
    }

    fn root_input(&self) -> Option<Overlay> {
        let input = match &self.data.flow_input {
            Some(input) => input.clone(),
            None => self.data.started.as_ref()?.input.clone(),
        };
        Some(Overlay::new(input))
    }

    fn inside_of_parent(&self, flow: &Flow, outer: FrameId, child: Child) -> Option<(StepPath, Overlay)> {
        let frame = self.frames.get(outer)?;
        let visit = frame.visit()?;
        let mut input = visit.input.clone();
        if let (StepKind::Foreach(_), Some(children)) = (&flow.step(visit.step)?.kind, visit.children()) {
            input.exempt_also(children.collection_len());
        }
        Some((frame.path.inside(visit.step, child), input))
    }
}
