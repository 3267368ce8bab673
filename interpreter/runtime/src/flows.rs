//! The table of flows, by name and version.

use starbridge_flow::graph::Flow;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The flows that a runtime can start, by name. Versions count from 1. A clone shares the table.
#[derive(Clone, Default)]
pub struct FlowTable {
    flows: Arc<RwLock<BTreeMap<String, Versions>>>,
    /// Called for versions that are not in the table; it sets those of a flow.
    source: Option<Source>,
}

/// Sets the versions of a flow in a table.
type Source = Arc<dyn Fn(&FlowTable, &str) + Send + Sync>;

#[derive(Debug, Default)]
struct Versions {
    flows: BTreeMap<u64, Arc<Flow>>,
    hidden: bool,
}

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
        let known = self.known(name, version);
        match &self.source {
            Some(source) if known.is_none() => {
                source(self, name);
                self.known(name, version)
            }
            _ => known,
        }
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
