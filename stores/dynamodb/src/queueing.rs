//! Waiting tasks and dead tasks: each kind is in one partition, which is read whole.
//!
//! Short-lived processes serve no workers, so this code is small rather than fast.

use crate::DynamoStore;
use crate::client::QueryRequest;
use crate::item::{Item, key_of, keys, text, text_of};
use crate::op::{Op, PRESENT};
use crate::payload;
use crate::table::{DEAD, TASKS};
use serde_json::{Value, json};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{DeadTask, Depth, QueuedTask, Queueing, ShardSet, StoreError, TaskLease, TaskLeaseChange};
use std::collections::BTreeMap;

/// The prefix of the range keys of an execution's tasks.
pub(crate) fn places(execution: &str) -> String {
    format!("{}#{execution}#", execution.len())
}

pub(crate) fn place(execution: &str, call: EventId) -> String {
    format!("{}{:020}", places(execution), call.0)
}

fn item(pk: &str, execution: &str, call: EventId, run_id: &str, content: &Value) -> Item {
    let mut item = keys(&(pk.to_owned(), place(execution, call)));
    item.insert("o".to_owned(), text(run_id));
    item.insert("task".to_owned(), payload::attribute(&content.to_string()));
    item
}

pub(crate) fn task_item(task: &QueuedTask, run_id: &str) -> Item {
    let content = json!({
        "queue": &*task.queue,
        "execution": &*task.execution,
        "call": task.call.0,
        "priority": task.priority,
        "round": task.virtual_time,
        "order": task.order.0,
        "since": task.since.0,
        "waitUntil": task.wait_until.map(|at| at.0),
        "timeout": task.timeout,
        "heartbeat": task.heartbeat,
        "message": task.message,
    });
    item(TASKS, &task.execution, task.call, run_id, &content)
}

pub(crate) fn dead_item(task: &DeadTask, run_id: &str) -> Item {
    let content = json!({
        "queue": &*task.queue,
        "execution": &*task.execution,
        "call": task.call.0,
        "step": &*task.step,
        "attempt": task.attempt,
        "error": &*task.error,
        "cause": &*task.cause,
        "time": task.time.0,
    });
    item(DEAD, &task.execution, task.call, run_id, &content)
}

fn content(item: &Item) -> Result<Value, StoreError> {
    let text = payload::of_attribute(item, "task")?;
    serde_json::from_str(&text).map_err(|_| crate::item::corrupt(item, "has a task that can't be read"))
}

fn word(json: &Value, name: &str) -> Text {
    Text::from(json.get(name).and_then(Value::as_str).unwrap_or_default())
}

fn whole(json: &Value, name: &str) -> u64 {
    json.get(name).and_then(Value::as_u64).unwrap_or_default()
}

fn time(json: &Value, name: &str) -> Option<Timestamp> {
    json.get(name).and_then(Value::as_i64).map(Timestamp)
}

fn task_of(json: &Value) -> QueuedTask {
    QueuedTask {
        queue: word(json, "queue"),
        execution: word(json, "execution"),
        call: EventId(whole(json, "call")),
        priority: u8::try_from(whole(json, "priority")).unwrap_or(9),
        virtual_time: whole(json, "round"),
        order: time(json, "order").unwrap_or_default(),
        since: time(json, "since").unwrap_or_default(),
        wait_until: time(json, "waitUntil"),
        timeout: json.get("timeout").and_then(Value::as_u64).map(Millis),
        heartbeat: json.get("heartbeat").and_then(Value::as_u64).map(Millis),
        message: word(json, "message").to_string(),
    }
}

fn dead_of(json: &Value) -> DeadTask {
    DeadTask {
        queue: word(json, "queue"),
        execution: word(json, "execution"),
        call: EventId(whole(json, "call")),
        step: word(json, "step"),
        attempt: u32::try_from(whole(json, "attempt")).unwrap_or(u32::MAX),
        error: word(json, "error"),
        cause: word(json, "cause"),
        time: time(json, "time").unwrap_or_default(),
    }
}

/// Whether a worker holds the task.
pub(crate) fn is_leased(item: &Item) -> bool {
    lease_of(item).is_some()
}

fn lease_of(item: &Item) -> Option<TaskLease> {
    let json: Value = serde_json::from_str(text_of(item, "lease")?).ok()?;
    Some(TaskLease {
        worker: word(&json, "worker"),
        held: time(&json, "held").unwrap_or_default(),
        heartbeat: Millis(whole(&json, "millis")),
    })
}

/// The order of a task among all: its execution's start, and its call.
type EnqueuedOrder = (String, EventId);

impl DynamoStore {
    fn queued(&self) -> Result<Vec<(EnqueuedOrder, QueuedTask, Option<TaskLease>)>, StoreError> {
        let items = self.client.all(&QueryRequest::partition(TASKS, None))?;
        let mut tasks = Vec::with_capacity(items.len());
        for item in &items {
            let task = task_of(&content(item)?);
            let order = text_of(item, "o").unwrap_or_default().to_owned();
            tasks.push(((order, task.call), task, lease_of(item)));
        }
        tasks.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        Ok(tasks)
    }

