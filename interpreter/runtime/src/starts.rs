//! What a starting node must know about how the previous process ended.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{Mark, Receivers, ShardSet, Store, StoreError};
use std::collections::BTreeSet;

/// The key under which a store says that a node runs on it. It is left there if the node ends unexpectedly.
const KIND: &str = "node";
const NAME: &str = "running";
/// The value in place of a time once the node was told to stop.
const STOPPING: &str = "stopping";
/// How many executions are marked in one transaction.
const BATCH: usize = 4096;

/// Records that a node is running. If the previous node was not shut down, any execution that it
/// ran may be the reason, so each gets one more failed attempt. If that node had been told to stop,
/// no execution is the reason: its operator may have killed it. Returns the number of these
/// executions if it was not shut down, `None` after a shutdown.
///
/// # Errors
///
/// The error of the store.
pub fn note_start(store: &dyn Store, now: Timestamp) -> Result<Option<usize>, StoreError> {
    let mut after_crash = None;
    if let Some(before) = store.get_value(KIND, NAME)? {
        let mut taken_up: BTreeSet<Text> = store.awake(&ShardSet::ALL)?.into_iter().collect();
        taken_up.extend(
            store
                .due(&ShardSet::ALL, now, usize::MAX)?
                .into_iter()
                .map(|(_, execution)| execution),
        );
        taken_up.extend(
            store
                .messages(&Receivers::Executions(ShardSet::ALL))?
                .into_iter()
                .map(|message| message.id.to),
        );
        after_crash = Some(taken_up.len());
        let mark = match before == STOPPING {
            true => Mark::Survived,
            false => Mark::Failed,
        };
        let marks: Vec<(Text, Mark)> = taken_up
            .into_iter()
            .map(|execution| (execution, mark.clone()))
            .collect();
        for marks in marks.chunks(BATCH) {
            store.mark(marks, None)?;
        }
    }
    store.put_value(KIND, NAME, &now.to_string(), None)?;
    Ok(after_crash)
}

/// Records that the running node was told to stop.
///
/// # Errors
///
/// [`StoreError`] if the store can't be read or written.
pub fn note_stopping(store: &dyn Store) -> Result<(), StoreError> {
    match store.get_value(KIND, NAME)? {
        Some(_) => store.put_value(KIND, NAME, STOPPING, None),
        None => Ok(()),
    }
}

/// Records that the node has ended regularly.
///
/// # Errors
///
/// [`StoreError`] if the store can't be written.
pub fn note_end(store: &dyn Store) -> Result<(), StoreError> {
    store.delete_value(KIND, NAME, None).map(drop)
}
