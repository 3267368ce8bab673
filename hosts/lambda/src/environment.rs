//! The state of one environment between invocations.

use crate::Failure;
use crate::api::Api;
use crate::continuations::Continuations;
use crate::figures::Figures;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_node::config::LambdaConfig;
use starbridge_node::node::Node;
use starbridge_node::system::SystemClock;
use starbridge_ports::{Clock, ExecutionLeases};
use starbridge_runtime::{Express, SuspendedExecution};
use std::sync::Arc;
use std::time::Duration;

/// How long an invocation lasts if it has no deadline: with a stand-in for Lambda that keeps no
/// time.
const DEFAULT_INVOCATION: Millis = Millis(60_000);
/// By how much a lease outlives its invocation, because clocks differ.
const SKEW: Millis = Millis(2_000);
/// The longest wait for a timer if there is no store: longer than any invocation.
const FOR_EVER: Duration = Duration::from_secs(24 * 3600);

/// The state from the first event on, until something fails.
#[derive(Clone)]
pub(crate) struct Running {
    pub(crate) node: Arc<Node>,
    pub(crate) api: Api,
    pub(crate) settings: Arc<LambdaConfig>,
    pub(crate) retention_days: u64,
    pub(crate) audit_days: u64,
    /// The queue for work that goes on later. It exists if there is a table.
    pub(crate) continuations: Option<Continuations>,
    pub(crate) figures: Arc<Figures>,
    pub(crate) leases: Option<Arc<dyn ExecutionLeases>>,
    pub(crate) express: Option<Arc<Express>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Invocation {
    /// When everything must be handed over.
    pub(crate) until: Timestamp,
}

impl Running {
    /// Sets whether executions that begin in this invocation are express; `None`: their flows decide.
    pub(crate) fn choose_express(&self, choice: Option<bool>) {
        if let Some(express) = &self.express {
            express.choose(choice);
        }
    }

    pub(crate) fn invocation(&self, deadline: u64) -> Invocation {
        self.choose_express(None);
        // No clock went on while the process was frozen.
        SystemClock.catch_up();
        let now = SystemClock.now();
        let told = Timestamp(i64::try_from(deadline).unwrap_or(i64::MAX));
        let deadline = if told > now { told } else { now.plus(DEFAULT_INVOCATION) };
        if let Some(leases) = &self.leases {
            leases.hold_until(deadline.plus(SKEW));
        }
        let left = deadline.since(now);
        // At most half of a short time is reserved.
        let reserved = Millis(self.settings.margin_ms.min(left.0 / 2));
        let until = now.plus(left.saturating_sub(reserved));
        Invocation { until }
    }

    /// Waits until nothing more can be done now or the time is over, and puts the remaining work
    /// into the queue. Returns the executions given back.
    pub(crate) async fn quiesce(&self, until: Timestamp) -> Result<Vec<SuspendedExecution>, Failure> {
        let grace = match self.continuations {
            Some(_) => Duration::from_millis(self.settings.linger_ms),
            None => FOR_EVER,
        };
        let resting = self.node.quiesce(until, grace).await?;
        if let Some(continuations) = &self.continuations {
            for rest in &resting {
                continuations.send_all(rest, self.node.now()).await?;
            }
        }
        Ok(resting)
    }

    /// The leases, if other processes have some of the executions.
    pub(crate) fn leases(&self) -> Option<&Arc<dyn ExecutionLeases>> {
        self.leases.as_ref()
    }

    /// Without a store, drops the remaining work of an invocation after it.
    pub(crate) async fn forget_all(&self) {
        while matches!(self.node.clear_before(Timestamp(i64::MAX)).await, Ok(1..)) {}
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.node.ended().borrow().is_some()
    }
}
