//! The logs of attempts, with the events that they belong to.

use super::Node;
use super::queries::{QueryError, QueryResult};
use starbridge_flow::value::{Object, Value};
use starbridge_machine::EventId;
use starbridge_ports::AttemptLog;

/// The logs of an execution's attempts. The size is known before the events are read.
#[derive(Debug)]
pub struct StoredLogs {
    execution: String,
    logs: Vec<AttemptLog>,
}

impl StoredLogs {
    /// How many bytes the logs have.
    pub fn bytes(&self) -> usize {
        self.logs.iter().map(|log| log.text.len()).sum()
    }

    /// How many logs there are.
    pub fn len(&self) -> usize {
        self.logs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.logs.is_empty()
    }

    /// The event after the last of these logs.
    pub fn next(&self) -> Option<EventId> {
        self.logs.last().map(|log| log.event.next())
    }
}

impl Node {
    /// The logs of an execution's attempts, in the order of the events that ended them; `None` if
    /// the store keeps no logs.
    ///
    /// # Errors
    ///
    /// [`QueryError::NoSuchExecution`], or [`QueryError::Store`] if the store fails.
    pub fn stored_logs(&self, id: &str, from: EventId, limit: usize) -> QueryResult<Option<StoredLogs>> {
        self.store().record(id)?.ok_or(QueryError::NoSuchExecution)?;
        let logs = self.store().logs(id, from, limit)?;
        Ok(logs.map(|logs| StoredLogs {
            execution: id.to_owned(),
            logs,
        }))
    }

    /// The logs with time, step and attempt, for this step or for all.
    ///
    /// # Errors
    ///
    /// As [`Node::stored_events`].
    pub fn describe_logs(&self, stored: StoredLogs, step: Option<&str>) -> QueryResult<Vec<Value>> {
        let mut described = Vec::new();
        for log in stored.logs {
            let Some(event) = self.event(&stored.execution, log.event)? else {
                continue;
            };
            let text = |key: &str| event.get(key).and_then(Value::as_str);
            // The log of a call that was given up stands under the call itself.
            let is_call = text("type") == Some("TaskScheduled");
            let of = event.get("detail").and_then(|detail| detail.as_object()?.get("of"));
            let own = is_call.then(|| event.get("id")).flatten();
            let call = own.or(of).or_else(|| event.get("causedBy")).and_then(Value::as_number);
            let call = call.and_then(|call| call.as_u64());
            let scheduled = match call {
                Some(call) => self.event(&stored.execution, EventId(call))?,
                None => None,
            };
            let attempt = scheduled
                .as_ref()
                .and_then(|event| event.get("detail")?.as_object()?.get("attempt").cloned());
            // The event of a report that came too late belongs to no step, the call does.
            let placed = match text("step") {
                Some("") | None => scheduled.as_ref().unwrap_or(&event),
                Some(_) => &event,
            };
            if step.is_some_and(|step| placed.get("step").and_then(Value::as_str) != Some(step)) {
                continue;
            }
            let mut shape = Object::new();
            shape.insert("event".into(), log.event.0.into());
            for (key, of) in [
                ("time", &event),
                ("step", placed),
                ("path", placed),
                ("rollback", placed),
            ] {
                if let Some(member) = of.get(key) {
                    shape.insert(key.into(), member.clone());
                }
            }
            shape.insert("attempt".into(), attempt.unwrap_or_else(|| 1_u64.into()));
            shape.insert("stream".into(), "stderr".into());
            shape.insert("text".into(), log.text.into());
            described.push(shape.into());
        }
        Ok(described)
    }

    fn event(&self, id: &str, event: EventId) -> QueryResult<Option<Object>> {
        Ok(self.stored_events(id, event, 1, false)?.read()?.into_iter().next())
    }
}
