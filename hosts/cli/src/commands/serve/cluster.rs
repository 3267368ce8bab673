//! A server as a node of a cluster: it outlives each of its stays as the owner of the store.

mod hand_over;

use super::server_output::ServerOutput;
use super::signals::Signals;
use super::{RunningNode, begin, outboxes_of, settings};
use crate::exit::Exit;
use hand_over::Succession;
use starbridge_node::cluster::membership::{Membership, MembershipEvent};
use starbridge_node::cluster::{Cluster, ClusterView};
use starbridge_node::config::Config;
use starbridge_node::stores::{Opened, in_memory};
use starbridge_server::Server;
use starbridge_server::cluster::{
    ClusterNode, Identity, LastAnswers, Peer, ReceivedRequest, Role, Tried, announce_owner, try_others,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// How long a stay gets to come to its end.
const END: Duration = Duration::from_secs(10);
/// How long a node that ends gets for its last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// How long a node that ends still tells others that it has the store no more: until each has had a heartbeat.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long a node that ends goes on passing requests on, until another one has the store.
const SUCCESSION: Duration = Duration::from_secs(5);
/// After so many heartbeats all others have seen a new node.
const FIRST_VIEWS: u32 = 2;
/// How many shards a store has.
const SHARDS: u64 = 256;

/// A node at work.
struct ActiveNode<'a> {
    config: &'a Config,
    messages: ServerOutput,
    cluster: Arc<Cluster>,
    cluster_node: ClusterNode,
    membership: Membership,
    events: mpsc::UnboundedReceiver<MembershipEvent>,
    /// What other nodes say.
    requests: mpsc::UnboundedReceiver<ReceivedRequest>,
    stay: Option<RunningNode>,
    succession: Succession,
    /// The owner that was announced last.
    announced: Option<String>,
    /// Whether another node had the store before.
    had_owner: bool,
    /// How often the cluster was seen.
    views: u32,
    identity: Arc<Identity>,
    /// Whether this node and the others reach each other, once that was tried.
    tried: Option<oneshot::Receiver<Vec<Tried>>>,
}

