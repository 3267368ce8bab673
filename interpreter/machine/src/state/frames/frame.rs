//! A frame: one run of a list of steps.

use crate::event::{Child, EventId, Failure, StepPath};
use crate::state::{Children, Done, DoneList, FrameId, TimerKey, Undoing};
use serde::{Deserialize, Serialize};
use starbridge_flow::graph::{Flow, InputMode, ListId, NumberSource, Settings, Step, StepId, StepKind};
use starbridge_flow::time::{Millis, Seconds, Timestamp};
use starbridge_flow::value::{Document, Object, Overlay, Text, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One run of a list of steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Frame {
    pub(crate) list: ListId,
    /// The frame whose step this list belongs to, and which of its children it is.
    pub(crate) parent: Option<(FrameId, Child)>,
    /// The composites around the list. Computed when a state is loaded.
    #[serde(skip)]
    pub(crate) path: StepPath,
    /// What the list's input adds to that of its composite: an item and its index, or `deps`.
    pub(crate) extra: Object,
    /// The list's input. Computed when a state is loaded.
    #[serde(skip)]
    pub(crate) input: Overlay,
    /// The data that steps of the list see by default: the list's input, with its variables laid over it. Computed
    /// when a state is loaded.
    #[serde(skip)]
    pub(crate) data: Overlay,
    /// The merged outputs of the list's steps.
    pub(crate) local: Document,
    /// Whether a step's output replaced the list's input.
    pub(crate) replaced: bool,
    pub(crate) at: FramePosition,
    /// How often each step was visited, if the list has loops.
    pub(crate) visits: BTreeMap<StepId, u32>,
    /// What this list has done that could be undone.
    pub(crate) done: DoneList,
    /// The position before the first entry of `done`.
    #[serde(default)]
    pub(crate) rewind: Option<Box<Rewind>>,
    /// Whether what the list did was undone, or is being undone. A redrive then begins before it.
    #[serde(default)]
    pub(crate) undone: bool,
    /// The effects that the task about to be entered may have had before it was cancelled. A
    /// redrive enters it again, and undoing the new visit undoes these too.
    #[serde(default, rename = "left_over")]
    pub(crate) pending_undo: Option<Box<Done>>,
    /// The input that an operator gave the step that is about to be entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edited: Option<Box<Value>>,
    pub(crate) undoing: Option<Box<Undoing>>,
    /// The last event about this frame; it causes the next one.
    pub(crate) last: EventId,
    /// Whether the frame is in the ready queue.
    pub(super) queued: bool,
    /// The bytes for which the frame counts in what the execution holds. Computed when a state is loaded.
    #[serde(skip)]
    pub(super) weighed: usize,
}

/// The position of a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FramePosition {
    /// About to enter this step.
    Before(StepId),
    /// In this step.
    In(Box<Visit>),
    /// After its last step.
    Ended,
    /// A failure left the list. The step is kept for a redrive.
    Failed(Box<Visit>, Failure, StepId),
    /// The list was cancelled here. The position is kept for a redrive.
    Cancelled(Box<FramePosition>),
}

impl FramePosition {
    /// The visit of the step at this position.
    pub(crate) fn visit(&self) -> Option<&Visit> {
        match self {
            Self::In(visit) | Self::Failed(visit, ..) => Some(visit),
            Self::Cancelled(place) => place.visit(),
            _ => None,
        }
    }

    fn visit_mut(&mut self) -> Option<&mut Visit> {
        match self {
            Self::In(visit) | Self::Failed(visit, ..) => Some(visit),
            Self::Cancelled(place) => place.visit_mut(),
            _ => None,
        }
    }
}

/// The position before the first undone step of a list: a redrive goes on from here.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Rewind {
    pub(crate) step: StepId,
    /// The number of its `StepEntered` event.
    pub(crate) entered: EventId,
    /// The list's local data at that time.
    pub(crate) local: Document,
    pub(crate) replaced: bool,
    pub(crate) visits: BTreeMap<StepId, u32>,
}

