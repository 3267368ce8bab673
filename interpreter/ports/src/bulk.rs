//! The port for bulk jobs: an act of an operator on many executions, kept until it is done for each of them.

use crate::audit::{AuditEntry, BulkItemId};
use crate::error::StoreError;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};

/// An act of an operator on many executions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BulkJob {
    /// The id of the job.
    pub id: Text,
    /// What is done to each execution, in one word: `stop`.
    pub action: Text,
    /// Further arguments of the act.
    pub arguments: Object,
    /// How the executions were chosen, as the request gave it. Only for people once they are
    /// collected.
    pub filter: Object,
    /// The name of the operator.
    pub by: Text,
    /// When it was requested.
    pub created: Timestamp,
    /// How far it has come, or how it ended.
    pub state: BulkState,
    /// How many items it has so far.
    pub items: u64,
    /// For how many items the act was carried out.
    pub done: u64,
    /// How many items refused the act.
    pub skipped: u64,
    /// For how many items the act failed.
    pub failed: u64,
    /// The largest number of items handled in a second.
    pub rate: Option<u32>,
    /// When the last item was handled, or the job was cancelled.
    pub ended: Option<Timestamp>,
}

impl BulkJob {
    /// How many items have no result.
    pub fn open(&self) -> u64 {
        self.items.saturating_sub(self.done + self.skipped + self.failed)
    }
}

/// How far a bulk job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BulkState {
    /// The executions are being collected. None is touched yet.
    #[default]
    Collecting,
    /// The executions are being handled.
    Running,
    /// No further item begins until an operator resumes the job.
    Suspended,
    /// Each item has a result.
    Done,
    /// No further item begins.
    Cancelled,
    /// The collection does not go on until an operator resumes the job; then it begins again.
    Unfinished,
}

/// What decides when a bulk job that is collecting or running goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenJob {
    /// The id of the job.
    pub id: Text,
    /// Collecting or running.
    pub state: BulkState,
    /// The largest number of items handled in a second.
    pub rate: Option<u32>,
}

impl BulkState {
    /// All states, in an order that never changes, because stores write a state as its position here.
    pub const ALL: [Self; 6] = [
        Self::Collecting,
        Self::Running,
        Self::Suspended,
        Self::Done,
        Self::Cancelled,
        Self::Unfinished,
    ];

    /// The position of the state in [`BulkState::ALL`].
    pub fn code(self) -> usize {
        Self::ALL.iter().position(|&known| known == self).unwrap_or(0)
    }

    /// The word for the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Collecting => "collecting",
            Self::Running => "running",
            Self::Suspended | Self::Unfinished => "suspended",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the job is over.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled)
    }
}

/// An execution of a bulk job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkItem {
    /// The number of the item, from 1.
    pub number: u64,
    /// The id of the execution.
    pub execution: Text,
    /// The result; `None` if the item is not handled yet.
    pub result: Option<BulkResult>,
}

/// The result of an item of a bulk job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkResult {
    /// The act was carried out.
    Done,
    /// The execution refused it, with this code, and is unchanged.
    Skipped(Text),
    /// The execution could not take it, with this code.
    Failed(Text),
}

impl BulkResult {
    /// The words of all results.
    pub const WORDS: [&str; 3] = ["done", "skipped", "failed"];

    /// The word for the result.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Skipped(_) => "skipped",
            Self::Failed(_) => "failed",
        }
    }

    /// The code of a result that is not [`BulkResult::Done`].
    pub fn code(&self) -> Option<&Text> {
        match self {
            Self::Done => None,
            Self::Skipped(code) | Self::Failed(code) => Some(code),
        }
    }

    /// The result as a text: the word, and the code after a space.
    pub fn to_text(&self) -> String {
        match self.code() {
            None => self.word().to_owned(),
            Some(code) => format!("{} {code}", self.word()),
        }
    }

    /// Reads what [`BulkResult::to_text`] writes.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(' ') {
            None => (text == "done").then_some(Self::Done),
            Some(("skipped", code)) => Some(Self::Skipped(code.into())),
            Some(("failed", code)) => Some(Self::Failed(code.into())),
            Some(_) => None,
        }
    }
}

