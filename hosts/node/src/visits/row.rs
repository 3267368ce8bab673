//! One visit of a step, in the form in which it is shown.

pub(super) mod packed;
mod spans;
mod waits;

pub use spans::{Span, SpanEnd, SpanKind};
pub use waits::OpenWait;

use crate::json::object;
use spans::Spans;
use starbridge_flow::graph::{Flow, Pattern, StepId, StepKind, Wait};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::history::write_path;
use starbridge_machine::{Decision, Event, EventId, EventKind, Failure, ScheduledCall, StepPath};

/// The status of a visit or of its undoing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Status {
    Entered,
    Running,
    Waiting,
    Retrying,
    Polling,
    Manual,
    Succeeded,
    Failed,
    Caught,
    Cancelled,
    RolledBack,
    RollbackFailed,
    /// An undo that failed and is left out.
    Skipped,
}

impl Status {
    /// All of them, in the order of their numbers.
    pub(super) const ALL: [Self; 13] = [
        Self::Entered,
        Self::Running,
        Self::Waiting,
        Self::Retrying,
        Self::Polling,
        Self::Manual,
        Self::Succeeded,
        Self::Failed,
        Self::Caught,
        Self::Cancelled,
        Self::RolledBack,
        Self::RollbackFailed,
        Self::Skipped,
    ];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Entered => "entered",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Retrying => "retrying",
            Self::Polling => "polling",
            Self::Manual => "manual",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Caught => "caught",
            Self::Cancelled => "cancelled",
            Self::RolledBack => "rolledBack",
            Self::RollbackFailed => "rollbackFailed",
            Self::Skipped => "skipped",
        }
    }
}

/// One visit of a step.
#[derive(Clone, Debug)]
pub struct Row {
    event: u64,
    step: Text,
    number: StepId,
    path: StepPath,
    run: u32,
    status: Status,
    attempts: u32,
    entered: Timestamp,
    /// When its status last changed.
    changed: Timestamp,
    ended: Option<Timestamp>,
    /// The end of its wait: for a retry, for the next call of a poll, or for a time.
    until: Option<Timestamp>,
    failure: Option<Failure>,
    /// The latest question to an operator.
    request: Option<EventId>,
    call: Option<Call>,
    /// The execution that it started last.
    child: Option<Text>,
    undo: Option<Box<Undo>>,
    spans: Spans,
}

/// A call that is out.
#[derive(Clone, Debug)]
struct Call {
    number: EventId,
    since: Timestamp,
    resource: Text,
    reported: bool,
    timeout_at: Option<Timestamp>,
    child: Option<Text>,
}

impl Call {
    fn of(scheduled: &ScheduledCall, number: EventId, since: Timestamp) -> Self {
        Self {
            number,
            since,
            resource: scheduled.resource.clone(),
            reported: scheduled.pattern == Pattern::WaitForCallback,
            timeout_at: scheduled.timeout_at,
            child: None,
        }
    }

    /// What it waits for, as a word and in words.
    fn awaited(&self) -> (&'static str, String) {
        let resource = &self.resource;
        if let Some(queue) = self.queue() {
            return ("queue", format!("a worker of the queue `{queue}`"));
        }
        match &self.child {
            Some(child) => ("child", format!("the end of execution {child}")),
            None if self.reported => (
                "callback",
                format!("a report with its task token; `{resource}` was called"),
            ),
            None => ("answer", format!("the answer of `{resource}`")),
        }
    }

    fn queue(&self) -> Option<&str> {
        self.resource.strip_prefix("queue:")
    }
}

/// The undoing of a visit.
#[derive(Clone, Debug)]
struct Undo {
    status: Status,
    /// Of all its runs: each redrive begins one.
    attempts: u32,
    /// The attempts of its former runs.
    before: u32,
    started: Timestamp,
    changed: Timestamp,
    ended: Option<Timestamp>,
    until: Option<Timestamp>,
    failure: Option<Failure>,
    call: Option<Call>,
}

impl Row {
    /// The name of the step.
    pub fn step(&self) -> &str {
        &self.step
    }

    pub(super) fn entered(flow: &Flow, event: &Event, step: StepId, run: u32) -> Self {
        Self {
            event: event.id.0,
            step: flow.step(step).map(|step| step.name.clone()).unwrap_or_default(),
            number: step,
            path: event.path.clone(),
            run,
            status: Status::Entered,
            attempts: 0,
            entered: event.time,
            changed: event.time,
            ended: None,
            until: None,
            failure: None,
            request: None,
            call: None,
            child: None,
            undo: None,
            spans: Spans::default(),
        }
    }

