//! The front of a node of a cluster: answers what the node can answer itself, and passes everything else on to the owner.

mod asking;
mod connect_limit;
mod entry;
mod events;
mod front;
mod link;
mod ownership_requests;
mod pins;
mod reach;
mod role;

pub use ownership_requests::{OwnershipClient, OwnershipRequest, ReceivedRequest, announce_owner};
pub use pins::Identity;
pub use reach::{Tried, try_others};
pub use role::{Answering, Peer, Role};

use crate::open_requests::OpenRequests;
use crate::{DESCRIPTION, Drain, Server, ServerSettings, app, outboxes};
use asking::Front;
use axum::Router;
use starbridge_node::cluster::Cluster;
use starbridge_node::http::connections;
use starbridge_node::node::Node;
use starbridge_ports::Outbox;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// The parts of a node that outlive its stays as the owner.
#[derive(Clone)]
pub struct ClusterNode {
    role: watch::Sender<Role>,
    settings: ServerSettings,
    drain: Drain,
    cluster: Arc<Cluster>,
}

impl ClusterNode {
    /// From now on this is what the node is.
    pub fn is_now(&self, role: Role) {
        self.role.send_replace(role);
    }

    /// From now on the node owns the store, and answers for it. The tasks take from these outboxes until they are aborted.
    pub fn owns(&self, node: Arc<Node>, outboxes: Vec<Arc<dyn Outbox>>) -> Vec<JoinHandle<()>> {
        let app = app(
            node,
            self.settings.clone(),
            self.drain.0.clone(),
            outboxes::all(outboxes),
            Some(self.cluster.clone()),
        );
        let taking = app.outboxes.iter();
        let taking = taking.map(|outbox| tokio::spawn(outboxes::keep_taking(app.clone(), outbox.clone())));
        let taking = taking.collect();
        self.is_now(Role::Owner(Answering::new(crate::router::router(app))));
        taking
    }

    /// From now on the node owns nothing. Waits until earlier requests are answered, apart from those that only wait for
    /// something, for this long at most. New requests wait for the next owner.
    pub async fn retire(&self, patience: Duration) -> LastAnswers {
        let Role::Owner(answering) = self.role.send_replace(Role::Nobody) else {
            return LastAnswers(OpenRequests::default());
        };
        answering.open_requests.settled(patience).await;
        LastAnswers(answering.open_requests)
    }

    /// What the node is.
    pub fn role(&self) -> Role {
        self.role.borrow().clone()
    }
}

/// What an owner was asked, and has not answered yet.
pub struct LastAnswers(OpenRequests);

impl LastAnswers {
    /// Waits until everything is answered, for this long at most.
    pub async fn given(&self, patience: Duration) {
        self.0.answered(patience).await;
    }
}

impl Server {
    /// Answers requests as a node of a cluster until `end` comes. Others reach it at `links`, over this many at once. What they say
    /// to the node itself goes to `requests`.
    pub fn stand(
        self,
        cluster: Arc<Cluster>,
        identity: Arc<Identity>,
        links: (TcpListener, usize),
        requests: mpsc::UnboundedSender<ReceivedRequest>,
        end: oneshot::Receiver<()>,
    ) -> (ClusterNode, impl Future<Output = ()> + Send + 'static) {
        let (role, now) = watch::channel(Role::Nobody);
        let cluster_node = ClusterNode {
            role,
            settings: self.settings.clone(),
            drain: Drain(self.draining.clone()),
            cluster: cluster.clone(),
        };
        let front = Arc::new(Front::new(
            now.clone(),
            cluster.clone(),
            identity.clone(),
            self.settings.access.clone(),
        ));
        let router: Router = front::router(front);
        // Made now, because requests wait while a node becomes the owner.
        LazyLock::force(&DESCRIPTION);
        let linked = link::serve(links, identity, cluster, now, requests);
        let connections = self.settings.connections;
        let listener = self.listener;
        let serving = async move {
            tokio::select! {
                () = connections::serve(listener, router, connections, end) => {}
                () = linked => {}
            }
        };
        (cluster_node, serving)
    }
}
