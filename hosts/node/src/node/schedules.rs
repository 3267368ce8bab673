//! Schedules: stored, and handled when they are due.
//!
//! They follow the wall clock: a trigger at a time of day comes when the machine shows that time.
//! An execution is named after its schedule and the instant: a trigger handled twice starts one.

mod line;
mod next_times;

use super::queries::QueryError;
use super::{Node, Operator};
use crate::offload;
use starbridge_flow::diagnostics::quoted;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_ports::{AuditEntry, AuditKind, StoreError};
use starbridge_runtime as runtime;
use starbridge_runtime::schedule::{CatchUp, Expression, Overlap, Schedule, Trigger};
use starbridge_runtime::{StartFailure, StartRequest};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const KIND: &str = "schedule";
/// The kind under which the store keeps how far schedules are handled.
const PLACE: &str = "schedule-place";
/// How many triggers may wait for earlier executions without admission. Later ones are dropped.
const MAX_QUEUED_TRIGGERS: usize = 1_000;
/// The highest priority.
const PRIORITIES: u64 = 9;
/// The longest time between two checks.
const SWEEP: Millis = Millis(60_000);
/// The longest time between two checks while triggers wait for earlier executions.
const QUEUED_SWEEP: Millis = Millis(1_000);

/// A schedule, and how far it is handled.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The schedule itself.
    pub schedule: Schedule,
    /// Up to where its triggers are handled.
    pub last: Timestamp,
    /// When it triggers next.
    pub next: Option<Timestamp>,
    /// The id of the execution that it started last.
    pub latest: Option<Text>,
    /// The result of its last trigger.
    outcome: Option<Outcome>,
    /// Triggers that wait for earlier executions. With admission, the executions wait in admission
    /// instead.
    queued: VecDeque<Timestamp>,
    /// Whether the execution that it started last needs a slot of the schedule's key.
    keyed: bool,
    /// An execution that it started without its key. Executions with the key wait for it.
    before: Option<Text>,
}

/// The result of a trigger.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Outcome {
    /// The trigger's time.
    time: Timestamp,
    /// Why nothing was started; `None` if it started an execution.
    error: Option<String>,
}

/// The schedules of a node.
#[derive(Debug, Default)]
pub(super) struct Schedules {
    known: Mutex<BTreeMap<String, Scheduled>>,
    /// Held while a schedule is read, stored and kept: changes come one after the other.
    changing: Mutex<()>,
    changed: tokio::sync::Notify,
}

/// Why a schedule was not stored.
#[derive(Clone, Debug, PartialEq)]
pub enum ScheduleError {
    /// The members are wrong; the text says why.
    Bad(String),
    /// There is no such flow.
    NoSuchFlow,
    /// There is no such schedule.
    NoSuchSchedule,
    /// The store failed.
    Store(StoreError),
}

/// Why a schedule was not run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunError {
    /// There is no such schedule.
    NoSuchSchedule,
    /// The execution of that name was not started.
    NotStarted(Text, StartFailure),
}

impl From<StoreError> for ScheduleError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Schedules {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Scheduled>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a schedule from its members.
fn read(name: &str, members: &Object) -> Result<Schedule, String> {
    let text = |key: &str| members.get(key).and_then(Value::as_str);
    let cron = text("cron").ok_or("`cron` is missing, for example `0 3 * * *`")?;
    let flow = text("flow").ok_or("`flow` is missing")?;
    let expression = Expression::parse(cron).map_err(|error| format!("`cron`: {error}"))?;
    let mut schedule = Schedule::new(name, expression, flow).map_err(|error| error.to_string())?;
    schedule.payload = members.get("payload").cloned().unwrap_or_default();
    if let Some(word) = text("overlap") {
        schedule.overlap = Overlap::parse(word)
            .ok_or_else(|| format!("`overlap` must be skip, queue or allow, not {}", quoted(word)))?;
    }
    if let Some(word) = text("catchUp") {
        schedule.catch_up =
            CatchUp::parse(word).ok_or_else(|| format!("`catchUp` must be none or last, not {}", quoted(word)))?;
    }
    let number = |key: &str| match members.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let read = value.as_number().and_then(|number| number.as_u64());
            read.map(Some).ok_or_else(|| format!("`{key}` must be a whole number"))
        }
    };
    if let Some(priority) = number("priority")? {
        let fits = u8::try_from(priority).ok().filter(|_| priority <= PRIORITIES);
        let wrong = || format!("`priority` must be from 0 to {PRIORITIES}, not {priority}");
        schedule.priority = Some(fits.ok_or_else(wrong)?);
    }
    schedule.start_deadline = match number("startDeadlineSeconds")? {
        Some(0) => {
            return Err("`startDeadlineSeconds` must be at least 1: leave it out to wait without an end".to_owned());
        }
        seconds => seconds.map(Millis::from_secs),
    };
    schedule.paused = members.get("paused") == Some(&Value::Bool(true));
    Ok(schedule)
}

