//! The writes of appends outside their execution: messages, tasks, notices.

use crate::DynamoStore;
use crate::client::{BEGINS, QueryRequest, Written};
use crate::item::{Item, Key, from_json, key_of, keys, number, number_of, text, text_of, to_json};
use crate::op::{Op, PRESENT};
use crate::payload::{self, WRITE};
use crate::queueing;
use crate::session::Entry;
use crate::table::{self, HEAD, SK};
use serde_json::{Value, json};
use starbridge_flow::time::Timestamp;
use starbridge_machine::EventId;
use starbridge_ports::{Append, DeadTasksCleared, Message, MessageBody, MessageId, StoreError};
use std::collections::BTreeMap;

/// How many operations a transaction of deferred writes has, and how many bytes.
const MAX_OPS: usize = 50;
const MAX_BYTES: usize = 3 << 20;

/// A change to an item.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Writes the item if it does not exist.
    New(Item),
    /// Writes the item.
    Put(Item),
    /// Deletes the item.
    Delete,
}

/// One change for each key, and how many messages are left for each receiver.
#[derive(Clone, Debug, Default)]
pub(crate) struct SideWrites {
    pub changes: BTreeMap<Key, Change>,
    /// How many messages are left for each receiver.
    pub mail: BTreeMap<String, u64>,
    /// Parts of large items, to be written first.
    pub parts: Vec<Item>,
}

pub(crate) fn message_key(id: &MessageId) -> Key {
    (table::execution(&id.to), table::message(id.event.0, &id.from))
}

/// The order of one of several items that an append writes.
fn order_in(order: u64, index: usize) -> String {
    format!("{}.{index:06}", crate::order_text(order))
}

/// A message as an item, with its parts.
pub(crate) fn message_item(message: &Message, order: &str, write: &str) -> (Item, Vec<Item>) {
    let mut item = keys(&message_key(&message.id));
    item.insert("o".to_owned(), text(order));
    item.insert(WRITE.to_owned(), text(write));
    item.insert("to".to_owned(), text(&*message.id.to));
    item.insert("from".to_owned(), text(&*message.id.from));
    item.insert("event".to_owned(), number(message.id.event.0));
    let body = serde_json::to_vec(&message.body).unwrap_or_default();
    let parts = payload::put(&mut item, &body);
    (item, parts)
}

/// Adds to the count of messages of a receiver, if it exists. A receiver that sleeps without a time to wake is due
/// from now on: the sender may be gone before it can wake the receiver.
pub(crate) fn inbox_op(to: &str, count: u64, now: Timestamp) -> Op {
    let head = (table::execution(to), HEAD.to_owned());
    let change = "SET #shard = if_not_exists(#shard, :shard), #due = if_not_exists(#due, :due) ADD #mail :n";
    Op::update(head, change)
        .when(PRESENT)
        .with(":n", number(count))
        .with(":shard", text(table::shard(false, to)))
        .with(":due", text(format!("{}#", table::sortable(now))))
}

impl SideWrites {
    fn add_new(&mut self, item: Item, parts: Vec<Item>) -> bool {
        let key = key_of(&item);
        let change = match self.changes.get(&key) {
            Some(Change::New(_) | Change::Put(_)) => return false,
            Some(Change::Delete) => Change::Put(item),
            None => Change::New(item),
        };
        self.changes.insert(key, change);
        self.parts.extend(parts);
        true
    }

    fn delete(&mut self, key: Key) {
        self.changes.insert(key, Change::Delete);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.mail.is_empty()
    }

    /// The approximate size of its operations, in bytes.
    pub(crate) fn size(&self, now: Timestamp) -> usize {
        self.ops(now).iter().map(Op::size).sum()
    }

    pub(crate) fn ops(&self, now: Timestamp) -> Vec<Op> {
        let change = |(key, change): (&Key, &Change)| match change {
            Change::New(item) => Op::put_new(item.clone()),
            Change::Put(item) => Op::put(item.clone()),
            Change::Delete => Op::delete(key.clone()),
        };
        let mail = self.mail.iter().map(|(to, count)| inbox_op(to, *count, now));
        self.changes.iter().map(change).chain(mail).collect()
    }

