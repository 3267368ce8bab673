//! A node of a cluster: one of several processes over one database, of which one has the store and the others stand by.

#[cfg(feature = "postgres")]
pub mod membership;

use starbridge_flow::time::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many files a node has for links beside those of its bound: about to show a certificate, about to be told that there are too
/// many, and kept open to the owner for the next request.
pub const RESERVE_LINKS: usize = 64;

/// A node, as this one sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownNode {
    /// As its configuration says, unique in the cluster.
    pub name: String,
    /// Where other nodes reach it.
    pub address: String,
    /// The SHA-256 of its certificate, in hexadecimal digits.
    pub certificate: String,
    /// The version of its program.
    pub version: String,
    /// What all its stays have in common.
    pub process: String,
    /// When it joined.
    pub joined: Timestamp,
    /// How many heartbeats of this node came through since the last one of that node did.
    pub silent: u32,
    /// Present if it was told to leave its work to others: which time it was told.
    pub drained: Option<String>,
}

/// With so many silent heartbeats a node still counts as one that may take the store.
const LIVELY_BEATS: u32 = 2;

impl ShownNode {
    /// Whether it takes the store if it is free.
    pub fn may_take(&self) -> bool {
        self.drained.is_none() && self.is_lively()
    }

    /// Whether a heartbeat of it was seen just now.
    pub fn is_lively(&self) -> bool {
        self.silent <= LIVELY_BEATS
    }
}

/// The cluster, as a node sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// The owner, those that may take its place, and those that were seen lately.
    pub nodes: Vec<ShownNode>,
    /// The process that has the store, if one has it.
    pub owner: Option<String>,
    /// When it took the store.
    pub since: Option<Timestamp>,
}

impl ClusterView {
    /// The node that has the store.
    pub fn owner(&self) -> Option<&ShownNode> {
        let owner = self.owner.as_deref()?;
        self.nodes.iter().find(|node| node.process == owner)
    }

    /// Whether another node than this one may take the store.
    pub fn has_other(&self, process: &str) -> bool {
        self.nodes.iter().any(|node| node.process != process && node.may_take())
    }
}

/// Under this kind the store keeps which nodes were told to leave their work to others, by their names.
pub const DRAINS: &str = "drain";

/// What is kept under that kind: it is about one process, so that a node that starts again under the same name has its work.
pub fn drain_mark(process: &str, now: Timestamp) -> String {
    format!("{process} {}", now.0)
}

/// Which time the process was told, if that is about it.
#[cfg(feature = "postgres")]
fn drained(mark: Option<&str>, process: &str) -> Option<String> {
    let (about, time) = mark?.split_once(' ')?;
    (about == process).then(|| time.to_owned())
}

/// What a node counts about its cluster.
#[derive(Debug, Default)]
pub struct ClusterCounters {
    /// How often this node has had the store.
    pub incarnations: AtomicU64,
    /// How often it took the store after another one.
    pub takeovers: AtomicU64,
    /// How many milliseconds its last take-over took, from the decision until requests were answered.
    pub takeover_ms: AtomicU64,
    /// How many milliseconds requests waited when it last left the store to another node.
    pub handover_ms: AtomicU64,
    /// How many of its appends were refused because another one had the store.
    pub fenced: AtomicU64,
    /// How many requests it passed on to another node.
    pub forwarded: AtomicU64,
    /// How many connections of strangers to its link it refused.
    pub strangers: AtomicU64,
    /// How many shards it owns: all or none.
    pub shards: AtomicU64,
}

impl ClusterCounters {
    /// Names, meanings, kinds and values.
    pub fn all(&self) -> [(&'static str, &'static str, &'static str, u64); 8] {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            (
                "incarnations_total",
                "Times this node has had the store.",
                "counter",
                of(&self.incarnations),
            ),
            (
                "takeovers_total",
                "Times it took the store after another node.",
                "counter",
                of(&self.takeovers),
            ),
            (
                "takeover_milliseconds",
                "How long its last take-over took, from the decision until it answered.",
                "gauge",
                of(&self.takeover_ms),
            ),
            (
                "handover_milliseconds",
                "How long requests waited when it last left the store to another node.",
                "gauge",
                of(&self.handover_ms),
            ),
            (
                "appends_fenced_total",
                "Appends that were refused because another node had the store.",
                "counter",
                of(&self.fenced),
            ),
            (
                "requests_forwarded_total",
                "Requests passed on to another node.",
                "counter",
                of(&self.forwarded),
            ),
            (
                "links_refused_total",
                "Connections to its link without the certificate of a node.",
                "counter",
                of(&self.strangers),
            ),
            ("shards_owned", "Shards it owns, of 256.", "gauge", of(&self.shards)),
        ]
    }
}

/// A node's part in its cluster, for all who ask.
#[derive(Debug)]
pub struct Cluster {
    /// The name of this node.
    pub name: String,
    /// What it counts.
    pub counters: ClusterCounters,
    view: Mutex<ClusterView>,
}

impl Cluster {
    /// A node that has seen nothing yet.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            counters: ClusterCounters::default(),
            view: Mutex::default(),
        }
    }

    /// The cluster as it was seen last.
    pub fn view(&self) -> ClusterView {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The other nodes, as they were seen last.
    pub fn others(&self) -> Vec<ShownNode> {
        let mut nodes = self.view().nodes;
        nodes.retain(|node| node.name != self.name);
        nodes
    }

    /// Whether a node shows this certificate.
    pub fn knows(&self, certificate: &str) -> bool {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        view.nodes.iter().any(|node| node.certificate == certificate)
    }

    /// Notes what was seen.
    pub fn see(&self, view: ClusterView) {
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = view;
    }
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_about_one_process() {
        let mark = drain_mark("one", Timestamp(7));
        assert_eq!(drained(Some(&mark), "one").as_deref(), Some("7"));
        assert_eq!(drained(Some(&mark), "two"), None);
        assert_eq!(drained(None, "one"), None);
        assert_eq!(DRAINS, starbridge_postgres::DRAINS);
    }
}
