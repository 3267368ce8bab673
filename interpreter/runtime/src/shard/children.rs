//! Child flows: executions that a task of another one starts (section "tasks", `flow:`), and the messages between
//! parents and children. A family belongs to one shard. Messages that must not be lost stay in the
//! store until they are handled.

use super::child_names::{default_name, given_name};
use super::child_terms::{read_terms, unknown_dependency};
use super::execution_ids::parent_of;
use super::handed_down::{CALLBACK_TOKEN, call_to_report, handed_down};
use super::loaded::Origin;
use super::posted::posted;
use super::{Shard, StartError, StartRequest};
use starbridge_flow::graph::{FaultKind, Pattern, Pointer};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{CallPart, CallToSend, Event, EventId, EventKind, Parent, Rejection, Signal, Status};
use starbridge_ports::{Message, MessageBody, MessageId, Refusal};

/// Something for an execution, until the execution takes it.
pub(super) enum Incoming {
    Signal(Box<Signal>),
    /// The execution that this call should start can't be started.
    Refused(EventId, Refused),
    /// Start the execution for this call, unless it has begun.
    Start {
        /// The id of the execution that the call belongs to.
        parent: Text,
        /// The call, with the child's input.
        call: Box<CallToSend>,
        /// Whether the default name of the child is taken.
        taken: bool,
    },
    /// Roll the execution back, for this call.
    Undo(Parent),
    /// A message from the store.
    Message(Message),
}

/// Why a child can't be started: an error and its cause, and whether the task counts as called.
pub(super) struct Refused {
    error: FaultKind,
    cause: String,
    not_sent: bool,
}

impl Refused {
    fn new(error: FaultKind, cause: String) -> Self {
        Self {
            error,
            cause,
            not_sent: false,
        }
    }

    /// There is no such flow, so nothing was called.
    fn no_such_flow(cause: String) -> Self {
        Self {
            error: FaultKind::Resource,
            cause,
            not_sent: true,
        }
    }
}

/// How many turns are decided before they are appended. Executions that begin others without end would otherwise decide
/// twice as many each time, and keep what comes from outside waiting.
const TURNS_TOGETHER: usize = 1_024;

impl Shard {
    /// Delivers what was posted, until so many turns are decided that they make a batch. Returns an execution that is
    /// not loaded and something is for.
    pub(super) fn take_incoming(&mut self, now: Timestamp) -> Option<Text> {
        while self.pending.len() < TURNS_TOGETHER
            && let Some((to, _)) = self.inbox.front()
        {
            if !self.owns(to) {
                // The store has what must not be lost, for its owner.
                self.inbox.pop_front();
                continue;
            }
            if self.is_aside(to) || self.is_held_off(to) {
                if let Some((to, incoming)) = self.inbox.pop_front() {
                    self.keep_incoming(&to, incoming);
                }
                continue;
            }
            let here = self.executions.contains_key(to) || self.waits_to_begin(to);
            if !here && self.absent.as_ref() != Some(to) {
                return Some(to.clone());
            }
            let (to, incoming) = self.inbox.pop_front()?;
            self.absent = None;
            match incoming {
                // A signal for a call that is over changes nothing: the receiver's state decides.
                Incoming::Signal(signal) => drop(self.signal(&to, *signal, now)),
                Incoming::Refused(call, refused) => self.take_refusal(&to, call, refused, now),
                Incoming::Start { parent, call, taken } => {
                    self.take_child_start(&to, here, &parent, (&call, taken), now);
                }
                Incoming::Undo(parent) if self.holds_back(&parent) => {}
                Incoming::Undo(parent) => self.take_undo(&to, parent, now),
                Incoming::Message(message) if here => self.take_message(message, now),
                Incoming::Message(message) => self.take_message_of_absent(message),
            }
        }
        None
    }

    /// Handles messages posted to an execution that does not exist.
    pub fn absent(&mut self, execution: Text) {
        self.absent = Some(execution);
    }

    /// Leaves messages posted to an execution to the store, because another process has the
    /// execution. That process finds messages there.
    pub fn elsewhere(&mut self, execution: &str) {
        self.inbox.retain(|(to, _)| to != execution);
    }

    fn refuse_call(&mut self, parent: Text, call: EventId, refused: Refused) {
        self.inbox.push_back((parent, Incoming::Refused(call, refused)));
    }

