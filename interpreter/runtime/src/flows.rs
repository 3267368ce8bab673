//! Flows by name and version.

use starbridge_fdl::graph::Flow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The flows a runtime can start, by name; versions count from 1.
#[derive(Clone, Debug, Default)]
pub struct FlowTable {
    flows: BTreeMap<String, Vec<Arc<Flow>>>,
}

impl FlowTable {
    /// Adds a flow as the latest version of that name and answers its number. The same definition is not added twice.
    pub fn put(&mut self, name: &str, flow: Arc<Flow>) -> u64 {
        let versions = self.flows.entry(name.to_owned()).or_default();
        if versions.last().is_none_or(|latest| latest.hash != flow.hash) {
            versions.push(flow);
        }
        versions.len() as u64
    }

    /// A version of a flow, the latest where none is given, with its number.
    pub fn get(&self, name: &str, version: Option<u64>) -> Option<(Arc<Flow>, u64)> {
        let versions = self.flows.get(name)?;
        let number = version.unwrap_or(versions.len() as u64);
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        versions.get(index).map(|flow| (flow.clone(), number))
    }

    /// The names there are.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.flows.keys().map(String::as_str)
    }

    /// The latest version of each flow.
    pub fn latest(&self) -> impl Iterator<Item = (&str, &Arc<Flow>)> {
        self.flows
            .iter()
            .filter_map(|(name, versions)| versions.last().map(|flow| (name.as_str(), flow)))
    }
}
