//! The limit of open files, and the number of connections that it allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use starbridge_node::cluster::RESERVE_LINKS;
use starbridge_server::{MAX_LEAVING, RESERVE_SEATS};

/// Files reserved for the store, the log, name lookups, and occasional other files.
const RESERVED_FILES: u64 = 128;
/// The default maximum of connections.
const MAX_CONNECTIONS: u64 = 10_000;
/// The minimum of connections.
const MIN_CONNECTIONS: u64 = 16;

/// The result of the limit of open files.
#[derive(Clone, Copy, Debug)]
pub struct Files {
    before: Option<u64>,
    now: u64,
    fit: u64,
    most: u64,
    /// How many links to other nodes there may be.
    links: u64,
}

impl Files {
    /// Raises the limit of open files as far as possible. The number of connections is the
    /// configured one, or the one that leaves enough files for this many calls and for the store. `linked`: other nodes pass
    /// requests on to this one, or it does to them.
    pub fn raise(set: usize, calls: usize, linked: bool) -> Self {
        let before = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: before.maximum,
            maximum: before.maximum,
        };
        // If the system refuses, the old limit stays.
        let after = match setrlimit(Resource::Nofile, raised) {
            Ok(()) => getrlimit(Resource::Nofile),
            Err(_) => before,
        };
        let now = after.current.unwrap_or(u64::MAX);
        let all = that_fit(now, calls as u64);
        let fit = if linked { with_links(all) } else { all };
        let most = if set == 0 { fit.min(MAX_CONNECTIONS) } else { set as u64 };
        let links = match linked {
            true => links_beside(all, most),
            false => 0,
        };
        Self {
            before: before.current,
            now,
            fit,
            most,
            links,
        }
    }

    /// How many connections there may be.
    pub fn connections(self) -> usize {
        usize::try_from(self.most).unwrap_or(usize::MAX)
    }

    /// How many links there may be at once to this node.
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "only nodes of a cluster have links")
    )]
    pub fn links(self) -> usize {
        usize::try_from(self.links).unwrap_or(usize::MAX)
    }

    /// Logs the limits.
    pub fn log(self) {
        let Self {
            before,
            now,
            fit,
            most,
            links,
        } = self;
        tracing::info!(files = now, before, connections = most, links, "the file limit is read");
        if most > fit {
            tracing::warn!(
                "`server.connections` is {most}, but {now} open files leave room for {fit} beside calls and the store: \
                 raise the limit (`LimitNOFILE=`, `ulimit -n`)"
            );
        }
    }
}

/// The number of connections that this many files allow. Calls get their files first, but never
/// more than half.
fn that_fit(files: u64, calls: u64) -> u64 {
    let beside = RESERVED_FILES + (RESERVE_SEATS + MAX_LEAVING) as u64;
    let left = files.saturating_sub(beside);
    (left - calls.min(left / 2)).max(MIN_CONNECTIONS)
}

/// The number of connections of a node: each is a link to the node that has the store, too.
fn with_links(all: u64) -> u64 {
    (all.saturating_sub(RESERVE_LINKS as u64) / 2).max(MIN_CONNECTIONS)
}

/// The number of links to a node with this many connections.
fn links_beside(all: u64, connections: u64) -> u64 {
    let left = all.saturating_sub(RESERVE_LINKS as u64).saturating_sub(connections);
    left.clamp(MIN_CONNECTIONS, MAX_CONNECTIONS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_calls_and_the_store() {
        assert_eq!(that_fit(1_024, 2_000), 384);
        assert_eq!(that_fit(1_024, 100), 668);
        assert_eq!(that_fit(524_288, 4_000), 520_032);
        assert_eq!(that_fit(64, 4_000), MIN_CONNECTIONS);
        assert_eq!(that_fit(u64::MAX, 1_000), u64::MAX - 1_256);
    }

    #[test]
    fn a_node_of_a_cluster_has_two_files_a_connection() {
        let all = that_fit(600, 2_000);
        let most = with_links(all);
        assert_eq!((all, most, links_beside(all, most)), (172, 54, 54));
        let all = that_fit(20_000, 100);
        let most = with_links(all);
        assert!(most + links_beside(all, most) + RESERVE_LINKS as u64 <= all);
        // What is set leaves the rest for links, and never none.
        assert_eq!(links_beside(1_000, 900), 36);
        assert_eq!(links_beside(1_000, 5_000), MIN_CONNECTIONS);
        assert_eq!(links_beside(u64::MAX, 5_000), MAX_CONNECTIONS);
    }

    #[test]
    fn what_is_set_counts() {
        assert_eq!(Files::raise(7, 10, false).connections(), 7);
        let most = Files::raise(0, 10, false).connections();
        assert!((16..=10_000).contains(&most), "{most}");
    }
}
