//! The port for looking up executions, and the traits that complete a store.

use crate::audit::AuditEntry;
use crate::error::StoreError;
use crate::history::{AttemptLog, ExecutionRecord, RecordedFailure};
use crate::turn::{Turn, TurnHead};
use crate::waiting_reason::WaitingReason;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{EventId, Status};

/// The id and record of an execution.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    /// The id of the execution.
    pub id: Text,
    /// What is known of the execution without reading its history.
    pub record: ExecutionRecord,
}

/// Which executions to list: those that match everything that is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The name of their flow.
    pub flow: Option<Text>,
    /// Their status is one of these; empty: any.
    pub statuses: Vec<Status>,
    /// The reason why they are not moving ([`ExecutionRecord::waiting_reason`]) is one of these; empty: any or none.
    pub reasons: Vec<WaitingReason>,
    /// What they wait for ([`ExecutionRecord::stored_reason`]), beside `reasons`: a queue, a child, a step.
    pub reason_of: Option<Text>,
    /// Only executions that are set aside ([`ExecutionRecord::broken`]).
    pub broken: bool,
    /// Their name begins with this.
    pub name: Option<Text>,
    /// The execution that started them.
    pub parent: Option<Text>,
    /// The execution at the root of their family. It is not listed itself.
    pub root: Option<Text>,
    /// They have all these labels.
    pub labels: Vec<(Text, Text)>,
    /// They were started at this time or later. Executions that waited to begin count from their
    /// request.
    pub from: Option<Timestamp>,
    /// They were started before this time.
    pub to: Option<Timestamp>,
    /// The name of the error with which they ended.
    pub error: Option<Text>,
    /// The name of the step in which that error arose.
    pub step: Option<Text>,
    /// They ended at this time or later.
    pub ended_from: Option<Timestamp>,
    /// They ended before this time.
    pub ended_to: Option<Timestamp>,
    /// Where to go on: `next` of the previous page.
    pub cursor: Option<Text>,
    /// The largest number of executions on the page.
    pub limit: usize,
}

impl Query {
    /// Whether an execution with this record matches. `cursor` and `limit` are ignored.
    pub fn fits(&self, record: &ExecutionRecord) -> bool {
        let label = |(label, value): &(Text, Text)| {
            let kept = record.labels.as_ref().and_then(|labels| labels.get(label));
            kept.map(Value::to_plain_text).is_some_and(|kept| *value == *kept)
        };
        self.flow.as_ref().is_none_or(|flow| record.flow == *flow)
            && (self.statuses.is_empty() || self.statuses.contains(&record.status))
            && (self.reasons.is_empty()
                || record
                    .waiting_reason()
                    .is_some_and(|reason| self.reasons.contains(&reason)))
            && self
                .reason_of
                .as_ref()
                .is_none_or(|of| record.stored_reason().is_some_and(|(_, known)| known == Some(of)))
            && (!self.broken || record.broken.is_some())
            && self
                .name
                .as_ref()
                .is_none_or(|name| record.name.starts_with(name.as_str()))
            && self.parent.as_ref().is_none_or(|wanted| {
                let parent = record.parent.as_ref();
                parent.is_some_and(|parent| parent.execution == *wanted)
            })
            && self.root.as_ref().is_none_or(|root| record.root.as_ref() == Some(root))
            && self.labels.iter().all(label)
            && self.from.is_none_or(|from| record.asked() >= from)
            && self.to.is_none_or(|to| record.asked() < to)
            && self.fits_end(record)
    }

    /// Whether an execution ended as is asked for, if something is.
    fn fits_end(&self, record: &ExecutionRecord) -> bool {
        let failed = |wanted: &Option<Text>, of: fn(&RecordedFailure) -> &Text| {
            let failure = record.failure.as_ref();
            wanted
                .as_ref()
                .is_none_or(|wanted| failure.is_some_and(|failure| of(failure) == wanted))
        };
        failed(&self.error, |failure| &failure.error)
            && failed(&self.step, |failure| &failure.step)
            && self
                .ended_from
                .is_none_or(|from| record.ended.is_some_and(|at| at >= from))
            && self.ended_to.is_none_or(|to| record.ended.is_some_and(|at| at < to))
    }