/// One visit of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Visit {
    pub(crate) step: StepId,
    /// The number of its `StepEntered` event.
    pub(crate) entered: EventId,
    /// Which visit of this step it is in this run of its list, from 1.
    pub(crate) number: u32,
    /// The attempt, from 1; 0 before the first.
    pub(crate) attempt: u32,
    /// The number of its `StepStarted` event.
    pub(crate) started: EventId,
    /// The input, if a program made it.
    #[serde(with = "crate::state::maybe_document::held")]
    pub(crate) mapped: Option<Document>,
    /// The step's input: `mapped`, or what the list shows by default. Computed when a state is loaded.
    #[serde(skip)]
    pub(crate) input: Overlay,
    /// The input that an operator gave this visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) edited: Option<Box<Value>>,
    /// What a failed attempt of this task may have done.
    pub(crate) failed_task: Option<Box<Done>>,
    /// What was running inside a failed attempt. A redrive goes on with it.
    #[serde(rename = "kept")]
    pub(crate) retained_inside: Option<Box<StepRun>>,
    /// Whether what the attempt did inside was undone, or is being undone.
    #[serde(default)]
    pub(crate) undone: bool,
    /// How many retries of each policy are used.
    pub(crate) retries: Vec<u32>,
    /// How many retries the queue grants for the failure of the latest attempt, where no policy names it.
    #[serde(default)]
    pub(crate) redeliver: u32,
    /// How many retries are used in total. It selects the entry of a policy's `values`.
    pub(crate) retried: u32,
    /// A timeout that came while something inside was being undone. It takes effect when that has ended.
    pub(crate) late: Option<Box<Failure>>,
    /// How many calls the latest attempt of a task made.
    pub(crate) calls: u32,
    /// When the attempt of a composite or of a polling task times out.
    pub(crate) deadline: Option<Timestamp>,
    /// How long a composite's attempt may take, where a program said it.
    #[serde(default, rename = "timeout_ms", skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<Millis>,
    /// When all attempts of a task together time out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) total_at: Option<Timestamp>,
    /// Why no further attempt or call may begin: all attempts together took too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) out_of_time: Option<Box<Failure>>,
    /// The numbers that the step's input gave when the step was entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) settings: Option<Box<Settings>>,
    pub(crate) phase: VisitPhase,
}

/// How far a visit has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum VisitPhase {
    /// An attempt is about to begin.
    Entered,
    /// An attempt runs.
    Started(StepRun),
    /// The attempt succeeded with this output.
    Succeeded { output: Document, goto: Option<StepId> },
    /// The attempt failed; `origin` is the step in which the error arose.
    Failed {
        failure: Failure,
        origin: StepId,
        retry_after: Seconds,
        uncatchable: bool,
    },
    /// The step waits for an operator; `request` is the event that asked.
    Manual { failure: Failure, request: EventId },
    /// The step waits for its next attempt.
    Retrying { due: Timestamp, timer: EventId },
}

/// What runs inside an attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum StepRun {
    /// Nothing: the step is a pass, succeed or fail.
    Simple,
    Wait(WaitRun),
    Task(Box<TaskRun>),
    Choice(ArmRun),
    Children(Box<Children>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum WaitRun {
    /// The end of the wait is not known yet.
    New,
    Waiting {
        until: Timestamp,
        timer: EventId,
    },
    Over,
}

/// The attempt of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TaskRun {
    /// How many calls this attempt made.
    pub(crate) calls: u32,
    /// The latest call of the visit; 0 if there is none.
    pub(crate) last_call: EventId,
    /// Whether the resource may have acted in this visit.
    pub(crate) called: bool,
    /// When the attempt times out.
    pub(crate) timeout_at: Option<Timestamp>,
    /// Where the next call of a poll asks.
    pub(crate) location: Option<Text>,
    /// The id of the child execution that the call started.
    pub(crate) child: Option<Text>,
    pub(crate) phase: TaskPhase,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum TaskPhase {
    /// A call is about to be scheduled.
    Ready,
    InFlight {
        call: EventId,
    },
    /// The answer is no result yet.
    Pending {
        retry_after: Seconds,
    },
    /// A result came.
    Answered {
        result: Value,
    },
    /// The call failed.
    Faulted {
        failure: Failure,
        retry_after: Seconds,
    },
    /// The task waits to call again.
    Sleeping {
        due: Timestamp,
        timer: EventId,
    },
    /// The call was cancelled.
    Cancelled,
}

/// The attempt of a choice.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ArmRun {
    /// No arm is chosen yet.
    Deciding,
    Running {
        child: FrameId,
        goto: Option<StepId>,
        closing: Option<Failure>,
    },
    Ended {
        local: Document,
        goto: Option<StepId>,
        done: DoneList,
    },
}

