//! Appending, storing flows, deleting.

use crate::{Execution, Kept};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{Append, AuditEntry, KeptFlow, Refusal, RequestChange};
use std::collections::HashSet;

impl Kept {
    pub(crate) fn append(&mut self, batch: &[Append]) -> Vec<(usize, Refusal)> {
        let mut refusals = Vec::new();
        let mut refused: HashSet<&Text> = HashSet::new();
        for (position, append) in batch.iter().enumerate() {
            let refusal = if !append.is_of_owner(self.owners.epochs()) {
                Some(Refusal::Fenced)
            } else if refused.contains(&append.execution) {
                Some(Refusal::Conflict)
            } else {
                self.refusal(append)
            };
            match refusal {
                Some(refusal) => {
                    refused.insert(&append.execution);
                    refusals.push((position, refusal));
                }
                None => self.add(append),
            }
        }
        refusals
    }

    fn refusal(&self, append: &Append) -> Option<Refusal> {
        if append.deleted {
            let execution = self.get(&append.execution);
            let fits = |execution: &Execution| execution.last() == append.expected && execution.record.ended.is_some();
            return (!execution.is_some_and(fits)).then_some(Refusal::Conflict);
        }
        let turn = append.turn.as_ref();
        if !append.continues(u64::MAX) {
            return Some(Refusal::Conflict);
        }
        let taken = |execution: &Execution, keyed: bool| Refusal::Exists {
            execution: execution.id.clone(),
            version: execution.record.version,
            keyed: keyed.then(|| execution.record.name.clone()),
        };
        let exists = |execution: &Execution| taken(execution, false);
        match (self.get(&append.execution), turn) {
            (Some(execution), _) if append.is_start() => Some(exists(execution)),
            (Some(execution), _) => (execution.last() != append.expected).then_some(Refusal::Conflict),
            (None, _) if append.expected.0 > 0 => Some(Refusal::Conflict),
            (None, _) if append.is_start() => {
                let record = append.record.clone().unwrap_or_default().at_start(&append.execution);
                let keyed = record.once_key.map(|key| (record.flow.clone(), key));
                let keyed = keyed.and_then(|key| self.keys.get(&key));
                let number = keyed.or_else(|| self.names.get(&(record.flow, record.name)))?;
                let execution = self.executions.get(number)?;
                Some(taken(execution, keyed.is_some()))
            }
            (None, Some(_)) => Some(Refusal::Conflict),
            (None, None) => (append.record.is_some() || append.checkpoint.is_some()).then_some(Refusal::Conflict),
        }
    }

    fn add(&mut self, append: &Append) {
        self.add_audit(&append.audit);
        if append.deleted {
            if let Some(number) = self.numbers.get(&append.execution).copied() {
                self.remove(number);
                self.notices.retain(|kept| !kept.is_of(&append.execution));
            }
            return;
        }
        if append.is_start() {
            self.start(append);
        }
        if let Some(execution) = self.get_mut(&append.execution) {
            execution.turns.extend(append.turn.clone());
            for log in &append.logs {
                execution.logs.retain(|kept| kept.event != log.event);
                execution.logs.push(log.clone());
            }
            match (&append.request, &append.record) {
                (RequestChange::Begin, Some(record)) => execution.record.take_beginning(record),
                (_, Some(record)) => execution.record.take_changes(record),
                (_, None) => {}
            }
            match &append.request {
                RequestChange::None => {}
                RequestChange::Keep(text) | RequestChange::Replace(text) => execution.request = Some(text.clone()),
                RequestChange::Begin | RequestChange::Drop => execution.request = None,
            }
            if let Some(state) = &append.checkpoint {
                execution.checkpoint = Some((execution.last(), state.clone()));
            }
        }
        self.change_tasks(append);
        self.change_admission(&append.admission);
        self.add_notices(append);
        if !append.received.is_empty() {
            self.messages.retain(|message| !append.received.contains(&message.id));
        }
        for message in &append.sent {
            if self.messages.iter().all(|kept| kept.id != message.id) {
                self.messages.push(message.clone());
            }
        }
    }

    fn start(&mut self, append: &Append) {
        self.last_number += 1;
        let number = self.last_number;
        let record = append.record.clone().unwrap_or_default().at_start(&append.execution);
        self.numbers.insert(append.execution.clone(), number);
        self.names.insert((record.flow.clone(), record.name.clone()), number);
        if let Some(key) = &record.once_key {
            self.keys.insert((record.flow.clone(), key.clone()), number);
        }
        let execution = Execution {
            id: append.execution.clone(),
            record,
            ..Execution::default()
        };
        self.executions.insert(number, execution);
    }

    pub(crate) fn put_flow(
        &mut self,
        name: &str,
        definition: &str,
        hash: &str,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> (u64, bool) {
        let name = Text::from(name);
        let versions = (name.clone(), 0)..=(name.clone(), u64::MAX);
        let (mut latest, mut unhidden) = (None, false);
        for (_, flow) in self.flows.range_mut(versions) {
            unhidden |= std::mem::take(&mut flow.hidden);
            latest = Some((flow.version, flow.hash == hash));
        }
        let (version, new) = match latest {
            Some((version, true)) => (version, false),
            Some((version, false)) => (version + 1, true),
            None => (1, true),
        };
        let changed = audit.filter(|_| new || unhidden);
        self.add_audit(&changed.map(|entry| entry.clone().with("version", version)));
        if !new {
            return (version, false);
        }
        let flow = KeptFlow {
            name: name.clone(),
            version,
            hash: Text::from(hash),
            definition: definition.to_owned(),
            created: now,
            hidden: false,
        };
        self.flows.insert((name, version), flow);
        (version, true)
    }

    pub(crate) fn clear(&mut self, before: Timestamp, limit: usize) -> usize {
        let executions = self.executions.iter();
        let ended = executions.filter_map(|(number, execution)| Some((execution.record.ended?, *number)));
        let mut ended: Vec<_> = ended.filter(|(at, _)| *at < before).collect();
        ended.sort_unstable();
        ended.truncate(limit);
        for (_, number) in &ended {
            self.remove(*number);
        }
        ended.len()
    }

    /// Deletes an execution with everything that belongs to it, except its notices.
    fn remove(&mut self, number: u64) {
        let Some(Execution { id, record, .. }) = self.executions.remove(&number) else {
            return;
        };
        self.messages.retain(|message| message.id.to != id);
        self.tasks.clear(number);
        self.numbers.remove(&id);
        if let Some(key) = record.once_key {
            self.keys.remove(&(record.flow.clone(), key));
        }
        self.names.remove(&(record.flow, record.name));
    }
}
