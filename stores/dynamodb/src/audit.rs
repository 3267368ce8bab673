//! The audit list: all entries are in one partition, in the order of their times.

use crate::DynamoStore;
use crate::client::QueryRequest;
use crate::item::{Item, Key, corrupt, key_of, keys, number, number_of, text};
use crate::op::Op;
use crate::payload;
use crate::table::{AUDIT, sortable};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{Admissions, Audit, AuditEntry, AuditPage, AuditQuery, BulkJobs, BulkStore, StoreError};

/// How many entries one page looks at. With few matches, the result is spread over several pages.
const LOOKED: usize = 5_000;
/// How many items one request looks at.
const PAGE: i32 = 500;

/// The item of an entry. `order` makes its key unique.
pub(crate) fn item(entry: &AuditEntry, order: u64, write: &str) -> Item {
    let place = format!("{}#{}#{write}", sortable(entry.time), crate::order_text(order));
    let mut item = keys(&(AUDIT.to_owned(), place));
    item.insert("number".to_owned(), number(order));
    let entry = serde_json::to_string(entry).unwrap_or_default();
    item.insert("entry".to_owned(), payload::attribute(&entry));
    item
}

fn read(item: &Item) -> Result<(u64, AuditEntry), StoreError> {
    let text = payload::of_attribute(item, "entry")?;
    let entry = serde_json::from_str(&text).ok().zip(number_of(item, "number"));
    let (entry, number) = entry.ok_or_else(|| corrupt(item, "is no entry of the audit list"))?;
    Ok((number, entry))
}

/// Whether a text is the range key of an entry. A cursor is the range key of the last entry shown.
fn is_place(text: &str) -> bool {
    let digits = |part: Option<&str>| {
        part.is_some_and(|part| part.len() == 20 && part.bytes().all(|digit| digit.is_ascii_digit()))
    };
    let mut parts = text.split('#');
    digits(parts.next()) && digits(parts.next()) && parts.next().is_some_and(|write| !write.is_empty())
}

impl DynamoStore {
    /// The writes that add entries. Repeating a write has no further effect, because no other write
    /// has its key.
    pub(crate) fn audit_ops<'a>(&self, entries: impl IntoIterator<Item = &'a AuditEntry>) -> Vec<Op> {
        let entries = entries.into_iter();
        let put = |entry: &AuditEntry| Op::put(item(entry, self.next_orders(1), &self.write_id()));
        entries.map(put).collect()
    }
}

/// Admission's data is not stored here: it needs an owner that always runs.
impl Admissions for DynamoStore {}

/// Bulk jobs need a process that always runs.
impl BulkStore for DynamoStore {
    fn bulk_jobs(&self) -> Option<&dyn BulkJobs> {
        None
    }
}

impl Audit for DynamoStore {
    fn audit(&self, query: &AuditQuery) -> Result<AuditPage, StoreError> {
        if query.cursor.as_ref().is_some_and(|cursor| !is_place(cursor)) {
            return Err(StoreError::BadCursor);
        }
        let first = query.from.map_or_else(|| "0".to_owned(), sortable);
        let last = match (&query.cursor, query.to) {
            (Some(cursor), _) => cursor.to_string(),
            (None, Some(to)) => sortable(to),
            (None, None) => "~".to_owned(),
        };
        let mut page = AuditPage::default();
        if last < first {
            return Ok(page);
        }
        let ask = QueryRequest {
            keys: Some("#pk = :pk AND #sk BETWEEN :first AND :last".to_owned()),
            values: vec![(":pk", text(AUDIT)), (":first", text(first)), (":last", text(last))],
            backwards: true,
            limit: Some(PAGE),
            ..QueryRequest::default()
        };
        let (mut from, mut looked, mut shown) = (None, 0, None);
        loop {
            let (items, next) = self.client.page(&ask, from)?;
            for item in &items {
                let place = key_of(item).1;
                let (number, entry) = read(item)?;
                if query.cursor.as_ref().is_some_and(|cursor| *place >= **cursor) {
                    continue;
                }
                looked += 1;
                if query.fits(&entry) {
                    if page.items.len() >= query.limit {
                        page.next = shown;
                        return Ok(page);
                    }
                    page.items.push((number, entry));
                    shown = Some(Text::from(place));
                } else if looked >= LOOKED {
                    page.next = Some(Text::from(place));
                    return Ok(page);
                }
            }
            if next.is_none() {
                return Ok(page);
            }
            from = next;
        }
    }

    fn clear_audit(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        if limit == 0 {
            return Ok(0);
        }
        let ask = QueryRequest {
            only: Some("#pk, #sk"),
            limit: i32::try_from(limit).ok(),
            ..QueryRequest::partition(AUDIT, Some(("#sk < :sk", &sortable(before))))
        };
        let (items, _) = self.client.page(&ask, None)?;
        let keys: Vec<Key> = items.iter().map(key_of).collect();
        self.client.delete_all(&keys)?;
        Ok(keys.len())
    }
}
