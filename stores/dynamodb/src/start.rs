//! Starting executions.

use crate::DynamoStore;
use crate::client::{QueryRequest, Written};
use crate::head::{Head, written};
use crate::item::{Item, Key, key_of, keys, number, text, text_of};
use crate::op::{ABSENT, Op};
use crate::payload::{self, WRITE};
use crate::record;
use crate::session::{Entry, Session, following};
use crate::side_writes::inbox_op;
use crate::table::{self, FLOWS, HEAD};
use crate::write::{Addition, rests};
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{Append, ExecutionRecord, Refusal, RequestChange, StoreError};

/// The length of a UUID as text. Nobody can name an execution after an id that does not exist yet.
pub(crate) const UUID_CHARS: usize = 36;

/// The items that make a start unique, and their conditions.
struct StartItems {
    head: Item,
    /// The write of a head whose retention is over, which this start replaces.
    over: Option<String>,
    /// The items of key and name, each with the execution that it may still name.
    named: Vec<(Key, Option<String>)>,
    /// Whether to check that no execution with this id has this name.
    check: bool,
}

impl DynamoStore {
    /// Starts an execution with its first appends. Returns how many of them were stored, and the
    /// refusal of the next one.
    pub(crate) fn start(
        &self,
        execution: &Text,
        appends: &[Entry<'_>],
    ) -> Result<(usize, Option<Refusal>), StoreError> {
        let Some((first, later)) = appends.split_first() else {
            return Ok((0, None));
        };
        if !first.continues(u64::MAX) {
            return Ok((0, Some(Refusal::Conflict)));
        }
        let base = first.record.clone().unwrap_or_default().at_start(execution);
        if let Some(refusal) = self.taken(execution, &base)? {
            return Ok((0, Some(refusal)));
        }
        let begun = first.turn.as_ref().map_or(EventId(0), starbridge_ports::Turn::last);
        let count = 1 + following(begun, later);
        let run_id = crate::order_text(first.order);
        let appends = appends.get(..count).unwrap_or_default();
        let mut add = self.addition(&base, &run_id, EventId(0), appends)?;
        let record = add.record.take().unwrap_or_else(|| base.clone());
        self.know_flow(&record.flow)?;
        self.defer_overflow(execution, &run_id, 0, &mut add);
        let checkpoint = self.checkpoint_op(execution, &run_id, 1, &mut add);
        let hold = (!rests(&record)).then(|| self.new_lease());
        let mail = add.side.mail.remove(execution.as_str()).unwrap_or_default();
        let mut head = keys(&(table::execution(execution), HEAD.to_owned()));
        for (name, value) in [
            ("life", text(&run_id)),
            ("epoch", number(1)),
            ("mail", number(mail)),
            ("last", number(add.last.0)),
            (WRITE, text(&add.write)),
        ] {
            head.insert(name.to_owned(), value);
        }
        let retention = self.settings.retention;
        for (name, value) in record::attributes(execution, &run_id, &record, hold.as_ref(), self.now(), retention) {
            if let Some(value) = value {
                head.insert(name.to_owned(), value);
            }
        }
        add.parts.extend(payload::put(&mut head, &held_by_head(first, &add)));
        self.write_parts(&add.parts)?;
        // A transaction can name an item only once, and this one checks the execution with that id. A message that is
        // counted but never comes does no harm.
        let looked_at = (record.name != *execution).then(|| add.side.mail.remove(record.name.as_str()));
        if let Some(count) = looked_at.flatten() {
            self.client.write(&[inbox_op(&record.name, count, self.now())], "")?;
        }
        if let Some(refusal) = self.put_start(execution, &record, head, checkpoint.as_ref(), &mut add)? {
            return Ok((0, Some(refusal)));
        }
        if hold.is_some() {
            let session = Session {
                run_id,
                next: 1,
                last: add.last,
                epoch: 1,
                held: true,
                mail: 0,
                record,
            };
            self.sessions.put(execution, session);
        }
        if let Some(rest) = &add.rest {
            self.finish_or_forget(execution, rest)?;
        }
        Ok((count, None))
    }

    /// The refusal of a start that can be seen without writing.
    fn taken(&self, execution: &Text, record: &ExecutionRecord) -> Result<Option<Refusal>, StoreError> {
        if let Some(session) = self.sessions.get(execution) {
            return Ok(Some(exists(execution, &session.record)));
        }
        if record.name != *execution || execution.len() == UUID_CHARS {
            return Ok(None);
        }
        // The write finds out which one it is: the id or the key take precedence over the name.
        if self.head(execution)?.is_some() {
            return Ok(None);
        }
        for place in places(execution, record) {
            if self.holder(&place)?.is_some() {
                return Ok(None);
            }
        }
        let key = (table::name(&record.flow, &record.name), HEAD.to_owned());
        self.holder(&key)
            .map(|holder| holder.map(|(id, head)| exists(&id, &head.record)))
    }

    /// The execution that has a name or key, if it still exists.
    pub(crate) fn holder(&self, name: &Key) -> Result<Option<(Text, Head)>, StoreError> {
        let item = self.client.get(name)?;
        let Some(id) = item.as_ref().and_then(|item| text_of(item, "execution")) else {
            return Ok(None);
        };
        let head = self.head(id)?;
        // A later execution with that id may have another name or key.
        let head = head.filter(|head| places(id, &head.record).contains(name));
        Ok(head.map(|head| (Text::from(id), head)))
    }

    /// Writes a start. Returns its refusal, if there is one.
    fn put_start(
        &self,
        execution: &Text,
        record: &ExecutionRecord,
        head: Item,
        checkpoint: Option<&Op>,
        add: &mut Addition,
    ) -> Result<Option<Refusal>, StoreError> {
        let named = record.name != *execution;
        let taken = places(execution, record).into_iter();
        let mut places = StartItems {
            head,
            over: None,
            named: taken.map(|key| (key, None)).collect(),
            check: named,
        };
        loop {
            let mut ops = start_ops(execution, record, &places);
            let core = ops.len();
            ops.extend(checkpoint.cloned());
            ops.extend(add.rest.clone().map(Op::put));
            ops.extend(add.side.ops(self.now()));
            let Written::Refused(which) = self.client.write(&ops, &self.write_id())? else {
                return Ok(None);
            };
            let mut refused = ops
                .iter()
                .zip(&which)
                .filter(|(_, refused)| **refused)
                .map(|(op, _)| op);
            let in_core = which.iter().take(core).any(|refused| *refused);
            if !in_core {
                refused.for_each(|op| add.side.drop_refused(op));
                continue;
            }
            let Some(op) = refused.next() else {
                return Err(StoreError::Unavailable("a start was refused for no reason".to_owned()));
            };
            match self.who_refuses(execution, record, op, &add.write, &mut places)? {
                Refuses::Nobody => return Ok(None),
                Refuses::Other(refusal) => return Ok(Some(refusal)),
                Refuses::NoLonger => {}
            }
        }
    }

    /// Finds the reason why a start was refused.
    fn who_refuses(
        &self,
        execution: &Text,
        record: &ExecutionRecord,
        op: &Op,
        write: &str,
        places: &mut StartItems,
    ) -> Result<Refuses, StoreError> {
        let key = op.key();
        if key == key_of(&places.head) {
            let Some(item) = self.client.get(&key)? else {
                places.over = None;
                return Ok(Refuses::NoLonger);
            };
            let head = Head::of(&item)?;
            if head.write == write {
                return Ok(Refuses::Nobody);
            }
            if !self.is_over(&item) {
                return Ok(Refuses::Other(exists(execution, &head.record)));
            }
            self.clear_rows(execution)?;
            places.over = Some(head.write);
            return Ok(Refuses::NoLonger);
        }
        if let Some(place) = places.named.iter().position(|(name, _)| *name == key) {
            if let Some((id, head)) = self.holder(&key)? {
                let once_key = record.once_key.as_ref();
                let is_keyed = once_key.is_some_and(|once_key| key.0 == table::once_key(&record.flow, once_key));
                return Ok(Refuses::Other(match is_keyed {
                    true => keyed(&id, &head.record),
                    false => exists(&id, &head.record),
                }));
            }
            let item = self.client.get(&key)?;
            let stale = item
                .as_ref()
                .and_then(|item| text_of(item, "execution"))
                .map(str::to_owned);
            if let Some(named) = places.named.get_mut(place) {
                named.1 = stale;
            }
            return Ok(Refuses::NoLonger);
        }
        if let Some(head) = self.head(&record.name)? {
            return Ok(Refuses::Other(exists(&record.name, &head.record)));
        }
        places.check = false;
        Ok(Refuses::NoLonger)
    }

    /// Puts a flow into the list of flows: once for each process and flow, before the first start.
    fn know_flow(&self, flow: &Text) -> Result<(), StoreError> {
        if flow.is_empty() || self.knows_flow(flow, false) {
            return Ok(());
        }
        let item = keys(&(FLOWS.to_owned(), flow.to_string()));
        self.client.write(&[Op::put(item)], "")?;
        self.knows_flow(flow, true);
        Ok(())
    }

    /// The flows that executions may belong to.
    pub(crate) fn flows_known(&self) -> Result<Vec<Text>, StoreError> {
        let items = self.client.all(&QueryRequest::partition(FLOWS, None))?;
        Ok(items.iter().map(|item| Text::from(key_of(item).1)).collect())
    }
}

/// The content of the head of a new execution: its first turns, or how it begins if it waits to
/// begin.
fn held_by_head(first: &Append, add: &Addition) -> Vec<u8> {
    match &first.request {
        RequestChange::Keep(text) => text.clone().into_bytes(),
        RequestChange::None | RequestChange::Replace(_) | RequestChange::Begin | RequestChange::Drop => {
            written(&add.turns)
        }
    }
}

/// The keys of the items that record which execution has its key and its name. A name that equals
/// the id needs none.
pub(crate) fn places(execution: &str, record: &ExecutionRecord) -> Vec<Key> {
    let once_key = record.once_key.as_ref().map(|key| table::once_key(&record.flow, key));
    let name = (record.name != *execution).then(|| table::name(&record.flow, &record.name));
    let all = once_key.into_iter().chain(name);
    all.map(|key| (key, HEAD.to_owned())).collect()
}

/// The reason for the refusal of a start.
enum Refuses {
    /// There is none: the start is stored, and its answer was lost.
    Nobody,
    /// Another execution.
    Other(Refusal),
    /// An item that is gone by now.
    NoLonger,
}

fn exists(execution: &Text, record: &ExecutionRecord) -> Refusal {
    Refusal::Exists {
        execution: execution.clone(),
        version: record.version,
        keyed: None,
    }
}

/// The refusal by the execution that has the key of a start.
fn keyed(execution: &Text, record: &ExecutionRecord) -> Refusal {
    Refusal::Exists {
        execution: execution.clone(),
        version: record.version,
        keyed: Some(record.name.clone()),
    }
}

fn start_ops(execution: &Text, record: &ExecutionRecord, places: &StartItems) -> Vec<Op> {
    let head = Op::put(places.head.clone());
    let mut ops = vec![match &places.over {
        None => head.when(ABSENT),
        Some(write) => head.when("#w = :old").with(":old", text(write)),
    }];
    for (key, stale) in &places.named {
        let mut item = keys(key);
        item.insert("execution".to_owned(), text(&**execution));
        let name = Op::put(item);
        ops.push(match stale {
            None => name.when(ABSENT),
            Some(stale) => name.when("#execution = :stale").with(":stale", text(stale)),
        });
    }
    if places.check {
        let other = Op::check((table::execution(&record.name), HEAD.to_owned()));
        let other = other.when("attribute_not_exists(#pk) OR #flow <> :flow OR attribute_exists(#named)");
        ops.push(other.with(":flow", text(&*record.flow)));
    }
    ops
}
