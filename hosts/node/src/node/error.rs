//! Why a node is not there.

use starbridge_ports::StoreError;

/// Why a node can't be started, or came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeError {
    /// The store failed.
    Store(StoreError),
    /// The system would not give what is needed.
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