    /// The spans of its time, including those of its undoing; only the latest if there are many.
    pub fn spans(&self) -> &[Span] {
        self.spans.all()
    }

    /// How many earlier spans are left out.
    pub fn spans_left_out(&self) -> u64 {
        self.spans.left_out()
    }

    /// The composites around the step.
    pub fn place(&self) -> &StepPath {
        &self.path
    }

    /// The composites around the step, as histories write them.
    pub fn path(&self, flow: &Flow) -> Value {
        write_path(flow, &self.path)
    }

    /// When the step was entered.
    pub fn entered_time(&self) -> Timestamp {
        self.entered
    }

    /// When the visit ended.
    pub fn ended_time(&self) -> Option<Timestamp> {
        self.ended
    }

    /// The number of the step in its flow.
    pub fn number(&self) -> StepId {
        self.number
    }

    /// Whether it or its undoing is not over.
    pub(super) fn is_open(&self) -> bool {
        self.status.is_open() || self.undo.as_ref().is_some_and(|undo| undo.status.is_open())
    }

    /// Its approximate memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let failure = |failure: &Option<Failure>| {
            let texts = failure
                .as_ref()
                .map(|failure| failure.error.len() + failure.cause.len());
            texts.unwrap_or(0)
        };
        let failures: usize = self.spans.all().iter().map(|span| failure(&span.failure)).sum();
        size_of::<Self>() + size_of_val(self.spans.all()) + failures + failure(&self.failure) + 160
    }

    pub(super) fn own_status(&self) -> Status {
        self.status
    }

    /// The number of the event that entered the step.
    pub fn event(&self) -> u64 {
        self.event
    }

    /// The event that asks an operator, while the visit waits for the answer.
    pub fn request(&self) -> Option<EventId> {
        self.request.filter(|_| self.status == Status::Manual)
    }

    /// Its status, as a word.
    pub fn status(&self) -> &'static str {
        self.status.as_str()
    }

    /// The call that waits for a worker of a queue, and the queue.
    pub fn awaited_worker(&self) -> Option<(EventId, &str)> {
        let call = self.call.as_ref().filter(|_| self.status == Status::Running)?;
        Some((call.number, call.queue()?))
    }

    /// The call that waits for a report with its token: its own, or that of its undoing. Tasks of queues are none, their
    /// workers report them.
    pub fn awaited_report(&self) -> Option<EventId> {
        let undo = self.undo.as_deref().filter(|undo| undo.status == Status::Running);
        let own = self.call.as_ref().filter(|_| self.status == Status::Running);
        let call = undo.and_then(|undo| undo.call.as_ref()).or(own)?;
        (call.reported && call.queue().is_none()).then_some(call.number)
    }

    pub(super) fn see(&mut self, event: &Event) {
        self.spans.see(event);
        if !matches!(event.detail, EventKind::TaskSubmitted { .. }) {
            self.changed = event.time;
        }
        match &event.detail {
            EventKind::StepStarted { attempt, .. } => {
                self.attempts = *attempt;
                self.run();
            }
            EventKind::WaitStarted { until } => self.wait(Status::Waiting, *until),
            EventKind::RetryScheduled { due, .. } => self.wait(Status::Retrying, *due),
            EventKind::PollScheduled { due, .. } => self.wait(Status::Polling, *due),
            EventKind::TaskScheduled(scheduled) => {
                self.run();
                self.call = Some(Call::of(scheduled, event.id, event.time));
            }
            EventKind::TaskSubmitted {
                execution: Some(child), ..
            } => {
                self.child = Some(child.clone());
                if let Some(call) = &mut self.call {
                    call.child = Some(child.clone());
                }
            }
            EventKind::ManualRequested(failure) => {
                self.status = Status::Manual;
                self.request = Some(event.id);
                self.failure = Some(failure.clone());
            }
            EventKind::ManualResolved(resolution) => self.resolve(&resolution.decision, event.time),
            EventKind::StepSucceeded { .. } => self.status = Status::Succeeded,
            EventKind::StepFailed { failure, .. } => {
                self.status = Status::Failed;
                self.failure = Some(failure.clone());
                self.ended = Some(event.time);
                self.until = None;
            }
            EventKind::TaskCancelled { .. } => self.give_up(event.time),
            EventKind::StepExited { caught, .. } => {
                if self.status == Status::Failed || caught.is_some() {
                    self.status = Status::Caught;
                }
                self.ended = Some(event.time);
                self.until = None;
                self.call = None;
            }
            _ => {}
        }
    }

    /// An operator decided for the step.
    fn resolve(&mut self, decision: &Decision, time: Timestamp) {
        match decision {
            Decision::Retry => self.run(),
            Decision::Succeed { .. } => {
                self.status = Status::Succeeded;
                self.failure = None;
            }
            Decision::Fail { failure } => {
                self.status = Status::Failed;
                self.failure = failure.clone().or(self.failure.take());
                self.ended = Some(time);
                self.until = None;
            }
        }
    }

    fn run(&mut self) {
        self.status = Status::Running;
        self.until = None;
        self.ended = None;
        self.call = None;
    }

    fn wait(&mut self, status: Status, until: Timestamp) {
        self.status = status;
        self.until = Some(until);
        self.ended = None;
        self.call = None;
    }

    /// Ends it: it was cancelled, or the execution has ended.
    pub(super) fn give_up(&mut self, time: Timestamp) {
        self.spans.give_up(time);
        if self.status.is_open() {
            self.status = Status::Cancelled;
            self.ended = Some(time);
            self.until = None;
        }
        if let Some(undo) = self.undo.as_mut().filter(|undo| undo.status.is_open()) {
            undo.status = Status::Cancelled;
            undo.ended = Some(time);
            undo.until = None;
        }
    }

    /// Ends a pause: the call that is out times out later, by the length of the pause.
    pub(super) fn end_pause(&mut self, length: Millis) {
        let undo = self.undo.as_mut().and_then(|undo| undo.call.as_mut());
        for call in self.call.iter_mut().chain(undo) {
            call.timeout_at = call.timeout_at.map(|at| at.plus(length));
        }
    }

    /// Whether it stays as it is, although that run continues something inside it.
    pub(super) fn is_left_before(&self, run: u32) -> bool {
        self.run < run && matches!(self.status, Status::Cancelled | Status::Failed)
    }

    /// Its contents go on in that run.
    pub(super) fn go_on(&mut self, run: u32) {
        if self.is_left_before(run) {
            self.run();
            self.failure = None;
        }
    }

    /// Postpones everything that it waits for by this time, except a point in time.
    pub(super) fn postpone(&mut self, flow: &Flow, left: Millis) {
        let kind = flow.step(self.number).map(|step| &step.kind);
        let instant = self.status == Status::Waiting && matches!(kind, Some(StepKind::Wait(Wait::Timestamp(_))));
        if !instant {
            self.until = self.until.map(|until| until.plus(left));
        }
        if let Some(undo) = &mut self.undo {
            undo.until = undo.until.map(|until| until.plus(left));
        }
    }

    /// A step that could not be undone has its former status again.
    fn stays_done(&mut self) {
        if self.status == Status::RollbackFailed {
            self.status = match self.failure {
                Some(_) => Status::Failed,
                None => Status::Succeeded,
            };
        }
    }

    pub(super) fn see_undoing(&mut self, event: &Event) {
        self.spans.see(event);
        let begun = || Box::new(Undo::begun(event.time));
        let undo = self.undo.get_or_insert_with(begun);
        if !matches!(event.detail, EventKind::TaskSubmitted { .. }) {
            undo.changed = event.time;
        }
        match &event.detail {
            EventKind::RollbackStarted { .. } => {
                undo.status = Status::Running;
                undo.before = undo.attempts;
                undo.ended = None;
                undo.failure = None;
                // A redrive tries once more.
                self.stays_done();
            }
            EventKind::RollbackSkipped { .. } => {
                undo.status = Status::Skipped;
                undo.ended = Some(event.time);
                self.stays_done();
            }
            EventKind::StepStarted { attempt, .. } => {
                undo.attempts = undo.before + *attempt;
                undo.status = Status::Running;
                undo.until = None;
            }
            EventKind::StepFailed { failure, .. } => undo.failure = Some(failure.clone()),
            EventKind::RetryScheduled { due, .. } => {
                undo.status = Status::Retrying;
                undo.until = Some(*due);
            }
            EventKind::PollScheduled { due, .. } => {
                undo.status = Status::Polling;
                undo.until = Some(*due);
            }
            EventKind::TaskScheduled(scheduled) => {
                undo.status = Status::Running;
                undo.until = None;
                // In some histories no `StepStarted` is before it.
                undo.attempts = undo.before + scheduled.attempt;
                undo.call = Some(Call::of(scheduled, event.id, event.time));
            }
            EventKind::TaskSubmitted {
                execution: Some(child), ..
            } => {
                if let Some(call) = &mut undo.call {
                    call.child = Some(child.clone());
                }
            }
            EventKind::RollbackSucceeded => {
                undo.status = Status::Succeeded;
                undo.ended = Some(event.time);
                undo.failure = None;
                self.status = Status::RolledBack;
            }
            EventKind::RollbackFailed { failure, .. } => {
                undo.status = Status::Failed;
                undo.ended = Some(event.time);
                undo.failure = Some(failure.clone());
                self.status = Status::RollbackFailed;
            }
            _ => {}
        }
    }

    /// The row as JSON. `queue` gives details of a call that waits for a worker of a queue.
    pub fn into_value(self, flow: &Flow, queue: impl Fn(EventId, &str) -> Option<String>) -> Value {
        let waiting_for = self.waiting_for(queue);
        let path = self.path(flow);
        let (error, cause) = self.failure.map(|failure| (failure.error, failure.cause)).unzip();
        let text = |text: Option<Text>| text.map(Value::from).unwrap_or_default();
        let shape = object([
            ("event", self.event.into()),
            ("step", self.step.into()),
            ("path", path),
            ("run", self.run.into()),
            ("status", self.status.as_str().into()),
            ("attempts", self.attempts.into()),
            ("enteredTime", self.entered.to_string().into()),
            ("endedTime", time(self.ended)),
            ("waitsUntil", time(self.until)),
            ("error", text(error)),
            ("cause", text(cause)),
        ]);
        let mut shape = shape.as_object().cloned().unwrap_or_default();
        if let Some(child) = self.child {
            shape.insert("child".into(), child.into());
        }
        if let Some(waiting_for) = waiting_for {
            shape.insert("waitingFor".into(), waiting_for);
        }
        if let Some(undo) = self.undo {
            shape.insert("rollback".into(), undo.into_value().into());
        }
        shape.into()
    }

    /// What it waits for: a word for programs, words for people, and since when.
    fn waiting_for(&self, queue: impl Fn(EventId, &str) -> Option<String>) -> Option<Value> {
        let (reason, mut text) = match (self.status, &self.call) {
            (Status::Running, Some(call)) => call.awaited(),
            (Status::Waiting, _) => ("time", "a time".to_owned()),
            (Status::Retrying, _) => ("retry", "the next attempt".to_owned()),
            (Status::Polling, _) => ("poll", "the next call of `poll`".to_owned()),
            (Status::Manual, _) => ("operator", "an operator's decision".to_owned()),
            _ => return None,
        };
        if let Some(more) = self.awaited_worker().and_then(|(call, name)| queue(call, name)) {
            text = format!("{text}: {more}");
        }
        let since = self.call.as_ref().map(|call| call.since);
        let mut shape = Object::new();
        shape.insert("reason".into(), reason.into());
        shape.insert("text".into(), text.into());
        if let Some(since) = since {
            shape.insert("since".into(), since.to_string().into());
        }
        if let Some(request) = self.request() {
            shape.insert("request".into(), request.0.into());
        }
        if let Some(child) = self.call.as_ref().and_then(|call| call.child.clone()) {
            shape.insert("execution".into(), child.into());
        }
        Some(shape.into())
    }
}

impl Undo {
    fn begun(time: Timestamp) -> Self {
        Self {
            status: Status::Entered,
            attempts: 0,
            before: 0,
            started: time,
            changed: time,
            ended: None,
            until: None,
            failure: None,
            call: None,
        }
    }

    fn into_value(self) -> Object {
        let mut shape = Object::new();
        let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
        set("status", self.status.as_str().into());
        set("attempts", self.attempts.into());
        set("startedTime", self.started.to_string().into());
        set("endedTime", time(self.ended));
        set("waitsUntil", time(self.until));
        if let Some(failure) = self.failure {
            set("error", failure.error.into());
            set("cause", failure.cause.into());
        }
        shape
    }
}

fn time(time: Option<Timestamp>) -> Value {
    time.map(|time| time.to_string().into()).unwrap_or_default()
}
