//! The front of a node of a cluster: answers what the node can answer itself, and passes everything else on to the owner.

mod asking;
mod connect_limit;
mod entry;
mod events;
mod front;
mod link;
mod pins;
mod reach;
mod role;

pub use pins::Identity;
pub use reach::{Tried, try_others};
pub use role::{Answering, Peer, Role};

use crate::{Drain, Server, ServerSettings, app, outboxes};
use asking::Front;
use axum::Router;
use starbridge_node::cluster::Cluster;
use starbridge_node::http::connections;
use starbridge_node::node::Node;
use starbridge_ports::Outbox;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// The parts of a node that outlive its stays as the owner.
#[derive(Clone)]
pub struct Post {
    role: watch::Sender<Role>,
    settings: ServerSettings,
    drain: Drain,
    cluster: Arc<Cluster>,
}

impl Post {
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

    /// From now on the node owns nothing. Waits until what it was asked before is answered, for so long at most: what comes
    /// now waits for the next owner.
    pub async fn retire(&self, patience: Duration) {
        if let Role::Owner(answering) = self.role.send_replace(Role::Nobody) {
            answering.settled(patience).await;
        }
    }

    /// What the node is.
    pub fn role(&self) -> Role {
        self.role.borrow().clone()
    }
}

impl Server {
    /// Answers requests as a node of a cluster until `end` comes. Others reach it at `links`, over so many at once.
    pub fn stand(
        self,
        cluster: Arc<Cluster>,
        identity: Arc<Identity>,
        links: (TcpListener, usize),
        end: oneshot::Receiver<()>,
    ) -> (Post, impl Future<Output = ()> + Send + 'static) {
        let (role, now) = watch::channel(Role::Nobody);
        let post = Post {
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
        let linked = link::serve(links, identity, cluster, now);
        let connections = self.settings.connections;
        let listener = self.listener;
        let serving = async move {
            tokio::select! {
                () = connections::serve(listener, router, connections, end) => {}
                () = linked => {}
            }
        };
        (post, serving)
    }
}
