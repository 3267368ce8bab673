//! The thread that tells others that this node lives, sees which of them do, and takes the store when nobody has it.

use super::{Cluster, ClusterView, ShownNode, drained};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::configured_store::{database, opened};
use crate::stores::Opened;
use starbridge_flow::time::Timestamp;
use starbridge_postgres::{Claim, HeartbeatReply, Member, OpenError, PostgresStore};
use std::collections::HashMap;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// Between two heartbeats.
const BEAT: Duration = Duration::from_millis(500);
/// So many silent heartbeats are enough where the address refuses connections.
const REFUSED_BEATS: u32 = 2;
/// For so many heartbeats after the database was away, whoever had the store may take it back.
const GRACE_BEATS: u32 = 4;
/// For so many heartbeats a node that was drained leaves the store to others.
const RELUCTANT_BEATS: u32 = 10;
/// Between two looks while the owner hands the store over.
const PEEK: Duration = Duration::from_millis(50);
/// So often a node looks like that at most.
const PEEKS: u32 = 100;
/// How many heartbeats a node stays ready for a store that its owner is about to leave.
const READY_BEATS: u32 = 12;
/// How long an address gets to refuse a connection.
const PROBE: Duration = Duration::from_millis(300);

/// What happens to this node.
pub enum MembershipEvent {
    /// A heartbeat returned; what it showed of the cluster.
    Heartbeat(ClusterView),
    /// The store is this node's: begin.
    Taken(Opened, Instant),
    /// This node was to take the store, and could not.
    NotTaken,
    /// The store is not this node's any more, and why.
    Lost(String),
    /// An operator wants the store to be another node's.
    HandOver,
    /// An operator wants this node to leave.
    Leave,
}

enum Order {
    /// The owner is about to leave the store: this node is to be ready.
    Prepare(oneshot::Sender<()>),
    Prepared(Box<Result<Claim, OpenError>>, oneshot::Sender<()>),
    /// The owner has left the store to this node.
    Take,
    Took(Box<Result<PostgresStore, OpenError>>, Instant),
    Released(bool, oneshot::Sender<()>),
    Leave,
}

/// Takes part in a cluster until it is told to leave.
pub struct Membership {
    orders: Sender<Order>,
    thread: Option<JoinHandle<()>>,
}

impl Membership {
    /// Joins, and begins to send heartbeats. `certificate`: the SHA-256 of the one that the link shows.
    ///
    /// # Errors
    ///
    /// Why this process can't be a node, and what to do.
    pub fn begin(
        config: &Config,
        cluster: Arc<Cluster>,
        certificate: &str,
    ) -> Result<(Self, mpsc::UnboundedReceiver<MembershipEvent>), String> {
        let settings = database(config)?;
        let address = config.cluster.reached_at();
        let mut member = Member::join(&settings, &address, certificate).map_err(|error| error.to_string())?;
        // The first reading comes before the first execution.
        let clock = member.beat().map_err(|error| error.to_string())?.clock;
        SystemClock.follow(clock.shown, clock.asked, clock.answered);
        let (events, heard) = mpsc::unbounded_channel();
        let (orders, inbox) = channel();
        let mut thread = Thread {
            schema: settings.schema,
            lease: config.cluster.beats(),
            member,
            cluster,
            events,
            orders: orders.clone(),
            beats: HashMap::new(),
            state: State::Stands,
            free: 0,
            grace: 0,
            reluctant: 0,
            obeyed: None,
            peeks: 0,
            readied: None,
        };
        let thread = std::thread::Builder::new()
            .name("membership".to_owned())
            .spawn(move || {
                thread.run(&inbox);
                thread.member.leave();
            })
            .map_err(|error| format!("no thread can be started: {error}"))?;
        let thread = Some(thread);
        Ok((Self { orders, thread }, heard))
    }

