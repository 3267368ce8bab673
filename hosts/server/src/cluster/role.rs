//! What a node is just now, and what goes over a link.

use crate::open_requests::OpenRequests;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderName, Request, Response};
use hyper_util::service::TowerToHyperService;
use starbridge_node::cluster::ShownNode;
use std::convert::Infallible;

/// The client of a request that is passed on. Only what comes over a link has it.
pub(super) const FROM: HeaderName = HeaderName::from_static("starbridge-link-from");
/// Says that the node that was asked does not own the store.
pub(super) const NOT_OWNER: HeaderName = HeaderName::from_static("starbridge-link-not-owner");
/// Says that the node that was asked has as many links as it takes.
pub(super) const LINK_FULL: HeaderName = HeaderName::from_static("starbridge-link-full");

/// The owner, as another node reaches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Unique in the cluster.
    pub name: String,
    /// Where other nodes reach it.
    pub address: String,
    /// The SHA-256 of its certificate.
    pub certificate: String,
}

impl Peer {
    /// A node as another one reaches it.
    pub fn of(node: &ShownNode) -> Self {
        Self {
            name: node.name.clone(),
            address: node.address.clone(),
            certificate: node.certificate.clone(),
        }
    }
}

/// What a node is just now.
#[derive(Clone)]
pub enum Role {
    /// It stands by, and nobody owns the store.
    Nobody,
    /// It owns the store: this answers.
    Owner(Answering),
    /// It stands by, and that one owns the store.
    Standby(Peer),
}

impl Role {
    /// Whether somebody else owns the store, or the same one.
    pub fn is_standby_of(&self, other: &Peer) -> bool {
        matches!(self, Self::Standby(peer) if peer == other)
    }
}

/// The service that answers for an owner, and the requests that it has not answered.
#[derive(Clone)]
pub struct Answering {
    router: Router,
    pub(super) open_requests: OpenRequests,
}

impl Answering {
    pub(super) fn new(router: Router) -> Self {
        let open_requests = OpenRequests::default();
        Self { router, open_requests }
    }

    /// The answer to a request.
    pub(super) async fn call<B>(self, request: Request<B>) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let service = TowerToHyperService::new(self.router);
        let answered = self
            .open_requests
            .during(hyper::service::Service::call(&service, request));
        let answered: Result<Response<Body>, Infallible> = answered.await;
        match answered {
            Ok(answered) => answered,
            Err(never) => match never {},
        }
    }
}
