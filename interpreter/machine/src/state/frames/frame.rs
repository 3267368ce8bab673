//! A frame: one run of a list of steps.

use crate::event::{Child, EventId, Failure, Path};
use crate::state::{Children, Done, FrameId, TimerKey, Undoing};
use serde::{Deserialize, Serialize};
use starbridge_flow::graph::{Amount, Enter, Flow, ListId, Step, StepId, StepKind};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Overlay, Text, Value};
use std::collections::BTreeMap;

/// One run of a list of steps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Frame {
    pub(crate) list: ListId,
    /// The frame whose step this list belongs to, and which of its children it is.
    pub(crate) parent: Option<(FrameId, Child)>,
    /// Rebuilt from the parents' on loading.
    #[serde(skip)]
    pub(crate) path: Path,
    /// What the list's input has beyond its composite's: an item and its index, or `deps`.
    pub(crate) extra: Object,
    /// The list's input. Rebuilt on loading.
    #[serde(skip)]
    pub(crate) input: Overlay,
    /// What a step of the list sees by default: the list's input with the variables over it. Rebuilt on loading.
    #[serde(skip)]
    pub(crate) data: Overlay,
    /// The merged outputs of the steps.
    pub(crate) local: Object,
    /// A step's output took the place of the list's input.
    pub(crate) replaced: bool,
    pub(crate) at: At,
    /// How often each step was visited, where the list has loops.
    pub(crate) visits: BTreeMap<StepId, u32>,
    /// What this list has done that could be undone.
    pub(crate) done: Vec<Done>,
    /// Before the first of `done`.
    #[serde(default)]
    pub(crate) rewind: Option<Box<Rewind>>,
    /// What it had done was undone, or is being: a redrive begins before it.
    #[serde(default)]
    pub(crate) undone: bool,
    /// What the task that is about to be entered did, perhaps, before it was given up: a redrive enters it anew, and undoing
    /// the new visit undoes that, too.
    #[serde(default, rename = "left_over")]
    pub(crate) pending_undo: Option<Box<Done>>,
    pub(crate) undoing: Option<Box<Undoing>>,
    /// The last event this frame was about: what the next one is caused by.
    pub(crate) last: EventId,
    /// It is in the ready queue.
    pub(super) queued: bool,
}

/// Where a frame stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum At {
    /// About to enter this step.
    Before(StepId),
    /// In a step.
    In(Box<Visit>),
    /// Its last step is done.
    Ended,
    /// A failure left it; the step stays, for a redrive.
    Failed(Box<Visit>, Failure, StepId),
    /// It was given up there; the place stays, for a redrive.
    Cancelled(Box<At>),
}

impl At {
    /// The step it is in.
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

/// The place in a list from which a redrive goes on once the list was undone: before the first of what was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Rewind {
    pub(crate) step: StepId,
    /// Its `StepEntered`.
    pub(crate) entered: EventId,
    /// The list as it was then.
    pub(crate) local: Object,
    pub(crate) replaced: bool,
    pub(crate) visits: BTreeMap<StepId, u32>,
}

/// One visit of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Visit {
    pub(crate) step: StepId,
    /// Its `StepEntered`.
    pub(crate) entered: EventId,
    /// Which visit of this step in this visit of its list, from 1.
    pub(crate) number: u32,
    /// The attempt, from 1; 0 before the first.
    pub(crate) attempt: u32,
    /// Its `StepStarted`.
    pub(crate) started: EventId,
    /// The input, where a program made it.
    pub(crate) mapped: Option<Object>,
    /// The input. Rebuilt on loading: the mapped one, or what the frame shows.
    #[serde(skip)]
    pub(crate) input: Overlay,
    /// What a failed attempt of this task may have done.
    pub(crate) failed_task: Option<Done>,
    /// What went on inside a failed attempt: a redrive goes on with it.
    #[serde(rename = "kept")]
    pub(crate) retained_inside: Option<Box<Inside>>,
    /// What was done inside the attempt was undone, or is being.
    #[serde(default)]
    pub(crate) undone: bool,
    /// Retries used of each policy.
    pub(crate) retries: Vec<u32>,
    /// Retries that the queue gives the failure of the latest attempt, where no policy names it.
    #[serde(default)]
    pub(crate) redeliver: u32,
    /// Retries so far, whatever the policy: what counts the `values` of a policy.
    pub(crate) retried: u32,
    /// The attempt's time was over while something inside was being undone: it takes effect when that has ended.
    pub(crate) late: Option<Failure>,
    /// Calls made in the latest attempt of a task.
    pub(crate) calls: u32,
    /// When a composite's attempt times out, or a polling task's.
    pub(crate) deadline: Option<Timestamp>,
    /// How long a composite's attempt may take, where a program said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) phase: Phase,
}