    fn take_refusal(&mut self, parent: &Text, call: EventId, refused: Refused, now: Timestamp) {
        let failed = Signal::Failed {
            call,
            error: self.error_name(parent, &refused.error),
            cause: refused.cause,
            retry_after: None,
            not_sent: refused.not_sent,
            holder: None,
        };
        let _ = self.signal(parent, failed, now);
    }

    pub(super) fn send_signal(&mut self, to: Text, signal: Signal) {
        self.inbox.push_back((to, Incoming::Signal(Box::new(signal))));
    }

    /// Posts a durable message to its receiver.
    pub fn deliver(&mut self, message: Message) {
        self.inbox
            .push_back((message.id.to.clone(), Incoming::Message(message)));
    }

    /// Posts the messages that the store has kept.
    pub fn redeliver(&mut self, messages: Vec<Message>) {
        // Calls that start children go first, so that a parent hears that a child began before it hears how the child
        // ended.
        self.release_what_waits_for_nothing();
        messages.into_iter().for_each(|message| self.deliver(message));
    }

    /// Whether a call starts a child or tells one to roll itself back.
    pub(super) fn is_for_child(&self, execution: &Text, call: &CallToSend) -> bool {
        let started = self.state(execution).and_then(|state| state.started());
        let outside = self.outside.as_ref().zip(started);
        if outside.is_some_and(|(outside, started)| outside(started, call)) {
            return false;
        }
        call.child.is_some()
            || self.posted_to(call).is_some()
            || self
                .resources
                .resolve(&call.resource)
                .is_some_and(|resolved| resolved.target.starts_with("flow:"))
    }

    /// Records a call that waits for a child.
    pub(super) fn note_sync(&mut self, execution: &Text, call: &CallToSend) {
        if call.pattern == Pattern::Sync && call.child.is_none() && self.is_for_child(execution, call) {
            self.sync_calls.insert((execution.clone(), call.call));
        }
    }

    pub(super) fn id_of_child(&mut self, parent: Parent) -> Text {
        let request = StartRequest {
            parent: Some(parent),
            ..StartRequest::default()
        };
        (self.id_source)(&request, Timestamp::default()).id
    }

    pub(super) fn call_child(&mut self, execution: &Text, call: Box<CallToSend>) {
        let parent = parent_of(execution, call.call);
        match call.child.clone() {
            Some(child) => self.inbox.push_back((child, Incoming::Undo(parent))),
            None => {
                let child = self.id_of_child(parent);
                let (parent, taken) = (execution.clone(), false);
                self.inbox.push_back((child, Incoming::Start { parent, call, taken }));
            }
        }
    }

    fn take_child_start(
        &mut self,
        child: &Text,
        here: bool,
        parent: &Text,
        (call, taken): (&CallToSend, bool),
        now: Timestamp,
    ) {
        // It may have been given up meanwhile.
        if !self.state(parent).is_some_and(|state| state.is_to_be_sent(call.call)) {
            return;
        }
        if here {
            if let Some((parent, signal)) = self.started_signal(child) {
                let _ = self.signal(&parent, signal, now);
            }
            return;
        }
        if self.holds_back(&parent_of(parent, call.call)) {
            return;
        }
        let started = self
            .child_request(parent, call, taken)
            .and_then(|request| self.start_child(request, now));
        if let Err(refused) = started {
            // If the child had begun, it would be loaded. So this holds for an earlier sending too.
            self.refuse_call(parent.clone(), call.call, refused);
        }
    }

    fn start_child(&mut self, request: StartRequest, now: Timestamp) -> Result<(), Refused> {
        let flow = request.flow.clone();
        if let Some(cause) = unknown_dependency(&request, &self.flows) {
            return Err(Refused::new(FaultKind::Input, cause));
        }
        let started = self.start(request, now).map(drop);
        started.map_err(|error| match error {
            StartError::NoSuchFlow => Refused::no_such_flow(format!("there is no flow `{flow}`")),
            StartError::InvalidInput(_) => Refused::new(FaultKind::Input, error.to_string()),
            StartError::InvalidKey(_) | StartError::NotSupported(_) => {
                Refused::new(FaultKind::Input, error.to_string())
            }
            StartError::TooManyWaiting(_) => Refused::new(FaultKind::Runtime, error.to_string()),
            StartError::Refused(_) => Refused::new(FaultKind::TooLarge, error.to_string()),
            StartError::Panicked(_) => Refused::new(FaultKind::Runtime, error.to_string()),
        })
    }

