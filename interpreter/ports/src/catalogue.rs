//! The port for flow definitions.

use crate::{AuditEntry, StoreError};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;

/// A version of a flow, as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptFlow {
    /// The flow's name.
    pub name: Text,
    /// The version, from 1.
    pub version: u64,
    /// The hash of the definition.
    pub hash: Text,
    /// The definition's text, as it was given.
    pub definition: String,
    /// When this version was stored.
    pub created: Timestamp,
    /// Whether the flow is left out of starts and lists.
    pub hidden: bool,
}

/// Stores flows. Versions of a flow count from 1 and never change.
pub trait Catalogue: Send + Sync {
    /// Stores a definition as the latest version of a flow, unless the latest has the same hash. Unhides the flow.
    /// Returns the version, and whether it is new. If that changes something, it is added to the audit list with the
    /// version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn put_flow(
        &self,
        name: &str,
        definition: &str,
        hash: &str,
        now: Timestamp,
        audit: Option<&AuditEntry>,
    ) -> Result<(u64, bool), StoreError>;

    /// Hides a flow from starts and lists. Returns whether there was one that was not hidden; then it is
    /// added to the audit list.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn hide_flow(&self, name: &str, audit: Option<&AuditEntry>) -> Result<bool, StoreError>;

    /// All versions of all flows, by name and version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn flows(&self) -> Result<Vec<KeptFlow>, StoreError>;

    /// The latest version of a flow; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn latest_flow(&self, name: &str) -> Result<Option<KeptFlow>, StoreError> {
        Ok(self.versions(name)?.into_iter().max_by_key(|flow| flow.version))
    }

    /// All versions of a flow, in order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn versions(&self, name: &str) -> Result<Vec<KeptFlow>, StoreError> {
        let mut flows = self.flows()?;
        flows.retain(|flow| flow.name == name);
        Ok(flows)
    }
}
