//! The witness's record of each job: things that were made and not taken back. It shows whether all
//! is done, all undone, or what is left.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The things of a job, in the order they are made.
pub(super) const THINGS: [&str; 3] = ["a", "b", "c"];

/// The witness's own book of things.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    made: BTreeMap<String, BTreeSet<String>>,
    /// The first call that was to fail, by job.
    failed: BTreeMap<String, String>,
    repaired: BTreeSet<String>,
}

impl Ledger {
    /// Makes a thing. It is made even where that fails: it may have half happened.
    pub(super) fn make(&mut self, key: &str, sent: &Value) -> bool {
        let (job, thing) = (word(sent, "job"), word(sent, "thing"));
        self.made.entry(job.clone()).or_default().insert(thing);
        match sent["fails"].as_str() {
            Some("always") => false,
            Some("first") => self.failed.entry(job).or_insert_with(|| key.to_owned()) != key,
            _ => true,
        }
    }

    /// Takes a thing back, unless it is stuck. A missing thing is not an error.
    pub(super) fn take(&mut self, sent: &Value) -> bool {
        let job = word(sent, "job");
        if sent["stuck"].as_bool() == Some(true) && !self.repaired.contains(&job) {
            return false;
        }
        if let Some(made) = self.made.get_mut(&job) {
            made.remove(&word(sent, "thing"));
        }
        true
    }

    /// From now on nothing of a job is stuck.
    pub(super) fn repair(&mut self, job: &str) {
        self.repaired.insert(job.to_owned());
    }

    /// The things that exist for a job.
    pub(super) fn left(&self, job: &str) -> Vec<String> {
        let made = self.made.get(job);
        made.into_iter().flatten().cloned().collect()
    }
}

fn word(sent: &Value, member: &str) -> String {
    sent[member].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn things_are_made_once_and_taken_back() {
        let mut ledger = Ledger::default();
        let first = json!({"job": "j", "thing": "c", "fails": "first"});
        assert!(!ledger.make("1", &first));
        assert!(!ledger.make("1", &first), "the same call again has the same answer");
        assert!(ledger.make("2", &first));
        assert_eq!(ledger.left("j"), ["c"]);
        let stuck = json!({"job": "j", "thing": "c", "stuck": true});
        assert!(!ledger.take(&stuck));
        ledger.repair("j");
        assert!(ledger.take(&stuck) && ledger.take(&stuck));
        assert!(ledger.left("j").is_empty());
    }
}
