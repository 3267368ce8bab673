//! The port for outboxes: rows that others write in their own transactions, each of which asks for one thing once.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use std::future::Future;
use std::pin::Pin;

/// The work of an outbox. Dropping it early loses nothing: rows are found again.
pub type OutboxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, OutboxError>> + Send + 'a>>;

/// A table in somebody's database. A row is there if the transaction that wrote it committed.
pub trait Outbox: Send + Sync {
    /// The name of the outbox.
    fn name(&self) -> &str;
    /// Where its database is, without a password.
    fn place(&self) -> &str;
    /// What its rows may ask for.
    fn rights(&self) -> &OutboxRights;
    /// Takes rows that nobody has taken, at most `limit`. Nobody else is given them. Rows that this server took before
    /// and did not finish come first, once after each new connection. After an error of any method, the caller forgets
    /// the rows it has: they come again.
    fn take(&self, limit: usize) -> OutboxFuture<'_, Vec<OutboxRow>>;
    /// Waits until there may be new rows, for a while at most.
    fn wait(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
    /// Deletes rows whose consequence is durable.
    fn done(&self, ids: Vec<Text>) -> OutboxFuture<'_, ()>;
    /// Keeps rows that can't be carried out aside, with the reasons. Returns how many older ones were deleted for them: an outbox
    /// keeps only so many.
    fn refuse(&self, rows: Vec<OutboxRefusal>) -> OutboxFuture<'_, u64>;
    /// How much there is in it.
    fn standing(&self) -> OutboxFuture<'_, OutboxStanding>;
    /// Rows that were refused, the newest first, from below this number on.
    fn refused(&self, below: Option<i64>, limit: usize) -> OutboxFuture<'_, Vec<RefusedRow>>;
    /// The refused row with this id.
    fn refused_one(&self, id: Text) -> OutboxFuture<'_, Option<RefusedRow>>;
}

/// What the rows of an outbox may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRights {
    /// Patterns of names of flows; `*` stands for any characters.
    pub flows: Vec<String>,
    /// Actions: `start`, `succeed`, `fail` or `stop`.
    pub actions: Vec<String>,
}

impl OutboxRights {
    /// What a row may ask for.
    pub const ACTIONS: [&str; 4] = ["start", "succeed", "fail", "stop"];
}

impl Default for OutboxRights {
    /// Everything.
    fn default() -> Self {
        Self {
            flows: vec!["*".to_owned()],
            actions: Self::ACTIONS.map(str::to_owned).to_vec(),
        }
    }
}

/// A request that was committed together with somebody's own changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// The row's own id. It is the id of the execution that it starts.
    pub id: Text,
    /// What it asks for, in one word: `start`, `succeed`, `fail` or `stop`.
    pub action: String,
    /// The members of the request, as a JSON object.
    pub body: String,
    /// Who wrote it.
    pub by: Text,
    /// Whether this server took it before, so that its consequence may be durable already.
    pub again: bool,
}

/// Why a row can't be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRefusal {
    /// The row's own id.
    pub id: Text,
    /// The reason as a code.
    pub code: String,
    /// The reason for people.
    pub reason: String,
}

/// A row that could not be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedRow {
    /// Its place in the list.
    pub number: i64,
    /// The row's own id.
    pub id: Text,
    /// What it asked for.
    pub action: String,
    /// The flow that it was to start, or nothing.
    pub flow: Option<Text>,
    /// The name of the execution that it was to start, or nothing.
    pub name: Option<Text>,
    /// Who wrote it.
    pub by: Text,
    /// When it was written.
    pub written: Timestamp,
    /// When it was refused.
    pub refused: Timestamp,
    /// The reason as a code.
    pub code: Text,
    /// The reason for people.
    pub reason: Text,
}

/// How much there is in an outbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutboxStanding {
    /// Rows that are not finished.
    pub waiting: u64,
    /// When the oldest of them was written.
    pub oldest: Option<Timestamp>,
    /// Rows that were refused and are still kept.
    pub refused: u64,
}

/// Why an outbox can't be used now, for people. The caller tries again after a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxError(pub String);

impl std::fmt::Display for OutboxError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OutboxError {}
