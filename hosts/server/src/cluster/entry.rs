//! The entry of the link: how many come in at once, and what is said about those that do not.
//!
//! A link is a file of this process, as a connection of a client is. The other nodes make one for each request that they have
//! under way, and their clients may be strangers. So there is a bound, beside that of the connections.

use super::role::LINK_FULL;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode};
use rustls::{CertificateError, Error};
use starbridge_node::cluster::{ClusterCounters, RESERVE_LINKS};
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// How many may be about to show a certificate. If one more comes, the first of them goes.
pub(super) const HANDSHAKES: usize = RESERVE_LINKS / 4;
/// How many links above the bound are told at once that there are too many.
const REFUSALS: usize = RESERVE_LINKS / 4;
/// Between two warnings about the same.
const QUIET: Duration = Duration::from_secs(10);

/// The links that there may be.
pub(super) struct Entry {
    most: usize,
    seats: Arc<Semaphore>,
    refusals: Arc<Semaphore>,
    /// About those that do not come in.
    refused: Rare,
    /// About links that the system does not give.
    failed: Rare,
    /// About links above the bound.
    full: Rare,
}

/// The right to be a link, given back when this is dropped.
pub(super) enum Seat {
    /// For all requests.
    Usual(OwnedSemaphorePermit),
    /// Only to be told that there are too many.
    Refused(OwnedSemaphorePermit),
}

impl Entry {
    pub(super) fn new(most: usize) -> Self {
        let most = most.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            most,
            seats: Arc::new(Semaphore::new(most)),
            refusals: Arc::new(Semaphore::new(REFUSALS)),
            refused: Rare::default(),
            failed: Rare::default(),
            full: Rare::default(),
        }
    }

    /// A seat for a node. Waits if even those that are to be told have none.
    pub(super) async fn seat(&self) -> Option<Seat> {
        if let Ok(seat) = self.seats.clone().try_acquire_owned() {
            return Some(Seat::Usual(seat));
        }
        if let Some(times) = self.full.at(Instant::now()) {
            let most = self.most;
            tracing::warn!(
                times,
                "all {most} links are taken: other nodes are told to try again later"
            );
        }
        self.refusals.clone().acquire_owned().await.ok().map(Seat::Refused)
    }

    /// Whether links are to close after their answers, so that none is kept for later.
    pub(super) fn is_short(&self) -> bool {
        self.seats.available_permits() < self.most.div_ceil(4)
    }

    /// Notes that somebody did not come in.
    pub(super) fn refuse(&self, counters: &ClusterCounters, from: SocketAddr, why: &Refused) {
        if why.is_stranger() {
            counters.strangers.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(times) = self.refused.at(Instant::now()) {
            tracing::warn!(%from, times, "a connection to the link is refused: {}", why.words());
        }
    }

    /// Notes that the system gave no link.
    pub(super) fn fail(&self, error: &std::io::Error) {
        if let Some(times) = self.failed.at(Instant::now()) {
            tracing::warn!(%error, times, "no link can be taken: trying again");
        }
    }
}

/// Why somebody did not come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The certificate is none of a node that this one sees.
    Unknown,
    /// There was no certificate, or no TLS at all.
    Bare(String),
    /// Nothing was shown in time.
    Late,
    /// Too many came at once.
    Crowd,
    /// The connection broke, which says nothing about who it was.
    Broken(String),
}

impl Refused {
    /// What a failed handshake means. `None`: whoever looks whether somebody listens says nothing at all.
    pub(super) fn of(error: &std::io::Error) -> Option<Self> {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
        match tls {
            Some(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure)) => Some(Self::Unknown),
            Some(error) => Some(Self::Bare(error.to_string())),
            None if error.kind() == std::io::ErrorKind::UnexpectedEof => None,
            None => Some(Self::Broken(error.to_string())),
        }
    }

    /// Whether it was none of the nodes.
    fn is_stranger(&self) -> bool {
        matches!(self, Self::Unknown | Self::Bare(_) | Self::Late)
    }

    fn words(&self) -> String {
        match self {
            Self::Unknown => "it does not show the certificate of a node that this one sees".to_owned(),
            Self::Bare(error) => format!("it does not speak as a node does: {error}"),
            Self::Late => "it showed no certificate in time".to_owned(),
            Self::Crowd => "too many come at once, and it had shown nothing yet".to_owned(),
            Self::Broken(error) => format!("it broke before it showed a certificate: {error}"),
        }
    }
}

/// What is said to a node whose link is above the bound. Nothing was done.
pub(super) fn full() -> Response<Body> {
    let mut refused = Response::new(Body::empty());
    *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    refused.headers_mut().insert(LINK_FULL, HeaderValue::from_static("1"));
    refused
}

/// Something that may happen often, and is said only now and then.
#[derive(Default)]
struct Rare(Mutex<Said>);

#[derive(Default)]
struct Said {
    last: Option<Instant>,
    unsaid: u64,
}

impl Rare {
    /// It happens at that instant. Returns how many times it did since it was said last, if it is to be said now.
    fn at(&self, now: Instant) -> Option<u64> {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        said.unsaid = said.unsaid.saturating_add(1);
        if said.last.is_some_and(|last| now.duration_since(last) < QUIET) {
            return None;
        }
        said.last = Some(now);
        Some(std::mem::take(&mut said.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn what_happens_often_is_said_now_and_then() {
        let rare = Rare::default();
        let now = Instant::now();
        assert_eq!(rare.at(now), Some(1));
        assert!((0..870).all(|_| rare.at(now).is_none()));
        assert_eq!(rare.at(now + QUIET), Some(871));
        assert_eq!(rare.at(now + QUIET), None);
    }

    #[test]
    fn only_who_shows_something_else_is_a_stranger() {
        let tls = |error: Error| Refused::of(&io::Error::new(io::ErrorKind::InvalidData, error)).unwrap();
        let unknown = tls(CertificateError::ApplicationVerificationFailure.into());
        assert_eq!(unknown, Refused::Unknown);
        assert!(unknown.is_stranger() && tls(Error::NoCertificatesPresented).is_stranger());
        assert_eq!(Refused::of(&io::ErrorKind::UnexpectedEof.into()), None);
        let broken = Refused::of(&io::ErrorKind::ConnectionReset.into()).unwrap();
        assert!(!broken.is_stranger(), "{broken:?}");
    }
}
