//! Leaving the store to another node while requests go on: both sides of it.
//!
//! The owner asks a node to get ready, and lets the calls under way come to their end. Meanwhile it answers as ever. Then it takes
//! nothing more, comes to its end, gives the store back, and tells that node. Requests wait from there until the node has the store,
//! and says so to all.

use super::ActiveNode;
use starbridge_server::cluster::{LastAnswers, OwnershipClient, OwnershipRequest, Peer, ReceivedRequest, Role};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long to wait for calls in flight before the store is left to another node. Calls that are not answered by then are sent
/// again by that node, under the same key.
const CALLS: Duration = Duration::from_secs(1);
/// How long a node may take to get ready.
const READY: Duration = Duration::from_secs(2);
/// How long to wait for requests that are nearly answered.
const SETTLE: Duration = Duration::from_secs(1);
/// How long a node may take to take the store, once it is told to.
const TAKE: Duration = Duration::from_secs(3);
/// How long the request of a node that says it has the store counts more than what was seen, which may be older.
const TRUST: Duration = Duration::from_secs(2);

/// Which node takes the store from which, as far as this node was told.
#[derive(Default)]
pub(super) struct Succession {
    /// The owner that is about to leave the store to this node.
    leaving: Option<Peer>,
    /// The node to tell when this node has the store.
    pub(super) taking: Option<oneshot::Sender<()>>,
    /// The node that said that it has the store, and until when that counts more than what is seen.
    told: Option<(Peer, Instant)>,
}

impl Succession {
    /// This node has the store.
    pub(super) fn came(&mut self) {
        self.told = None;
        if let Some(taking) = self.taking.take() {
            // The node that left the store may have ended.
            let _ = taking.send(());
        }
    }

    /// Whether what was seen is older than what was told.
    pub(super) fn is_old(&mut self, seen: Option<&str>) -> bool {
        let is_old = |(owner, until): &(Peer, Instant)| Some(owner.name.as_str()) != seen && Instant::now() < *until;
        let is_old = self.told.as_ref().is_some_and(is_old);
        if !is_old {
            self.told = None;
        }
        is_old
    }
}

/// A node that is ready to take the store.
struct Heir {
    peer: Peer,
    client: OwnershipClient,
}

impl ActiveNode<'_> {
    /// Leaves the store to another node.
    pub(super) async fn leave_store(&mut self) -> Option<LastAnswers> {
        let node = self.stay.as_ref()?.node.clone();
        let (heir, ended) = tokio::join!(self.heir(), node.end_calls(CALLS));
        if let Err(error) = ended {
            tracing::info!(%error, "the calls under way are not waited for");
        }
        let begun = Instant::now();
        let last = self.give_up(SETTLE).await;
        // It is told once the database knows it, or never.
        let _ = self.membership.released(true).await;
        let gave_up = begun.elapsed();
        // If it does not answer, its heartbeats show that the store is free.
        if let Some(heir) = heir
            && heir.client.send(OwnershipRequest::Take, TAKE).await
        {
            let waited = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.cluster.counters.handover_ms.store(waited, Ordering::Relaxed);
            tracing::info!(
                node = heir.peer.name,
                milliseconds = waited,
                ending = u64::try_from(gave_up.as_millis()).unwrap_or(u64::MAX),
                "the store was handed over"
            );
            self.stands_by(heir.peer);
        }
        Some(last)
    }

    /// The next node that can take the store, made ready for it.
    async fn heir(&self) -> Option<Heir> {
        let others = self.cluster.others().into_iter();
        for other in others.filter(starbridge_node::cluster::ShownNode::may_take) {
            let Some(client) = OwnershipClient::to(&self.identity, &other) else {
                continue;
            };
            if client.send(OwnershipRequest::Prepare, READY).await {
                let peer = Peer::of(&other);
                return Some(Heir { peer, client });
            }
            tracing::info!(node = other.name, "this node is not ready to take the store");
        }
        None
    }

    /// Handles a request of another node.
    pub(super) fn handle_request(&mut self, received: ReceivedRequest) {
        let ReceivedRequest { request, from, done } = received;
        if self.stay.is_some() {
            return;
        }
        match request {
            OwnershipRequest::Prepare => {
                let view = self.cluster.view();
                if view.owner().is_some_and(|owner| owner.certificate == from.certificate) {
                    self.succession.leaving = Some(from);
                    self.membership.prepare(done);
                }
            }
            OwnershipRequest::Take => {
                if self.succession.leaving.take().is_some_and(|leaving| leaving == from) {
                    self.succession.taking = Some(done);
                    self.membership.take();
                }
            }
            OwnershipRequest::Owns => {
                self.stands_by(from);
                // The node that said it may have gone.
                let _ = done.send(());
            }
        }
    }

    /// Takes this node for the owner, whatever was seen before.
    fn stands_by(&mut self, owner: Peer) {
        self.had_owner = true;
        if self.announced.as_ref() != Some(&owner.name) {
            self.messages
                .say(&format!("standing by: the node {} has the store", owner.name));
            self.announced = Some(owner.name.clone());
        }
        if !self.cluster_node.role().is_standby_of(&owner) {
            self.cluster_node.is_now(Role::Standby(owner.clone()));
        }
        self.succession.told = Some((owner, Instant::now() + TRUST));
    }
}
