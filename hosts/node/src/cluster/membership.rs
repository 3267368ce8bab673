//! The thread that tells others that this node lives, sees which of them do, and takes the store when nobody has it.

use super::{Cluster, ShownNode, View};
use crate::config::Config;
use crate::configured_store::{database, opened};
use crate::stores::Opened;
use starbridge_flow::time::Timestamp;
use starbridge_postgres::{Member, OpenError, PostgresStore, Seen};
use std::collections::HashMap;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Between two heartbeats.
const BEAT: Duration = Duration::from_millis(500);
/// So many silent heartbeats are enough where the address refuses connections.
const REFUSED_BEATS: u32 = 2;
/// For so many heartbeats after the database was away, whoever had the store may take it back.
const GRACE_BEATS: u32 = 4;
/// For so many heartbeats a node that was drained leaves the store to others.
const RELUCTANT_BEATS: u32 = 10;
/// How long an address gets to refuse a connection.
const PROBE: Duration = Duration::from_millis(300);

/// What happens to this node.
pub enum Event {
    /// The cluster was seen.
    Seen(View),
    /// The store is this node's: begin.
    Taken(Opened, Instant),
    /// The store is not this node's any more, and why.
    Lost(String),
}

enum Order {
    Took(Box<Result<PostgresStore, OpenError>>, Instant),
    Released(bool),
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
    ) -> Result<(Self, mpsc::UnboundedReceiver<Event>), String> {
        let settings = database(config)?;
        let address = match config.cluster.advertise.is_empty() {
            true => config.cluster.listen.to_string(),
            false => config.cluster.advertise.clone(),
        };
        let member = Member::join(&settings, &address, certificate).map_err(|error| error.to_string())?;
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

    /// The store was given back. `drained`: others are to take it.
    pub fn released(&self, drained: bool) {
        // A thread that has ended needs no word.
        let _ = self.orders.send(Order::Released(drained));
    }

    /// Leaves.
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
    events: mpsc::UnboundedSender<Event>,
    orders: Sender<Order>,
    /// How far the heartbeats of each process were, and how often they were no further.
    beats: HashMap<String, (i64, u32)>,
    state: State,
    /// For how many heartbeats nobody has had the store.
    free: u32,
    grace: u32,
    reluctant: u32,
}

impl Thread {
    fn run(&mut self, inbox: &Receiver<Order>) {
        let mut next = Instant::now();
        loop {
            let now = Instant::now();
            if now >= next {
                self.beat();
                next = Instant::now() + BEAT;
                continue;
            }
            match inbox.recv_timeout(next - now) {
                Ok(Order::Leave) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Order::Took(taken, begun)) => self.took(*taken, begun),
                Ok(Order::Released(drained)) => {
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
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    fn beat(&mut self) {
        let seen = match self.member.beat() {
            Ok(seen) => seen,
            Err(error) => {
                tracing::debug!(%error, "a heartbeat did not come through");
                return;
            }
        };
        if seen.is_fresh {
            self.beats.clear();
            self.grace = GRACE_BEATS;
        }
        let view = self.view(&seen);
        self.cluster.see(view.clone());
        // If nobody listens, the process ends.
        let _ = self.events.send(Event::Seen(view.clone()));
        self.hold();
        if matches!(self.state, State::Stands) {
            self.look(&seen, &view);
        }
        self.grace = self.grace.saturating_sub(1);
        self.reluctant = self.reluctant.saturating_sub(1);
    }

    /// The cluster, with how long each node was silent.
    fn view(&mut self, seen: &Seen) -> View {
        self.beats
            .retain(|process, _| seen.members.iter().any(|member| member.process == *process));
        let nodes = seen.members.iter().map(|member| {
            let (last, silent) = self.beats.entry(member.process.clone()).or_insert((member.beat, 0));
            *silent = if *last == member.beat { *silent + 1 } else { 0 };
            *last = member.beat;
            ShownNode {
                name: member.name.clone(),
                address: member.address.clone(),
                certificate: member.certificate.clone(),
                version: member.version.clone(),
                process: member.process.clone(),
                joined: Timestamp(member.joined),
                silent: *silent,
            }
        });
        View {
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
            let _ = self.events.send(Event::Lost(error.to_string()));
        }
    }

    /// Takes the store if nobody has it, or whoever has it is silent. Others do so one after the other.
    fn look(&mut self, seen: &Seen, view: &View) {
        let me = self.member.process().to_owned();
        let before = view.nodes.iter().take_while(|node| node.process != me);
        let live = |node: &&ShownNode| node.silent < self.lease && Some(&node.process) != seen.owner.as_ref();
        let rank = u32::try_from(before.filter(live).count()).unwrap_or(u32::MAX);
        if !seen.is_held {
            self.free += 1;
            if self.free > rank + self.grace + self.reluctant {
                self.take(None);
            }
            return;
        }
        self.free = 0;
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

    fn take(&mut self, silent: Option<&str>) {
        let (claim, orders, begun) = (self.member.claim(silent), self.orders.clone(), Instant::now());
        self.state = State::Takes;
        // Heartbeats go on meanwhile.
        let spawned = std::thread::Builder::new().name("taking".to_owned()).spawn(move || {
            let _ = orders.send(Order::Took(Box::new(claim.take()), begun));
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread can be started");
            self.state = State::Stands;
        }
    }

    fn took(&mut self, taken: Result<PostgresStore, OpenError>, begun: Instant) {
        self.state = State::Stands;
        self.free = 0;
        let store = match taken {
            Ok(store) => store,
            Err(error) if error.is_taken() => return,
            Err(error) => {
                tracing::warn!(%error, "the store can't be taken");
                return;
            }
        };
        match opened(store.clone(), &self.schema) {
            Ok(opened) => {
                self.state = State::Owns(store);
                let _ = self.events.send(Event::Taken(opened, begun));
            }
            Err(error) => tracing::warn!(error, "the store can't be used"),
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
