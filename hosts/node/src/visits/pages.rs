//! Pages of rows, read from a fold that is kept.

use super::{Row, Visits};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Value;
use std::sync::Arc;

/// Which rows are wanted.
#[derive(Clone, Debug, Default)]
pub struct VisitFilter {
    /// Only rows with this status.
    pub status: Option<String>,
    /// Only rows of the step with this name.
    pub step: Option<String>,
    /// Only rows inside this place: their path begins with it.
    pub path: Option<Value>,
    /// Only rows entered after this event.
    pub after: u64,
}

impl VisitFilter {
    /// Whether a row is wanted.
    pub fn has(&self, row: &Row) -> bool {
        row.event() > self.after
            && self.status.as_deref().is_none_or(|status| status == row.status())
            && self.step.as_deref().is_none_or(|step| step == row.step())
            && self.path.as_ref().is_none_or(|path| begins_with(row.path(), path))
    }
}

/// Whether a path leads through a place.
fn begins_with(path: &Value, begin: &Value) -> bool {
    let (Some(path), Some(begin)) = (path.as_array(), begin.as_array()) else {
        return false;
    };
    path.values().starts_with(begin.values())
}

impl Visits {
    /// Whether there were visits for which there was no room.
    pub fn is_full(&self) -> bool {
        self.more
    }

    /// The time of the latest event.
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// The visit that was entered with this event.
    pub fn row(&self, event: u64) -> Option<&Row> {
        self.rows.get(&event).map(Arc::as_ref)
    }

    /// All rows, in the order in which steps were entered.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values().map(Arc::as_ref)
    }

    /// The rows of an ended execution: open ones are given up.
    #[must_use]
    pub fn ended(&self) -> Self {
        let mut ended = self.clone();
        ended.end_all(self.time);
        ended
    }

    /// At most `limit` rows, and the event after which to go on if there are more.
    pub fn page(&self, filter: &VisitFilter, limit: usize) -> (Vec<Row>, Option<u64>) {
        let later = self.rows.range(filter.after.saturating_add(1)..).map(|(_, row)| row);
        let mut wanted = later.filter(|row| filter.has(row));
        let rows: Vec<Row> = wanted.by_ref().take(limit).map(|row| Row::clone(row)).collect();
        let next = rows.last().map(Row::event).filter(|_| wanted.next().is_some());
        (rows, next)
    }

    /// Its approximate memory, in bytes.
    pub fn bytes(&self) -> usize {
        let rows: usize = self.rows.values().map(|row| row.bytes()).sum();
        rows + self.own_bytes()
    }

    /// The approximate memory of a copy that shares the rows, in bytes.
    pub fn own_bytes(&self) -> usize {
        const ENTRY: usize = 24;
        const PLACE: usize = 96;
        ENTRY * (self.rows.len() + self.calls.len()) + PLACE * (self.open.len() + self.undoing.len())
    }
}
