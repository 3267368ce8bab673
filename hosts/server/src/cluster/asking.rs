//! Asking whoever owns the store, this node or another.

use super::connect_limit::ConnectLimit;
use super::pins::{Identity, NAME};
use super::role::{FROM, LINK_FULL, NOT_OWNER, Peer, Role};
use crate::access::Access;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use hyper::body::{Frame, SizeHint};
use starbridge_node::cluster::{Cluster, RESERVE_LINKS};
use starbridge_node::problem::Problem;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

/// How long the owner may take to let a node in.
const CONNECT: Duration = Duration::from_secs(2);
/// Between two tries of an owner that does not answer.
const AGAIN: Duration = Duration::from_millis(100);
/// How long to wait for the answer of a former owner: a node answers before it leaves the store.
const LAST_ANSWER: Duration = Duration::from_millis(500);
/// How many links to the owner are kept for the next request, and how long.
const SPARE_LINKS: usize = RESERVE_LINKS / 2;
const SPARE: Duration = Duration::from_secs(15);
/// An answer up to this size is taken whole, so that a client that does not read it keeps no link to the owner.
const KEPT_KIB: u32 = 128;
/// The room for such answers. What does not fit keeps its link.
const ROOM_KIB: usize = 128 * 1024;

/// What is said of a body that broke off, or was none.
pub(super) const BROKEN_BODY: &str = "the body did not arrive";

/// The state of the front.
pub(super) struct Front {
    pub(super) role: watch::Receiver<Role>,
    pub(super) cluster: Arc<Cluster>,
    identity: Arc<Identity>,
    pub(super) access: Access,
    /// The client for the owner that was reached last.
    client: Mutex<Option<(Peer, reqwest::Client)>>,
    /// The room for answers that are taken whole, in KiB.
    room: Arc<Semaphore>,
}

/// Why a request has no answer.
enum Failed {
    /// Nothing of it was carried out.
    NotSent,
    /// The owner has as many links as it takes. Nothing was carried out.
    Full,
    /// The owner went away before it answered.
    Lost,
    /// The client's body broke off, or was none.
    Broken,
}

impl Front {
    pub(super) fn new(
        role: watch::Receiver<Role>,
        cluster: Arc<Cluster>,
        identity: Arc<Identity>,
        access: Access,
    ) -> Self {
        Self {
            role,
            cluster,
            identity,
            access,
            client: Mutex::default(),
            room: Arc::new(Semaphore::new(ROOM_KIB)),
        }
    }