    /// The store was given back. `drained`: others are to take it. The receiver is told when the database knows it.
    pub fn released(&self, drained: bool) -> oneshot::Receiver<()> {
        let (done, over) = oneshot::channel();
        // A thread that has ended needs no word.
        let _ = self.orders.send(Order::Released(drained, done));
        over
    }

    /// The owner is about to leave the store to this node. `done` is told when all is ready for that, and dropped if it can't be.
    pub fn prepare(&self, done: oneshot::Sender<()>) {
        let _ = self.orders.send(Order::Prepare(done));
    }

    /// The owner has left the store to this node.
    pub fn take(&self) {
        let _ = self.orders.send(Order::Take);
    }

    /// Gives up the store, if this node has it, and waits until the thread of the membership has ended.
    pub fn leave(mut self) {
        let _ = self.orders.send(Order::Leave);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

enum State {
    Stands,
    Takes,
    Owns(PostgresStore),
    /// The store is lost, and whoever used it has not ended yet.
    Ends(PostgresStore),
}

struct Thread {
    schema: String,
    lease: u32,
    member: Member,
    cluster: Arc<Cluster>,
    events: mpsc::UnboundedSender<MembershipEvent>,
    orders: Sender<Order>,
    /// How far the heartbeats of each process were, and how often they were no further.
    beats: HashMap<String, (i64, u32)>,
    state: State,
    /// For how many heartbeats nobody has had the store.
    free: u32,
    grace: u32,
    reluctant: u32,
    /// The time that this node was told to leave its work to others, and has done so.
    obeyed: Option<String>,
    /// How often it has looked while the owner hands the store over.
    peeks: u32,
    /// What is ready for taking the store, and for how many heartbeats it is kept.
    readied: Option<(Claim, u32)>,
}

impl Thread {
    fn run(&mut self, inbox: &Receiver<Order>) {
        let mut due = Instant::now();
        let mut next = due;
        loop {
            let now = Instant::now();
            if now >= next {
                // Only what comes as often as it should is counted.
                let counts = now >= due;
                let soon = self.beat(counts);
                if counts {
                    due = Instant::now() + BEAT;
                }
                next = if soon { due.min(Instant::now() + PEEK) } else { due };
                continue;
            }
            match inbox.recv_timeout(next - now) {
                Ok(Order::Leave) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(order) => {
                    self.carry_out(order);
                    // A node that waits for a free store looks again soon.
                    if self.readied.is_some() {
                        next = next.min(Instant::now() + PEEK);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Prepare(done) => self.prepare(done),
            Order::Prepared(claim, done) => self.prepared(*claim, done),
            Order::Take if matches!(self.state, State::Stands) => self.take(None),
            Order::Took(taken, begun) => self.took(*taken, begun),
            Order::Released(drained, done) => {
                let before = std::mem::replace(&mut self.state, State::Stands);
                if let State::Owns(store) | State::Ends(store) = before {
                    // Others may still have a handle of it.
                    store.give_up();
                    self.cluster
                        .counters
                        .fenced
                        .fetch_add(store.refused(), Ordering::Relaxed);
                }
                self.free = 0;
                self.reluctant = if drained { RELUCTANT_BEATS } else { 0 };
                // The receiver may have gone.
                let _ = done.send(());
            }
            // It has the store, or is taking it. A thread that got `Leave` has ended.
            Order::Take | Order::Leave => {}
        }
    }

    /// Gets ready to take the store. Heartbeats go on meanwhile.
    fn prepare(&mut self, done: oneshot::Sender<()>) {
        if !matches!(self.state, State::Stands) {
            return;
        }
        let (claim, orders) = (self.member.claim(None), self.orders.clone());
        let spawned = std::thread::Builder::new().name("preparing".to_owned()).spawn(move || {
            let _ = orders.send(Order::Prepared(Box::new(claim.prepare()), done));
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread can be started");
        }
    }

    fn prepared(&mut self, claim: Result<Claim, OpenError>, done: oneshot::Sender<()>) {
        match claim {
            Ok(claim) if matches!(self.state, State::Stands) => {
                self.readied = Some((claim, READY_BEATS));
                self.peeks = 0;
                // Otherwise it is dropped after a while.
                let _ = done.send(());
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "this node can't take the store from the one that leaves it"),
        }
    }

    /// Returns whether the next look is to come soon, because the owner hands the store over.
    fn beat(&mut self, counts: bool) -> bool {
        let seen = match self.member.beat() {
            Ok(seen) => seen,
            Err(error) => {
                tracing::debug!(%error, "a heartbeat did not come through");
                return false;
            }
        };
        SystemClock.follow(seen.clock.shown, seen.clock.asked, seen.clock.answered);
        if seen.is_fresh {
            self.beats.clear();
            self.grace = GRACE_BEATS;
        }
        let view = self.view(&seen, counts);
        self.cluster.see(view.clone());
        // If nobody listens, the process ends.
        let _ = self.events.send(MembershipEvent::Heartbeat(view.clone()));
        self.hold();
        self.obey(&view);
        if matches!(self.state, State::Stands) {
            self.look(&seen, &view, counts);
        }
        if counts {
            self.grace = self.grace.saturating_sub(1);
            self.reluctant = self.reluctant.saturating_sub(1);
            let kept = self.readied.take().filter(|(_, beats)| *beats > 0);
            self.readied = kept.map(|(claim, beats)| (claim, beats - 1));
        }
        self.watches(&seen, &view)
    }

    /// Does what an operator wants, once each time: it hands the store over, or leaves.
    fn obey(&mut self, view: &ClusterView) {
        let me = view.nodes.iter().find(|node| node.process == self.member.process());
        let Some(told) = me.and_then(|me| me.drained.clone()) else {
            return;
        };
        if self.obeyed.as_ref() == Some(&told) {
            return;
        }
        let event = match self.state {
            State::Owns(_) if view.has_other(self.member.process()) => MembershipEvent::HandOver,
            State::Stands => MembershipEvent::Leave,
            State::Owns(_) | State::Takes | State::Ends(_) => return,
        };
        self.obeyed = Some(told);
        let _ = self.events.send(event);
    }

    /// Whether the owner hands the store over, and this node is one that may take it.
    fn watches(&mut self, seen: &HeartbeatReply, view: &ClusterView) -> bool {
        let is = |node: &&ShownNode| Some(&node.process) == seen.owner.as_ref();
        let hands_over = view.nodes.iter().find(is).is_some_and(|owner| owner.drained.is_some());
        let me = view.nodes.iter().find(|node| node.process == self.member.process());
        if self.readied.is_none() && (!hands_over || me.is_none_or(|me| me.drained.is_some())) {
            self.peeks = 0;
            return false;
        }
        self.peeks = self.peeks.saturating_add(1);
        self.peeks <= PEEKS
    }

    /// The cluster, with how long each node was silent.
    fn view(&mut self, seen: &HeartbeatReply, counts: bool) -> ClusterView {
        self.beats
            .retain(|process, _| seen.members.iter().any(|member| member.process == *process));
        let nodes = seen.members.iter().map(|member| {
            let (last, silent) = self.beats.entry(member.process.clone()).or_insert((member.beat, 0));
            *silent = if *last == member.beat {
                *silent + u32::from(counts)
            } else {
                0
            };
            *last = member.beat;
            ShownNode {
                name: member.name.clone(),
                address: member.address.clone(),
                certificate: member.certificate.clone(),
                version: member.version.clone(),
                process: member.process.clone(),
                joined: Timestamp(member.joined),
                silent: *silent,
                drained: drained(member.drain.as_deref(), &member.process),
            }
        });
        ClusterView {
            nodes: nodes.collect(),
            owner: seen.owner.clone().filter(|_| seen.is_held),
            since: seen.since.map(Timestamp),
        }
    }

    /// Makes sure that the store still is this node's.
    fn hold(&mut self) {
        let State::Owns(store) = &self.state else {
            return;
        };
        if let Err(error) = store.hold() {
            self.state = State::Ends(store.clone());
            let _ = self.events.send(MembershipEvent::Lost(error.to_string()));
        }
    }

    /// Takes the store if nobody has it, or whoever has it is silent. Others do so one after the other.
    fn look(&mut self, seen: &HeartbeatReply, view: &ClusterView, counts: bool) {
        let me = self.member.process().to_owned();
        let rank = self.rank(seen, view);
        if !seen.is_held {
            self.free += u32::from(counts);
            let waits = rank + self.grace + self.reluctant;
            if self.free > waits || (!counts && waits == 0) {
                self.take(None);
            }
            return;
        }
        self.free = 0;
        if !counts {
            return;
        }
        let owner = view.owner().filter(|owner| owner.process != me).cloned();
        let Some(owner) = owner else {
            return;
        };
        let gone = owner.silent >= REFUSED_BEATS + rank && refuses(&owner.address);
        if owner.silent >= self.lease + rank || gone {
            tracing::warn!(
                node = owner.name,
                beats = owner.silent,
                "the owner is silent: its stay is ended"
            );
            self.take(Some(&owner.process));
        }
    }

    /// For how many heartbeats others try before this node does: those before it, and all others if it was told to leave its
    /// work to them.
    fn rank(&self, seen: &HeartbeatReply, view: &ClusterView) -> u32 {
        let me = self.member.process();
        let is_drained = view
            .nodes
            .iter()
            .any(|node| node.process == me && node.drained.is_some());
        let mut rank: u32 = 0;
        let (mut is_before, mut others) = (true, false);
        for node in &view.nodes {
            is_before &= node.process != me;
            let live = node.silent < self.lease && Some(&node.process) != seen.owner.as_ref() && node.process != me;
            let ready = live && node.drained.is_none();
            let goes_first = if is_drained {
                ready || (live && is_before)
            } else {
                ready && is_before
            };
            rank += u32::from(goes_first);
            others |= ready;
        }
        rank + if is_drained && others { RELUCTANT_BEATS } else { 0 }
    }

    fn take(&mut self, silent: Option<&str>) {
        let readied = self.readied.take().filter(|_| silent.is_none());
        let claim = readied.map_or_else(|| self.member.claim(silent), |(claim, _)| claim);
        let (orders, begun) = (self.orders.clone(), Instant::now());
        self.state = State::Takes;
        // Heartbeats go on meanwhile.
        let spawned = std::thread::Builder::new().name("taking".to_owned()).spawn(move || {
            let _ = orders.send(Order::Took(Box::new(claim.take()), begun));
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread can be started");
            self.state = State::Stands;
            let _ = self.events.send(MembershipEvent::NotTaken);
        }
    }

    fn took(&mut self, taken: Result<PostgresStore, OpenError>, begun: Instant) {
        self.state = State::Stands;
        self.free = 0;
        let event = match self.used(taken) {
            Some(opened) => MembershipEvent::Taken(opened, begun),
            None => MembershipEvent::NotTaken,
        };
        let _ = self.events.send(event);
    }

    fn used(&mut self, taken: Result<PostgresStore, OpenError>) -> Option<Opened> {
        let store = match taken {
            Ok(store) => store,
            Err(error) if error.is_taken() => return None,
            Err(error) => {
                tracing::warn!(%error, "the store can't be taken");
                return None;
            }
        };
        match opened(store.clone(), &self.schema) {
            Ok(opened) => {
                self.state = State::Owns(store);
                Some(opened)
            }
            Err(error) => {
                tracing::warn!(error, "the store can't be used");
                None
            }
        }
    }
}

/// Whether nobody listens there. An address that does not answer says nothing.
fn refuses(address: &str) -> bool {
    let Some(address) = address.to_socket_addrs().ok().and_then(|mut all| all.next()) else {
        return false;
    };
    let tried = TcpStream::connect_timeout(&address, PROBE);
    tried.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
}
