//! The port for the audit list: what operators did, on any kind of object.

use crate::error::StoreError;
use serde::{Deserialize, Serialize};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};

/// What an operator did. The write that carries it out also stores it, so that neither exists
/// without the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditEntry {
    /// When the request came.
    pub time: Timestamp,
    /// Who did it: the name of a token, or [`LOCAL_OPERATOR`].
    pub by: Text,
    /// What was done, in one word: `stop`.
    pub action: Text,
    /// The kind of the object.
    pub kind: AuditKind,
    /// The name of the object. An execution's is its id.
    pub name: Text,
    /// The other members of the request.
    pub detail: Object,
    /// The id that the request was given by its sender, if it has one.
    pub request: Option<Text>,
    /// The item of a bulk job that this carries out. The write that adds the entry also writes the item's result, and the
    /// list does not keep it: the detail has the job.
    #[serde(skip)]
    pub bulk: Option<BulkItemId>,
}

impl AuditEntry {
    /// This entry with one more detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.detail.insert(key.into(), value.into());
        self
    }
}

/// Names an item of a bulk job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BulkItemId {
    /// The id of the job.
    pub job: Text,
    /// The number of the item, from 1.
    pub number: u64,
}

/// The operator's name for requests without a token.
pub const LOCAL_OPERATOR: &str = "local";

/// The kind of object that an operator acted on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AuditKind {
    /// By its id.
    #[default]
    Execution,
    /// By its name.
    Flow,
    /// By its name, as resources have it.
    Queue,
    /// By its name.
    Schedule,
    /// A concurrency key: its pool, `/`, and the key.
    Key,
    /// A bulk job.
    Bulk,
    /// By its name.
    View,
    /// A node of a cluster.
    Node,
}

impl AuditKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Execution,
        Self::Flow,
        Self::Queue,
        Self::Schedule,
        Self::Key,
        Self::Bulk,
        Self::View,
        Self::Node,
    ];

    /// The word for the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Execution => "execution",
            Self::Flow => "flow",
            Self::Queue => "queue",
            Self::Schedule => "schedule",
            Self::Key => "key",
            Self::Bulk => "bulk",
            Self::View => "view",
            Self::Node => "node",
        }
    }

    /// The kind with this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Which entries to list: those that match everything that is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditQuery {
    /// Made at this time or later.
    pub from: Option<Timestamp>,
    /// Made before this time.
    pub to: Option<Timestamp>,
    /// Of this operator.
    pub by: Option<Text>,
    /// With this action.
    pub action: Option<Text>,
    /// About an object of this kind.
    pub kind: Option<AuditKind>,
    /// About the object with this name.
    pub name: Option<Text>,
    /// Where to go on: `next` of the previous page.
    pub cursor: Option<Text>,
    /// The largest number of entries on the page.
    pub limit: usize,
}

impl AuditQuery {
    /// Whether an entry matches. `cursor` and `limit` are ignored.
    pub fn fits(&self, entry: &AuditEntry) -> bool {
        let is = |wanted: &Option<Text>, text: &Text| wanted.as_ref().is_none_or(|wanted| wanted == text);
        self.from.is_none_or(|from| entry.time >= from)
            && self.to.is_none_or(|to| entry.time < to)
            && is(&self.by, &entry.by)
            && is(&self.action, &entry.action)
            && self.kind.is_none_or(|kind| entry.kind == kind)
            && is(&self.name, &entry.name)
    }
}

/// A page of entries, the newest first. It may have fewer than requested, even none, although there
/// is a next page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditPage {
    /// The entries with their numbers, which only grow.
    pub items: Vec<(u64, AuditEntry)>,
    /// The cursor of the next page; `None` if this is the last one.
    pub next: Option<Text>,
}

/// Reads and shortens the audit list. Other writes add to it.
pub trait Audit: Send + Sync {
    /// A page of the list.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadCursor`] if the query's cursor is not one of this store, [`StoreError::Unavailable`] or
    /// [`StoreError::Corrupt`].
    fn audit(&self, query: &AuditQuery) -> Result<AuditPage, StoreError>;

    /// Deletes at most `limit` entries made before a time, the earliest first. Returns how many.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn clear_audit(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}
