//! Several nodes over one database.

use super::Config;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Settings of a node of a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterConfig {
    /// The name of this node, which no other one has; empty: no cluster.
    pub node: String,
    /// Where it listens for other nodes.
    pub listen: SocketAddr,
    /// Where other nodes reach it (`HOST:PORT`); empty: as `listen` says.
    pub advertise: String,
    /// After how many seconds of silence another node takes over.
    pub lease_seconds: u64,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            node: String::new(),
            listen: SocketAddr::from(([127, 0, 0, 1], 7979)),
            advertise: String::new(),
            lease_seconds: 3,
        }
    }
}

impl ClusterConfig {
    /// Whether this is a node of a cluster.
    pub fn is_set(&self) -> bool {
        !self.node.is_empty()
    }

    /// Where other nodes reach it.
    pub fn reached_at(&self) -> String {
        match self.advertise.is_empty() {
            true => self.listen.to_string(),
            false => self.advertise.clone(),
        }
    }

    /// How many heartbeats a lease has.
    pub fn beats(&self) -> u32 {
        u32::try_from(self.lease_seconds * 2).unwrap_or(u32::MAX)
    }

    /// Whether only this machine reaches the links.
    pub fn is_of_this_machine(&self) -> bool {
        !self.is_set() || self.listen.ip().is_loopback()
    }
}

impl Config {
    /// Which setting of a cluster is wrong, and how.
    ///
    /// # Errors
    ///
    /// The first one that is.
    pub fn check_cluster(&self) -> Result<(), String> {
        let cluster = &self.cluster;
        if !cluster.is_set() {
            return Ok(());
        }
        let fits = |each: char| each.is_ascii_alphanumeric() || matches!(each, '-' | '_' | '.');
        if cluster.node.len() > 63 || !cluster.node.chars().all(fits) {
            return Err(
                "`cluster.node` has at most 63 letters, digits, `-`, `_` and `.` of ASCII, for example `node-1`"
                    .to_owned(),
            );
        }
        if self.store.url.is_empty() {
            return Err(
                "`cluster.node` needs a database that all nodes share: name it with `store.url` or `--db postgres://…`"
                    .to_owned(),
            );
        }
        if !(1..=60).contains(&cluster.lease_seconds) {
            return Err("`cluster.lease_seconds` must be from 1 to 60".to_owned());
        }
        if cluster.advertise.is_empty() && cluster.listen.ip().is_unspecified() {
            return Err(
                "`cluster.listen` is every address of this machine: name the one where other nodes reach it with \
                 `cluster.advertise`"
                    .to_owned(),
            );
        }
        let port = cluster.advertise.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
        if !cluster.advertise.is_empty() && !matches!(port, Some(Ok(1..))) {
            return Err("`cluster.advertise` must be `HOST:PORT`".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_do_not_fit_are_named() {
        let with = |text: &str| {
            let text = format!("[store]\nurl = \"postgres://u@h/d\"\n[cluster]\n{text}");
            let config = Config::read(&text, std::iter::empty()).unwrap();
            config.check_cluster()
        };
        assert_eq!(with(""), Ok(()));
        assert_eq!(with("node = \"a\""), Ok(()));
        for (text, word) in [
            ("node = \"a b\"", "cluster.node"),
            ("node = \"a\"\nlease_seconds = 0", "cluster.lease_seconds"),
            ("node = \"a\"\nlisten = \"0.0.0.0:1\"", "cluster.advertise"),
            ("node = \"a\"\nadvertise = \"host\"", "HOST:PORT"),
        ] {
            let error = with(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        let file = Config::read("[cluster]\nnode = \"a\"", std::iter::empty()).unwrap();
        assert!(file.check_cluster().unwrap_err().contains("store.url"));
    }
}