/// Writes the members of a schedule.
fn write(schedule: &Schedule) -> Object {
    let mut members: Object = [
        ("flow".into(), Value::from(schedule.flow.clone())),
        ("cron".into(), schedule.expression.as_str().into()),
        ("payload".into(), schedule.payload.clone()),
        ("overlap".into(), schedule.overlap.as_str().into()),
        ("catchUp".into(), schedule.catch_up.as_str().into()),
        ("paused".into(), schedule.paused.into()),
    ]
    .into_iter()
    .collect();
    if let Some(priority) = schedule.priority {
        members.insert("priority".into(), u32::from(priority).into());
    }
    if let Some(deadline) = schedule.start_deadline {
        members.insert("startDeadlineSeconds".into(), (deadline.0 / 1_000).into());
    }
    members
}

/// A schedule as the audit list has it, without the payload of its executions.
fn without_payload(members: &Object) -> Object {
    let told = members.iter().filter(|(key, _)| key.as_str() != "payload");
    told.map(|(key, value): (&Text, &Value)| (key.clone(), value.clone()))
        .collect()
}

impl Scheduled {
    /// The schedule with its state, as JSON.
    pub fn to_object(&self) -> Object {
        let mut shape = Object::new();
        shape.insert("name".into(), self.schedule.name.clone().into());
        for (key, value) in &write(&self.schedule) {
            shape.insert(key.clone(), value.clone());
        }
        if let Some(next) = self.next.filter(|_| !self.schedule.paused) {
            shape.insert("nextTime".into(), next.to_string().into());
        }
        if let Some(latest) = &self.latest {
            shape.insert("latestExecution".into(), latest.clone().into());
        }
        if let Some(outcome) = &self.outcome {
            shape.insert("latestTime".into(), outcome.time.to_string().into());
            if let Some(error) = &outcome.error {
                shape.insert("latestError".into(), error.as_str().into());
            }
        }
        shape
    }

    fn place(&self) -> String {
        let mut place = Object::new();
        place.insert("last".into(), self.last.to_string().into());
        if let Some(latest) = &self.latest {
            place.insert("latest".into(), latest.clone().into());
        }
        if let Some(outcome) = &self.outcome {
            place.insert("triggered".into(), outcome.time.to_string().into());
            if let Some(error) = &outcome.error {
                place.insert("error".into(), error.as_str().into());
            }
        }
        let queued: Vec<Value> = self.queued.iter().map(|time| time.to_string().into()).collect();
        place.insert("queued".into(), queued.into());
        if self.keyed {
            place.insert("keyed".into(), true.into());
        }
        if let Some(before) = &self.before {
            place.insert("before".into(), before.clone().into());
        }
        Value::from(place).to_json()
    }

    fn come_to(&mut self, place: &str) {
        let place: Object = serde_json::from_str(place).unwrap_or_default();
        let time = |value: &Value| value.as_str().and_then(Timestamp::parse);
        // A time that has passed since the last one is due at once.
        self.last = place.get("last").and_then(time).unwrap_or(self.last);
        self.next = self.schedule.expression.next_after(self.last);
        self.latest = place.get("latest").and_then(Value::as_text).cloned();
        self.outcome = place.get("triggered").and_then(time).map(|time| Outcome {
            time,
            error: place.get("error").and_then(Value::as_str).map(str::to_owned),
        });
        self.keyed = place.get("keyed") == Some(&Value::Bool(true));
        self.before = place.get("before").and_then(Value::as_text).cloned();
        let queued = place.get("queued").and_then(Value::as_array);
        self.queued = queued
            .map(|queued| queued.values().iter().filter_map(time).collect())
            .unwrap_or_default();
    }
}

