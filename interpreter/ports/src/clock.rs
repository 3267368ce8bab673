//! Time.

use starbridge_fdl::time::Timestamp;

/// What time it is. Asked once a turn.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}
