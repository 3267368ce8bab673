//! The table of flows, by name and version.

use starbridge_flow::graph::Flow;
use starbridge_flow::value::Text;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The flows that a runtime can start, by name. Versions count from 1. A clone shares the table.
#[derive(Clone, Default)]
pub struct FlowTable {
    flows: Arc<RwLock<BTreeMap<String, Versions>>>,
    made: Arc<RwLock<Made>>,
    /// Called for versions that are not in the table; it sets those of a flow.
    source: Option<Source>,
    /// Makes the flows of messages, which are in no store.
    messages: Option<MessageFlows>,
}

/// Makes the flow whose only task is a message of the queue with this name.
type MessageFlows = Arc<dyn Fn(&str) -> Option<Arc<Flow>> + Send + Sync>;

/// What the names of the flows of messages begin with. No flow that somebody defines has such a name.
const MESSAGES: &str = "queue:";
/// How many flows of messages are known at once.
const MAX_MESSAGE_FLOWS: usize = 1_024;

/// Whether this is the name of a flow of messages. Only calls start those.
pub(crate) fn is_flow_of_messages(name: &str) -> bool {
    name.starts_with(MESSAGES)
}

/// The name of the flow that the messages of a queue run. Its only version is 1.
pub(crate) fn flow_of_messages(queue: &str) -> Text {
    Text::from(format!("{MESSAGES}{queue}"))
}

/// Sets the versions of a flow in a table.
type Source = Arc<dyn Fn(&FlowTable, &str) + Send + Sync>;

#[derive(Debug, Default)]
struct Versions {
    flows: BTreeMap<u64, Arc<Flow>>,
    hidden: bool,
}

/// The flows of messages that were made so far, by their names.
type Made = BTreeMap<String, Arc<Flow>>;

impl std::fmt::Debug for FlowTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowTable")
            .field("flows", &self.flows)
            .finish_non_exhaustive()
    }
}

impl FlowTable {
    /// Adds a flow as the latest version of that name and returns its version. If the latest has the same definition,
    /// nothing is added.
    pub fn put(&mut self, name: &str, flow: Arc<Flow>) -> u64 {
        let mut flows = self.write();
        let versions = &mut flows.entry(name.to_owned()).or_default().flows;
        let (last, same) = versions
            .last_key_value()
            .map_or((0, false), |(version, latest)| (*version, latest.hash == flow.hash));
        if same {
            return last;
        }
        versions.insert(last + 1, flow);
        last + 1
    }

    /// Adds a flow under a version that a store gave it. The flow is not hidden any more.
    pub fn set(&self, name: &str, version: u64, flow: Arc<Flow>) {
        let mut flows = self.write();
        let versions = flows.entry(name.to_owned()).or_default();
        versions.flows.insert(version, flow);
        versions.hidden = false;
    }

    /// Hides a flow, so that it can't be started. Executions that run it go on.
    pub fn hide(&self, name: &str) {
        self.set_hidden(name, true);
    }

    /// Sets whether a flow is hidden.
    pub fn set_hidden(&self, name: &str, hidden: bool) {
        if let Some(versions) = self.write().get_mut(name) {
            versions.hidden = hidden;
        }
    }

    /// A version of a flow that can be started, with its number; the latest version if `version` is `None`.
    pub fn get(&self, name: &str, version: Option<u64>) -> Option<(Arc<Flow>, u64)> {
        if is_flow_of_messages(name) {
            return version.and_then(|version| Some((self.of_messages(name, version)?, version)));
        }
        if let Some(source) = &self.source
            && version.is_none_or(|version| !self.knows(name, version))
        {
            source(self, name);
        }
        let flows = self.read();
        let versions = flows.get(name).filter(|versions| !versions.hidden)?;
        match version {
            None => versions.flows.last_key_value(),
            Some(version) => versions.flows.get_key_value(&version),
        }
        .map(|(version, flow)| (flow.clone(), *version))
    }

    /// A version of a flow that an execution runs, hidden or not.
    pub fn running(&self, name: &str, version: u64) -> Option<Arc<Flow>> {
        if is_flow_of_messages(name) {
            return self.of_messages(name, version);
        }
        let known = self.known(name, version);
        match &self.source {
            Some(source) if known.is_none() => {
                source(self, name);
                self.known(name, version)
            }
            _ => known,
        }
    }

    /// The flow of this name and version, if a queue's messages run it. It is in no store.
    pub fn flow_of_messages(&self, name: &str, version: u64) -> Option<Arc<Flow>> {
        match is_flow_of_messages(name) {
            true => self.of_messages(name, version),
            false => None,
        }
    }

    /// It is made when it is needed: names of queues may be made of data, so there may be many.
    fn of_messages(&self, name: &str, version: u64) -> Option<Arc<Flow>> {
        if version != 1 {
            return None;
        }
        let known = self.made.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(flow) = known.get(name) {
            return Some(flow.clone());
        }
        drop(known);
        let flow = (self.messages.as_ref()?)(name.strip_prefix(MESSAGES)?)?;
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        if made.len() >= MAX_MESSAGE_FLOWS {
            made.clear();
        }
        made.insert(name.to_owned(), flow.clone());
        Some(flow)
    }

    /// This table with the flows of messages, each made of the name of a queue.
    #[must_use]
    pub fn with_messages(mut self, make: impl Fn(&str) -> Option<Arc<Flow>> + Send + Sync + 'static) -> Self {
        self.messages = Some(Arc::new(make));
        self
    }

    /// Whether there is a flow of this name, hidden or not.
    pub fn has(&self, name: &str) -> bool {
        if let Some(source) = self.source.as_ref().filter(|_| !self.read().contains_key(name)) {
            source(self, name);
        }
        self.read().contains_key(name)
    }

    /// Whether the table has this version.
    pub fn knows(&self, name: &str, version: u64) -> bool {
        self.known(name, version).is_some()
    }

    fn known(&self, name: &str, version: u64) -> Option<Arc<Flow>> {
        self.read().get(name)?.flows.get(&version).cloned()
    }

    /// This table with a source of flows that others add. It is asked for versions that are not in the table, and for
    /// the latest version.
    #[must_use]
    pub fn asking(mut self, source: impl Fn(&Self, &str) + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The latest version of each flow that can be started.
    pub fn latest(&self) -> Vec<(String, Arc<Flow>)> {
        self.read()
            .iter()
            .filter(|(_, versions)| !versions.hidden)
            .filter_map(|(name, versions)| {
                let (_, flow) = versions.flows.last_key_value()?;
                Some((name.clone(), flow.clone()))
            })
            .collect()
    }

    /// Nothing panics while the lock is held, so the value of a poisoned lock is intact.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Versions>> {
        self.flows.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Versions>> {
        self.flows.write().unwrap_or_else(PoisonError::into_inner)
    }
}
