//! Leases of executions: each is given to one process at a time.

use crate::DynamoStore;
use crate::client::{BEGINS, QueryRequest, Written};
use crate::head::{Head, Ownership};
use crate::item::{Item, number, text, text_of};
use crate::op::{ABSENT, Op};
use crate::record::{ExecutionLease, id_of};
use crate::side_writes::{message_item, message_key};
use crate::table::{self, DUE, DUE_INDEX, HEAD};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_ports::{ExecutionLeases, Heartbeat, Message, ShardSet, StoreError};
use std::sync::PoisonError;

/// How long a lease lasts if no end was set: the longest time a function of AWS Lambda runs.
const DEFAULT_LEASE: Millis = Millis::from_secs(15 * 60);

impl DynamoStore {
    /// The lease of an execution that is taken now.
    pub(crate) fn new_lease(&self) -> ExecutionLease {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        ExecutionLease {
            owner: self.settings.owner.clone(),
            until: until.unwrap_or(self.now().plus(DEFAULT_LEASE)),
        }
    }

    /// Items of the index of due executions of these shards before a time, in its order. `filter` is applied by DynamoDB.
    pub(crate) fn watched(
        &self,
        shards: &ShardSet,
        over: bool,
        before: Option<Timestamp>,
        filter: Option<(&str, Timestamp)>,
        enough: usize,
    ) -> Result<Vec<Item>, StoreError> {
        let mut found = Vec::new();
        for shard in table::partitions(over, shards) {
            let mut ask = QueryRequest {
                index: Some(DUE_INDEX),
                keys: Some("#shard = :shard".to_owned()),
                values: vec![(":shard", text(shard))],
                ..QueryRequest::default()
            };
            if let Some(before) = before {
                ask.keys = Some("#shard = :shard AND #due < :due".to_owned());
                ask.values.push((":due", text(table::sortable(before))));
            }
            if let Some((filter, at)) = filter {
                ask.filter = Some(filter.to_owned());
                ask.values.push((":at", number(at.0)));
            }
            let (mut from, mut count) = (None, 0);
            loop {
                let (items, next) = self.client.page(&ask, from)?;
                let before = found.len();
                found.extend(items.into_iter().filter(|item| shards.has_execution(&id_of(item))));
                count += found.len() - before;
                if next.is_none() || count >= enough {
                    break;
                }
                from = next;
            }
        }
        found.sort_by(|one, other| text_of(one, DUE).cmp(&text_of(other, DUE)));
        Ok(found)
    }

    /// Whether another process has an execution now.
    fn is_elsewhere(&self, execution: &str) -> Result<bool, StoreError> {
        let head = self.head(execution)?;
        Ok(head.is_some_and(|head| matches!(head.standing(&self.settings.owner, self.now()), Ownership::Held(_))))
    }
}

impl ExecutionLeases for DynamoStore {
    fn hold_until(&self, until: Timestamp) {
        *self.until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    fn release(&self, execution: &str) -> Result<bool, StoreError> {
        let Some(session) = self.sessions.get(execution) else {
            return Ok(true);
        };
        let write = self.write_id();
        let op = self.head_op(&Text::from(execution), &session, &session.record, None, None, &write);
        let key = op.key();
        if self.client.write(&[op], &write)? == Written::Done {
            self.sessions.forget(execution);
            return Ok(true);
        }
        let head = self.client.get(&key)?;
        let head = head.as_ref().map(Head::of).transpose()?;
        let kept = head
            .is_some_and(|head| head.write != write && head.run_id == session.run_id && head.epoch == session.epoch);
        if !kept {
            self.sessions.forget(execution);
        }
        Ok(!kept)
    }

    fn messages_for(&self, execution: &str) -> Result<Vec<Message>, StoreError> {
        // The count is read before the messages, so a message that comes in between counts as not seen.
        let head = self.head(execution)?;
        let items = self.client.all(&QueryRequest::partition(
            &table::execution(execution),
            Some((BEGINS, "M#")),
        ))?;
        let messages = self.messages_in(&items)?;
        if let Some(head) = head {
            self.sessions.seen(execution, head.mail);
        }
        Ok(messages)
    }

    fn leave_message(&self, message: &Message) -> Result<bool, StoreError> {
        let write = self.write_id();
        let (item, parts) = message_item(message, &crate::order_text(self.next_orders(1)), &write);
        let head = Op::update((table::execution(&message.id.to), HEAD.to_owned()), "ADD #mail :n")
            .when("attribute_exists(#pk) AND #until > :now AND #owner <> :me")
            .with(":n", number(1))
            .with(":now", number(self.now().0))
            .with(":me", text(&self.settings.owner));
        let mut parts = Some(parts).filter(|parts| !parts.is_empty());
        if parts.is_some() && !self.is_elsewhere(&message.id.to)? {
            return Ok(false);
        }
        self.write_parts(&parts.take().unwrap_or_default())?;
        let ops = [Op::put(item).when(ABSENT), head];
        match self.client.write(&ops, &write)? {
            Written::Done => Ok(true),
            // The message is there already: it was stored earlier, or now and the answer was lost.
            Written::Refused(which) if which.first() == Some(&true) => {
                Ok(self.is_ours(&message_key(&message.id), &write)? || self.is_elsewhere(&message.id.to)?)
            }
            Written::Refused(_) => Ok(false),
        }
    }

    fn heartbeats(&self, execution: &str) -> Result<Vec<Heartbeat>, StoreError> {
        self.heartbeats_of(execution)
    }

    fn heartbeat(&self, execution: &str, beat: &Heartbeat) -> Result<(), StoreError> {
        self.record_heartbeat(execution, beat)
    }

    fn stranded(&self, before: Timestamp, limit: usize) -> Result<Vec<Text>, StoreError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let free = "attribute_not_exists(#until) OR #until < :at";
        let found = self.watched(&ShardSet::ALL, false, Some(before), Some((free, before)), limit)?;
        Ok(found.iter().take(limit).map(id_of).collect())
    }
}