    /// The start that a call asks for. `taken`: whether the default name is taken.
    fn child_request(&self, execution: &Text, call: &CallToSend, taken: bool) -> Result<StartRequest, Refused> {
        if let Some(queue) = self.posted_to(call) {
            let name = self.default_name_of_child(execution, call, taken);
            return Ok(self.start_of_message(execution, call, &queue, name));
        }
        let params = call.params.as_ref().and_then(Value::as_object);
        let param = |name: &str| params.and_then(|params| params.get(name));
        let resolved = self.resources.resolve(&call.resource);
        let target = resolved.map(|resolved| resolved.target).unwrap_or_default();
        let named = match target.strip_prefix("flow:").unwrap_or_default() {
            "" => param("FlowName").and_then(Value::as_str).unwrap_or_default(),
            name => name,
        };
        let invalid = |cause: String| Refused::new(FaultKind::Input, cause);
        let report_to = match param(CALLBACK_TOKEN) {
            None => None,
            Some(_) => Some(call_to_report(execution, call).map_err(invalid)?),
        };
        let depth = self.depth_of_child(execution, call)?;
        let outer = self.state(execution).and_then(|state| state.started());
        let (flow, version) = match (named, named.split_once('@')) {
            ("$self", _) => outer
                .map(|started| (started.flow.clone(), Some(started.version)))
                .unwrap_or_default(),
            (name, None) => (Text::from(name), None),
            (_, Some((name, version))) => (Text::from(name), Some(version.parse().unwrap_or(0))),
        };
        let (input, tokens) = match param("Input") {
            None => (
                call.input.clone(),
                handed_down(call, CallPart::Input, &Pointer::default()),
            ),
            Some(input @ Value::Object(_)) => (
                input.clone(),
                handed_down(call, CallPart::Params, &Pointer::of(["Input"])),
            ),
            Some(Value::String(text)) => {
                let input = serde_json::from_str::<Object>(text)
                    .map_err(|error| invalid(format!("the child's `Input` is no JSON object: {error}")))?;
                (Value::from(input), Vec::new())
            }
            Some(other) => {
                let kind = other.kind();
                return Err(invalid(format!("the child's `Input` is {kind}, not an object")));
            }
        };
        let name = match param("ExecutionName") {
            None => self.default_name_of_child(execution, call, taken),
            Some(name) => Some(given_name(name).map_err(invalid)?),
        };
        let mut request = StartRequest {
            flow,
            version,
            input,
            name,
            labels: outer.and_then(|started| started.labels.clone()),
            traceparent: outer.and_then(|started| started.terms.traceparent.clone()),
            report_to,
            parent: Some(parent_of(execution, call.call)),
            tokens,
            awaited: call.pattern == Pattern::Sync,
            depth,
            ..StartRequest::default()
        };
        if let Some(params) = params {
            read_terms(params, &mut request).map_err(invalid)?;
        }
        Ok(request)
    }

    /// How many executions, one above the other, wait for the child of this call. A call that does not wait begins at
    /// 0, so a flow may start itself as often as it likes.
    fn depth_of_child(&self, execution: &Text, call: &CallToSend) -> Result<u32, Refused> {
        if call.pattern == Pattern::RequestResponse {
            return Ok(0);
        }
        let outer = self.executions.get(execution).map_or(0, |live| live.origin.depth);
        let most = self.limits.child_depth;
        match outer.checked_add(1).filter(|depth| *depth <= most) {
            Some(depth) => Ok(depth),
            None => Err(Refused::new(
                FaultKind::Limit,
                format!("{most} child flows wait for one another already, each started by the one before"),
            )),
        }
    }

    /// The origin of an execution that is about to begin. Whoever makes ids may ask twice: the second time is refused.
    pub(super) fn origin_of_new(&self, id: &Text, request: &StartRequest) -> Result<Origin, StartError> {
        let is_here = self.executions.contains_key(id) || self.waits_to_begin(id);
        match request.id.is_some() && is_here {
            true => Err(StartError::Refused(Rejection::AlreadyStarted)),
            false => Ok(self.origin(id, request)),
        }
    }

    fn origin(&self, id: &Text, request: &StartRequest) -> Origin {
        let mut origin = Origin {
            family: vec![id.clone()],
            root: None,
            depth: request.depth,
            awaited: request.awaited,
            ..Origin::default()
        };
        let Some(parent) = &request.parent else {
            return origin;
        };
        let outer = self.executions.get(&parent.execution).map(|live| &live.origin);
        match outer {
            Some(outer) => {
                let most = self.limits.child_depth as usize;
                origin.family.extend(outer.family.iter().take(most).cloned());
            }
            None => origin.family.push(parent.execution.clone()),
        }
        let root = outer.and_then(|outer| outer.root.as_ref());
        origin.root = Some(root.unwrap_or(&parent.execution).clone());
        origin
    }

