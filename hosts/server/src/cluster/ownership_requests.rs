//! Requests between nodes over the link about the ownership of the store: who is to have it next, and who has it now.
//!
//! They are hints. The database decides which node has the store, and a node that gets no request finds out by its heartbeats.

use super::asking::client;
use super::pins::Identity;
use super::role::{NOT_OWNER, Peer};
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use starbridge_node::cluster::{Cluster, ShownNode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The header that names the request.
pub(super) const OWNERSHIP_REQUEST: HeaderName = HeaderName::from_static("starbridge-link-word");
/// How long a node may take to do what a request asks for.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a node asks another one to do, or tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnershipRequest {
    /// It is about to leave the store: the other one is to be ready to take it.
    Prepare,
    /// It has left the store: the other one is to take it.
    Take,
    /// It has the store now.
    Owns,
}

impl OwnershipRequest {
    const ALL: [Self; 3] = [Self::Prepare, Self::Take, Self::Owns];

    fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Take => "take",
            Self::Owns => "owns",
        }
    }
}

/// A request of another node.
#[derive(Debug)]
pub struct ReceivedRequest {
    /// What it asks for.
    pub request: OwnershipRequest,
    /// The node that sent it.
    pub from: Peer,
    /// Answered when that is done; dropped if it is not.
    pub done: oneshot::Sender<()>,
}

/// A connection to a node, for several requests.
pub struct OwnershipClient {
    client: reqwest::Client,
    url: String,
}

impl OwnershipClient {
    /// Connects to that node. `None` if that fails.
    pub fn to(identity: &Identity, node: &ShownNode) -> Option<Self> {
        let client = client(identity, &node.certificate)?;
        let url = format!("https://{}/", node.address);
        Some(Self { client, url })
    }

    /// Sends a request. Returns whether the node did what it asks for, within that time.
    pub async fn send(&self, request: OwnershipRequest, patience: Duration) -> bool {
        let request = self.client.post(&self.url).header(OWNERSHIP_REQUEST, request.name());
        let answered = request.timeout(patience).send().await;
        answered.is_ok_and(|answer| answer.status() == StatusCode::NO_CONTENT)
    }
}

/// Tells all other nodes that this one has the store. A node that is not reached finds out by itself.
pub async fn announce_owner(identity: Arc<Identity>, cluster: Arc<Cluster>) {
    let mut sent = tokio::task::JoinSet::new();
    for other in cluster.others().into_iter().filter(ShownNode::is_lively) {
        let identity = identity.clone();
        sent.spawn(async move {
            match OwnershipClient::to(&identity, &other) {
                Some(client) => client.send(OwnershipRequest::Owns, PATIENCE).await,
                None => false,
            }
        });
    }
    sent.join_all().await;
}

/// Passes on the request of the node with this certificate, and answers when it is done.
pub(super) async fn answer(
    name: &HeaderValue,
    certificate: Option<&str>,
    cluster: &Cluster,
    requests: &mpsc::UnboundedSender<ReceivedRequest>,
) -> Response<Body> {
    let request = OwnershipRequest::ALL
        .into_iter()
        .find(|request| name.as_bytes() == request.name().as_bytes());
    let mut nodes = cluster.others().into_iter();
    let from = nodes.find(|node| Some(node.certificate.as_str()) == certificate);
    let mut answered = Response::new(Body::empty());
    *answered.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    if let (Some(request), Some(from)) = (request, from) {
        let (done, is_done) = oneshot::channel();
        let from = Peer::of(&from);
        // If there is no receiver any more, nothing is done.
        let _ = requests.send(ReceivedRequest { request, from, done });
        if let Ok(Ok(())) = tokio::time::timeout(PATIENCE, is_done).await {
            *answered.status_mut() = StatusCode::NO_CONTENT;
            return answered;
        }
    }
    answered.headers_mut().insert(NOT_OWNER, HeaderValue::from_static("1"));
    answered
}
