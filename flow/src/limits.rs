//! Every limit of the language with its default (section "limits"). Exceeding one leads to a named
//! error or diagnostic.

use crate::time::{Millis, Seconds};
use serde::{Deserialize, Serialize};

/// Limits of data, definitions and executions. An operator may lower or raise them. As text they
/// have the names of the fields; a missing one keeps its default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The bytes of a step's input, output and local together, as compact JSON.
    pub step_data_bytes: usize,
    /// Bytes of a foreach's collection, of a parallel's or foreach's local, and of an execution's input.
    pub collection_bytes: usize,
    /// The longest text of a definition, in bytes.
    pub definition_bytes: usize,
    /// Steps of a definition.
    pub steps: usize,
    /// The depth of nested composites.
    pub nesting: usize,
    /// Branches of a parallel.
    pub branches: usize,
    /// Items of a foreach's collection.
    pub foreach_items: usize,
    /// The most events in the history of an execution.
    pub history_events: u64,
    /// Bytes of data that an execution may hold at once, as compact JSON.
    pub execution_bytes: usize,
    /// Visits of one step in one visit of its list. The language fixes it: it can't be set in a text.
    #[serde(skip)]
    pub step_visits: u32,
    /// The longest wait, in days.
    pub wait_days: u64,
    /// The depth of nested containers in data. The language fixes it: it can't be set in a text.
    #[serde(skip)]
    pub data_depth: usize,
    /// The depth of nested child flows, each awaited by the one that started it.
    pub child_depth: u32,
    /// The steps that the paths, conditions, templates and schemas of one place may take. Each byte
    /// of the data they look into adds one step (section "limits").
    pub evaluation_steps: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            step_data_bytes: 256 * 1024,
            collection_bytes: 64 * 1024 * 1024,
            definition_bytes: 1024 * 1024,
            steps: 10_000,
            nesting: 32,
            branches: 1_000,
            foreach_items: 1_000_000,
            history_events: 10_000_000,
            execution_bytes: 1024 * 1024 * 1024,
            step_visits: 100_000,
            wait_days: 365,
            data_depth: 100,
            child_depth: 100,
            evaluation_steps: 1_000_000,
        }
    }
}

/// The time limit of an execution whose flow gives none: one year of 365 days.
pub const EXECUTION_TIMEOUT: Millis = Millis::from_days(365);
/// Characters of an error's name; longer ones are cut.
pub const ERROR_NAME_CHARS: usize = 128;
/// Characters of an error's cause; longer ones are cut.
pub const ERROR_CAUSE_CHARS: usize = 4096;
/// Characters of a step's name, and of other names.
pub const NAME_CHARS: usize = 128;

/// The longest delay that a resource can ask for (`Retry-After`): one day. Anything beyond that is
/// ignored.
pub const MAX_RETRY_AFTER: Seconds = Seconds(24 * 60 * 60);

/// The maximum number of labels of an execution.
pub const LABELS: usize = 64;
/// The maximum length of a label's value, in characters.
pub const LABEL_CHARS: usize = 256;
/// The longest `onceKey` of a start, in bytes.
pub const ONCE_KEY_BYTES: usize = 256;
/// The maximum number of concurrency keys of a flow.
pub const CONCURRENCY_KEYS: usize = 8;
/// The longest concurrency key, in bytes.
pub const CONCURRENCY_KEY_BYTES: usize = 256;
/// The maximum number of executions that a start may wait for.
pub const DEPENDENCIES: usize = 100;
/// The longest `delaySeconds` and `startDeadlineSeconds` of a start: a hundred years of 365 days.
pub const START_DELAY: Seconds = Seconds(36_500 * 24 * 60 * 60);

/// Whether this may be the name of a flow, branch or queue: 1–128 of `[A-Za-z0-9_-]`, beginning
/// with a letter or `_` (section "limits").
pub fn is_name(text: &str) -> bool {
    text.len() <= NAME_CHARS
        && text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(is_of_name)
}

/// Whether this may be the name of an execution: as [`is_name`], but a digit may come first, so
/// that an order number or a UUID is a name.
pub fn is_execution_name(text: &str) -> bool {
    text.len() <= NAME_CHARS && text.chars().all(is_of_name) && !text.is_empty() && !text.starts_with('-')
}

fn is_of_name(each: char) -> bool {
    each.is_ascii_alphanumeric() || each == '_' || each == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_may_be_named_by_a_number() {
        for name in ["7", "0b9f7a3e-6a54-4c0e-9d1c-2a7f5b1e8c11", "_a", "order-7"] {
            assert!(is_execution_name(name), "{name}");
        }
        for name in ["", "-7", "a b", "a/b", "ä", &"7".repeat(NAME_CHARS + 1)] {
            assert!(!is_execution_name(name), "{name}");
        }
        assert!(!is_name("7") && is_name("_7"));
    }
}
