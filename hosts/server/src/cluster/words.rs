//! What nodes tell each other over the link beside requests: who is to have the store next, and who has it now.
//!
//! A word is only a hint. Who has the store is decided in the database, and a node that gets no word finds out by its heartbeats.

use super::asking::client;
use super::pins::Identity;
use super::role::{NOT_OWNER, Peer};
use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use starbridge_node::cluster::{Cluster, ShownNode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The header that has a word.
pub(super) const WORD: HeaderName = HeaderName::from_static("starbridge-link-word");
/// How long a node may take to do what it was told.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a node tells another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It is about to leave the store: the other one is to be ready to take it.
    Prepare,
    /// It has left the store: the other one is to take it.
    Take,
    /// It has the store now.
    Owns,
}

impl Word {
    const ALL: [Self; 3] = [Self::Prepare, Self::Take, Self::Owns];

    fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Take => "take",
            Self::Owns => "owns",
        }
    }
}

/// A word that another node said.
#[derive(Debug)]
pub struct Heard {
    /// What it said.
    pub word: Word,
    /// Who said it.
    pub from: Peer,
    /// It is told when that is done. Without a word it is told that it is not.
    pub done: oneshot::Sender<()>,
}

/// A way to tell a node something, for several words.
pub struct Teller {
    client: reqwest::Client,
    url: String,
}

impl Teller {
    /// The way to that node. `None` if none can be made.
    pub fn to(identity: &Identity, node: &ShownNode) -> Option<Self> {
        let client = client(identity, &node.certificate)?;
        let url = format!("https://{}/", node.address);
        Some(Self { client, url })
    }

    /// Tells it. Returns whether it did what it was told, within that time.
    pub async fn tell(&self, word: Word, patience: Duration) -> bool {
        let told = self.client.post(&self.url).header(WORD, word.name());
        let told = told.timeout(patience).send().await;
        told.is_ok_and(|told| told.status() == StatusCode::NO_CONTENT)
    }
}

/// Tells all other nodes that this one has the store. Who does not hear it finds out by itself.
pub async fn tell_others(identity: Arc<Identity>, cluster: Arc<Cluster>) {
    let mut told = tokio::task::JoinSet::new();
    for other in cluster.others().into_iter().filter(ShownNode::is_lively) {
        let identity = identity.clone();
        told.spawn(async move {
            match Teller::to(&identity, &other) {
                Some(teller) => teller.tell(Word::Owns, PATIENCE).await,
                None => false,
            }
        });
    }
    told.join_all().await;
}

/// Hands on what the node with this certificate said, and answers when it is done.
pub(super) async fn answer(
    name: &HeaderValue,
    certificate: Option<&str>,
    cluster: &Cluster,
    words: &mpsc::UnboundedSender<Heard>,
) -> Response<Body> {
    let word = Word::ALL
        .into_iter()
        .find(|word| name.as_bytes() == word.name().as_bytes());
    let mut nodes = cluster.others().into_iter();
    let from = nodes.find(|node| Some(node.certificate.as_str()) == certificate);
    let mut answered = Response::new(Body::empty());
    *answered.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    if let (Some(word), Some(from)) = (word, from) {
        let (done, told) = oneshot::channel();
        let from = Peer::of(&from);
        // If nobody listens any more, nothing is done.
        let _ = words.send(Heard { word, from, done });
        if let Ok(Ok(())) = tokio::time::timeout(PATIENCE, told).await {
            *answered.status_mut() = StatusCode::NO_CONTENT;
            return answered;
        }
    }
    answered.headers_mut().insert(NOT_OWNER, HeaderValue::from_static("1"));
    answered
}
