//! Heads: the item of an execution that is read before anything is written to the execution.

use crate::DynamoStore;
use crate::client::{BEGINS, QueryRequest};
use crate::item::{Item, corrupt, key_of, keys, number, number_of, text, text_of, time_of};
use crate::payload::{self, WRITE};
use crate::record::{self, ExecutionLease};
use crate::session::Session;
use crate::table::{self, HEAD, SK, TTL};
use serde_json::{Value, json};
use starbridge_flow::time::Timestamp;
use starbridge_machine::EventId;
use starbridge_ports::{ExecutionRecord, StoreError, Turn};

/// The content of an execution's head.
#[derive(Debug)]
pub(crate) struct Head {
    pub run_id: String,
    pub epoch: u64,
    pub mail: u64,
    /// The write that stored the head last.
    pub write: String,
    /// The number of the last event in the turns that the head holds.
    pub last: EventId,
    pub record: ExecutionRecord,
    pub hold: Option<ExecutionLease>,
}

/// The owner of an execution's lease, seen from this process.
pub(crate) enum Ownership {
    /// No process: it can be taken.
    Free,
    /// This process.
    Ours,
    /// Another process, but the lease has ended.
    Expired,
    /// Another process, until this time.
    Held(Timestamp),
}

impl Head {
    pub(crate) fn of(item: &Item) -> Result<Self, StoreError> {
        let missing = |name| move || corrupt(item, &format!("has no `{name}`"));
        let owner = text_of(item, "owner").map(str::to_owned);
        Ok(Self {
            run_id: text_of(item, "life").ok_or_else(missing("life"))?.to_owned(),
            epoch: number_of(item, "epoch").ok_or_else(missing("epoch"))?,
            mail: number_of(item, "mail").unwrap_or_default(),
            write: text_of(item, WRITE).unwrap_or_default().to_owned(),
            last: EventId(number_of(item, "last").ok_or_else(missing("last"))?),
            record: record::read(item)?,
            hold: owner
                .zip(time_of(item, "until"))
                .map(|(owner, until)| ExecutionLease { owner, until }),
        })
    }

    pub(crate) fn standing(&self, owner: &str, now: Timestamp) -> Ownership {
        match &self.hold {
            None => Ownership::Free,
            Some(hold) if hold.until <= now => Ownership::Expired,
            Some(hold) if hold.owner == owner => Ownership::Ours,
            Some(hold) => Ownership::Held(hold.until),
        }
    }

    pub(crate) fn session(self, next: u64, last: EventId, held: bool) -> Session {
        Session {
            run_id: self.run_id,
            next,
            last,
            epoch: self.epoch,
            held,
            mail: self.mail,
            record: self.record,
        }
    }
}

/// The session of an execution, or why there is none.
pub(crate) enum Attached {
    /// The execution does not exist.
    Nowhere,
    /// Another process has it.
    Elsewhere,
    /// The execution can be written.
    Here(Box<Session>),
}

impl DynamoStore {
    /// Whether an execution counts as deleted: its retention is over, or it is being deleted.
    pub(crate) fn is_over(&self, item: &Item) -> bool {
        let seconds = self.now().0.div_euclid(1_000);
        item.contains_key(table::GONE)
            || number_of::<i64>(item, TTL)
                .is_some_and(|ttl| ttl.saturating_sub_unsigned(table::CLEAR_GRACE.0) <= seconds)
    }

    /// The head of an execution, if the execution exists.
    pub(crate) fn head(&self, execution: &str) -> Result<Option<Head>, StoreError> {
        Ok(self.head_item(execution)?.map(|(head, _)| head))
    }

    /// The head of an execution with its item, if the execution exists.
    pub(crate) fn head_item(&self, execution: &str) -> Result<Option<(Head, Item)>, StoreError> {
        if execution.is_empty() {
            return Ok(None);
        }
        let item = self.client.get(&(table::execution(execution), HEAD.to_owned()))?;
        let there = item.filter(|item| !self.is_over(item));
        there.map(|item| Ok((Head::of(&item)?, item))).transpose()
    }

    /// The session for the next write to an execution that this process does not know yet.
    pub(crate) fn attach(&self, execution: &str) -> Result<Attached, StoreError> {
        let Some(head) = self.head(execution)? else {
            return Ok(Attached::Nowhere);
        };
        let held = match head.standing(&self.settings.owner, self.now()) {
            Ownership::Held(_) => return Ok(Attached::Elsewhere),
            Ownership::Ours => true,
            Ownership::Free | Ownership::Expired => false,
        };
        let pk = table::execution(execution);
        for rest in self.client.all(&QueryRequest::partition(&pk, Some((BEGINS, "R#"))))? {
            self.finish(&rest)?;
        }
        let ask = QueryRequest {
            backwards: true,
            limit: Some(1),
            ..QueryRequest::partition(&pk, Some((BEGINS, &table::turns(&head.run_id))))
        };
        let (items, _) = self.client.page(&ask, None)?;
        let (next, last) = match items.first() {
            Some(item) => place_of(item)?,
            None => (1, head.last),
        };
        Ok(Attached::Here(Box::new(head.session(next, last, held))))
    }
}

/// The number of the item of turns after this one, and the number of this one's last event.
pub(crate) fn place_of(item: &Item) -> Result<(u64, EventId), StoreError> {
    let number = text_of(item, SK).and_then(|sk| sk.rsplit('#').next()?.parse::<u64>().ok());
    let last = number_of(item, "last");
    let (number, last) = number.zip(last).ok_or_else(|| corrupt(item, "is no turn"))?;
    Ok((number + 1, EventId(last)))
}

/// The bytes in which turns are stored together.
pub(crate) fn written(turns: &[Turn]) -> Vec<u8> {
    let turns: Vec<Value> = turns
        .iter()
        .map(|turn| json!([turn.first.0, turn.events, turn.time.0, turn.text]))
        .collect();
    Value::from(turns).to_string().into_bytes()
}

/// An item of turns, and the parts of its payload. Without turns the item only occupies its number.
pub(crate) fn turn_item(
    execution: &str,
    session: &Session,
    turns: &[Turn],
    last: EventId,
    write: &str,
) -> (Item, Vec<Item>) {
    let key = (table::execution(execution), table::turn(&session.run_id, session.next));
    let mut item = keys(&key);
    item.insert(WRITE.to_owned(), text(write));
    item.insert("last".to_owned(), number(last.0));
    let parts = payload::put(&mut item, &written(turns));
    (item, parts)
}

impl DynamoStore {
    /// The turns in an item.
    pub(crate) fn turns_in(&self, item: &Item) -> Result<Vec<Turn>, StoreError> {
        let text = payload::get(item, |pk, prefix| self.client.parts(pk, prefix))?;
        let json: Option<Value> = serde_json::from_slice(&text).ok();
        let turn = |json: &Value| {
            Some(Turn {
                first: EventId(json.get(0)?.as_u64()?),
                events: u32::try_from(json.get(1)?.as_u64()?).ok()?,
                time: Timestamp(json.get(2)?.as_i64()?),
                text: json.get(3)?.as_str()?.to_owned(),
            })
        };
        let turns = json.as_ref().and_then(Value::as_array);
        turns
            .and_then(|turns| turns.iter().map(turn).collect())
            .ok_or_else(|| corrupt(item, "has turns that can't be read"))
    }

    /// Whether an item of an execution holds turns of this incarnation.
    pub(crate) fn is_turn(item: &Item, run_id: &str) -> bool {
        key_of(item).1.starts_with(&table::turns(run_id))
    }
}