impl Node {
    /// Loads the schedules of the store.
    pub(super) fn take_up_schedules(&self) -> Result<(), StoreError> {
        let now = self.clock.wall_time();
        let mut known = self.schedules.lock();
        for (name, text) in self.store.list_values(KIND)? {
            let members: Object = serde_json::from_str(&text)
                .map_err(|error| StoreError::Corrupt(format!("the schedule `{name}` is not readable: {error}")))?;
            let schedule = read(&name, &members)
                .map_err(|error| StoreError::Corrupt(format!("the schedule `{name}`: {error}")))?;
            let mut scheduled = Scheduled::new(schedule, now);
            if let Some(place) = self.store.get_value(PLACE, &name)? {
                scheduled.come_to(&place);
            }
            self.hold_line_as_kept(&scheduled.schedule)?;
            known.insert(name, scheduled);
        }
        Ok(())
    }

    /// Stores a schedule; it replaces one with that name. It triggers from now on.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`] if the members are wrong, there is no such flow, or the store fails.
    pub fn put_schedule(&self, name: &str, members: &Object, operator: &Operator) -> Result<Scheduled, ScheduleError> {
        let scheduled = Scheduled::new(self.read_schedule(name, members)?, self.clock.wall_time());
        let _changing = self.schedules.change();
        let audit = AuditEntry {
            detail: without_payload(&write(&scheduled.schedule)),
            ..self.audit_entry(operator, "put", AuditKind::Schedule, name)
        };
        self.keep_schedule(name, scheduled, &audit, operator)
    }

    /// Changes the given members of a schedule, and leaves the rest unchanged. With another time,
    /// or when it is resumed, it triggers from now on.
    ///
    /// # Errors
    ///
    /// [`ScheduleError`] if there is no such schedule, the members are wrong, there is no such flow, or the store fails.
    pub fn change_schedule(
        &self,
        name: &str,
        changes: &Object,
        operator: &Operator,
    ) -> Result<Scheduled, ScheduleError> {
        let _changing = self.schedules.change();
        let mut scheduled = self.schedule(name).ok_or(ScheduleError::NoSuchSchedule)?;
        let mut members = write(&scheduled.schedule);
        for (key, value) in changes {
            members.insert(key.clone(), value.clone());
        }
        // A schedule whose flow was deleted can still be paused.
        let schedule = match changes.contains_key("flow") {
            true => self.read_schedule(name, &members)?,
            false => read(name, &members).map_err(ScheduleError::Bad)?,
        };
        let before = std::mem::replace(&mut scheduled.schedule, schedule);
        if write(&before) == write(&scheduled.schedule) {
            return Ok(scheduled);
        }
        let now = &scheduled.schedule;
        if before.expression.as_str() != now.expression.as_str() || before.paused != now.paused {
            scheduled.last = self.clock.wall_time();
            scheduled.next = scheduled.schedule.expression.next_after(scheduled.last);
        }
        let action = match (changes.len(), changes.get("paused")) {
            (1, Some(Value::Bool(true))) => "pause",
            (1, Some(Value::Bool(false))) => "resume",
            _ => "change",
        };
        let audit = AuditEntry {
            detail: without_payload(changes),
            ..self.audit_entry(operator, action, AuditKind::Schedule, name)
        };
        self.keep_schedule(name, scheduled, &audit, operator)
    }

    /// Starts the execution of a schedule now, even if the schedule is paused; its triggers stay
    /// unchanged. The execution has no name of its own. It counts as started by the schedule, also
    /// for overlap. It does not wait for executions that the schedule started before.
    ///
    /// # Errors
    ///
    /// [`RunError`] if there is no such schedule, or its execution can't be started.
    pub async fn run_schedule(&self, name: &str, operator: &Operator) -> Result<runtime::StartedExecution, RunError> {
        let scheduled = self.schedule(name).ok_or(RunError::NoSuchSchedule)?;
        let trigger = scheduled.schedule.trigger(self.clock.wall_time());
        let request = StartRequest {
            name: None,
            ..start_of(&scheduled.schedule, &trigger)
        };
        let start = self.begin(request, false).await;
        let started = start.map_err(|failure| RunError::NotStarted(trigger.name, failure))?;
        let _changing = self.schedules.change();
        if let Some(mut kept) = self.schedule(name) {
            kept.latest = Some(started.snapshot.execution.clone());
            kept.keyed = false;
            let audit = self.audit_entry(operator, "run", AuditKind::Schedule, name);
            let audit = audit.with("execution", started.snapshot.execution.clone());
            // The execution runs, no matter what the store says of its schedule now.
            let _ = self.store.put_value(PLACE, name, &kept.place(), Some(&audit));
            self.schedules.lock().insert(name.to_owned(), kept);
        }
        Ok(started)
    }

