//! Why executions do not go on, in the short form of lists. No history is read for it.

use super::queue_waits::{because, tell_lease, tell_queue};
use crate::shapes;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::Status;
use starbridge_node::node::{FineReason, FineReasons, Node};
use starbridge_ports::{ExecutionRecord, StoreError, TaskLease, WaitingReason};
use starbridge_runtime::QueueView;
use std::collections::HashMap;

/// How many levels of children are asked for their own reason.
const DEPTH: u32 = 4;

/// Why one execution of a list does not go on.
pub(super) struct Brief {
    pub(super) reason: WaitingReason,
    /// The key, the flow, the queue, the step, or the execution.
    of: Option<Text>,
    /// The reason in the form of the API.
    shape: Object,
}

/// The reasons of the executions of a list. Data of flows and queues is read once.
pub(super) struct Briefs<'a> {
    node: &'a Node,
    reasons: FineReasons<'a>,
    queues: HashMap<Text, QueueView>,
}

impl<'a> Briefs<'a> {
    pub(super) fn new(node: &'a Node) -> Self {
        Self {
            node,
            reasons: FineReasons::new(node.store().as_ref()),
            queues: HashMap::new(),
        }
    }

    /// Why it does not go on; `None` if it has ended, or if an earlier version let it fall asleep
    /// without recording why.
    pub(super) fn of(&mut self, id: &str, record: &ExecutionRecord) -> Result<Option<Brief>, StoreError> {
        self.brief(id, record, DEPTH)
    }

    fn brief(&mut self, id: &str, record: &ExecutionRecord, depth: u32) -> Result<Option<Brief>, StoreError> {
        if record.ended.is_some() || record.status.is_ended() {
            return Ok(None);
        }
        let told_of_record = || {
            let shape = shapes::reason_of(id, record)?.as_object()?.clone();
            let reason = shape.get("reason")?.as_str().and_then(WaitingReason::parse)?;
            let of = record.waits.as_ref().map(|waits| waits.of.clone());
            Some(Brief { reason, of, shape })
        };
        if record.broken.is_some() || record.paused.is_some() {
            return Ok(told_of_record());
        }
        if matches!(record.status, Status::Queued | Status::Blocked) {
            return self.of_admission(id, record).map(Some);
        }
        match record.waiting_reason() {
            Some(WaitingReason::Queue) => self.of_queue(id, record),
            Some(WaitingReason::Child) => self.of_child(record, depth),
            // Other steps of it go on, or an earlier version let it fall asleep.
            Some(reason @ WaitingReason::Manual) if record.waits.is_none() => {
                let text = "a step waits for an operator's decision".to_owned();
                Ok(Some(brief(reason, None, text, Some(format!("starbridge why {id}")))))
            }
            Some(reason @ WaitingReason::Running) => {
                let text = "it computes, or the answer of a call is out".to_owned();
                Ok(Some(brief(reason, None, text, None)))
            }
            _ => Ok(told_of_record()),
        }
    }

    fn of_queue(&mut self, id: &str, record: &ExecutionRecord) -> Result<Option<Brief>, StoreError> {
        let Some(waits) = &record.waits else {
            return Ok(None);
        };
        let name = waits.of.clone();
        let task = self.node.store().task_of(id, None)?;
        if let Some((_, Some(lease))) = &task {
            let lease = TaskLease {
                worker: self.node.shown_worker(lease.worker.clone()),
                ..lease.clone()
            };
            let text = format!("the worker `{}` holds its task in the queue `{name}`", lease.worker);
            let mut brief = brief(WaitingReason::Worker, Some(name), text, None);
            tell_lease(&lease, &mut brief.shape);
            return Ok(Some(brief));
        }
        let view = match self.queues.get(&name) {
            Some(view) => view,
            None => {
                let view = self.node.queue_now(&name);
                self.queues.entry(name.clone()).or_insert(view)
            }
        };
        let because = because(id, view);
        let text = format!("its task is in the queue `{name}`: {}", because.text);
        let mut brief = brief(WaitingReason::Queue, Some(name), text, Some(because.act.clone()));
        tell_queue(view, &because, &mut brief.shape);
        if let Some(until) = task.and_then(|(task, _)| task.wait_until) {
            brief.shape.insert("waitUntil".into(), until.to_string().into());
        }
        Ok(Some(brief))
    }

    /// A child, with its own reason.
    fn of_child(&mut self, record: &ExecutionRecord, depth: u32) -> Result<Option<Brief>, StoreError> {
        let Some(waits) = &record.waits else {
            return Ok(None);
        };
        let child = waits.of.clone();
        let of_child = self.node.store().record(&child)?;
        let status = of_child.as_ref().map_or("notThere", |record| record.status.as_str());
        let own = match (&of_child, depth) {
            (Some(record), 1..) => self.brief(&child, record, depth - 1)?,
            _ => None,
        };
        let own = own.map(|own| own.shape);
        let said = |key: &str| own.as_ref()?.get(key)?.as_str().map(str::to_owned);
        let text = match said("text") {
            Some(why) => format!("its child {child} is {status}: {why}"),
            None => format!("its child {child} is {status}"),
        };
        let act = said("act").unwrap_or_else(|| format!("starbridge why {child}"));
        let mut brief = brief(WaitingReason::Child, Some(child.clone()), text, Some(act));
        brief.shape.insert("execution".into(), child.into());
        brief.shape.insert("childStatus".into(), status.into());
        if let Some(own) = own {
            brief.shape.insert("waitingFor".into(), own.into());
        }
        Ok(Some(brief))
    }

    /// Why it waits to be admitted.
    fn of_admission(&mut self, id: &str, record: &ExecutionRecord) -> Result<Brief, StoreError> {
        let FineReason { reason, of, pool } = self.reasons.of_admission(id)?;
        let shown = of.as_deref().unwrap_or_default();
        let text = match reason {
            WaitingReason::Dependency => format!("the execution `{shown}`, which it waits for, has not ended"),
            WaitingReason::Key => {
                let pool = pool.unwrap_or_default();
                format!("it stands in the line of the key `{shown}` in the pool `{pool}`")
            }
            WaitingReason::FlowPaused => format!("the flow `{shown}` is paused"),
            WaitingReason::FlowLimit => format!("as many executions of the flow `{shown}` run as may"),
            _ => "whether it may run is not decided yet".to_owned(),
        };
        let mut brief = brief(reason, of, text, Some(format!("starbridge why {id}")));
        brief.shape.insert("since".into(), record.asked().to_string().into());
        if let Some(until) = record.wake_at {
            brief.shape.insert("until".into(), until.to_string().into());
        }
        Ok(brief)
    }
}

fn brief(reason: WaitingReason, of: Option<Text>, text: String, act: Option<String>) -> Brief {
    let mut shape = Object::new();
    shape.insert("reason".into(), reason.as_str().into());
    shape.insert("text".into(), text.into());
    if let Some(of) = &of {
        shape.insert("of".into(), of.clone().into());
    }
    shape.insert("act".into(), act.map_or(Value::Null, Value::from));
    Brief { reason, of, shape }
}

impl Brief {
    /// The reason, to compare it with what is asked for.
    pub(super) fn fine(&self) -> FineReason {
        FineReason {
            reason: self.reason,
            of: self.of.clone(),
            pool: None,
        }
    }

    /// Adds it to the form of an execution.
    pub(super) fn tell(self, shape: &mut Object) {
        shape.insert("waitingFor".into(), self.shape.into());
    }

    pub(super) fn into_value(self) -> Value {
        self.shape.into()
    }
}