/// Which items to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BulkItems {
    /// Whatever became of them.
    #[default]
    All,
    /// Those without a result.
    Open,
    /// Those whose result has this word.
    With(&'static str),
}

impl BulkItems {
    /// Whether an item with this result is listed.
    pub fn fits(self, result: Option<&BulkResult>) -> bool {
        match self {
            Self::All => true,
            Self::Open => result.is_none(),
            Self::With(word) => result.is_some_and(|result| result.word() == word),
        }
    }
}

/// A page of jobs, the newest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BulkPage {
    /// The jobs of the page.
    pub items: Vec<BulkJob>,
    /// The cursor of the next page; `None` if this is the last one.
    pub next: Option<Text>,
}

/// Stores bulk jobs.
///
/// The result [`BulkResult::Done`] is not written here: the append that carries out an item does it, since its entry of the
/// audit list names the item ([`AuditEntry::bulk`]). So an item is carried out once, whenever the process ends.
pub trait BulkJobs: Send + Sync {
    /// Stores a new job, with these executions as its items. Adds `audit` to the audit list.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn put_job(&self, job: &BulkJob, executions: &[Text], audit: Option<&AuditEntry>) -> Result<(), StoreError>;

    /// Adds items to a job that is collecting; the first of them has the number `first`, and with 1 they replace all others.
    /// With `last` the job runs from now on. Returns whether the job is collecting.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn add_items(&self, job: &str, first: u64, executions: &[Text], last: bool) -> Result<bool, StoreError>;

    /// A job; `None` if there is none with this id.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn job(&self, job: &str) -> Result<Option<BulkJob>, StoreError>;

    /// At most `limit` jobs after a cursor, the newest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadCursor`] if the cursor is not one of this store, [`StoreError::Unavailable`] or
    /// [`StoreError::Corrupt`].
    fn jobs(&self, cursor: Option<&str>, limit: usize) -> Result<BulkPage, StoreError>;

    /// The jobs that are collecting or running, in the order in which they were made.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn jobs_to_run(&self) -> Result<Vec<OpenJob>, StoreError>;

    /// At most `limit` items of a job with a number over `after`, in order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn items(&self, job: &str, which: BulkItems, after: u64, limit: usize) -> Result<Vec<BulkItem>, StoreError>;

    /// Writes results of items that have none. An item that has one keeps it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn set_results(&self, results: &[(BulkItemId, BulkResult)]) -> Result<(), StoreError>;

    /// Changes the state of a job that is in one of the states `from`; then `audit` is added to the audit list. Returns
    /// whether the state changed. A job that enters a final state ends at `now`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn change_job(
        &self,
        job: &str,
        from: &[BulkState],
        to: BulkState,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> Result<bool, StoreError>;

    /// Deletes jobs that ended before a time, with at most `limit` items. Returns how many items
    /// and jobs it deleted; 0 means that nothing is left to delete.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn clear_jobs(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;
}

/// Says whether a store has bulk jobs.
pub trait BulkStore: Send + Sync {
    /// The bulk jobs; `None` if this store has none.
    fn bulk_jobs(&self) -> Option<&dyn BulkJobs>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_is_read_as_it_was_written() {
        for result in [
            BulkResult::Done,
            BulkResult::Skipped("NotRedrivable".into()),
            BulkResult::Failed("Panicked".into()),
        ] {
            assert_eq!(BulkResult::parse(&result.to_text()), Some(result));
        }
        assert_eq!(BulkResult::parse("gone away"), None);
    }

    #[test]
    fn state_has_its_place_in_the_list() {
        for (code, state) in BulkState::ALL.into_iter().enumerate() {
            assert_eq!(state.code(), code);
        }
    }
}
