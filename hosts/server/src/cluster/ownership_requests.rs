//! What nodes tell each other over the link beside requests: who is to have the store next, and who has it now.
//!
//! A word is only a hint. The database decides which node has the store, and a node that gets no word finds out by its heartbeats.

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
/// How long a node may take to do what a word asks for.
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
    /// Answered when that is done; dropped if it is not.
    pub done: oneshot::Sender<()>,
}

/// A connection to a node, for several words.
pub struct Teller {
    client: reqwest::Client,
    url: String,
}

impl Teller {
    /// Connects to that node. `None` if that fails.
    pub fn to(identity: &Identity, node: &ShownNode) -> Option<Self> {
        let client = client(identity, &node.certificate)?;
        let url = format!("https://{}/", node.address);
        Some(Self { client, url })
    }

    /// Sends a word. Returns whether the node did what it asks for, within that time.
    pub async fn tell(&self, word: Word, patience: Duration) -> bool {
        let told = self.client.post(&self.url).header(WORD, word.name());
        let told = told.timeout(patience).send().await;
        told.is_ok_and(|told| told.status() == StatusCode::NO_CONTENT)
    }
}

/// Tells all other nodes that this one has the store. A node that is not reached finds out by itself.
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

/// Passes on the word of the node with this certificate, and answers when it is done.
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
        // If there is no receiver any more, nothing is done.
        let _ = words.send(Heard { word, from, done });
        if let Ok(Ok(())) = tokio::time::timeout(PATIENCE, told).await {
            *answered.status_mut() = StatusCode::NO_CONTENT;
            return answered;
        }
    }
    answered.headers_mut().insert(NOT_OWNER, HeaderValue::from_static("1"));
    answered
}
