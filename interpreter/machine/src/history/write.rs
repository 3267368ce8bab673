//! Writing events as JSON values.

use super::read::not_sent_by_name;
use crate::event::{
    Child, Decision, EditedInput, Event, EventKind, Exit, Failure, Holder, StartTerms, StepPath, TokenGrant, Waited,
};
use starbridge_flow::graph::{Flow, RetrySettings, Settings, StepId};
use starbridge_flow::value::{Array, Object, Text, Value};

/// Writes an event in the exported form.
pub fn write_event(flow: &Flow, event: &Event) -> Object {
    let mut object = Object::new();
    set(&mut object, "id", event.id.0);
    set(&mut object, "causedBy", event.caused_by.0);
    set(&mut object, "time", event.time.to_string());
    set(
        &mut object,
        "step",
        event.step.map(|step| name(flow, step)).unwrap_or_default(),
    );
    set(&mut object, "path", write_path(flow, &event.path));
    set(&mut object, "type", type_name(&event.detail));
    let mut members = Object::new();
    detail(&mut members, flow, &event.detail);
    set(&mut object, "detail", members);
    if event.rollback {
        set(&mut object, "rollback", true);
    }
    object
}

/// The name of an event's type in the language reference.
pub fn type_name(detail: &EventKind) -> &'static str {
    match detail {
        EventKind::ExecutionStarted(_) => "ExecutionStarted",
        EventKind::StepEntered { .. } => "StepEntered",
        EventKind::StepStarted { .. } => "StepStarted",
        EventKind::StepSucceeded { .. } => "StepSucceeded",
        EventKind::StepFailed { .. } => "StepFailed",
        EventKind::StepExited { .. } => "StepExited",
        EventKind::BranchEntered { .. } => "BranchEntered",
        EventKind::BranchExited(_) => "BranchExited",
        EventKind::IterationEntered { .. } => "IterationEntered",
        EventKind::IterationExited(_) => "IterationExited",
        EventKind::ChoiceTaken { .. } => "ChoiceTaken",
        EventKind::TaskScheduled(_) => "TaskScheduled",
        EventKind::TaskSubmitted { .. } => "TaskSubmitted",
        EventKind::TaskSubmitFailed { .. } => "TaskSubmitFailed",
        EventKind::TaskSucceeded { .. } => "TaskSucceeded",
        EventKind::TaskFailed { .. } => "TaskFailed",
        EventKind::TaskTimedOut { .. } => "TaskTimedOut",
        EventKind::RetryScheduled { .. } => "RetryScheduled",
        EventKind::PollScheduled { .. } => "PollScheduled",
        EventKind::WaitStarted { .. } => "WaitStarted",
        EventKind::TimerFired { .. } => "TimerFired",
        EventKind::TaskCancelled { .. } => "TaskCancelled",
        EventKind::LateResultIgnored { .. } => "LateResultIgnored",
        EventKind::RollbackStarted { .. } => "RollbackStarted",
        EventKind::RollbackSucceeded => "RollbackSucceeded",
        EventKind::RollbackFailed { .. } => "RollbackFailed",
        EventKind::ManualRequested(_) => "ManualRequested",
        EventKind::ManualResolved(_) => "ManualResolved",
        EventKind::ExecutionStopped { .. } => "ExecutionStopped",
        EventKind::ExecutionTimedOut { .. } => "ExecutionTimedOut",
        EventKind::ExecutionSucceeded { .. } => "ExecutionSucceeded",
        EventKind::ExecutionFailed { .. } => "ExecutionFailed",
        EventKind::ExecutionRedriven { .. } => "ExecutionRedriven",
        EventKind::RollbackSkipped { .. } => "RollbackSkipped",
        EventKind::ExecutionPaused { .. } => "ExecutionPaused",
        EventKind::ExecutionReordered { .. } => "ExecutionReordered",
        EventKind::ExecutionResumed { .. } => "ExecutionResumed",
        EventKind::ExecutionForked { .. } => "ExecutionForked",
        EventKind::TurnContinued => "TurnContinued",
        EventKind::TaskStarted => "TaskStarted",
    }
}

