//! The spans of a visit's time: its attempts, and the pauses between them.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{Event, EventId, EventKind, Failure};

/// How many spans of a visit are kept: the latest.
const MOST_SPANS: usize = 256;

/// What an execution did in a part of a visit's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// One try of the step, or of its undoing.
    Attempt,
    /// The pause before the next try.
    Backoff,
    /// A wait step waits.
    Wait,
    /// An operator is asked.
    Manual,
}

impl SpanKind {
    /// All kinds.
    pub(super) const ALL: [Self; 4] = [Self::Attempt, Self::Backoff, Self::Wait, Self::Manual];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Attempt => "attempt",
            Self::Backoff => "backoff",
            Self::Wait => "wait",
            Self::Manual => "manual",
        }
    }
}

/// How a span ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanEnd {
    /// It is still open.
    Open,
    /// It succeeded.
    Done,
    /// It ended with an error.
    Failed,
    /// It was given up.
    Cancelled,
}

impl SpanEnd {
    /// All ends.
    pub(super) const ALL: [Self; 4] = [Self::Open, Self::Done, Self::Failed, Self::Cancelled];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A part of a visit's time.
#[derive(Clone, Debug)]
pub struct Span {
    /// What happened in it.
    pub kind: SpanKind,
    /// The attempt, from 1; for a pause, the attempt after it.
    pub attempt: u32,
    /// Whether it belongs to the undoing of the step.
    pub rollback: bool,
    /// The event that it began with.
    pub event: EventId,
    /// When it began.
    pub from: Timestamp,
    /// When it ended.
    pub to: Option<Timestamp>,
    /// How it ended.
    pub end: SpanEnd,
    /// The end of a pause.
    pub due: Option<Timestamp>,
    /// The latest call, and what was called.
    pub call: Option<(EventId, Text)>,
    /// The event that brought the result of that call.
    pub result: Option<EventId>,
    /// The event that ended the attempt.
    pub last: Option<EventId>,
    /// The worker that did it.
    pub worker: Option<Text>,
    /// Since when that worker had it.
    pub held: Option<Timestamp>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

impl Span {
    fn begin(kind: SpanKind, attempt: u32, event: &Event) -> Self {
        Self {
            kind,
            attempt,
            rollback: event.rollback,
            event: event.id,
            from: event.time,
            to: None,
            end: SpanEnd::Open,
            due: None,
            call: None,
            result: None,
            last: None,
            worker: None,
            held: None,
            failure: None,
        }
    }

    fn close(&mut self, end: SpanEnd, event: &Event) {
        self.end = end;
        self.to = Some(event.time);
        self.last = Some(event.id);
    }

    /// The time when it ended, or will end as far as is known.
    pub fn until(&self, now: Timestamp) -> Timestamp {
        self.to.unwrap_or(now).max(self.from)
    }

    /// The span as JSON.
    pub fn to_value(&self) -> Value {
        let mut shape = Object::new();
        let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
        set("kind", self.kind.as_str().into());
        set("attempt", self.attempt.into());
        set("status", self.end.as_str().into());
        set("event", self.event.0.into());
        set("startedTime", self.from.to_string().into());
        set("endedTime", self.to.map(|to| to.to_string().into()).unwrap_or_default());
        if self.rollback {
            set("rollback", true.into());
        }
        if let Some(due) = self.due {
            set("until", due.to_string().into());
        }
        if let Some((call, resource)) = &self.call {
            set("callEvent", call.0.into());
            set("resource", resource.clone().into());
        }
        if let Some(result) = self.result {
            set("resultEvent", result.0.into());
        }
        if let Some(last) = self.last {
            set("endEvent", last.0.into());
        }
        if let Some(worker) = &self.worker {
            set("worker", worker.clone().into());
        }
        if let Some(held) = self.held {
            set("heldTime", held.to_string().into());
        }
        if let Some(failure) = &self.failure {
            set("error", failure.error.clone().into());
            set("cause", failure.cause.clone().into());
        }
        shape.into()
    }
}

/// The spans of a visit.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    pub(super) all: Vec<Span>,
    pub(super) left_out: u64,
    /// The attempts of the undo in its former runs, and in all: each redrive begins a run.
    pub(super) undone: (u32, u32),
}

impl Spans {
    pub(super) fn all(&self) -> &[Span] {
        &self.all
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }

