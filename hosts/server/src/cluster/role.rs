//! What a node is just now, and what goes over a link.

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderName, Request, Response};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;

/// The client of a request that is passed on. Only what comes over a link has it.
pub(super) const FROM: HeaderName = HeaderName::from_static("starbridge-link-from");
/// Says that the node that was asked does not own the store.
pub(super) const NOT_OWNER: HeaderName = HeaderName::from_static("starbridge-link-not-owner");

/// The owner, as another node reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: String,
    /// The SHA-256 of its certificate.
    pub certificate: String,
}

/// What a node is just now.
#[derive(Clone)]
pub enum Role {
    /// It stands by, and nobody owns the store.
    Nobody,
    /// It owns the store: this answers.
    Owner(Router),
    /// It stands by, and that one owns the store.
    Standby(Peer),
}

impl Role {
    /// Whether somebody else owns the store, or the same one.
    pub fn is_standby_of(&self, other: &Peer) -> bool {
        matches!(self, Self::Standby(peer) if peer == other)
    }
}

/// The answer of a router.
pub(super) async fn call<B>(router: Router, request: Request<B>) -> Response<Body>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    let service = TowerToHyperService::new(router);
    let answered: Result<Response<Body>, Infallible> = hyper::service::Service::call(&service, request).await;
    match answered {
        Ok(answered) => answered,
        Err(never) => match never {},
    }
}
