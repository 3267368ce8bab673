//! Turns names into addresses. The guard checks the address itself, so that the checked address is
//! the one that is dialled.

use crate::AddressGuard;
use hyper_util::client::legacy::connect::dns::Name;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_service::Service;

/// The addresses of a host, once they are known.
pub type ResolveFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of a host.
pub trait Resolver: Send + Sync {
    /// The addresses of a host, in the order in which to try them; empty, or an error, if there is
    /// no such host.
    fn lookup(&self, host: &str) -> ResolveFuture;
}

/// Looks names up with the operating system.
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn lookup(&self, host: &str) -> ResolveFuture {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A lookup that gave no address that may be called.
#[derive(Debug)]
pub(crate) enum Unreachable {
    /// The host has no address.
    Unknown { host: String, reason: Option<String> },
    /// The host has addresses, but none may be called. They are not in the error, because a flow could query the
    /// internal DNS with it.
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

/// A lookup that gives only addresses the guard permits.
#[derive(Clone)]
pub(crate) struct GuardedResolver {
    pub guard: Arc<AddressGuard>,
    pub resolver: Arc<dyn Resolver>,
}

/// Addresses without a port.
type Addresses = std::vec::IntoIter<SocketAddr>;

impl Service<Name> for GuardedResolver {
    type Response = Addresses;
    type Error = Unreachable;
    type Future = Pin<Box<dyn Future<Output = Result<Addresses, Unreachable>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Unreachable>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let host = name.as_str().to_owned();
        let guard = self.guard.clone();
        let found = self.resolver.lookup(&host);
        Box::pin(async move { permitted(&guard, host, found.await) })
    }
}

fn permitted(guard: &AddressGuard, host: String, found: io::Result<Vec<IpAddr>>) -> Result<Addresses, Unreachable> {
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