    fn push(&mut self, span: Span) {
        if self.all.len() >= MOST_SPANS {
            self.all.remove(0);
            self.left_out += 1;
        }
        self.all.push(span);
    }

    /// The open span.
    fn open(&mut self) -> Option<&mut Span> {
        self.all.last_mut().filter(|span| span.end == SpanEnd::Open)
    }

    fn close(&mut self, end: SpanEnd, event: &Event) {
        if let Some(open) = self.open() {
            open.close(end, event);
        }
    }

    /// The number of an attempt: those of an undo are counted over all its runs.
    fn numbered(&mut self, attempt: u32, event: &Event) -> u32 {
        if !event.rollback {
            return attempt;
        }
        self.undone.1 = self.undone.0 + attempt;
        self.undone.1
    }

    /// Takes the next event of the visit, or of its undoing.
    pub(super) fn see(&mut self, event: &Event) {
        match &event.detail {
            EventKind::RollbackStarted { .. } => self.undone.0 = self.undone.1,
            EventKind::StepStarted { attempt, .. } => {
                let attempt = self.numbered(*attempt, event);
                self.close(SpanEnd::Done, event);
                self.push(Span::begin(SpanKind::Attempt, attempt, event));
            }
            EventKind::TaskScheduled(call) => {
                // In some histories, an undo has no `StepStarted` before its call.
                if self.open().is_none_or(|open| open.kind != SpanKind::Attempt) {
                    let attempt = self.numbered(call.attempt, event);
                    self.close(SpanEnd::Done, event);
                    self.push(Span::begin(SpanKind::Attempt, attempt, event));
                }
                if let Some(open) = self.open() {
                    open.call = Some((event.id, call.resource.clone()));
                    open.result = None;
                }
            }
            EventKind::StepSucceeded { .. } | EventKind::RollbackSucceeded => self.close(SpanEnd::Done, event),
            EventKind::StepFailed { failure, .. } | EventKind::RollbackFailed { failure, .. } => {
                if let Some(open) = self.open() {
                    open.failure = Some(failure.clone());
                }
                self.close(SpanEnd::Failed, event);
            }
            EventKind::RetryScheduled { attempt, due, .. } => {
                let attempt = self.numbered(*attempt, event);
                self.pause(SpanKind::Backoff, attempt, Some(*due), event)
            }
            EventKind::WaitStarted { until } => self.pause(SpanKind::Wait, 1, Some(*until), event),
            EventKind::ManualRequested(_) => self.pause(SpanKind::Manual, 1, None, event),
            EventKind::TimerFired { .. } | EventKind::ManualResolved(_) => {
                if self.open().is_some_and(|open| open.kind != SpanKind::Attempt) {
                    self.close(SpanEnd::Done, event);
                }
            }
            EventKind::TaskCancelled { .. } => self.close(SpanEnd::Cancelled, event),
            EventKind::StepExited { .. } => self.close(SpanEnd::Done, event),
            _ => self.result(event),
        }
    }

    /// Takes the result of a call.
    fn result(&mut self, event: &Event) {
        let Some(open) = self.open().filter(|open| open.kind == SpanKind::Attempt) else {
            return;
        };
        match &event.detail {
            EventKind::TaskSucceeded { worker, held_time, .. } => {
                open.worker.clone_from(worker);
                open.held = *held_time;
            }
            EventKind::TaskFailed { failure, .. } | EventKind::TaskSubmitFailed { failure, .. } => {
                open.failure = Some(failure.clone());
            }
            EventKind::TaskTimedOut { .. } => {}
            _ => return,
        }
        open.result = Some(event.id);
    }

    fn pause(&mut self, kind: SpanKind, attempt: u32, due: Option<Timestamp>, event: &Event) {
        self.close(SpanEnd::Done, event);
        let mut span = Span::begin(kind, attempt, event);
        span.due = due;
        self.push(span);
    }

    /// Closes the open span.
    pub(super) fn give_up(&mut self, time: Timestamp) {
        if let Some(open) = self.open() {
            open.end = SpanEnd::Cancelled;
            open.to = Some(time);
        }
    }
}
