//! What a node is just now, and what goes over a link.

use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderName, Request, Response};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;

/// The client of a request that is passed on. Only what comes over a link has it.
pub(super) const FROM: HeaderName = HeaderName::from_static("starbridge-link-from");
/// Says that the node that was asked does not own the store.
pub(super) const NOT_OWNER: HeaderName = HeaderName::from_static("starbridge-link-not-owner");
/// Says that the node that was asked has as many links as it takes.
pub(super) const LINK_FULL: HeaderName = HeaderName::from_static("starbridge-link-full");

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

/// What answers for an owner, and how many requests it has that are not answered.
#[derive(Clone)]
pub struct Answering {
    router: Router,
    under_way: watch::Sender<usize>,
}

/// A request that is not answered.
struct UnderWay(watch::Sender<usize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Answering {
    pub(super) fn new(router: Router) -> Self {
        let (under_way, _) = watch::channel(0);
        Self { router, under_way }
    }

    /// The answer to a request.
    pub(super) async fn call<B>(self, request: Request<B>) -> Response<Body>
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        self.under_way.send_modify(|count| *count += 1);
        let _under_way = UnderWay(self.under_way.clone());
        let service = TowerToHyperService::new(self.router);
        let answered: Result<Response<Body>, Infallible> = hyper::service::Service::call(&service, request).await;
        match answered {
            Ok(answered) => answered,
            Err(never) => match never {},
        }
    }

    /// Waits until all requests are answered, for so long at most.
    pub(super) async fn settled(&self, patience: Duration) {
        let mut under_way = self.under_way.subscribe();
        // What takes longer is answered when the owner ends.
        let _ = tokio::time::timeout(patience, under_way.wait_for(|count| *count == 0)).await;
    }
}
