//! Flows by name and version.

use starbridge_flow::graph::Flow;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The flows a runtime can start, by name; versions count from 1. A clone is the same table.
#[derive(Clone, Default)]
pub struct FlowTable {
    flows: Arc<RwLock<BTreeMap<String, Versions>>>,
    /// Where versions come from that were put elsewhere: it sets those of a flow.
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
    /// Adds a flow as the latest version of that name and answers its number. The same definition is not added twice.
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

    /// Adds a flow under a version that a store gave it; the flow is no longer hidden.
    pub fn set(&self, name: &str, version: u64, flow: Arc<Flow>) {
        let mut flows = self.write();
        let versions = flows.entry(name.to_owned()).or_default();
        versions.flows.insert(version, flow);
        versions.hidden = false;
    }

    /// Lets a flow no longer be started. What runs goes on with it.
    pub fn hide(&self, name: &str) {
        self.set_hidden(name, true);
    }

    /// Says whether a flow can be started.
    pub fn set_hidden(&self, name: &str, hidden: bool) {
        if let Some(versions) = self.write().get_mut(name) {
            versions.hidden = hidden;
        }
    }

    /// A version of a flow that can be started, the latest where none is given, with its number.
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

    /// A version that an execution runs, hidden or not.
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

    /// Whether a version is in the table.
    pub fn knows(&self, name: &str, version: u64) -> bool {
        self.known(name, version).is_some()
    }

    fn known(&self, name: &str, version: u64) -> Option<Arc<Flow>> {
        self.read().get(name)?.flows.get(&version).cloned()
    }

    /// The same table, which asks for versions it does not know and which version is the latest: others may put some.
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

    /// Nothing panics while the lock is held, so what a poisoned one guards is whole.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Versions>> {
        self.flows.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<String, Versions>> {
        self.flows.write().unwrap_or_else(PoisonError::into_inner)
    }
}
