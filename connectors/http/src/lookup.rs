//! How names become addresses, with the guard standing where the address is chosen: what was checked is what is dialled.

use crate::Guard;
use hyper_util::client::legacy::connect::dns::Name;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// The addresses to come.
pub type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a name.
pub trait Lookup: Send + Sync {
    /// The addresses of a host, in the order in which to try them; none or an error when there is no such host.
    fn lookup(&self, host: &str) -> LookupFuture;
}

/// Asks the operating system.
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, host: &str) -> LookupFuture {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The look-up did not find an address that may be called.
#[derive(Debug)]
pub(crate) enum Unreachable {
    /// There is none.
    Unknown { host: String, reason: Option<String> },
    /// There are some, none of which may be called. Which, is nobody's business who can't call them: a flow could ask the
    /// inner DNS.
    Forbidden { host: String },
}

impl std::fmt::Display for Unreachable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown { host, reason: None } => write!(f, "`{host}` has no address"),
            Self::Unknown {
                host,
                reason: Some(reason),
            } => write!(f, "no address of `{host}` could be found: {reason}"),
            Self::Forbidden { host } => {
                write!(
                    f,
                    "the address of `{host}` is not public: allow calls to it with `http.allow` or `http.private_addresses`"
                )
            }
        }
    }
}

impl std::error::Error for Unreachable {}

/// A look-up that answers only with addresses the guard permits.
#[derive(Clone)]
pub(crate) struct GuardedLookup {
    pub guard: Arc<Guard>,
    pub lookup: Arc<dyn Lookup>,
}

/// Addresses without a port.
type Addresses = std::vec::IntoIter<SocketAddr>;

impl Service<Name> for GuardedLookup {
    type Response = Addresses;
    type Error = Unreachable;
    type Future = Pin<Box<dyn Future<Output = Result<Addresses, Unreachable>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unreachable>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let host = name.as_str().to_owned();
        let guard = self.guard.clone();
        let found = self.lookup.lookup(&host);
        Box::pin(async move { permitted(&guard, host, found.await) })
    }
}

fn permitted(guard: &Guard, host: String, found: io::Result<Vec<IpAddr>>) -> Result<Addresses, Unreachable> {
    let found = match found {
        Ok(found) => found,
        Err(error) => {
            return Err(Unreachable::Unknown {
                host,
                reason: Some(error.to_string()),
            });
        }
    };
    if found.is_empty() {
        return Err(Unreachable::Unknown { host, reason: None });
    }
    let permitted: Vec<SocketAddr> = found
        .into_iter()
        .filter(|&address| guard.permits(&host, address))
        .map(|address| SocketAddr::new(address, 0))
        .collect();
    if permitted.is_empty() {
        return Err(Unreachable::Forbidden { host });
    }
    Ok(permitted.into_iter())
}