/// Receives the members of a detail, one after the other.
pub(super) trait Members {
    /// Receives one member.
    fn member(&mut self, key: &'static str, value: Value);
}

impl Members for Object {
    fn member(&mut self, key: &'static str, value: Value) {
        self.insert(Text::from(key), value);
    }
}

fn set(members: &mut impl Members, key: &'static str, value: impl Into<Value>) {
    members.member(key, value.into());
}

fn set_some<V: Into<Value>>(members: &mut impl Members, key: &'static str, value: Option<V>) {
    if let Some(value) = value {
        set(members, key, value);
    }
}

pub(super) fn name(flow: &Flow, step: StepId) -> Text {
    flow.step(step).map(|step| step.name.clone()).unwrap_or_default()
}

/// Writes a path in the exported form.
pub fn write_path(flow: &Flow, path: &StepPath) -> Value {
    let items = path.items().iter().map(|item| {
        let mut object = Object::new();
        set(&mut object, "step", name(flow, item.step));
        match item.child {
            Child::Branch(number) => set(&mut object, "branch", number),
            Child::Iteration(number) => set(&mut object, "iteration", number),
            Child::Arm(Some(number)) => set(&mut object, "arm", number),
            Child::Arm(None) => set(&mut object, "arm", "default"),
        }
        Value::Object(object)
    });
    Value::Array(items.collect::<Array>())
}

fn set_failure(object: &mut impl Members, failure: &Failure) {
    set(object, "error", failure.error.clone());
    set(object, "cause", failure.cause.clone());
}

/// Writes `notSent` if it is true. If it is false, it is written only beside the error name that would otherwise mean
/// true.
fn set_not_sent(object: &mut impl Members, flow: &Flow, failure: &Failure, not_sent: bool) {
    if not_sent || not_sent_by_name(flow, failure) {
        set(object, "notSent", not_sent);
    }
}

fn set_missing(object: &mut impl Members, missing: &[Text]) {
    if !missing.is_empty() {
        let names: Array = missing.iter().map(|name| Value::from(name.clone())).collect();
        set(object, "missing", Value::Array(names));
    }
}

pub(super) fn detail(o: &mut impl Members, flow: &Flow, detail: &EventKind) {
    match detail {
        EventKind::StepEntered { settings } => set_some(o, "settings", settings.as_deref().map(written_settings)),
        EventKind::StepStarted {
            attempt,
            input,
            missing,
            bounds,
        } => {
            set(o, "attempt", *attempt);
            set_some(o, "input", input.clone());
            set_missing(o, missing);
            if let Some(bounds) = bounds {
                set_some(o, "concurrency", bounds.concurrency);
                set_some(o, "timeoutMs", bounds.timeout.map(|span| span.0));
            }
        }
        EventKind::StepSucceeded { output, missing } => {
            set_some(o, "output", output.clone());
            set_missing(o, missing);
        }
        EventKind::StepFailed { failure, attempt } => {
            set_failure(o, failure);
            set(o, "attempt", *attempt);
        }
        EventKind::StepExited { goto, caught, missing } => {
            set_some(o, "goto", goto.map(|goto| name(flow, goto)));
            set_some(o, "caught", caught.clone());
            set_missing(o, missing);
        }
        EventKind::BranchEntered { branch, deps } => {
            set(o, "branch", *branch);
            set_some(o, "deps", deps.clone());
        }
        EventKind::IterationEntered { index, item } => {
            set(o, "index", *index);
            set(o, "item", item.clone());
        }
        EventKind::BranchExited(exit) | EventKind::IterationExited(exit) => match exit {
            Exit::Done => {}
            Exit::Failed(failure) => set_failure(o, failure),
            Exit::Cancelled => set(o, "cancelled", true),
        },
        EventKind::ChoiceTaken { arm } => {
            let arm = match arm {
                None => Value::Null,
                Some(None) => "default".into(),
                Some(Some(number)) => (*number).into(),
            };
            set(o, "arm", arm);
        }
        later => later_detail(o, flow, later),
    }
}

/// Details of events about timers, operators and rollbacks.
fn later_detail(o: &mut impl Members, flow: &Flow, detail: &EventKind) {
    match detail {
        EventKind::RetryScheduled {
            policy,
            attempt,
            delay,
            due,
            value,
        } => {
            set(o, "policy", *policy);
            set(o, "attempt", *attempt);
            set(o, "delayMs", delay.0);
            set(o, "due", due.to_string());
            set_some(o, "value", value.clone());
        }
        EventKind::PollScheduled { call, due } => {
            set(o, "call", *call);
            set(o, "due", due.to_string());
        }
        EventKind::WaitStarted { until } => set(o, "until", until.to_string()),
        EventKind::TimerFired { of } | EventKind::RollbackStarted { of } => set(o, "of", of.0),
        EventKind::ManualRequested(failure) => set_failure(o, failure),
        EventKind::RollbackFailed { failure, original } => {
            set_failure(o, failure);
            set_some(
                o,
                "original",
                original.as_ref().map(|original| {
                    let mut object = Object::new();
                    set_failure(&mut object, original);
                    object
                }),
            );
        }
        call => call_detail(o, flow, call),
    }
}

fn call_detail(o: &mut impl Members, flow: &Flow, detail: &EventKind) {
    match detail {
        EventKind::TaskScheduled(scheduled) => {
            set(o, "resource", scheduled.resource.clone());
            set(o, "pattern", scheduled.pattern.as_str());
            set(o, "attempt", scheduled.attempt);
            set(o, "call", scheduled.call);
            set_some(o, "params", scheduled.params.clone());
            set_some(o, "timeoutAt", scheduled.timeout_at.map(|at| at.to_string()));
            set_some(o, "timeoutMs", scheduled.timeout.map(|span| span.0));
            set_some(o, "waitMs", scheduled.wait.map(|span| span.0));
            set_some(o, "heartbeatMs", scheduled.heartbeat.map(|span| span.0));
            set_some(o, "priority", scheduled.priority.map(u32::from));
        }
        EventKind::TaskSubmitted {
            receipt,
            execution,
            version,
        } => {
            set_some(o, "receipt", receipt.clone());
            set_some(o, "executionId", execution.clone());
            set_some(o, "version", *version);
        }
        EventKind::TaskSucceeded {
            result,
            worker,
            held_time,
        } => {
            set(o, "result", result.clone());
            set_some(o, "worker", worker.clone());
            set_some(o, "heldTime", held_time.map(|time| time.to_string()));
        }
        EventKind::TaskSubmitFailed { failure, not_sent } => {
            set_failure(o, failure);
            set_not_sent(o, flow, failure, *not_sent);
        }
        EventKind::TaskFailed {
            failure,
            retry_after,
            not_sent,
            holder,
        } => {
            set_failure(o, failure);
            set_some(o, "retryAfter", retry_after.map(|span| span.0));
            set_not_sent(o, flow, failure, *not_sent);
            set_holder(o, holder.as_deref());
        }
        EventKind::TaskTimedOut {
            error,
            redeliver,
            holder,
        } => {
            set(o, "error", error.clone());
            set_some(o, "redeliver", *redeliver);
            set_holder(o, holder.as_deref());
        }
        EventKind::TaskCancelled { of, reason } => {
            set(o, "of", of.0);
            set(o, "reason", reason.as_str());
        }
        EventKind::LateResultIgnored { of, code } => {
            set(o, "of", of.0);
            set(o, "code", code.as_str());
        }
        execution => execution_detail(o, flow, execution),
    }
}

fn set_holder(o: &mut impl Members, holder: Option<&Holder>) {
    set_some(o, "worker", holder.map(|holder| holder.worker.clone()));
    set_some(o, "heldTime", holder.map(|holder| holder.held_time.to_string()));
}

fn written_settings(settings: &Settings) -> Value {
    let mut object = Object::new();
    set_some(&mut object, "priority", settings.priority.map(u32::from));
    set_some(&mut object, "timeoutMs", settings.timeout.map(|span| span.0));
    set_some(&mut object, "totalTimeoutMs", settings.total_timeout.map(|span| span.0));
    set_some(&mut object, "waitMs", settings.wait.map(|span| span.0));
    set_some(&mut object, "heartbeatMs", settings.heartbeat.map(|span| span.0));
    if !settings.retry.is_empty() {
        let policies: Array = settings.retry.iter().map(written_policy).collect();
        set(&mut object, "retry", policies);
    }
    object.into()
}

fn written_policy(policy: &RetrySettings) -> Value {
    let mut object = Object::new();
    set(&mut object, "policy", policy.policy);
    set_some(&mut object, "intervalMs", policy.interval.map(|span| span.0));
    set_some(&mut object, "maxIntervalMs", policy.max_interval.map(|span| span.0));
    set_some(&mut object, "maxAttempts", policy.max_attempts);
    set_some(&mut object, "multiplier", policy.multiplier);
    set_some(&mut object, "jitter", policy.jitter);
    object.into()
}

fn written_grant(grant: &TokenGrant) -> Value {
    let mut object = Object::new();
    set(&mut object, "at", grant.at.to_string());
    set(&mut object, "execution", grant.execution.clone());
    set(&mut object, "event", grant.call.0);
    object.into()
}

fn set_terms(o: &mut impl Members, terms: &StartTerms) {
    set_some(o, "by", terms.by.clone());
    set_some(o, "onceKey", terms.once_key.clone());
    set_some(o, "priority", terms.priority.map(u32::from));
    set_some(o, "orderTime", terms.order_time);
    set_some(o, "traceparent", terms.traceparent.clone());
    if let Some(call) = &terms.report_to {
        let mut object = Object::new();
        set(&mut object, "execution", call.execution.clone());
        set(&mut object, "event", call.event.0);
        set(o, "reportTo", object);
    }
    if let Some(waited) = &terms.waited {
        let mut object = Object::new();
        set(&mut object, "requestedTime", waited.requested_time.to_string());
        let start_at = waited.start_at.map(|at| at.to_string());
        set_some(&mut object, "startAt", start_at);
        set_waited(&mut object, waited);
        set(o, "waited", object);
    }
}

fn set_waited(object: &mut Object, waited: &Waited) {
    if !waited.after.is_empty() {
        let after = waited.after.iter().map(|other| {
            let mut object = Object::new();
            set_some(&mut object, "flow", other.flow.clone());
            set(&mut object, "execution", other.execution.clone());
            set_some(&mut object, "when", other.any_end.then_some("ended"));
            Value::from(object)
        });
        set(object, "after", after.collect::<Array>());
    }
    if !waited.keys.is_empty() {
        let keys = waited.keys.iter().map(|slot| {
            let mut object = Object::new();
            set(&mut object, "pool", slot.pool.clone());
            set(&mut object, "key", slot.key.clone());
            Value::from(object)
        });
        set(object, "keys", keys.collect::<Array>());
    }
}

fn written_edit(edited: &EditedInput) -> Value {
    let mut object = Object::new();
    set(&mut object, "event", edited.event.0);
    set(&mut object, "input", edited.input.clone());
    object.into()
}

fn execution_detail(o: &mut impl Members, flow: &Flow, detail: &EventKind) {
    match detail {
        EventKind::ExecutionStarted(started) => {
            set(o, "flow", started.flow.clone());
            set(o, "version", started.version);
            set(o, "definitionHash", started.definition_hash.clone());
            set(o, "machine", started.machine);
            set(o, "name", started.name.clone());
            set(o, "input", started.input.clone());
            set(o, "seed", started.seed);
            set_some(o, "labels", started.labels.clone());
            if let Some(parent) = &started.parent {
                let mut of = Object::new();
                set(&mut of, "execution", parent.execution.clone());
                set(&mut of, "event", parent.event.0);
                set(o, "parent", of);
            }
            if !started.tokens.is_empty() {
                let tokens: Array = started.tokens.iter().map(written_grant).collect();
                set(o, "tokens", tokens);
            }
            set_terms(o, &started.terms);
        }
        EventKind::ExecutionStopped { failure, by } => {
            set_failure(o, failure);
            set_some(o, "by", by.clone());
        }
        EventKind::ExecutionTimedOut { drain } => set_some(o, "drain", drain.then_some(true)),
        EventKind::ExecutionSucceeded { output } => set(o, "output", output.clone()),
        EventKind::ExecutionFailed { failure, step } => {
            set_failure(o, failure);
            set(o, "step", step.map(|step| name(flow, step)).unwrap_or_default());
        }
        act => operator_detail(o, flow, act),
    }
}

/// Details of what operators decide.
fn operator_detail(o: &mut impl Members, flow: &Flow, detail: &EventKind) {
    match detail {
        EventKind::ManualResolved(resolution) => {
            set(o, "action", resolution.decision.action().as_str());
            set(o, "by", resolution.by.clone());
            match &resolution.decision {
                Decision::Retry => {}
                Decision::Succeed { output } => set_some(o, "output", output.clone()),
                Decision::Fail { failure } => failure.iter().for_each(|failure| set_failure(o, failure)),
            }
            set_some(o, "note", resolution.note.clone());
        }
        EventKind::ExecutionRedriven {
            from,
            steps,
            by,
            inputs,
            definition,
        } => {
            set(o, "from", from.0);
            let steps: Array = steps.iter().map(|step| Value::from(name(flow, *step))).collect();
            set(o, "steps", steps);
            set(o, "by", by.clone());
            if !inputs.is_empty() {
                let inputs: Array = inputs.iter().map(written_edit).collect();
                set(o, "inputs", inputs);
            }
            if let Some(definition) = definition {
                set(o, "version", definition.version);
                set(o, "definitionHash", definition.hash.clone());
            }
        }
        EventKind::RollbackSkipped { of, by, cause } => {
            set(o, "of", of.0);
            set(o, "by", by.clone());
            set(o, "cause", cause.clone());
        }
        EventKind::ExecutionPaused { by, cause, with_parent } => {
            set(o, "by", by.clone());
            set(o, "cause", cause.clone());
            if *with_parent {
                set(o, "withParent", true);
            }
        }
        EventKind::ExecutionResumed { by } => set(o, "by", by.clone()),
        EventKind::ExecutionReordered {
            priority,
            order_time,
            by,
        } => {
            set_some(o, "priority", priority.map(u32::from));
            set_some(o, "orderTime", *order_time);
            set(o, "by", by.clone());
        }
        EventKind::ExecutionForked {
            execution,
            event,
            name,
            by,
        } => {
            set(o, "execution", execution.clone());
            set(o, "event", event.0);
            set(o, "name", name.clone());
            set_some(o, "by", by.clone());
        }
        _ => {}
    }
}
