//! What a host decides about HTTP calls.

use crate::{Guard, Lookup, SystemLookup};
use starbridge_ports::Clock;
use std::sync::Arc;
use std::time::Duration;

/// Settings of an [`HttpConnector`](crate::HttpConnector).
#[derive(Clone)]
pub struct HttpSettings {
    /// Which addresses may be called. Default: all.
    pub guard: Guard,
    /// How names become addresses. Default: as the system does it.
    pub lookup: Arc<dyn Lookup>,
    /// What `Retry-After` dates are relative to where an answer has no `Date` header; without a clock such dates are ignored.
    pub clock: Option<Arc<dyn Clock>>,
    /// How long the opening of a connection may take, look-up and handshake included. Default: 30 seconds.
    pub connect_timeout: Duration,
    /// How long a call may take whose step sets no time of its own: from its sending to the last byte of its answer, so that
    /// a peer which never answers does not keep its place for ever. None: for ever. Default: 15 minutes.
    pub timeout: Option<Duration>,
    /// Certificates (DER) trusted beside those of the system.
    pub extra_roots: Vec<Vec<u8>>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            guard: Guard::AllowAll,
            lookup: Arc::new(SystemLookup),
            clock: None,
            connect_timeout: Duration::from_secs(30),
            timeout: Some(Duration::from_secs(15 * 60)),
            extra_roots: Vec::new(),
        }
    }
}