/// Why a node ends.
enum NodeEnd {
    /// A signal came.
    Signal(&'static str),
    /// An operator wants it to.
    Leave,
    /// No other node reaches it.
    Unreached(String),
}

/// Serves until a signal comes. Other nodes have `most` links at once.
pub async fn serve(
    config: &Config,
    server: Server,
    most: usize,
    mut signals: Signals,
    messages: ServerOutput,
) -> Result<(), Exit> {
    let fault = |why: String| messages.fault(&why, "");
    // There may be one already, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let identity = Arc::new(Identity::new().map_err(fault)?);
    let links = links(config, messages).await?;
    let cluster = Arc::new(Cluster::new(&config.cluster.node));
    let joined = tokio::task::block_in_place(|| Membership::begin(config, cluster.clone(), &identity.hash()));
    let (membership, events) = joined.map_err(fault)?;
    let address = server.address();
    let (end, ended) = oneshot::channel();
    let (said, requests) = mpsc::unbounded_channel();
    let (cluster_node, serving) = server.stand(cluster.clone(), identity.clone(), (links, most), said, ended);
    let serving = tokio::spawn(serving);
    if let Ok(address) = address {
        let (node, at) = (&config.cluster.node, config.store.place());
        tracing::info!(version = env!("CARGO_PKG_VERSION"), %address, store = %at, node, "serving");
        messages.say(&format!(
            "listening on http://{address} as the node {node}, everything is kept in {at}"
        ));
    }
    let mut node = ActiveNode {
        config,
        messages,
        cluster,
        cluster_node,
        membership,
        events,
        requests,
        stay: None,
        succession: Succession::default(),
        announced: None,
        had_owner: false,
        views: 0,
        identity,
        tried: None,
    };
    let told = node.until_told(&mut signals).await;
    match &told {
        NodeEnd::Signal(signal) => messages.say(&format!("{signal}: another node takes over; once more stops at once")),
        NodeEnd::Leave => messages.say("drained: this node stands by, and leaves the cluster"),
        NodeEnd::Unreached(_) => {}
    }
    let over = tokio::select! {
        () = node.step_down() => match told {
            NodeEnd::Unreached(why) => Err(messages.fault(&why, "name an address that other nodes reach with `cluster.advertise`")),
            NodeEnd::Signal(_) | NodeEnd::Leave => Ok(()),
        },
        signal = signals.stop() => {
            messages.say(&format!("{signal} again: stopped at once; what was acknowledged is safe"));
            Err(Exit::Interrupted)
        }
    };
    tokio::task::block_in_place(|| node.membership.leave());
    // A server that has ended by itself needs no signal.
    let _ = end.send(());
    let _ = tokio::time::timeout(Duration::from_secs(1), serving).await;
    if over.is_ok() {
        messages.say("stopped; what has not ended goes on at another node, or at the next start");
    }
    over
}

async fn links(config: &Config, messages: ServerOutput) -> Result<TcpListener, Exit> {
    let at = config.cluster.listen;
    TcpListener::bind(at).await.map_err(|error| {
        let why = format!("can't listen on {at} for other nodes: {error}");
        messages.fault(&why, "choose another address with `cluster.listen`")
    })
}

impl ActiveNode<'_> {
    /// Takes part until it is told to end.
    async fn until_told(&mut self, signals: &mut Signals) -> NodeEnd {
        loop {
            let mut over = self.stay.as_ref().map(|stay| stay.node.ended());
            let failed = async {
                match &mut over {
                    Some(over) => drop(over.wait_for(Option::is_some).await),
                    None => std::future::pending().await,
                }
            };
            let tried = async {
                match &mut self.tried {
                    Some(tried) => tried.await.unwrap_or_default(),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                signal = signals.stop() => return NodeEnd::Signal(signal),
                tried = tried => {
                    self.tried = None;
                    if let Some(why) = self.judge(&tried) {
                        return NodeEnd::Unreached(why);
                    }
                }
                () = failed => self.end("it can't go on", true).await,
                Some(received) = self.requests.recv() => self.handle_request(received),
                event = self.events.recv() => match event {
                    Some(MembershipEvent::Leave) => return NodeEnd::Leave,
                    Some(event) => self.hear(event).await,
                    None => return NodeEnd::Signal("the membership has ended"),
                },
            }
        }
    }

    async fn hear(&mut self, event: MembershipEvent) {
        match event {
            MembershipEvent::Heartbeat(view) => self.see(&view),
            MembershipEvent::Taken(opened, begun) => self.own(opened, begun).await,
            // Those who wait for it are told by this.
            MembershipEvent::NotTaken => self.succession.taking = None,
            MembershipEvent::Lost(why) => self.end(&why, false).await,
            MembershipEvent::HandOver => self.hand_over().await,
            // Whoever hears it ends.
            MembershipEvent::Leave => {}
        }
    }

    /// Leaves the store to another node, as an operator wants it, and stands by.
    async fn hand_over(&mut self) {
        if self.stay.is_none() {
            return;
        }
        self.messages.say("drained: another node takes the store");
        self.leave_store().await;
    }

    /// Says which nodes do not reach each other. Why this node can't be one, if no other reaches it.
    fn judge(&self, tried: &[Tried]) -> Option<String> {
        let mut asked = 0;
        let mut failed = Vec::new();
        for tried in tried {
            let (node, address) = (&tried.node, &tried.address);
            match (&tried.there, &tried.back) {
                (Err(why), _) => self.messages.say(&format!(
                    "this node does not reach the node {node} at {address}: {why}; requests wait while that one has the store: \
                     look at its `cluster.advertise`"
                )),
                (Ok(()), Err(why)) => failed.push(format!("the node {node}: {why}")),
                (Ok(()), Ok(())) => {}
            }
            asked += usize::from(tried.there.is_ok());
        }
        if failed.is_empty() {
            return None;
        }
        let here = self.config.cluster.reached_at();
        let why = format!("other nodes do not reach this one at {here}: {}", failed.join("; "));
        if failed.len() == asked && self.stay.is_none() {
            return Some(why);
        }
        self.messages.say(&why);
        None
    }

    /// What the node is follows from what it sees, unless it owns the store.
    fn see(&mut self, view: &ClusterView) {
        self.views = self.views.saturating_add(1);
        if self.views == FIRST_VIEWS {
            let (done, tried) = oneshot::channel();
            let trying = try_others(self.identity.clone(), self.cluster.clone());
            tokio::spawn(async move { done.send(trying.await) });
            self.tried = Some(tried);
        }
        // Until then the owner does not know this node, and refuses its link.
        if self.stay.is_some() || self.views <= FIRST_VIEWS {
            return;
        }
        let owner = view.owner().filter(|owner| owner.name != self.cluster.name);
        if self.succession.is_old(owner.map(|owner| owner.name.as_str())) {
            return;
        }
        let peer = owner.map(Peer::of);
        let name = peer.as_ref().map(|peer| peer.name.clone());
        self.had_owner |= name.is_some();
        if name != self.announced {
            match &name {
                Some(name) => self
                    .messages
                    .say(&format!("standing by: the node {name} has the store")),
                None => self.messages.say("nobody has the store: requests wait"),
            }
            self.announced = name;
        }
        match peer {
            Some(peer) if self.cluster_node.role().is_standby_of(&peer) => {}
            Some(peer) => self.cluster_node.is_now(Role::Standby(peer)),
            None if matches!(self.cluster_node.role(), Role::Nobody) => {}
            None => self.cluster_node.is_now(Role::Nobody),
        }
    }

    /// Begins a stay as the owner.
    async fn own(&mut self, opened: Opened, begun: Instant) {
        let took_over = self.had_owner;
        self.messages.say(&opened.said);
        let config = self.config;
        let made = settings(config, in_memory()).and_then(|settings| Ok((settings, config.replies()?)));
        let begun_stay = made.and_then(|(settings, replies)| {
            let stay = begin(config, settings, opened, replies)?;
            let outboxes = outboxes_of(config, &stay.node)?;
            Ok((stay, outboxes))
        });
        let (mut stay, outboxes) = match begun_stay {
            Ok(stay) => stay,
            Err(error) => {
                tracing::error!(error, "the store is left to others");
                self.membership.released(true);
                self.succession.taking = None;
                return;
            }
        };
        let counters = &self.cluster.counters;
        counters.incarnations.fetch_add(1, Ordering::Relaxed);
        counters.shards.store(SHARDS, Ordering::Relaxed);
        let took = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        if took_over {
            counters.takeovers.fetch_add(1, Ordering::Relaxed);
            counters.takeover_ms.store(took, Ordering::Relaxed);
        }
        stay.tasks.extend(self.cluster_node.owns(stay.node.clone(), outboxes));
        self.stay = Some(stay);
        self.succession.came();
        tokio::spawn(announce_owner(self.identity.clone(), self.cluster.clone()));
        self.announced = Some(self.cluster.name.clone());
        self.messages
            .say(&format!("this node has the store now; taking it took {took} ms"));
    }

    /// Ends a stay that is over: nothing more is said in its name. `others`: they are to try first.
    async fn end(&mut self, why: &str, others: bool) {
        if self.stay.is_none() {
            return;
        }
        self.messages
            .say(&format!("the store is not this node's any more: {why}"));
        self.give_up(Duration::ZERO).await;
        self.membership.released(others);
    }

    /// Ends the stay, after waiting for requests as long as `settle` says.
    async fn give_up(&mut self, settle: Duration) -> LastAnswers {
        let last = self.cluster_node.retire(settle).await;
        self.cluster.counters.shards.store(0, Ordering::Relaxed);
        let Some(stay) = self.stay.take() else {
            return last;
        };
        for task in &stay.tasks {
            task.abort();
        }
        match tokio::time::timeout(END, stay.node.drain(Duration::ZERO)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::info!(%error, "a stay has ended"),
            Err(_) => tracing::warn!("a stay does not come to its end; nothing that it does is kept any more"),
        }
        last
    }

    /// Leaves the store to others, and waits until one of them has it.
    async fn step_down(&mut self) {
        let Some(last) = self.leave_store().await else {
            return;
        };
        last.given(LAST_ANSWERS).await;
        let me = self.cluster.name.clone();
        if matches!(self.cluster_node.role(), Role::Standby(_)) {
            // Until others know the next owner, this node refuses what they pass on to it; nothing is lost.
            tokio::time::sleep(FAREWELL).await;
            return;
        }
        if self.cluster.view().nodes.iter().all(|node| node.name == me) {
            return;
        }
        let succeeded = async {
            while let Some(event) = self.events.recv().await {
                let MembershipEvent::Heartbeat(view) = event else {
                    continue;
                };
                self.see(&view);
                if view.owner().is_some_and(|owner| owner.name != me) {
                    return;
                }
            }
        };
        // If nobody comes, the next start goes on.
        let _ = tokio::time::timeout(SUCCESSION, succeeded).await;
    }
}
