//! Looking executions up.

use crate::error::StoreError;
use crate::history::{Record, Turn};
use starbridge_fdl::time::Timestamp;
use starbridge_fdl::value::{Text, Value};
use starbridge_machine::{EventId, Status};

/// An execution's id and record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    /// Its id.
    pub id: Text,
    /// What is known of it.
    pub record: Record,
}

/// Which executions are asked for: all that fit everything given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Of this flow.
    pub flow: Option<Text>,
    /// In one of these states; empty: in any.
    pub statuses: Vec<Status>,
    /// Only those that are set aside ([`Record::broken`]).
    pub broken: bool,
    /// Whose name begins so.
    pub name: Option<Text>,
    /// With all these labels.
    pub labels: Vec<(Text, Text)>,
    /// Started at or after.
    pub from: Option<Timestamp>,
    /// Started before.
    pub to: Option<Timestamp>,
    /// Those after this one: `next` of the page before.
    pub cursor: Option<Text>,
    /// At most so many.
    pub limit: usize,
}

impl Query {
    /// Whether an execution with that record is asked for; where the page begins and ends is not looked at.
    pub fn fits(&self, record: &Record) -> bool {
        let label = |(label, value): &(Text, Text)| {
            let kept = record.labels.as_ref().and_then(|labels| labels.get(label));
            kept.map(Value::to_plain_text).is_some_and(|kept| *value == *kept)
        };
        self.flow.as_ref().is_none_or(|flow| record.flow == *flow)
            && (self.statuses.is_empty() || self.statuses.contains(&record.status))
            && (!self.broken || record.broken.is_some())
            && self
                .name
                .as_ref()
                .is_none_or(|name| record.name.starts_with(name.as_str()))
            && self.labels.iter().all(label)
            && self.from.is_none_or(|from| record.started >= from)
            && self.to.is_none_or(|to| record.started < to)
    }
}

/// A page of executions, the newest first. It may have fewer than were asked for, even none, where there is a next one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The executions.
    pub items: Vec<Listed>,
    /// Where the next page begins, if there is one.
    pub next: Option<Text>,
}

/// Looks executions and histories up. What it answers is durable.
pub trait Listing: Send + Sync {
    /// An execution's record.
    fn record(&self, execution: &str) -> Result<Option<Record>, StoreError>;
    /// The id of the execution of that name in that flow.
    fn named(&self, flow: &str, name: &str) -> Result<Option<Text>, StoreError>;
    /// A page of executions; [`StoreError::BadCursor`] where it is to begin after what is no cursor.
    fn list(&self, query: &Query) -> Result<Page, StoreError>;
    /// How many executions there are in each state.
    fn counts(&self) -> Result<Vec<(Status, u64)>, StoreError>;
    /// The turn that holds that event.
    fn turn_of(&self, execution: &str, event: EventId) -> Result<Option<Turn>, StoreError>;
    /// The last turn.
    fn last_turn(&self, execution: &str) -> Result<Option<Turn>, StoreError>;
    /// Turns from the one that holds that event on, until they have at least so many events in that direction, that one
    /// included; in order, or backwards. Backwards an event past the last means the last.
    fn turns(&self, execution: &str, from: EventId, events: u32, backwards: bool) -> Result<Vec<Turn>, StoreError>;
}

/// Clears away what has been kept long enough.
pub trait Retention: Send + Sync {
    /// Deletes executions that ended before that time, the earliest first, at most so many, with all that belongs to them:
    /// messages to them, not those they sent. Answers on how many it worked; a long history may take several calls, and 0
    /// says that nothing is left to delete.
    fn clear(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

/// Small things kept by name: schedules, keys, settings of the store itself.
pub trait KeyValue: Send + Sync {
    /// Keeps a text under a kind and a name.
    fn keep(&self, kind: &str, name: &str, text: &str) -> Result<(), StoreError>;
    /// Keeps a text where there is none, whoever else does so at the same time. Answers what is kept then.
    fn keep_new(&self, kind: &str, name: &str, text: &str) -> Result<String, StoreError>;
    /// What is kept there.
    fn fetch(&self, kind: &str, name: &str) -> Result<Option<String>, StoreError>;
    /// All of a kind by name.
    fn all(&self, kind: &str) -> Result<Vec<(String, String)>, StoreError>;
    /// Keeps it no longer. Answers whether it was there.
    fn discard(&self, kind: &str, name: &str) -> Result<bool, StoreError>;
}

/// All that a durable runtime asks of a store.
pub trait Store:
    crate::History + crate::Catalogue + crate::Queueing + crate::Notices + Listing + Retention + KeyValue
{
}

impl<S> Store for S where
    S: crate::History + crate::Catalogue + crate::Queueing + crate::Notices + Listing + Retention + KeyValue
{
}