impl Frame {
    /// A new run of a list with this input: the flow's own list, or one of a composite.
    pub(crate) fn new(
        flow: &Flow,
        list: ListId,
        parent: Option<(FrameId, Child)>,
        path: StepPath,
        input: Overlay,
        entered: EventId,
    ) -> Self {
        let first = flow.list(list).and_then(|list| list.steps.first().copied());
        Self {
            list,
            parent,
            path,
            extra: Object::new(),
            data: input.clone(),
            input,
            local: Document::default(),
            replaced: false,
            at: first.map_or(FramePosition::Ended, FramePosition::Before),
            visits: BTreeMap::new(),
            done: DoneList::default(),
            rewind: None,
            undone: false,
            pending_undo: None,
            edited: None,
            undoing: None,
            last: entered,
            queued: false,
            weighed: 0,
        }
    }

    /// Adds a member to what the list's input has beyond its composite's.
    pub(crate) fn add_extra(&mut self, key: Text, value: Value) {
        self.extra.insert(key.clone(), value.clone());
        self.input.insert(key, value);
        self.data = self.input.clone();
    }

    /// The input of a step of the list: the mapped one, or what the step sees by default.
    pub(crate) fn step_input(&self, step: &Step, mapped: Option<Document>) -> Cow<'_, Overlay> {
        let input = match (mapped, &step.enter) {
            (Some(mapped), _) => return Cow::Owned(Overlay::new(mapped)),
            (None, InputMode::Input) => &self.input,
            (None, _) => &self.data,
        };
        match step.kind {
            // Each child lays its data over this one, so it is merged once here.
            StepKind::Parallel(_) | StepKind::Foreach(_) => Cow::Owned(input.flattened()),
            _ => Cow::Borrowed(input),
        }
    }

    /// The visit of the step that the frame is in.
    pub(crate) fn visit(&self) -> Option<&Visit> {
        self.at.visit()
    }

    /// Mutable access to the visit of the step that the frame is in.
    pub(crate) fn visit_mut(&mut self) -> Option<&mut Visit> {
        self.at.visit_mut()
    }

    /// Whether the frame is in the ready queue.
    pub(crate) fn is_ready(&self) -> bool {
        self.queued
    }

    /// Whether a rollback is in progress in the frame. One that failed does not count.
    pub(crate) fn is_rolling_back(&self) -> bool {
        self.undoing.as_ref().is_some_and(|undoing| !undoing.failed)
    }

    /// The position before the list entered the step it is in.
    pub(crate) fn before(&self, step: StepId, entered: EventId) -> Rewind {
        let mut visits = self.visits.clone();
        if let Some(count) = visits.get_mut(&step) {
            *count = count.saturating_sub(1);
        }
        Rewind {
            step,
            entered,
            local: self.local.clone(),
            replaced: self.replaced,
            visits,
        }
    }

    /// Mutable access to the visit of the step that the frame is in, if the list is neither failed nor cancelled.
    pub(crate) fn active(&mut self) -> Option<&mut Visit> {
        match &mut self.at {
            FramePosition::In(visit) => Some(visit),
            _ => None,
        }
    }
}

