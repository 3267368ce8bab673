//! A store for tests of code that appends: it counts appends, and blocks or fails as the test
//! wants.

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{
    Append, AuditEntry, ExecutionLeases, Heartbeat, History, Mark, Message, Receivers, Refusal, ShardSet, StoreError,
    StoredHistory,
};
use std::sync::{Mutex, mpsc};

/// Keeps nothing but the size of each batch.
#[derive(Default)]
pub(super) struct ScriptedStore {
    batches: Mutex<Vec<usize>>,
    /// The first append waits for this.
    unblock: Mutex<Option<mpsc::Receiver<()>>>,
    /// The error with which every append fails.
    failure: Option<StoreError>,
    /// After so many appends all fail.
    most: Option<usize>,
    /// The shards of which appends are refused, and how.
    refused: Mutex<(ShardSet, Option<Refusal>)>,
}

impl ScriptedStore {
    /// The first append waits until the sender sends or is dropped.
    pub(super) fn blocked() -> (Self, mpsc::Sender<()>) {
        let (unblock, blocked) = mpsc::channel();
        let store = Self {
            unblock: Mutex::new(Some(blocked)),
            ..Self::default()
        };
        (store, unblock)
    }

    pub(super) fn failing(failure: StoreError) -> Self {
        Self {
            failure: Some(failure),
            ..Self::default()
        }
    }

    /// Fails once so much was appended.
    pub(super) fn with_room_for(appends: usize) -> Self {
        Self {
            most: Some(appends),
            ..Self::default()
        }
    }

    /// Refuses appends for executions of these shards from now on.
    pub(super) fn refuse(&self, shards: ShardSet, refusal: Refusal) {
        *self.refused.lock().unwrap() = (shards, Some(refusal));
    }

    /// How many appends came together, for each batch that arrived.
    pub(super) fn batches(&self) -> Vec<usize> {
        self.batches.lock().unwrap().clone()
    }
}

impl History for ScriptedStore {
    fn append(&self, batch: &[Append]) -> Result<Vec<(usize, Refusal)>, StoreError> {
        self.batches.lock().unwrap().push(batch.len());
        let blocked = self.unblock.lock().unwrap().take();
        if let Some(blocked) = blocked {
            let _ = blocked.recv();
        }
        let appended: usize = self.batches().iter().sum();
        if self.most.is_some_and(|most| appended > most) {
            return Err(StoreError::Unavailable("there is no room for more".to_owned()));
        }
        let (shards, refusal) = self.refused.lock().unwrap().clone();
        let refused = |append: &Append| refusal.clone().filter(|_| shards.has_execution(&append.execution));
        let refusals = batch.iter().enumerate();
        let refusals = refusals.filter_map(|(index, append)| Some((index, refused(append)?)));
        self.failure.clone().map_or(Ok(refusals.collect()), Err)
    }
    fn load(&self, _: &str) -> Result<Option<StoredHistory>, StoreError> {
        Ok(None)
    }
    fn load_whole(&self, _: &str) -> Result<Option<StoredHistory>, StoreError> {
        Ok(None)
    }
    fn parent_of(&self, _: &str) -> Result<Option<Text>, StoreError> {
        Ok(None)
    }
    fn awake(&self, _: &ShardSet) -> Result<Vec<Text>, StoreError> {
        Ok(Vec::new())
    }
    fn due(&self, _: &ShardSet, _: Timestamp, _: usize) -> Result<Vec<(Timestamp, Text)>, StoreError> {
        Ok(Vec::new())
    }
    fn mark(&self, _: &[(Text, Mark)], _: Option<&AuditEntry>) -> Result<(), StoreError> {
        Ok(())
    }
    fn messages(&self, _: &Receivers) -> Result<Vec<Message>, StoreError> {
        Ok(Vec::new())
    }
}

impl ExecutionLeases for ScriptedStore {
    fn hold_until(&self, _: Timestamp) {}
    fn release(&self, _: &str) -> Result<bool, StoreError> {
        Ok(true)
    }
    fn messages_for(&self, _: &str) -> Result<Vec<Message>, StoreError> {
        Ok(Vec::new())
    }
    fn leave_message(&self, _: &Message) -> Result<bool, StoreError> {
        Ok(false)
    }
    fn heartbeats(&self, _: &str) -> Result<Vec<Heartbeat>, StoreError> {
        Ok(Vec::new())
    }
    fn heartbeat(&self, _: &str, _: &Heartbeat) -> Result<(), StoreError> {
        Ok(())
    }
    fn stranded(&self, _: Timestamp, _: usize) -> Result<Vec<Text>, StoreError> {
        Ok(Vec::new())
    }
}