    /// Drops the change of an operation that was refused: an item that exists already, or a receiver that does not
    /// exist.
    pub(crate) fn drop_refused(&mut self, op: &Op) {
        let (pk, sk) = op.key();
        if sk == HEAD {
            self.mail.remove(pk.get(2..).unwrap_or_default());
        } else {
            self.changes.remove(&(pk, sk));
        }
    }

    /// The changes as JSON, to be stored before they are made.
    pub(crate) fn to_json(&self) -> Value {
        let changes = self.changes.iter().map(|(key, change)| match change {
            Change::New(item) => json!({ "new": to_json(item) }),
            Change::Put(item) => json!({ "put": to_json(item) }),
            Change::Delete => json!({ "delete": [key.0, key.1] }),
        });
        let mail: Vec<Value> = self.mail.iter().map(|(to, count)| json!([to, count])).collect();
        json!({ "changes": changes.collect::<Vec<_>>(), "mail": mail })
    }

    pub(crate) fn from_json(json: &Value) -> Option<Self> {
        let mut side = Self::default();
        for change in json.get("changes")?.as_array()? {
            if let Some(item) = change.get("new").map(from_json) {
                side.changes.insert(key_of(&item), Change::New(item));
            } else if let Some(item) = change.get("put").map(from_json) {
                side.changes.insert(key_of(&item), Change::Put(item));
            } else {
                let key = change.get("delete")?;
                let key = (key.get(0)?.as_str()?.to_owned(), key.get(1)?.as_str()?.to_owned());
                side.changes.insert(key, Change::Delete);
            }
        }
        for mail in json.get("mail")?.as_array()? {
            side.mail
                .insert(mail.get(0)?.as_str()?.to_owned(), mail.get(1)?.as_u64()?);
        }
        Some(side)
    }
}

impl DynamoStore {
    /// Adds the writes of an append outside its execution. `run_id` is given if the execution
    /// exists.
    pub(crate) fn add_side(
        &self,
        side: &mut SideWrites,
        append: &Entry<'_>,
        run_id: Option<&str>,
        write: &str,
    ) -> Result<(), StoreError> {
        if let Some(run_id) = run_id {
            self.add_tasks(side, append, run_id)?;
            for notice in &append.notices {
                side.add_new(crate::notices::item(&append.execution, notice), Vec::new());
            }
        }
        for (index, entry) in append.audit.iter().enumerate() {
            let order = append.order.saturating_add(index as u64);
            side.add_new(crate::audit::item(entry, order, write), Vec::new());
        }
        for id in &append.received {
            side.delete(message_key(id));
        }
        for (index, message) in append.sent.iter().enumerate() {
            let order = order_in(append.order, index);
            let (item, parts) = message_item(message, &order, &format!("{write}-{order}"));
            if side.add_new(item, parts) {
                *side.mail.entry(message.id.to.to_string()).or_default() += 1;
            }
        }
        Ok(())
    }

    fn add_tasks(&self, side: &mut SideWrites, append: &Append, run_id: &str) -> Result<(), StoreError> {
        let of = |pk: &str, call: EventId| (pk.to_owned(), queueing::place(&append.execution, call));
        for call in &append.unqueued {
            side.delete(of(table::TASKS, *call));
        }
        for call in &append.withdrawn {
            let key = of(table::TASKS, *call);
            if self.client.get(&key)?.is_some_and(|item| !queueing::is_leased(&item)) {
                side.delete(key);
            }
        }
        for task in &append.queued {
            side.add_new(queueing::task_item(task, run_id), Vec::new());
        }
        match &append.dead_cleared {
            DeadTasksCleared::None => {}
            DeadTasksCleared::Calls(calls) => calls.iter().for_each(|call| side.delete(of(table::DEAD, *call))),
            DeadTasksCleared::All => {
                let of_it = queueing::places(&append.execution);
                let ask = QueryRequest::partition(table::DEAD, Some((BEGINS, &of_it)));
                let mut dead: Vec<Key> = self.client.all(&ask)?.iter().map(key_of).collect();
                let added = side.changes.keys();
                dead.extend(
                    added
                        .filter(|(pk, sk)| pk == table::DEAD && sk.starts_with(&of_it))
                        .cloned(),
                );
                dead.into_iter().for_each(|key| side.delete(key));
            }
        }
        for dead in &append.dead {
            let item = queueing::dead_item(dead, run_id);
            side.changes.insert(key_of(&item), Change::Put(item));
        }
        Ok(())
    }

