//! Reading events from JSON values.

mod terms;

use super::names::short_key;
use crate::MACHINE_VERSION;
use crate::event::{
    Bounds, CancelReason, Child, Decision, EditedInput, Event, EventId, EventKind, Exit, Failure, LateResultCode,
    NewDefinition, Parent, PathItem, Resolution, ResolutionAction, ScheduledCall, StartRecord, StepPath, TokenGrant,
};
use starbridge_flow::graph::{FaultKind, Flow, Pattern, Pointer, Settings, StepId};
use starbridge_flow::time::{Millis, Seconds, Timestamp};
use starbridge_flow::value::{Object, Text, Value};

/// Why a value is not an event of this flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryError {
    /// What is wrong, with the name of the member.
    pub message: String,
}

impl std::fmt::Display for HistoryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for HistoryError {}

pub(super) fn error(message: impl Into<String>) -> HistoryError {
    HistoryError {
        message: message.into(),
    }
}

/// Whether the name of a failure says that its call was not sent. Histories written before `notSent` existed say it
/// that way. The name is the interpreter's own: errors from outside never have it.
pub(super) fn not_sent_by_name(flow: &Flow, failure: &Failure) -> bool {
    failure.error == *flow.fault_names.name(&FaultKind::Resource)
}

/// Reads an event in the exported form. `flow` must be the flow that the history belongs to, because steps are looked
/// up by name.
///
/// # Errors
///
/// [`HistoryError`] if a member is missing or wrong, or if the flow has no such step.
pub fn read_event(flow: &Flow, value: &Value) -> Result<Event, HistoryError> {
    let m = Members::of_event(flow, value)?;
    let detail = Members {
        object: m.object("detail")?,
        ..m
    };
    let step = match m.text("step")?.as_str() {
        "" => None,
        name => Some(m.step_named(name)?),
    };
    Ok(Event {
        id: EventId(m.number("id")?),
        caused_by: EventId(m.number("causedBy")?),
        time: m.time("time")?,
        step,
        path: m.path()?,
        rollback: m.object.contains_key("rollback"),
        detail: detail.detail(&m.text("type")?)?,
    })
}

/// Which names members have.
#[derive(Clone, Copy)]
pub(super) enum Keys {
    /// The names of the language reference.
    Long,
    /// The short names of stored turns.
    Short,
}

/// The members of an object, looked up by their names in the language reference.
#[derive(Clone, Copy)]
pub(super) struct Members<'a> {
    pub(super) flow: &'a Flow,
    pub(super) object: &'a Object,
    pub(super) keys: Keys,
}

impl<'a> Members<'a> {
    /// Those of an event, whose own members have long names in both forms.
    pub(super) fn of_event(flow: &'a Flow, value: &'a Value) -> Result<Self, HistoryError> {
        let object = value
            .as_object()
            .ok_or_else(|| error(format!("an event is an object, not {}", value.kind())))?;
        Ok(Self {
            flow,
            object,
            keys: Keys::Long,
        })
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        match self.keys {
            Keys::Long => self.object.get(key),
            Keys::Short => self.object.get(short_key(key)),
        }
    }

