//! Child flows: executions that a task of another one starts (section "tasks", `flow:`).

use super::{Outgoing, Shard, StartError, StartRequest};
use starbridge_fdl::graph::Pattern;
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::{Object, Text, Value};
use starbridge_machine::{CallToSend, EventId, Parent, Signal, Status};

impl Shard {
    /// Whether a call starts a child, or tells one to undo itself.
    pub(super) fn is_for_child(&self, execution: &Text, call: &CallToSend) -> bool {
        let started = self.state(execution).and_then(|state| state.started());
        let outside = self.outside.as_ref().zip(started);
        if outside.is_some_and(|(outside, started)| outside(started, call)) {
            return false;
        }
        call.child.is_some()
            || self
                .resources
                .resolve(&call.resource)
                .is_some_and(|resolved| resolved.target.starts_with("flow:"))
    }

    pub(super) fn call_child(&mut self, execution: &Text, call: &CallToSend, now: Timestamp) {
        if let Some(child) = &call.child {
            return self.undo_child(execution, call.call, child);
        }
        // Sent before: what was to be started is there already.
        let known = self.children.get(&(execution.clone(), call.call)).cloned();
        let started = match known {
            Some(child) => Ok(child),
            None => self.start_child(execution, call, now),
        };
        let signal = match started {
            Ok(child) => self.started_signal(call, &child),
            Err((error, cause)) => Signal::Failed {
                call: call.call,
                error,
                cause,
                retry_after: None,
            },
        };
        self.inbox.push_back((execution.clone(), signal));
    }

    fn started_signal(&self, call: &CallToSend, child: &Text) -> Signal {
        let started = self.state(child).and_then(|state| state.started());
        match call.pattern {
            Pattern::RequestResponse => {
                let name = started.map(|started| started.name.clone()).unwrap_or_default();
                let result: Object = [
                    ("executionId".into(), child.clone().into()),
                    ("executionName".into(), name.into()),
                ]
                .into_iter()
                .collect();
                Signal::Succeeded {
                    call: call.call,
                    result: result.into(),
                    worker: None,
                    held_time: None,
                }
            }
            Pattern::Sync | Pattern::WaitForCallback => Signal::Submitted {
                call: call.call,
                receipt: None,
                execution: Some(child.clone()),
                version: started.map(|started| started.version),
            },
        }
    }

    fn start_child(&mut self, execution: &Text, call: &CallToSend, now: Timestamp) -> Result<Text, (String, String)> {
        let refused = |error: &str, cause: String| (error.to_owned(), cause);
        let params = call.params.as_ref().and_then(Value::as_object);
        let param = |name: &str| params.and_then(|params| params.get(name));
        let target = self
            .resources
            .resolve(&call.resource)
            .map(|resolved| resolved.target)
            .unwrap_or_default();
        let named = match target.strip_prefix("flow:").unwrap_or_default() {
            "" => param("FlowName").and_then(Value::as_str).unwrap_or_default().to_owned(),
            name => name.to_owned(),
        };
        let (flow, version) = if named == "$self" {
            let started = self.state(execution).and_then(|state| state.started());
            let own = started.map(|started| (started.flow.clone(), Some(started.version)));
            own.unwrap_or_default()
        } else {
            match named.split_once('@') {
                None => (Text::from(named.as_str()), None),
                Some((name, version)) => (Text::from(name), Some(version.parse().unwrap_or(0))),
            }
        };
        let input = match param("Input") {
            None => call.input.clone(),
            Some(Value::Object(input)) => input.clone(),
            Some(Value::String(text)) => serde_json::from_str::<Object>(text).map_err(|error| {
                refused(
                    "FnF.InvalidInput",
                    format!("the child's `Input` is no JSON object: {error}"),
                )
            })?,
            Some(other) => {
                let cause = format!("the child's `Input` is {}, not an object", other.kind());
                return Err(refused("FnF.InvalidInput", cause));
            }
        };
        let name = param("ExecutionName").and_then(Value::as_text).cloned();
        let outer = self.state(execution).and_then(|state| state.started());
        let ours = outer.map(|started| Text::from(format!("{}-{}", started.name, call.call)));
        let request = StartRequest {
            flow: flow.clone(),
            version,
            input,
            name: name.or(ours),
            labels: outer.and_then(|started| started.labels.clone()),
            parent: Some(Parent {
                execution: execution.clone(),
                event: call.call,
            }),
        };
        let child = request.name.clone().unwrap_or_default();
        self.start(request, now).map_err(|error| match error {
            StartError::NoSuchFlow => refused("FnF.NoSuchResource", format!("there is no flow `{named}`")),
            StartError::NameTaken => refused(
                "fnf.ExecutionAlreadyExists",
                format!("the flow `{flow}` has an execution named `{child}` already"),
            ),
            StartError::InvalidInput(_) => refused("FnF.InvalidInput", error.to_string()),
            StartError::Refused(_) => refused("FnF.PayloadTooLarge", error.to_string()),
        })
    }

