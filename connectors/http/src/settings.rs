//! Settings for HTTP calls.

use crate::{AddressGuard, Resolver, SystemResolver};
use starbridge_ports::Clock;
use std::sync::Arc;
use std::time::Duration;

/// Settings of an [`HttpConnector`](crate::HttpConnector).
#[derive(Clone)]
pub struct HttpSettings {
    /// The addresses that may be called. Default: all.
    pub guard: AddressGuard,
    /// Turns host names into addresses. Default: the operating system.
    pub resolver: Arc<dyn Resolver>,
    /// The clock for `Retry-After` dates in answers without a `Date` header. Without it such dates are ignored.
    pub clock: Option<Arc<dyn Clock>>,
    /// How long opening a connection may take, including lookup and handshake. Default: 30 seconds.
    pub connect_timeout: Duration,
    /// How long a call may take if its step has no timeout, from sending to the last byte of the answer. It keeps a
    /// peer that never answers from occupying a place forever. `None`: without limit. Default: 15
    /// minutes.
    pub timeout: Option<Duration>,
    /// Certificates (DER) that are trusted in addition to those of the system.
    pub extra_roots: Vec<Vec<u8>>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            guard: AddressGuard::AllowAll,
            resolver: Arc::new(SystemResolver),
            clock: None,
            connect_timeout: Duration::from_secs(30),
            timeout: Some(Duration::from_secs(15 * 60)),
            extra_roots: Vec::new(),
        }
    }
}