    /// The certificate of this node.
    #[cfg(test)]
    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    fn client(&self, peer: &Peer) -> Option<reqwest::Client> {
        let mut kept = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, client)) = &*kept
            && of == peer
        {
            return Some(client.clone());
        }
        let client = client(&self.identity, &peer.certificate)?;
        *kept = Some((peer.clone(), client.clone()));
        Some(client)
    }

    /// Passes a request on. It is given up as soon as somebody else owns the store.
    async fn pass_on(
        &self,
        peer: &Peer,
        parts: &Parts,
        from: SocketAddr,
        body: Body,
    ) -> Result<Response<Body>, Failed> {
        let client = self.client(peer).ok_or(Failed::NotSent)?;
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        // The address says where to connect; the name in the certificate means nothing.
        let url = format!("https://{}{path}", peer.address);
        let mut headers = parts.headers.clone();
        headers.remove(header::CONNECTION);
        headers.remove(header::TRANSFER_ENCODING);
        headers.remove(header::EXPECT);
        if !headers.contains_key(header::HOST) {
            headers.insert(header::HOST, HeaderValue::from_static(NAME));
        }
        if let Ok(from) = HeaderValue::from_str(&from.to_string()) {
            headers.insert(FROM, from);
        }
        let mut request = client.request(parts.method.clone(), url).headers(headers);
        let is_broken = Arc::new(AtomicBool::new(false));
        if !body.is_end_stream() {
            let is_broken = is_broken.clone();
            request = request.body(reqwest::Body::wrap(Shared {
                body: Mutex::new(body),
                is_broken,
            }));
        }
        let mut role = self.role.clone();
        let gone = async {
            // A sender that was dropped means the same.
            let _ = role.wait_for(|role| !role.is_standby_of(peer)).await;
        };
        let answered = async {
            let answered = request.send().await;
            self.cluster.counters.forwarded.fetch_add(1, Ordering::Relaxed);
            let answered = answered.map_err(|error| match error.is_connect() {
                true => Failed::NotSent,
                false if is_broken.load(Ordering::Relaxed) => Failed::Broken,
                false => Failed::Lost,
            })?;
            let answered: Response<reqwest::Body> = answered.into();
            if answered.headers().contains_key(NOT_OWNER) {
                return Err(Failed::NotSent);
            }
            if answered.headers().contains_key(LINK_FULL) {
                return Err(Failed::Full);
            }
            self.keep(answered.map(Body::new)).await
        };
        let mut answered = std::pin::pin!(answered);
        let answered = tokio::select! {
            biased;
            answered = &mut answered => answered,
            () = gone => match tokio::time::timeout(LAST_ANSWER, answered).await {
                Ok(answered) => answered,
                Err(_) => Err(Failed::Lost),
            },
        };
        let mut answered = answered?;
        answered.headers_mut().remove(header::CONNECTION);
        answered.headers_mut().remove(header::TRANSFER_ENCODING);
        Ok(answered)
    }

    /// Takes an answer that is small whole, and gives its link back.
    async fn keep(&self, answered: Response<Body>) -> Result<Response<Body>, Failed> {
        let size = answered.body().size_hint().upper();
        let kib = size.and_then(|bytes| u32::try_from(bytes.div_ceil(1024)).ok());
        let Some(kib @ ..=KEPT_KIB) = kib else {
            return Ok(answered);
        };
        let Ok(room) = self.room.clone().try_acquire_many_owned(kib) else {
            return Ok(answered);
        };
        let (head, body) = answered.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.map_err(|_| Failed::Lost)?;
        let body = match bytes.is_empty() {
            true => Body::empty(),
            false => Body::from(Bytes::from_owner(Roomed { bytes, _room: room })),
        };
        Ok(Response::from_parts(head, body))
    }

    /// Asks whoever owns the store, and waits for an owner until `until`.
    pub(super) async fn ask(&self, parts: &Parts, from: SocketAddr, mut body: Sent, until: Instant) -> Response<Body> {
        let mut role = self.role.clone();
        loop {
            let now = role.borrow_and_update().clone();
            let failed = match now {
                Role::Owner(answering) => {
                    let mut request = Request::from_parts(parts.clone(), body.take());
                    request.extensions_mut().insert(ConnectInfo(from));
                    return answering.call(request).await;
                }
                Role::Standby(peer) => match self.pass_on(&peer, parts, from, body.take()).await {
                    Ok(answered) => return answered,
                    Err(failed) => failed,
                },
                Role::Nobody => Failed::NotSent,
            };
            let safe = matches!(failed, Failed::NotSent) || parts.method.is_safe();
            if matches!(failed, Failed::Full) {
                return unavailable(
                    "TooManyConnections",
                    "the node that has the store has as much from other nodes under way as it takes: try again later",
                );
            }
            if matches!(failed, Failed::Broken) {
                return Problem::bad(BROKEN_BODY).into_response();
            }
            if !safe {
                return unavailable(
                    "OwnerLost",
                    "the node that has the store went away before it answered, and may have done what was asked: look before \
                     you ask again; a start with a name can be repeated",
                );
            }
            if !body.can_be_sent() || Instant::now() >= until {
                return unavailable("NoOwner", "no node has the store just now: try again in a moment");
            }
            let next = Instant::now() + AGAIN;
            // Whatever it is, it is looked at again.
            let _ = tokio::time::timeout_at(next.min(until), role.changed()).await;
        }
    }
}

/// A client for the node with this certificate.
pub(super) fn client(identity: &Identity, certificate: &str) -> Option<reqwest::Client> {
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(identity.client(certificate).ok()?)
        .connect_timeout(CONNECT)
        .connector_layer(ConnectLimit::default())
        .pool_max_idle_per_host(SPARE_LINKS)
        .pool_idle_timeout(SPARE)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .http1_only()
        .build();
    client.ok()
}

/// An answer that was taken whole, which has its room until all of it is sent.
struct Roomed {
    bytes: Bytes,
    _room: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for Roomed {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// A body that several threads may have, one at a time.
struct Shared {
    body: Mutex<Body>,
    /// Whether it broke off.
    is_broken: Arc<AtomicBool>,
}

impl HttpBody for Shared {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let body = self.body.get_mut().unwrap_or_else(PoisonError::into_inner);
        let frame = Pin::new(body).poll_frame(context);
        if let Poll::Ready(Some(Err(_))) = &frame {
            self.is_broken.store(true, Ordering::Relaxed);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.lock().unwrap_or_else(PoisonError::into_inner).is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.lock().unwrap_or_else(PoisonError::into_inner).size_hint()
    }
}

/// A body that can be sent once, or again.
pub(super) enum Sent {
    Kept(Bytes),
    Once(Option<Body>),
}

impl Sent {
    fn take(&mut self) -> Body {
        match self {
            Self::Kept(bytes) if bytes.is_empty() => Body::empty(),
            Self::Kept(bytes) => Body::from(bytes.clone()),
            Self::Once(body) => body.take().unwrap_or_default(),
        }
    }

    fn can_be_sent(&self) -> bool {
        match self {
            Self::Kept(_) => true,
            Self::Once(body) => body.is_some(),
        }
    }
}

/// Nobody answers.
pub(super) fn unavailable(code: &'static str, detail: &str) -> Response<Body> {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).into_response()
}