    /// Writes the parts of large items. They mean nothing before their items exist.
    pub(crate) fn write_parts(&self, parts: &[Item]) -> Result<(), StoreError> {
        for part in parts {
            self.client.write(&[Op::put(part.clone())], "")?;
        }
        Ok(())
    }

    /// Makes the changes that an item holds, some at a time, and then deletes the item. Doing this twice has the same
    /// effect as doing it once.
    pub(crate) fn finish(&self, rest: &Item) -> Result<(), StoreError> {
        let text = payload::get_text(rest, |pk, prefix| self.client.parts(pk, prefix))?;
        let side = serde_json::from_str(&text).ok();
        let side = side.as_ref().and_then(SideWrites::from_json);
        let side = side.ok_or_else(|| crate::item::corrupt(rest, "can't be read"))?;
        // The first process to finish deletes the item. Later writes are conditional on it, so
        // nothing that others have handled since is written again.
        self.write_in_pieces(side.ops(self.now()), Some(&key_of(rest)))?;
        let mut gone = vec![Op::delete(key_of(rest))];
        if let Some(prefix) = payload::parts_of(rest) {
            let parts = self.client.parts(&key_of(rest).0, &prefix)?;
            gone.extend(parts.iter().map(|part| Op::delete(key_of(part))));
        }
        for op in gone {
            self.client.write(&[op], "")?;
        }
        Ok(())
    }

    /// Makes writes that need not be atomic, some at a time, as long as the item `guard` exists.
    pub(crate) fn write_in_pieces(&self, mut ops: Vec<Op>, guard: Option<&Key>) -> Result<(), StoreError> {
        while !ops.is_empty() {
            let mut bytes = 0;
            let fitting = ops.iter().take(MAX_OPS).take_while(|op| {
                bytes += op.size();
                bytes <= MAX_BYTES
            });
            let count = fitting.count().max(1);
            let later = ops.split_off(count);
            if !self.write_some(ops, guard)? {
                return Ok(());
            }
            ops = later;
        }
        Ok(())
    }

    /// Makes the writes that are possible. Returns whether the item `guard` exists.
    fn write_some(&self, mut ops: Vec<Op>, guard: Option<&Key>) -> Result<bool, StoreError> {
        // Each round leaves out at least one.
        while !ops.is_empty() {
            let check = guard.map(|key| Op::check(key.clone()).when(PRESENT));
            let guards = usize::from(check.is_some());
            let all: Vec<Op> = check.into_iter().chain(ops.iter().cloned()).collect();
            match self.client.write(&all, &self.write_id())? {
                Written::Done => return Ok(true),
                Written::Refused(which) => {
                    if which.iter().take(guards).any(|refused| *refused) {
                        return Ok(false);
                    }
                    let mut refused = which.into_iter().skip(guards);
                    ops.retain(|_| !refused.next().unwrap_or_default());
                }
            }
        }
        Ok(true)
    }

    /// The messages among items, in the order in which they were sent.
    pub(crate) fn messages_in(&self, items: &[Item]) -> Result<Vec<Message>, StoreError> {
        let mut found: Vec<&Item> = items
            .iter()
            .filter(|item| text_of(item, SK).is_some_and(|sk| sk.starts_with("M#")))
            .collect();
        found.sort_by_key(|item| text_of(item, "o"));
        found.into_iter().map(|item| self.message_of(item)).collect()
    }

    fn message_of(&self, item: &Item) -> Result<Message, StoreError> {
        let body = payload::get(item, |pk, prefix| self.client.parts(pk, prefix))?;
        let body: Option<MessageBody> = serde_json::from_slice(&body).ok();
        let id = text_of(item, "to")
            .zip(text_of(item, "from"))
            .zip(number_of(item, "event"));
        match (id, body) {
            (Some(((to, from), event)), Some(body)) => Ok(Message {
                id: MessageId {
                    from: from.into(),
                    event: EventId(event),
                    to: to.into(),
                },
                body,
            }),
            _ => Err(crate::item::corrupt(item, "is no message")),
        }
    }
}