/// How far a visit has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// An attempt is about to begin.
    Entered,
    /// In an attempt.
    Started(Inside),
    /// The attempt ended well with this output.
    Succeeded { output: Object, goto: Option<StepId> },
    /// The attempt failed; `origin` is the step in which the error arose.
    Failed {
        failure: Failure,
        origin: StepId,
        retry_after: u64,
        uncatchable: bool,
    },
    /// Waiting for an operator, asked by this event.
    Manual { failure: Failure, request: EventId },
    /// Waiting for the next attempt.
    Retrying { due: Timestamp, timer: EventId },
}

/// What goes on inside an attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Inside {
    /// Nothing: pass, succeed, fail.
    Simple,
    Wait(WaitRun),
    Task(Box<TaskRun>),
    Choice(ArmRun),
    Children(Box<Children>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum WaitRun {
    /// The time is not known yet.
    New,
    Waiting {
        until: Timestamp,
        timer: EventId,
    },
    Over,
}

/// A task's attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TaskRun {
    /// Calls made in this attempt.
    pub(crate) calls: u32,
    /// The latest call of the visit, 0 if there was none.
    pub(crate) last_call: EventId,
    /// Whether the resource may have done something in this visit.
    pub(crate) called: bool,
    /// When the attempt times out.
    pub(crate) timeout_at: Option<Timestamp>,
    /// Where the next call of a poll asks.
    pub(crate) location: Option<Text>,
    /// The child execution started.
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
    /// An answer came that is no result yet; `retry_after` in seconds.
    Pending {
        retry_after: u64,
    },
    /// A result came.
    Answered {
        result: Value,
    },
    /// The call failed.
    Faulted {
        failure: Failure,
        retry_after: u64,
    },
    /// Waiting to call again.
    Sleeping {
        due: Timestamp,
        timer: EventId,
    },
    /// Given up.
    Cancelled,
}

/// A choice's attempt.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ArmRun {
    /// No arm chosen yet.
    Deciding,
    Running {
        child: FrameId,
        goto: Option<StepId>,
        closing: Option<Failure>,
    },
    Ended {
        local: Object,
        goto: Option<StepId>,
        done: Vec<Done>,
    },
}

impl Frame {
    /// A new run of a list with this input: the flow's own, or one of a composite's.
    pub(crate) fn new(
        flow: &Flow,
        list: ListId,
        parent: Option<(FrameId, Child)>,
        path: Path,
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
            local: Object::new(),
            replaced: false,
            at: first.map_or(At::Ended, At::Before),
            visits: BTreeMap::new(),
            done: Vec::new(),
            rewind: None,
            undone: false,
            pending_undo: None,
            undoing: None,
            last: entered,
            queued: false,
        }
    }

    /// Adds what the list's input has beyond its composite's.
    pub(crate) fn add_extra(&mut self, key: Text, value: Value) {
        self.extra.insert(key.clone(), value.clone());
        self.input.insert(key, value);
        self.data = self.input.clone();
    }

    /// The input of a step of the list: the mapped one, or what it sees by default.
    pub(crate) fn step_input(&self, step: &Step, mapped: Option<&Object>) -> Overlay {
        let input = match (mapped, &step.enter) {
            (Some(mapped), _) => return Overlay::new(mapped.clone()),
            (None, Enter::Input) => self.input.clone(),
            (None, _) => self.data.clone(),
        };
        match step.kind {
            // Laid over by each child, so it is merged once.
            StepKind::Parallel(_) | StepKind::Foreach(_) => input.flattened(),
            _ => input,
        }
    }

    /// The step the frame is in.
    pub(crate) fn visit(&self) -> Option<&Visit> {
        self.at.visit()
    }

    /// The same, to change it.
    pub(crate) fn visit_mut(&mut self) -> Option<&mut Visit> {
        self.at.visit_mut()
    }

    /// Whether it is in the ready queue.
    pub(crate) fn is_ready(&self) -> bool {
        self.queued
    }

    /// Whether a rollback is in progress in it; one that failed is not.
    pub(crate) fn is_rolling_back(&self) -> bool {
        self.undoing.as_ref().is_some_and(|undoing| !undoing.failed)
    }

    /// The list as it was before it entered the step it is in.
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

    /// The step the frame is in and goes on with.
    pub(crate) fn active(&mut self) -> Option<&mut Visit> {
        match &mut self.at {
            At::In(visit) => Some(visit),
            _ => None,
        }
    }
}