    /// Tells the parent that a child has begun, or waits to: the call goes on, or begins to wait.
    pub(super) fn notify_parent_of_start(&mut self, child: &Text) {
        let begun = self.state(child).and_then(|state| state.started());
        if begun.is_some_and(|started| started.terms.waited.is_some()) {
            // The parent heard of it when it began to wait.
            return;
        }
        if let Some((parent, signal)) = self.started_signal(child) {
            self.send_signal(parent, signal);
        }
    }

    /// Tells the parent that a child has begun, if it may not know.
    pub(crate) fn repeat_start_to_parent(&mut self, child: &Text) {
        if self.state(child).is_some_and(|state| !state.status().is_ended()) {
            self.notify_parent_of_start(child);
        }
    }

    /// The parent of a child, and the signal that the child has begun.
    fn started_signal(&self, child: &Text) -> Option<(Text, Signal)> {
        let started = self.start_of(child)?;
        let parent = started.parent.clone()?;
        let call = parent.event;
        let outer = self.executions.get(&parent.execution)?;
        let asked = outer.state.call_to_send(&outer.flow, call)?;
        let signal = match asked.pattern {
            Pattern::RequestResponse if self.posted_to(&asked).is_some() => posted(&parent.execution, &asked, child),
            Pattern::RequestResponse => begun(call, child, &started.name),
            Pattern::Sync | Pattern::WaitForCallback => submitted(call, child.clone(), started.version),
        };
        Some((parent.execution, signal))
    }

    /// Tells the parent that a child could not be started because its name is taken. If the call gave no name, the
    /// child is started with another one: an execution from outside must not block it.
    pub(super) fn notify_parent_of_refusal(&mut self, child: &Text, refusal: &Refusal) {
        let Some(started) = self.start_of(child) else {
            return;
        };
        let (Some(parent), Refusal::Exists { execution, keyed, .. }) = (started.parent.clone(), refusal) else {
            return;
        };
        if let (Some(name), Some(key)) = (keyed, &started.terms.once_key) {
            let (flow, key) = (started.flow.clone(), key.clone());
            return self.answer_keyed_call(parent, (execution, name), &flow, &key);
        }
        let call = self.unnamed(&parent, &started.name).filter(|_| execution != child);
        if let Some(call) = call {
            let (parent, taken) = (parent.execution, true);
            let call = Box::new(call);
            self.inbox
                .push_back((child.clone(), Incoming::Start { parent, call, taken }));
            return;
        }
        let cause = format!(
            "the flow `{}` has an execution named `{}` already",
            started.flow, started.name
        );
        self.refuse_call(parent.execution, parent.event, Refused::new(FaultKind::Exists, cause));
    }

    /// Answers a call for a child with a `OnceKey` that another execution has. A call that does not
    /// wait goes on with that execution. That execution is a child of another call, so it does not
    /// report its end to this one.
    fn answer_keyed_call(&mut self, parent: Parent, (execution, name): (&Text, &Text), flow: &Text, key: &Text) {
        let outer = self.executions.get(&parent.execution);
        let call = outer.and_then(|outer| outer.state.call_to_send(&outer.flow, parent.event));
        if call.is_some_and(|call| call.pattern == Pattern::RequestResponse) {
            let signal = begun(parent.event, execution, name);
            return self.send_signal(parent.execution, signal);
        }
        let cause = format!(
            "the flow `{flow}` has an execution with the key `{key}` already, `{execution}`, and only its own call can wait for it: \
             start it with `requestResponse`, or leave out `OnceKey`"
        );
        self.refuse_call(parent.execution, parent.event, Refused::new(FaultKind::Exists, cause));
    }

    /// The call that started a child, if the child has the default name.
    fn unnamed(&self, parent: &Parent, name: &Text) -> Option<CallToSend> {
        let outer = self.executions.get(&parent.execution)?;
        let call = outer.state.call_to_send(&outer.flow, parent.event)?;
        let params = call.params.as_ref().and_then(Value::as_object);
        let named =
            params.is_some_and(|params| params.get("ExecutionName").is_some()) && self.posted_to(&call).is_none();
        let default = default_name(&outer.state.started()?.name, &parent.execution, parent.event);
        (!named && default == *name).then_some(call)
    }

