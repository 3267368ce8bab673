//! The concurrency keys of a node and of its flows: the views and the settings of operators.

use super::{Node, NotTaken, Operator};
use starbridge_flow::value::{Text, Value};
use starbridge_ports::{AuditKind, Dependency, FLOW_POOL, KeptKey, KeyPause, KeyView, PoolKey, StoreError};
use starbridge_runtime::{AdmissionCommand, KeyChange, find_cycle};
use tokio::sync::oneshot;

/// How many holders of a key are shown.
const HOLDERS: usize = 10;

/// The view of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownKey {
    /// Its state.
    pub view: KeyView,
    /// The ids of executions that hold slots of it; ten at most.
    pub holders: Vec<Text>,
}

impl Node {
    /// Whether this node has admission: without it keys, limits and pauses of flows can't be honoured.
    pub fn has_admission(&self) -> bool {
        self.admission.is_some()
    }

    /// The cycle that a start of this flow under this name would close by waiting for `after`, see
    /// [`find_cycle`](starbridge_runtime::find_cycle).
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn find_cycle(&self, start: (&Text, &Text), after: &[Dependency]) -> Result<Option<Vec<String>>, StoreError> {
        find_cycle(self.store.as_ref(), self.admission.as_ref(), start, after)
    }

    /// At most `most` keys after this one that are set, held or waited for, in the order of pools and keys.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn shown_keys(&self, after: Option<&PoolKey>, most: usize) -> Result<Vec<KeyView>, StoreError> {
        let kept = self.store.kept_keys(after, most)?;
        kept.iter().map(|kept: &KeptKey| self.store.key(&kept.key)).collect()
    }

    /// The state of a key.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn shown_key(&self, key: &PoolKey) -> Result<ShownKey, StoreError> {
        Ok(ShownKey {
            view: self.store.key(key)?,
            holders: self.store.holders(key, HOLDERS)?,
        })
    }

    /// Sets the limit of a key; `None`: that of the definition. Waits until it is durable.
    ///
    /// # Errors
    ///
    /// [`NotTaken::Stopping`] if the node is stopping.
    pub async fn set_key(&self, key: PoolKey, limit: Option<u64>, operator: &Operator) -> Result<(), NotTaken> {
        let action = if limit.is_some() { "set" } else { "unset" };
        let name = format!("{}/{}", key.pool, key.key);
        let entry = self.audit_entry(operator, action, AuditKind::Key, &name);
        let entry = match limit {
            Some(limit) => entry.with("limit", limit),
            None => entry,
        };
        let change = KeyChange {
            limit: Some(limit),
            by: operator.by.clone(),
            audit: Some(entry),
            ..KeyChange::default()
        };
        self.change_key(key, change).await
    }

    /// Sets how many executions of a flow may run at a time, and whether new ones may begin. `None`
    /// leaves a setting unchanged; `Some(None)` removes the limit. Waits until it is durable.
    ///
    /// # Errors
    ///
    /// [`NotTaken::Stopping`] if the node is stopping.
    pub async fn set_flow(
        &self,
        flow: &Text,
        max_running: Option<Option<u64>>,
        paused: Option<bool>,
        operator: &Operator,
    ) -> Result<(), NotTaken> {
        let mut entry = self.audit_entry(operator, "set", AuditKind::Flow, flow);
        if let Some(limit) = max_running {
            entry = entry.with("maxRunning", limit.map_or(Value::Null, Value::from));
        }
        if let Some(paused) = paused {
            entry = entry.with("paused", paused);
        }
        let pause = |paused: bool| {
            paused.then(|| KeyPause {
                by: operator.by.clone(),
                since: self.now(),
            })
        };
        let change = KeyChange {
            limit: max_running,
            paused: paused.map(pause),
            by: operator.by.clone(),
            audit: Some(entry),
        };
        let key = PoolKey {
            pool: FLOW_POOL.into(),
            key: flow.clone(),
        };
        self.change_key(key, change).await
    }

    async fn change_key(&self, key: PoolKey, change: KeyChange) -> Result<(), NotTaken> {
        let (reply, answer) = oneshot::channel();
        let change = Box::new(change);
        let admission = self.admission.as_ref().ok_or(NotTaken::Stopping)?;
        let flow = (key.pool.as_str() == FLOW_POOL).then(|| admission.begin_change(key.key.clone()));
        if flow.is_some() {
            // Admission counts what the store has. A start that was decided without it may still be on its way there.
            self.owners.await_durable().await?;
        }
        let command = AdmissionCommand::Change {
            key,
            change,
            flow,
            reply,
        };
        admission.send(command);
        answer.await.map_err(|_| NotTaken::Stopping)
    }
}