    fn waiting(&self) -> Result<Vec<(EnqueuedOrder, QueuedTask)>, StoreError> {
        let queued = self.queued()?.into_iter();
        Ok(queued
            .filter_map(|(order, task, lease)| lease.is_none().then_some((order, task)))
            .collect())
    }

    fn dead(&self) -> Result<Vec<(EnqueuedOrder, DeadTask)>, StoreError> {
        let items = self.client.all(&QueryRequest::partition(DEAD, None))?;
        let mut tasks = Vec::with_capacity(items.len());
        for item in &items {
            let task = dead_of(&content(item)?);
            tasks.push(((text_of(item, "o").unwrap_or_default().to_owned(), task.call), task));
        }
        tasks.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(tasks)
    }

    /// Stores which tasks were taken and given back. Those that are gone are skipped.
    pub(crate) fn change_leases(&self, changes: &[TaskLeaseChange]) -> Result<(), StoreError> {
        for change in changes {
            let key = (TASKS.to_owned(), place(&change.execution, change.call));
            let op = match &change.lease {
                None => Op::update(key, "REMOVE #lease"),
                Some(lease) => {
                    let lease = json!({ "worker": &*lease.worker, "held": lease.held.0, "millis": lease.heartbeat });
                    Op::update(key, "SET #lease = :l").with(":l", text(lease.to_string()))
                }
            };
            self.client.write(&[op.when(PRESENT)], "")?;
        }
        Ok(())
    }

    /// Removes all tasks of an execution.
    pub(crate) fn clear_tasks(&self, execution: &str) -> Result<(), StoreError> {
        for pk in [TASKS, DEAD] {
            let of_it = places(execution);
            let ask = QueryRequest::partition(pk, Some((crate::client::BEGINS, &of_it)));
            for item in self.client.all(&ask)? {
                self.client.write(&[Op::delete(key_of(&item))], "")?;
            }
        }
        Ok(())
    }
}

impl Queueing for DynamoStore {
    fn next_tasks(&self, queue: &str, limit: usize) -> Result<Vec<QueuedTask>, StoreError> {
        let mut found = self.waiting()?;
        found.retain(|(_, task)| task.queue == queue);
        found.sort_by(|(place, task), (other_place, other)| {
            let order = task.order_key().cmp(&other.order_key());
            order.then_with(|| place.cmp(other_place))
        });
        Ok(found.into_iter().take(limit).map(|(_, task)| task).collect())
    }

    fn leased_tasks(&self, shards: &ShardSet) -> Result<Vec<(QueuedTask, TaskLease)>, StoreError> {
        let queued = self.queued()?.into_iter();
        let queued = queued.filter(|(_, task, _)| shards.has_queue(&task.queue));
        Ok(queued.filter_map(|(_, task, lease)| Some((task, lease?))).collect())
    }

    fn depths(&self, shards: &ShardSet) -> Result<Vec<Depth>, StoreError> {
        let waiting = self.waiting()?;
        let waiting = waiting.iter().map(|(_, task)| task);
        Ok(Depth::of(waiting.filter(|task| shards.has_queue(&task.queue))))
    }

    fn overdue_tasks(&self, shards: &ShardSet, before: Timestamp, limit: usize) -> Result<Vec<QueuedTask>, StoreError> {
        let waiting = self.waiting()?.into_iter();
        let waiting = waiting.filter(|(_, task)| shards.has_queue(&task.queue));
        let mut found: Vec<_> = waiting
            .filter_map(|(order, task)| Some((task.wait_until.filter(|until| *until < before)?, order, task)))
            .collect();
        found.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
        Ok(found.into_iter().take(limit).map(|(_, _, task)| task).collect())
    }

    fn dead_tasks(
        &self,
        queue: &str,
        after: Option<(&str, EventId)>,
        limit: usize,
    ) -> Result<Vec<DeadTask>, StoreError> {
        let dead = self.dead()?;
        let after = match after {
            Some((execution, call)) => self.head(execution)?.map(|head| (head.run_id, call)),
            None => None,
        };
        let found = dead
            .into_iter()
            .filter(|(order, task)| task.queue == queue && after.as_ref().is_none_or(|after| order > after));
        Ok(found.take(limit).map(|(_, task)| task).collect())
    }

    fn dead_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        Ok(counted(self.dead()?.into_iter().map(|(_, task)| task.queue)))
    }
}

/// How often each name occurs.
pub(crate) fn counted(names: impl Iterator<Item = Text>) -> Vec<(Text, u64)> {
    let mut counts: BTreeMap<Text, u64> = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts.into_iter().collect()
}