    /// Rolls the child back.
    fn take_undo(&mut self, child: &Text, parent: Parent, now: Timestamp) {
        match self.state(child).map(|state| state.status()) {
            Some(Status::Succeeded) => {
                self.undoing.insert(child.clone(), (parent.execution, parent.event));
                if self.waits_to_go_on(child) {
                    return;
                }
                // It has succeeded, so it can be undone.
                let _ = self.signal(child, stop_with_parent(), now);
            }
            Some(Status::RollingBack) => {
                self.undoing.insert(child.clone(), (parent.execution, parent.event));
            }
            Some(Status::RollbackFailed) => {
                let failed = self.not_undone(parent.event, child);
                self.send_signal(parent.execution, failed);
            }
            None if self.waits_to_begin(child) => {
                // It takes a stop.
                let _ = self.signal(child, stop_with_parent(), now);
                self.send_signal(parent.execution, undone(parent.event));
            }
            // It is no longer known whether it has done something lasting.
            None => {
                let cause = format!("the child `{child}` was deleted before it was undone");
                let error = self.error_name(&parent.execution, &FaultKind::Resource);
                self.send_signal(parent.execution, failed(parent.event, &error, &cause));
            }
            // It is rolled back already, or never did anything lasting.
            _ => self.send_signal(parent.execution, undone(parent.event)),
        }
    }

    fn not_undone(&self, call: EventId, child: &Text) -> Signal {
        let failure = self.state(child).and_then(|state| state.failure());
        let error = failure.map_or("", |failure| failure.error.as_str());
        failed(call, error, "the child could not be undone")
    }

    /// Tells the call that waits for a rollback of the child that the child has ended.
    pub(super) fn notify_parent_of_undo(&mut self, child: &Text, status: Status) {
        if let Some((execution, call)) = self.undoing.remove(child) {
            let signal = match status {
                Status::RollbackFailed => self.not_undone(call, child),
                // It had to be admitted, but that was stopped.
                Status::Succeeded => {
                    let error = self.error_name(child, &FaultKind::Stopped);
                    failed(call, &error, "the child was stopped before it was undone")
                }
                _ => undone(call),
            };
            self.send_signal(execution, signal);
        }
    }

    /// The messages that stop the children of calls given up in this turn. Children that no call
    /// waits for continue.
    pub(super) fn child_cancellations(&mut self, id: &Text, events: &[Event]) -> Vec<Message> {
        let mut words = Vec::new();
        for event in events {
            let call = match &event.detail {
                EventKind::TaskCancelled { of, .. } => *of,
                EventKind::TaskTimedOut { .. } => event.caused_by,
                _ => continue,
            };
            // From here on, no call waits for the child's end.
            if self.sync_calls.remove(&(id.clone(), call)) {
                words.push(Message {
                    id: MessageId {
                        from: id.clone(),
                        event: call,
                        to: self.id_of_child(parent_of(id, call)),
                    },
                    body: MessageBody::GivenUp,
                });
            }
        }
        words
    }
}

/// The result of a call that is complete once an execution was started.
fn begun(call: EventId, execution: &Text, name: &Text) -> Signal {
    let result: Object = [
        ("executionId".into(), execution.clone().into()),
        ("executionName".into(), name.clone().into()),
    ]
    .into_iter()
    .collect();
    Signal::Succeeded {
        call,
        result: result.into(),
        worker: None,
        held_time: None,
    }
}

pub(super) fn submitted(call: EventId, child: Text, version: u64) -> Signal {
    Signal::Submitted {
        call,
        receipt: None,
        execution: Some(child),
        version: Some(version),
    }
}

pub(super) fn failed(call: EventId, error: &str, cause: &str) -> Signal {
    Signal::Failed {
        call,
        error: error.to_owned(),
        cause: cause.to_owned(),
        retry_after: None,
        not_sent: false,
        holder: None,
    }
}

pub(super) fn stop(cause: &str) -> Signal {
    Signal::Stop {
        error: None,
        cause: cause.to_owned(),
        by: None,
        rollback: true,
        with_parent: false,
    }
}

/// The stop of a child whose parent is being undone.
fn stop_with_parent() -> Signal {
    Signal::Stop {
        error: None,
        cause: "the execution that started it is being undone".to_owned(),
        by: None,
        rollback: true,
        with_parent: true,
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