impl StepRun {
    /// The frames directly inside.
    fn frames(&self) -> Vec<FrameId> {
        match self {
            Self::Choice(ArmRun::Running { child, .. }) => vec![*child],
            Self::Children(children) => children
                .live
                .values()
                .chain(children.retained.values())
                .copied()
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The frame of this child.
    pub(crate) fn frame_of(&self, child: Child) -> Option<FrameId> {
        match (self, child) {
            (Self::Choice(ArmRun::Running { child, .. }), Child::Arm(_)) => Some(*child),
            (Self::Children(children), Child::Branch(n) | Child::Iteration(n)) => {
                children.live.get(&n).or_else(|| children.retained.get(&n)).copied()
            }
            _ => None,
        }
    }
}

impl Visit {
    /// What runs inside the attempt, or what was retained of it after it failed.
    pub(crate) fn inside(&self) -> Option<&StepRun> {
        match &self.phase {
            VisitPhase::Started(inside) => Some(inside),
            _ => self.retained_inside.as_deref(),
        }
    }

    /// The frames directly inside the visit.
    pub(crate) fn frames_inside(&self) -> Vec<FrameId> {
        self.inside().map(StepRun::frames).unwrap_or_default()
    }

    /// The frame of a child of the attempt in progress.
    pub(crate) fn running_child(&self, child: Child) -> Option<FrameId> {
        match &self.phase {
            VisitPhase::Started(inside) => inside.frame_of(child),
            _ => None,
        }
    }

    /// Whether a composite's attempt ends before all its children are done.
    pub(crate) fn is_closing(&self) -> bool {
        match &self.phase {
            VisitPhase::Started(StepRun::Choice(ArmRun::Running { closing, .. })) => closing.is_some(),
            VisitPhase::Started(StepRun::Children(children)) => children.closing.is_some(),
            _ => false,
        }
    }

    /// The attempt of a task, if the step is one.
    pub(crate) fn task(&self) -> Option<&TaskRun> {
        match &self.phase {
            VisitPhase::Started(StepRun::Task(run)) => Some(run),
            _ => None,
        }
    }

    /// How long an attempt may take. For a task, only what is fixed when the step is entered.
    pub(crate) fn bound(&self, step: &Step) -> Option<Millis> {
        self.fixed_bound(step).or(self.timeout)
    }

    /// How long an attempt may take, where that is fixed when the step is entered: by the definition, or by the step's input.
    pub(crate) fn fixed_bound(&self, step: &Step) -> Option<Millis> {
        let given = self.settings.as_ref().and_then(|settings| settings.timeout);
        given.or(match step.timeout {
            Some(NumberSource::Fixed(bound)) => Some(bound),
            Some(NumberSource::Program(_)) | None => None,
        })
    }

    /// Removes the attempt's timeout. Returns the timer to cancel.
    pub(crate) fn take_deadline(&mut self) -> Option<TimerKey> {
        self.deadline.take().map(|deadline| (deadline, self.started))
    }

    /// Removes the timeout of all attempts. Returns the timer to cancel.
    pub(crate) fn take_total(&mut self) -> Option<TimerKey> {
        self.total_at.take().map(|at| (at, self.entered))
    }

    /// The timers that the visit set, except those of its calls: its timeouts, and what it waits for.
    pub(crate) fn timer_keys(&self) -> impl Iterator<Item = TimerKey> + use<> {
        let wait = match &self.phase {
            VisitPhase::Retrying { due, timer } => Some((*due, *timer)),
            VisitPhase::Started(StepRun::Wait(WaitRun::Waiting { until, timer })) => Some((*until, *timer)),
            VisitPhase::Started(StepRun::Task(run)) => match run.phase {
                TaskPhase::Sleeping { due, timer } => Some((due, timer)),
                _ => None,
            },
            _ => None,
        };
        let bound = self.deadline.map(|deadline| (deadline, self.started));
        let total = self.total_at.map(|at| (at, self.entered));
        bound.into_iter().chain(wait).chain(total)
    }

    /// Mutable access to the attempt of a task, if the step is one.
    pub(crate) fn task_mut(&mut self) -> Option<&mut TaskRun> {
        match &mut self.phase {
            VisitPhase::Started(StepRun::Task(run)) => Some(run),
            _ => None,
        }
    }

    /// The children of a parallel or foreach that runs.
    pub(crate) fn children(&self) -> Option<&Children> {
        match &self.phase {
            VisitPhase::Started(StepRun::Children(children)) => Some(children),
            _ => None,
        }
    }

    /// Mutable access to the children of a parallel or foreach that runs.
    pub(crate) fn children_mut(&mut self) -> Option<&mut Children> {
        match &mut self.phase {
            VisitPhase::Started(StepRun::Children(children)) => Some(children),
            _ => None,
        }
    }
}