    /// Whether it asks how executions ended. No store has an index for that.
    pub fn asks_of_ends(&self) -> bool {
        self.error.is_some() || self.step.is_some() || self.ended_from.is_some() || self.ended_to.is_some()
    }
}

/// A page of executions, the newest first. It may have fewer than requested, even none, although
/// there is a next page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The executions of the page.
    pub items: Vec<Listed>,
    /// The cursor of the next page; `None` if this is the last one.
    pub next: Option<Text>,
    /// If the store stopped looking before the page was full: when the earliest execution it looked at was requested.
    pub looked: Option<Timestamp>,
}

/// Looks up executions and histories. Everything it returns is durable.
pub trait Listing: Send + Sync {
    /// The record of an execution; `None` if there is no such execution.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn record(&self, execution: &str) -> Result<Option<ExecutionRecord>, StoreError>;

    /// The id of the execution with this name in this flow; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn named(&self, flow: &str, name: &str) -> Result<Option<Text>, StoreError>;

    /// The id of the execution of this flow that was started with this `once_key`; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn keyed(&self, flow: &str, once_key: &str) -> Result<Option<Text>, StoreError>;

    /// A page of executions.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadCursor`] if the query's cursor is not one of this store, [`StoreError::Unavailable`] or
    /// [`StoreError::Corrupt`].
    fn list(&self, query: &Query) -> Result<Page, StoreError>;

    /// How many executions have each status.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn counts(&self) -> Result<Vec<(Status, u64)>, StoreError>;

    /// How many executions do not move for each reason; `None` if this store does not count them. Those that wait to be admitted
    /// count under the reason that admission knows.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn reason_counts(&self) -> Result<Option<Vec<(WaitingReason, u64)>>, StoreError> {
        Ok(None)
    }

    /// The turn that holds an event; `None` if there is no such event.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn turn_of(&self, execution: &str, event: EventId) -> Result<Option<Turn>, StoreError>;

    /// The last turn of an execution; `None` if there is no such execution.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn last_turn(&self, execution: &str) -> Result<Option<Turn>, StoreError>;

    /// Turns from the one that holds event `from` on, in order or backwards, until they have at least `events` events
    /// in that direction, or [`TURN_PAGE_BYTES`](crate::TURN_PAGE_BYTES) of text; `from` itself counts. Backwards, a `from`
    /// after the last event means the last event.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn turns(&self, execution: &str, from: EventId, events: u32, backwards: bool) -> Result<Vec<Turn>, StoreError>;

    /// The heads of turns from the one that holds event `from` on, in order or backwards, until they have at least `events`
    /// events in that direction, however much text they have. The text is not read, if the store can do without.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn turn_heads(
        &self,
        execution: &str,
        from: EventId,
        events: u32,
        backwards: bool,
    ) -> Result<Vec<TurnHead>, StoreError>;

    /// The logs of an execution's attempts, from the event `from` on, in order of events, at most
    /// `limit`; `None` if this store keeps no logs.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn logs(&self, execution: &str, from: EventId, limit: usize) -> Result<Option<Vec<AttemptLog>>, StoreError>;
}

/// Deletes executions that have been kept long enough.
pub trait Retention: Send + Sync {
    /// Deletes at most `limit` executions that ended before a time, the earliest first, with everything that belongs
    /// to them, including messages to them but not messages they sent. Returns how many it handled.
    /// A long history may take several calls; 0 means that nothing is left to delete.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn clear(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

/// Stores small texts by kind and name: schedules, keys, settings of the store itself.
pub trait KeyValue: Send + Sync {
    /// Stores a text under a kind and a name; it replaces an earlier one. Adds `audit` to the audit list.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn put_value(&self, kind: &str, name: &str, text: &str, audit: Option<&AuditEntry>) -> Result<(), StoreError>;

    /// Stores a text unless one is already stored, also if others do the same at the same time.
    /// Returns the text that is then stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn put_new_value(&self, kind: &str, name: &str, text: &str) -> Result<String, StoreError>;

    /// The text under a kind and a name; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn get_value(&self, kind: &str, name: &str) -> Result<Option<String>, StoreError>;

    /// All names and texts of a kind, by name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn list_values(&self, kind: &str) -> Result<Vec<(String, String)>, StoreError>;

    /// Deletes a text. Returns whether it was there; then `audit` is added to the audit list.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn delete_value(&self, kind: &str, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError>;
}
