//! The audit list.

use crate::Kept;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{AuditEntry, AuditPage, AuditQuery, BulkResult, StoreError};

impl Kept {
    pub(crate) fn add_audit<'a>(&mut self, entries: impl IntoIterator<Item = &'a AuditEntry>) {
        for entry in entries {
            self.last_audit += 1;
            let mut entry = entry.clone();
            if let Some(item) = entry.bulk.take() {
                self.set_result(&item, &BulkResult::Done);
            }
            self.audit.insert(self.last_audit, entry);
        }
    }

    /// A page of entries. A cursor is the number of the last one shown.
    pub(crate) fn audit(&self, query: &AuditQuery) -> Result<AuditPage, StoreError> {
        let number = |cursor: &Text| cursor.parse().map_err(|_| StoreError::BadCursor);
        let before = query.cursor.as_ref().map(number).transpose()?;
        let entries = self.audit.range(..before.unwrap_or(u64::MAX)).rev();
        let mut fitting = entries.filter(|(_, entry)| query.fits(entry));
        let items: Vec<(u64, AuditEntry)> = fitting
            .by_ref()
            .take(query.limit)
            .map(|(number, entry)| (*number, entry.clone()))
            .collect();
        let next = items.last().filter(|_| fitting.next().is_some());
        Ok(AuditPage {
            next: next.map(|(number, _)| Text::from(number.to_string())),
            items,
        })
    }

    pub(crate) fn clear_audit(&mut self, before: Timestamp, limit: usize) -> usize {
        let old = self.audit.iter().filter(|(_, entry)| entry.time < before);
        let mut old: Vec<(Timestamp, u64)> = old.map(|(number, entry)| (entry.time, *number)).collect();
        old.sort_unstable();
        old.truncate(limit);
        for (_, number) in &old {
            self.audit.remove(number);
        }
        old.len()
    }
}
