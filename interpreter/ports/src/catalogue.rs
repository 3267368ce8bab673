//! Where flows are kept.

use crate::StoreError;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;

/// A version of a flow as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptFlow {
    /// The flow's name.
    pub name: Text,
    /// From 1.
    pub version: u64,
    /// Hash of the definition.
    pub hash: Text,
    /// The definition as it was given.
    pub definition: String,
    /// When this version was put.
    pub created: Timestamp,
    /// Whether the flow is hidden from starts and lists.
    pub hidden: bool,
}

/// Keeps flows. Versions count from 1 and never change.
pub trait Catalogue: Send + Sync {
    /// Keeps a definition as the latest version of that flow, unless the latest has the same hash; the flow is no longer
    /// hidden. Answers the version, and whether it is new.
    fn put_flow(&self, name: &str, definition: &str, hash: &str, now: Timestamp) -> Result<(u64, bool), StoreError>;
    /// Hides a flow from starts and lists. Answers whether there was one that was not hidden.
    fn hide_flow(&self, name: &str) -> Result<bool, StoreError>;
    /// All versions of all flows, by name and version.
    fn flows(&self) -> Result<Vec<KeptFlow>, StoreError>;
    /// The latest version of one flow.
    fn latest_flow(&self, name: &str) -> Result<Option<KeptFlow>, StoreError> {
        Ok(self.versions(name)?.into_iter().max_by_key(|flow| flow.version))
    }
    /// All versions of one flow.
    fn versions(&self, name: &str) -> Result<Vec<KeptFlow>, StoreError> {
        let mut flows = self.flows()?;
        flows.retain(|flow| flow.name == name);
        Ok(flows)
    }
}