    fn read_schedule(&self, name: &str, members: &Object) -> Result<Schedule, ScheduleError> {
        let schedule = read(name, members).map_err(ScheduleError::Bad)?;
        match self.flows.get(&schedule.flow, None) {
            Some(_) => Ok(schedule),
            None => Err(ScheduleError::NoSuchFlow),
        }
    }

    fn keep_schedule(
        &self,
        name: &str,
        scheduled: Scheduled,
        audit: &AuditEntry,
        operator: &Operator,
    ) -> Result<Scheduled, ScheduleError> {
        self.store.put_value(PLACE, name, &scheduled.place(), None)?;
        let text = Value::from(write(&scheduled.schedule)).to_json();
        self.store.put_value(KIND, name, &text, Some(audit))?;
        self.hold_line(&scheduled.schedule, &operator.by);
        self.schedules.lock().insert(name.to_owned(), scheduled.clone());
        self.schedules.changed.notify_one();
        Ok(scheduled)
    }

    /// Deletes a schedule. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn discard_schedule(&self, name: &str, operator: &Operator) -> Result<bool, StoreError> {
        let _changing = self.schedules.change();
        let audit = self.audit_entry(operator, "delete", AuditKind::Schedule, name);
        let was = self.store.delete_value(KIND, name, Some(&audit))?;
        self.store.delete_value(PLACE, name, None)?;
        if let Some(scheduled) = self.schedules.lock().remove(name) {
            self.let_line_go(&scheduled.schedule, &operator.by);
        }
        Ok(was)
    }

    /// The schedules, in the order of their names.
    pub fn schedules(&self) -> Vec<Scheduled> {
        self.schedules.lock().values().cloned().collect()
    }

    /// The schedule with this name.
    pub fn schedule(&self, name: &str) -> Option<Scheduled> {
        self.schedules.lock().get(name).cloned()
    }

    /// Starts the executions that are due, once: for nodes that do not run all the time.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub async fn fire_schedules(&self) -> Result<(), StoreError> {
        self.schedules.lock().clear();
        self.take_up_schedules()?;
        let now = self.clock.wall_time();
        for scheduled in self.schedules() {
            let next = scheduled.schedule.expression.next_after(scheduled.last);
            if next.is_some_and(|next| next <= now) || scheduled.has_queued() {
                self.refresh_flow(&scheduled.schedule.flow)?;
                self.fire(scheduled, now).await;
            }
        }
        Ok(())
    }

    /// Starts the executions that are due, forever.
    pub async fn keep_schedules(self: Arc<Self>) {
        loop {
            let set = self.clock.set();
            let now = self.clock.wall_time();
            for scheduled in self.schedules() {
                let due = scheduled.next.is_some_and(|next| next <= now);
                if due || scheduled.has_queued() {
                    self.fire(scheduled, now).await;
                }
            }
            let schedules = self.schedules();
            let usual = if schedules.iter().any(Scheduled::has_queued) {
                QUEUED_SWEEP
            } else {
                SWEEP
            };
            let next = schedules.iter().filter_map(|scheduled| scheduled.next).min();
            let pause = next.map_or(usual, |next| next.since(self.clock.wall_time()).min(usual));
            tokio::select! {
                () = tokio::time::sleep(pause.into()) => {}
                () = self.schedules.changed.notified() => {}
                () = set => {}
            }
        }
    }

    async fn fire(&self, mut scheduled: Scheduled, now: Timestamp) {
        let running = scheduled
            .latest
            .as_ref()
            .is_some_and(|latest| self.has_not_ended(latest));
        let firing = scheduled.schedule.fires(Some(scheduled.last), now, running);
        scheduled.last = firing.last;
        scheduled.next = firing.next;
        if self.admission.is_some() && scheduled.schedule.overlap == Overlap::Queue {
            return self.start_in_line(scheduled, firing.starts, running).await;
        }
        let mut starts = Vec::new();
        for trigger in firing.starts {
            if trigger.queued && scheduled.queued.len() < MAX_QUEUED_TRIGGERS {
                scheduled.queued.push_back(trigger.time);
            } else if !trigger.queued {
                starts.push(trigger);
            }
        }
        if !running
            && scheduled.has_queued()
            && let Some(time) = scheduled.queued.front()
        {
            starts.push(scheduled.schedule.trigger(*time));
        }
        for trigger in starts {
            let start = start_of(&scheduled.schedule, &trigger);
            let error = match self.start_trigger(&scheduled.schedule, &trigger, start).await {
                Ok(Ok(execution)) => {
                    scheduled.latest = Some(execution);
                    scheduled.keyed = false;
                    None
                }
                Ok(Err(error)) => Some(error),
                // The next check starts the same.
                Err(()) => return,
            };
            if trigger.queued {
                scheduled.queued.pop_front();
            }
            scheduled.outcome = Some(Outcome {
                time: trigger.time,
                error,
            });
        }
        self.keep_fired(scheduled);
    }

    /// Keeps the results of triggers. If the schedule was changed meanwhile, its new times hold; if
    /// it was deleted, nothing is kept.
    fn keep_fired(&self, mut fired: Scheduled) {
        let name = fired.schedule.name.to_string();
        let _changing = self.schedules.change();
        let Some(kept) = self.schedule(&name) else { return };
        if kept.schedule != fired.schedule {
            fired.last = fired.last.max(kept.last);
            fired.next = kept.next;
            fired.schedule = kept.schedule;
        }
        if self.store.put_value(PLACE, &name, &fired.place(), None).is_ok() {
            self.schedules.lock().insert(name, fired);
        }
    }

    /// Starts a trigger's execution. Returns it, or why none can be started; `Err(())`: not now.
    async fn start_trigger(
        &self,
        schedule: &Schedule,
        trigger: &Trigger,
        start: StartRequest,
    ) -> Result<Result<Text, String>, ()> {
        match self.begin(start, false).await {
            Ok(start) => Ok(Ok(start.snapshot.execution)),
            Err(StartFailure::Exists(execution)) => self.started_before(schedule, trigger, execution).await,
            Err(StartFailure::Busy | StartFailure::NoRoom | StartFailure::Stopping) => Err(()),
            // The flow was hidden, or its schema refuses the input. The next trigger may succeed.
            Err(StartFailure::Refused(error)) => Ok(Err(self.refused(schedule, error.to_string()))),
            Err(StartFailure::NoFork(error)) => Ok(Err(self.refused(schedule, error.to_string()))),
        }
    }

    /// The execution that the same trigger started before, or why nothing was started.
    async fn started_before(
        &self,
        schedule: &Schedule,
        trigger: &Trigger,
        execution: Text,
    ) -> Result<Result<Text, String>, ()> {
        let stored = match self.stored(&execution) {
            Ok(stored) => stored,
            // It was deleted meanwhile: the next check starts the trigger's own.
            Err(QueryError::NoSuchExecution) => return Err(()),
            Err(error) => return Ok(Err(self.refused(schedule, error.to_string()))),
        };
        let input = trigger.input.clone();
        match offload::work(stored.bytes(), move || stored.has_input(&input)).await {
            Ok(Ok(true)) => Ok(Ok(execution)),
            Ok(Ok(false)) => {
                let error = format!(
                    "the name `{}` is taken: the execution {execution} of the flow `{}` has it, with another input",
                    trigger.name, schedule.flow
                );
                Ok(Err(self.refused(schedule, error)))
            }
            Ok(Err(error)) => Ok(Err(self.refused(schedule, error.to_string()))),
            Err(offload::NotDone) => Err(()),
        }
    }

    fn refused(&self, schedule: &Schedule, error: String) -> String {
        self.counters.schedule_refusals.fetch_add(1, Ordering::Relaxed);
        // The error may contain data of the payload, which must not be logged.
        tracing::warn!(
            schedule = %schedule.name,
            flow = %schedule.flow,
            "a schedule could not start its flow: the schedule's `latestError` says why"
        );
        error
    }
}

/// The start request of a trigger.
fn start_of(schedule: &Schedule, trigger: &Trigger) -> StartRequest {
    StartRequest {
        flow: schedule.flow.clone(),
        input: trigger.input.clone(),
        name: Some(trigger.name.clone()),
        priority: schedule.priority,
        deadline: schedule.start_deadline,
        ..StartRequest::default()
    }
}

impl Scheduled {
    /// Whether triggers wait for an execution to end. Those of a paused schedule wait until it is resumed.
    fn has_queued(&self) -> bool {
        !self.schedule.paused && !self.queued.is_empty()
    }

    fn new(schedule: Schedule, now: Timestamp) -> Self {
        Self {
            next: schedule.expression.next_after(now),
            schedule,
            last: now,
            latest: None,
            outcome: None,
            queued: VecDeque::new(),
            keyed: false,
            before: None,
        }
    }
}
