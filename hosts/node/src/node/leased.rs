//! A node that has executions for a time only: others, elsewhere, have the rest of the same store.

use super::{Node, NotTaken};
use crate::flow_loading;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{ExecutionLeases, History, StoreError};
use starbridge_runtime::{Command, Reply, SuspendedExecution};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How executions are given to a node.
#[derive(Clone)]
pub struct Visit {
    /// Who gives them.
    pub leases: Arc<dyn ExecutionLeases>,
    /// Where histories are appended and taken from: what gives executions, or what stands before it.
    pub history: Arc<dyn History>,
}

impl Node {
    /// Goes on with an execution. Answers that it does, that there is none, or that somebody else has it.
    pub async fn take_up(&self, execution: &Text) -> Result<Reply, NotTaken> {
        let (reply, answer) = oneshot::channel();
        let command = Command::TakeUp {
            execution: execution.clone(),
            reply,
        };
        self.owners.owner_of(execution, command)?;
        answer.await.map_err(|_| NotTaken::Stopping)
    }

    /// From now on what is asked of the node is decided and made durable, and nothing more, until it has come to rest.
    pub fn stand_still(&self) -> Result<(), NotTaken> {
        self.owners.anyone(Command::StandStill)
    }

    /// Waits until nothing is left to do here for now, at most until that time, and gives executions back; timers due within
    /// `linger` are waited for. Answers what was given back, and when each is to be gone on with. For nodes with one owner.
    pub async fn rest(&self, until: Timestamp, linger: Duration) -> Result<Vec<SuspendedExecution>, NotTaken> {
        let (reply, answer) = oneshot::channel();
        let linger = u64::try_from(linger.as_millis()).unwrap_or(u64::MAX);
        self.owners.anyone(Command::Rest { until, linger, reply })?;
        answer.await.map_err(|_| NotTaken::Stopping)
    }

    /// Reads what the store has of all flows.
    pub fn refresh_flows(&self) -> Result<(), StoreError> {
        flow_loading::refresh_all(self.store.as_ref(), &self.flows, &self.limits)
    }

    /// Reads what the store has of a flow: others may have put a version meanwhile.
    pub fn refresh_flow(&self, name: &str) -> Result<(), StoreError> {
        flow_loading::refresh(self.store.as_ref(), &self.flows, &self.limits, name)
    }
}
