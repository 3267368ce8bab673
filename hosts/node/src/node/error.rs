//! Why a node is not running.

use starbridge_ports::StoreError;

/// Why a node can't be started, or why it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeError {
    /// The store failed.
    Store(StoreError),
    /// The system refused something that is needed.
    System(String),
}

impl std::fmt::Display for NodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Store(error) => error.fmt(f),
            Self::System(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for NodeError {}

impl From<StoreError> for NodeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
