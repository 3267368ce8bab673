//! What a start must know about how the process before it ended.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{Mark, Store, StoreError};
use std::collections::BTreeSet;

/// The key under which a store says that a node runs on it. It is left there if the node ends unexpectedly.
const KIND: &str = "node";
const NAME: &str = "running";
/// How many executions are marked in one transaction.
const TOGETHER: usize = 4096;

/// Records that a node runs on the store. If the node before did not end regularly, any execution that is awake, is due
/// or has messages may be the cause: each gets one more failed attempt.
///
/// # Errors
///
/// [`StoreError`] if the store can't be read or written.
pub fn note_start(store: &dyn Store, now: Timestamp) -> Result<(), StoreError> {
    if store.fetch(KIND, NAME)?.is_some() {
        let mut taken_up: BTreeSet<Text> = store.awake()?.into_iter().collect();
        taken_up.extend(store.due(now, usize::MAX)?.into_iter().map(|(_, execution)| execution));
        taken_up.extend(store.messages()?.into_iter().map(|message| message.id.to));
        let marks: Vec<(Text, Mark)> = taken_up
            .into_iter()
            .map(|execution| (execution, Mark::Failed))
            .collect();
        for marks in marks.chunks(TOGETHER) {
            store.mark(marks)?;
        }
    }
    store.keep(KIND, NAME, &now.to_string())
}

/// Records that the node has ended regularly.
///
/// # Errors
///
/// [`StoreError`] if the store can't be written.
pub fn note_end(store: &dyn Store) -> Result<(), StoreError> {
    store.discard(KIND, NAME).map(drop)
}