    /// The child undoes what it had done.
    fn undo_child(&mut self, execution: &Text, call: EventId, child: &Text) {
        let status = self.state(child).map(|state| state.status());
        match status {
            Some(Status::Succeeded | Status::RollingBack) => {}
            // It is undone already, or never did anything that stayed.
            _ => {
                let failed = status == Some(Status::RollbackFailed);
                let done = if failed {
                    self.not_undone(call, child)
                } else {
                    undone(call)
                };
                self.inbox.push_back((execution.clone(), done));
                return;
            }
        }
        self.undoing.insert(child.clone(), (execution.clone(), call));
        let stop = Signal::Stop {
            error: None,
            cause: "the execution that started it is being undone".to_owned(),
            by: None,
            rollback: true,
        };
        self.inbox.push_back((child.clone(), stop));
    }

    fn not_undone(&self, call: EventId, child: &Text) -> Signal {
        let failure = self.state(child).and_then(|state| state.failure());
        Signal::Failed {
            call,
            error: failure.map_or_else(String::new, |failure| failure.error.to_string()),
            cause: "the child could not be undone".to_owned(),
            retry_after: None,
        }
    }

    /// A call that is given up stops the child it waits for; one that did not wait leaves it alone.
    pub(super) fn cancel_child(&mut self, execution: &Text, call: EventId) {
        let Some(child) = self.children.get(&(execution.clone(), call)).cloned() else {
            return;
        };
        // From here on nobody waits for how it ends.
        if !self.sync_calls.remove(&(execution.clone(), call)) {
            return;
        }
        let stop = Signal::Stop {
            error: None,
            cause: "the task that waited for it was given up".to_owned(),
            by: None,
            rollback: true,
        };
        self.inbox.push_back((child, stop));
    }

    /// Whether the step of that call waits for its child to end.
    fn waits_for_child(&self, execution: &Text, call: EventId) -> bool {
        self.sync_calls.contains(&(execution.clone(), call))
    }

    /// An execution has ended: the call that waits for it gets its result or its error.
    pub(super) fn tell_parent(&mut self, child: &Text, status: Status) {
        let Some(state) = self.state(child) else {
            return;
        };
        if let Some((execution, call)) = self.undoing.get(child).cloned() {
            let signal = match status {
                Status::RollbackFailed => self.not_undone(call, child),
                _ => undone(call),
            };
            self.undoing.remove(child);
            self.inbox.push_back((execution, signal));
            return;
        }
        let Some(parent) = state.started().and_then(|started| started.parent.clone()) else {
            return;
        };
        if !self.waits_for_child(&parent.execution, parent.event) {
            return;
        }
        let call = parent.event;
        let signal = match (state.output(), state.failure()) {
            (Some(output), _) if status == Status::Succeeded => Signal::Succeeded {
                call,
                result: output.clone().into(),
                worker: None,
                held_time: None,
            },
            (_, failure) => Signal::Failed {
                call,
                error: failure.map_or_else(String::new, |failure| failure.error.to_string()),
                cause: failure.map_or_else(String::new, |failure| failure.cause.to_string()),
                retry_after: None,
            },
        };
        self.inbox.push_back((parent.execution, signal));
    }

    /// Notes which calls wait for a child, before what follows from them leaves.
    pub(super) fn note_sync(&mut self, outgoing: &Outgoing) {
        if let Outgoing::Send { execution, call } = outgoing
            && call.pattern == Pattern::Sync
        {
            self.sync_calls.insert((execution.clone(), call.call));
        }
    }
}

fn undone(call: EventId) -> Signal {
    Signal::Succeeded {
        call,
        result: Object::new().into(),
        worker: None,
        held_time: None,
    }
}
