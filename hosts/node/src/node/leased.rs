//! A node with leases: it has executions only for a time, and other nodes have other executions of
//! the same store.

use super::{Node, NotTaken};
use crate::flow_loading;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{ExecutionLeases, History, StoreError};
use starbridge_runtime::{Command, Reply, SuspendedExecution};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How executions are leased to a node.
#[derive(Clone)]
pub struct LeaseSettings {
    /// Where leases are taken and given back.
    pub leases: Arc<dyn ExecutionLeases>,
    /// The store of histories: the one with the leases, or a wrapper of it.
    pub history: Arc<dyn History>,
}

impl Node {
    /// Loads an execution and goes on with it. The reply tells whether it does, the execution does
    /// not exist, or another process has it.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub async fn take_up(&self, execution: &Text) -> Result<Reply, NotTaken> {
        let (reply, answer) = oneshot::channel();
        let command = Command::TakeUp {
            execution: execution.clone(),
            reply,
        };
        self.owners.owner_of(execution, command).await?;
        answer.await.map_err(|_| NotTaken::Stopping)
    }

    /// Until [`Node::quiesce`] has returned, the node only decides and makes its decisions durable.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub async fn pause_dispatch(&self) -> Result<(), NotTaken> {
        self.owners.anyone(Command::PauseDispatch).await
    }

    /// Waits until nothing more can be done here now, at most until a time, and gives executions
    /// back. It also waits for timers due within `grace`. Returns the executions given back, and
    /// when to go on with each. For nodes with one owner.
    ///
    /// # Errors
    ///
    /// [`NotTaken`] if the node is busy or stopping.
    pub async fn quiesce(&self, until: Timestamp, grace: Duration) -> Result<Vec<SuspendedExecution>, NotTaken> {
        let (reply, answer) = oneshot::channel();
        let grace = grace.into();
        self.owners.anyone(Command::Quiesce { until, grace, reply }).await?;
        answer.await.map_err(|_| NotTaken::Stopping)
    }

    /// Loads all flows of the store.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn refresh_flows(&self) -> Result<(), StoreError> {
        flow_loading::refresh_all(self.store.as_ref(), &self.flows, &self.limits)
    }

    /// Loads a flow of the store, which other processes may have changed.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn refresh_flow(&self, name: &str) -> Result<(), StoreError> {
        flow_loading::refresh(self.store.as_ref(), &self.flows, &self.limits, name)
    }
}
