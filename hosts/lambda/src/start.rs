//! Starts an environment, with its first event.

use crate::api::Api;
use crate::continuations::Continuations;
use crate::environment::Running;
use crate::{Failure, direct, settings};
use starbridge_node::config::Config;
use starbridge_node::leased_store::{LeasedStore, open_table};
use starbridge_node::node::Node;
use starbridge_node::stores::in_memory;
use std::sync::Arc;

impl Running {
    /// Opens everything that the configuration names, and stores the flows of the package.
    pub(crate) async fn start(config: &Config) -> Result<Self, Failure> {
        let bad = |error: String| Failure::new("BadConfiguration", error);
        let settings = &config.lambda;
        let (mut leases, mut express) = (None, None);
        let mut node = match settings.table.as_str() {
            "" => config.node(in_memory()).map_err(bad)?,
            table => {
                let LeasedStore {
                    store,
                    leased,
                    express: before,
                } = open_table(table, config).map_err(bad)?;
                express = Some(before);
                let mut node = config.node(store).map_err(bad)?;
                leases = Some(leased.leases.clone());
                node.leased = Some(leased);
                node
            }
        };
        if !node.notifications.is_empty() {
            let words = "`notifications` need a server: between invocations nobody is there to tell them";
            return Err(bad(words.to_owned()));
        }
        // An invocation has few executions, so one thread is enough.
        node.owners = 1;
        node.worker_queues = false;
        let continuations = match settings.queue.as_str() {
            "" => None,
            queue => Some(Continuations::through(queue, &settings.dead_letters).map_err(bad)?),
        };
        let node = Arc::new(Node::start(node)?);
        let api = Api::of(&node, config).map_err(bad)?;
        let running = Self {
            node,
            api,
            settings: Arc::new(settings.clone()),
            retention_days: config.retention.days,
            audit_days: config.audit.days,
            continuations,
            figures: Arc::default(),
            leases,
            express,
        };
        direct::put_flows(&running, &settings::package()).await?;
        Ok(running)
    }
}