    pub(super) fn value(&self, key: &str) -> Result<&'a Value, HistoryError> {
        self.get(key).ok_or_else(|| error(format!("`{key}` is missing")))
    }

    fn wrong(key: &str, wanted: &str, found: &Value) -> HistoryError {
        error(format!("`{key}` must be {wanted}, not {}", found.kind()))
    }

    pub(super) fn text(&self, key: &str) -> Result<Text, HistoryError> {
        let value = self.value(key)?;
        value
            .as_text()
            .cloned()
            .ok_or_else(|| Self::wrong(key, "a string", value))
    }

    fn number(&self, key: &str) -> Result<u64, HistoryError> {
        let value = self.value(key)?;
        value
            .as_number()
            .and_then(serde_json::Number::as_u64)
            .ok_or_else(|| Self::wrong(key, "a whole number", value))
    }

    fn millis(&self, key: &str) -> Result<Millis, HistoryError> {
        self.number(key).map(Millis)
    }

    fn seconds(&self, key: &str) -> Result<Seconds, HistoryError> {
        self.number(key).map(Seconds)
    }

    fn small(&self, key: &str) -> Result<u32, HistoryError> {
        u32::try_from(self.number(key)?).map_err(|_| error(format!("`{key}` is too large")))
    }

    pub(super) fn event(&self, key: &str) -> Result<EventId, HistoryError> {
        self.number(key).map(EventId)
    }

    fn time(&self, key: &str) -> Result<Timestamp, HistoryError> {
        let text = self.text(key)?;
        Timestamp::parse(&text).ok_or_else(|| error(format!("`{key}` must be an RFC 3339 time, not `{text}`")))
    }

    pub(super) fn object(&self, key: &str) -> Result<&'a Object, HistoryError> {
        let value = self.value(key)?;
        value.as_object().ok_or_else(|| Self::wrong(key, "an object", value))
    }

    /// Reads a member that may be missing.
    pub(super) fn maybe<T>(
        &self,
        key: &str,
        read: impl Fn(&Self, &str) -> Result<T, HistoryError>,
    ) -> Result<Option<T>, HistoryError> {
        if self.get(key).is_some() {
            read(self, key).map(Some)
        } else {
            Ok(None)
        }
    }

    fn owned_object(&self, key: &str) -> Result<Object, HistoryError> {
        self.object(key).cloned()
    }

    fn any(&self, key: &str) -> Result<Value, HistoryError> {
        self.value(key).cloned()
    }

    pub(super) fn step_named(&self, name: &str) -> Result<StepId, HistoryError> {
        self.flow
            .step_named(name)
            .ok_or_else(|| error(format!("the flow has no step `{name}`")))
    }

    pub(super) fn step(&self, key: &str) -> Result<StepId, HistoryError> {
        self.step_named(&self.text(key)?)
    }

    fn failure(&self) -> Result<Failure, HistoryError> {
        Ok(Failure {
            error: self.text("error")?,
            cause: self.text("cause")?,
        })
    }

    fn failure_at(&self, key: &str) -> Result<Failure, HistoryError> {
        let at = Members {
            flow: self.flow,
            object: self.object(key)?,
            keys: Keys::Long,
        };
        at.failure()
    }

    /// Reads a word of a closed list. `what` names the list in the error.
    fn word<T>(&self, key: &str, what: &str, parse: fn(&str) -> Option<T>) -> Result<T, HistoryError> {
        let word = self.text(key)?;
        parse(&word).ok_or_else(|| error(format!("there is no {what} `{word}`")))
    }

    pub(super) fn truth(&self, key: &str) -> Result<bool, HistoryError> {
        let value = self.value(key)?;
        match value {
            Value::Bool(truth) => Ok(*truth),
            _ => Err(Self::wrong(key, "true or false", value)),
        }
    }

    fn not_sent(&self, failure: &Failure) -> Result<bool, HistoryError> {
        let said = self.maybe("notSent", Self::truth)?;
        Ok(said.unwrap_or_else(|| not_sent_by_name(self.flow, failure)))
    }

    fn decision(&self) -> Result<Decision, HistoryError> {
        Ok(match self.word("action", "decision", ResolutionAction::parse)? {
            ResolutionAction::Retry => Decision::Retry,
            ResolutionAction::Succeed => Decision::Succeed {
                output: self.maybe("output", Self::any)?,
            },
            ResolutionAction::Fail => Decision::Fail {
                failure: self.maybe("error", |m, _| m.failure())?,
            },
        })
    }

    fn bounds(&self) -> Result<Option<Box<Bounds>>, HistoryError> {
        let bounds = Bounds {
            concurrency: self.maybe("concurrency", Self::small)?,
            timeout: self.maybe("timeoutMs", Self::millis)?,
        };
        Ok((bounds != Bounds::default()).then(|| Box::new(bounds)))
    }

    fn settings(&self, key: &str) -> Result<Box<Settings>, HistoryError> {
        let read = serde_json::from_str(&self.value(key)?.to_json());
        read.map(Box::new)
            .map_err(|problem| error(format!("`{key}`: {problem}")))
    }

    fn priority(&self, key: &str) -> Result<u8, HistoryError> {
        let priority = u8::try_from(self.number(key)?).ok().filter(|priority| *priority <= 9);
        priority.ok_or_else(|| error(format!("`{key}` must be from 0 to 9")))
    }

    fn missing(&self) -> Result<Vec<Text>, HistoryError> {
        let Some(value) = self.get("missing") else {
            return Ok(Vec::new());
        };
        let names = value
            .as_array()
            .ok_or_else(|| Self::wrong("missing", "an array", value))?;
        names
            .values()
            .iter()
            .map(|name| {
                name.as_text()
                    .cloned()
                    .ok_or_else(|| Self::wrong("missing", "an array of strings", name))
            })
            .collect()
    }

    fn path(&self) -> Result<StepPath, HistoryError> {
        let value = self.value("path")?;
        let items = value.as_array().ok_or_else(|| Self::wrong("path", "an array", value))?;
        let items: Result<Vec<PathItem>, HistoryError> = items
            .values()
            .iter()
            .map(|item| {
                let object = item
                    .as_object()
                    .ok_or_else(|| Self::wrong("path", "an array of objects", item))?;
                let m = Members {
                    flow: self.flow,
                    object,
                    keys: Keys::Long,
                };
                let child = if object.contains_key("branch") {
                    Child::Branch(m.small("branch")?)
                } else if object.contains_key("iteration") {
                    Child::Iteration(m.small("iteration")?)
                } else if m.value("arm")?.as_str() == Some("default") {
                    Child::Arm(None)
                } else {
                    Child::Arm(Some(m.small("arm")?))
                };
                Ok(PathItem {
                    step: m.step("step")?,
                    child,
                })
            })
            .collect();
        items.map(StepPath::from)
    }

    fn exit(&self) -> Result<Exit, HistoryError> {
        if self.get("error").is_some() {
            self.failure().map(Exit::Failed)
        } else if self.get("cancelled").is_some() {
            Ok(Exit::Cancelled)
        } else {
            Ok(Exit::Done)
        }
    }

    pub(super) fn detail(&self, kind: &str) -> Result<EventKind, HistoryError> {
        Ok(match kind {
            "StepEntered" => EventKind::StepEntered {
                settings: self.maybe("settings", Self::settings)?,
            },
            "StepStarted" => EventKind::StepStarted {
                attempt: self.small("attempt")?,
                input: self.maybe("input", Self::any)?,
                missing: self.missing()?,
                bounds: self.bounds()?,
            },
            "StepSucceeded" => EventKind::StepSucceeded {
                output: self.maybe("output", Self::any)?,
                missing: self.missing()?,
            },
            "StepFailed" => EventKind::StepFailed {
                failure: self.failure()?,
                attempt: self.small("attempt")?,
            },
            "StepExited" => EventKind::StepExited {
                goto: self.maybe("goto", Self::step)?,
                caught: self.maybe("caught", Self::any)?,
                missing: self.missing()?,
            },
            "BranchEntered" => EventKind::BranchEntered {
                branch: self.small("branch")?,
                deps: self.maybe("deps", Self::owned_object)?,
            },
            "BranchExited" => EventKind::BranchExited(self.exit()?),
            "IterationEntered" => EventKind::IterationEntered {
                index: self.small("index")?,
                item: self.any("item")?,
            },
            "IterationExited" => EventKind::IterationExited(self.exit()?),
            "ChoiceTaken" => EventKind::ChoiceTaken {
                arm: match self.value("arm")? {
                    Value::Null => None,
                    Value::String(_) => Some(None),
                    _ => Some(Some(self.small("arm")?)),
                },
            },
            "RetryScheduled" => EventKind::RetryScheduled {
                policy: self.small("policy")?,
                attempt: self.small("attempt")?,
                delay: self.millis("delayMs")?,
                due: self.time("due")?,
                value: self.maybe("value", Self::any)?,
            },
            "PollScheduled" => EventKind::PollScheduled {
                call: self.small("call")?,
                due: self.time("due")?,
            },
            "WaitStarted" => EventKind::WaitStarted {
                until: self.time("until")?,
            },
            "TimerFired" => EventKind::TimerFired { of: self.event("of")? },
            "RollbackStarted" => EventKind::RollbackStarted { of: self.event("of")? },
            "RollbackSucceeded" => EventKind::RollbackSucceeded,
            "RollbackFailed" => EventKind::RollbackFailed {
                failure: self.failure()?,
                original: self.maybe("original", Self::failure_at)?,
            },
            other => return self.call_detail(other),
        })
    }

    fn call_detail(&self, kind: &str) -> Result<EventKind, HistoryError> {
        Ok(match kind {
            "TaskScheduled" => EventKind::TaskScheduled(Box::new(ScheduledCall {
                resource: self.text("resource")?,
                pattern: self.word("pattern", "pattern", Pattern::parse)?,
                attempt: self.small("attempt")?,
                call: self.small("call")?,
                params: self.maybe("params", Self::any)?,
                timeout_at: self.maybe("timeoutAt", Self::time)?,
                timeout: self.maybe("timeoutMs", Self::millis)?,
                wait: self.maybe("waitMs", Self::millis)?,
                heartbeat: self.maybe("heartbeatMs", Self::millis)?,
                priority: self.maybe("priority", Self::priority)?,
            })),
            "TaskSubmitted" => EventKind::TaskSubmitted {
                receipt: self.maybe("receipt", Self::any)?,
                execution: self.maybe("executionId", Self::text)?,
                version: self.maybe("version", Self::number)?,
            },
            "TaskSubmitFailed" => {
                let failure = self.failure()?;
                EventKind::TaskSubmitFailed {
                    not_sent: self.not_sent(&failure)?,
                    failure,
                }
            }
            "TaskSucceeded" => EventKind::TaskSucceeded {
                result: self.any("result")?,
                worker: self.maybe("worker", Self::text)?,
                held_time: self.maybe("heldTime", Self::time)?,
            },
            "TaskFailed" => {
                let failure = self.failure()?;
                EventKind::TaskFailed {
                    retry_after: self.maybe("retryAfter", Self::seconds)?,
                    not_sent: self.not_sent(&failure)?,
                    failure,
                    holder: self.holder()?,
                }
            }
            "TaskTimedOut" => EventKind::TaskTimedOut {
                error: self.text("error")?,
                redeliver: self.maybe("redeliver", Self::small)?,
                holder: self.holder()?,
            },
            "TaskCancelled" => EventKind::TaskCancelled {
                of: self.event("of")?,
                reason: self.word("reason", "reason to cancel a call", CancelReason::parse)?,
            },
            "LateResultIgnored" => EventKind::LateResultIgnored {
                of: self.event("of")?,
                code: self.word("code", "code of a late result", LateResultCode::parse)?,
            },
            "TaskStarted" => EventKind::TaskStarted,
            other => return self.execution_detail(other),
        })
    }

    /// A call: its execution, and its event.
    pub(super) fn call_of(&self, key: &str) -> Result<Parent, HistoryError> {
        let of = Members {
            flow: self.flow,
            object: self.object(key)?,
            keys: Keys::Long,
        };
        Ok(Parent {
            execution: of.text("execution")?,
            event: of.event("event")?,
        })
    }

    fn execution_detail(&self, kind: &str) -> Result<EventKind, HistoryError> {
        Ok(match kind {
            "ExecutionStarted" => EventKind::ExecutionStarted(Box::new(StartRecord {
                flow: self.text("flow")?,
                version: self.number("version")?,
                definition_hash: self.text("definitionHash")?,
                machine: self.machine()?,
                name: self.text("name")?,
                input: self.any("input")?,
                seed: self.number("seed")?,
                labels: self.maybe("labels", Self::owned_object)?,
                parent: self.maybe("parent", Self::call_of)?,
                tokens: self.maybe("tokens", Self::grants)?.unwrap_or_default(),
                terms: self.start_terms()?,
            })),
            "ExecutionStopped" => EventKind::ExecutionStopped {
                failure: self.failure()?,
                by: self.maybe("by", Self::text)?,
            },
            "ExecutionTimedOut" => EventKind::ExecutionTimedOut {
                drain: self.maybe("drain", Self::truth)?.unwrap_or(false),
            },
            "ExecutionSucceeded" => EventKind::ExecutionSucceeded {
                output: self.any("output")?,
            },
            "ExecutionFailed" => EventKind::ExecutionFailed {
                failure: self.failure()?,
                step: match self.text("step")?.as_str() {
                    "" => None,
                    name => Some(self.step_named(name)?),
                },
            },
            "ManualRequested" => EventKind::ManualRequested(self.failure()?),
            "ManualResolved" => EventKind::ManualResolved(Box::new(Resolution {
                decision: self.decision()?,
                by: self.text("by")?,
                note: self.maybe("note", Self::text)?,
            })),
            "ExecutionRedriven" => EventKind::ExecutionRedriven {
                from: self.event("from")?,
                steps: self.steps()?,
                by: self.text("by")?,
                inputs: self.maybe("inputs", Self::edits)?.unwrap_or_default(),
                definition: self.maybe("version", Self::new_definition)?,
            },
            "RollbackSkipped" => EventKind::RollbackSkipped {
                of: self.event("of")?,
                by: self.text("by")?,
                cause: self.text("cause")?,
            },
            "ExecutionPaused" | "ExecutionResumed" => self.pause(kind)?,
            "ExecutionReordered" => self.new_order()?,
            "ExecutionForked" => EventKind::ExecutionForked {
                execution: self.text("execution")?,
                event: self.event("event")?,
                name: self.text("name")?,
                by: self.maybe("by", Self::text)?,
            },
            "TurnContinued" => EventKind::TurnContinued,
            other => return Err(error(format!("there is no event type `{other}`"))),
        })
    }

    /// The version of the machine that a history needs.
    fn machine(&self) -> Result<u32, HistoryError> {
        let needed = self.small("machine")?;
        if needed > MACHINE_VERSION {
            let message = format!(
                "the history needs version {needed} of the machine (`machine`), this program has version {MACHINE_VERSION}: \
                 read it with a newer program"
            );
            return Err(error(message));
        }
        Ok(needed)
    }

    /// Reads a list of objects.
    fn each<T>(
        &self,
        key: &str,
        read: impl Fn(&Members<'_>) -> Result<T, HistoryError>,
    ) -> Result<Vec<T>, HistoryError> {
        let value = self.value(key)?;
        let items = value.as_array().ok_or_else(|| Self::wrong(key, "an array", value))?;
        let read_item = |item: &Value| {
            let object = item
                .as_object()
                .ok_or_else(|| Self::wrong(key, "a list of objects", item))?;
            read(&Members {
                flow: self.flow,
                object,
                keys: Keys::Long,
            })
        };
        items.values().iter().map(read_item).collect()
    }

    fn edits(&self, key: &str) -> Result<Vec<EditedInput>, HistoryError> {
        self.each(key, |of| {
            Ok(EditedInput {
                event: of.event("event")?,
                input: of.any("input")?,
            })
        })
    }

    fn new_definition(&self, key: &str) -> Result<NewDefinition, HistoryError> {
        let (version, hash) = (self.number(key)?, self.text("definitionHash")?);
        Ok(NewDefinition { version, hash })
    }

    fn grants(&self, key: &str) -> Result<Vec<TokenGrant>, HistoryError> {
        self.each(key, |of| {
            Ok(TokenGrant {
                at: Pointer::parse(&of.text("at")?).map_err(|problem| error(format!("`at`: {problem}")))?,
                execution: of.text("execution")?,
                call: of.event("event")?,
            })
        })
    }

    fn steps(&self) -> Result<Vec<StepId>, HistoryError> {
        let value = self.value("steps")?;
        let names = value
            .as_array()
            .ok_or_else(|| Self::wrong("steps", "an array", value))?;
        let read = |name: &Value| self.step_named(name.as_str().unwrap_or_default());
        names.values().iter().map(read).collect()
    }
}