impl Inside {
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

    /// The frame of a child.
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
    /// What goes on inside the attempt; after it failed, what is retained of that.
    pub(crate) fn inside(&self) -> Option<&Inside> {
        match &self.phase {
            Phase::Started(inside) => Some(inside),
            _ => self.retained_inside.as_deref(),
        }
    }

    /// The frames directly inside.
    pub(crate) fn frames_inside(&self) -> Vec<FrameId> {
        self.inside().map(Inside::frames).unwrap_or_default()
    }

    /// The frame of a child of the attempt that goes on.
    pub(crate) fn running_child(&self, child: Child) -> Option<FrameId> {
        match &self.phase {
            Phase::Started(inside) => inside.frame_of(child),
            _ => None,
        }
    }

    /// Whether a composite's attempt is coming to its end before all is done.
    pub(crate) fn is_closing(&self) -> bool {
        match &self.phase {
            Phase::Started(Inside::Choice(ArmRun::Running { closing, .. })) => closing.is_some(),
            Phase::Started(Inside::Children(children)) => children.closing.is_some(),
            _ => false,
        }
    }

    /// The task's attempt, if this is one.
    pub(crate) fn task(&self) -> Option<&TaskRun> {
        match &self.phase {
            Phase::Started(Inside::Task(run)) => Some(run),
            _ => None,
        }
    }

    /// How long an attempt may take, in milliseconds. Of a task's only what is fixed in the definition.
    pub(crate) fn bound_ms(&self, step: &Step) -> Option<u64> {
        match &step.timeout {
            None => None,
            Some(Amount::Fixed(millis)) => Some(*millis),
            Some(Amount::Program(_)) => self.timeout_ms,
        }
    }

    /// Takes the attempt's bound away; gives the timer that is to be cancelled with it.
    pub(crate) fn take_deadline(&mut self) -> Option<TimerKey> {
        self.deadline.take().map(|deadline| (deadline, self.started))
    }

    /// The timers the visit set, but for those of its calls: its attempt's bound, and what it waits for.
    pub(crate) fn timer_keys(&self) -> impl Iterator<Item = TimerKey> + use<> {
        let wait = match &self.phase {
            Phase::Retrying { due, timer } => Some((*due, *timer)),
            Phase::Started(Inside::Wait(WaitRun::Waiting { until, timer })) => Some((*until, *timer)),
            Phase::Started(Inside::Task(run)) => match run.phase {
                TaskPhase::Sleeping { due, timer } => Some((due, timer)),
                _ => None,
            },
            _ => None,
        };
        let bound = self.deadline.map(|deadline| (deadline, self.started));
        bound.into_iter().chain(wait)
    }

    /// The same, to change it.
    pub(crate) fn task_mut(&mut self) -> Option<&mut TaskRun> {
        match &mut self.phase {
            Phase::Started(Inside::Task(run)) => Some(run),
            _ => None,
        }
    }

    /// The children of a parallel or foreach that runs.
    pub(crate) fn children(&self) -> Option<&Children> {
        match &self.phase {
            Phase::Started(Inside::Children(children)) => Some(children),
            _ => None,
        }
    }

    /// The same, to change them.
    pub(crate) fn children_mut(&mut self) -> Option<&mut Children> {
        match &mut self.phase {
            Phase::Started(Inside::Children(children)) => Some(children),
            _ => None,
        }
    }
}
