//! The id and the seed of a new execution. Both come from outside.

use super::StartRequest;
use sha2::{Digest, Sha256};
use starbridge_flow::hex;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Parent};

/// Gives ids and seeds.
pub(super) type IdSource = Box<dyn FnMut(&StartRequest, Timestamp) -> ExecutionSeed + Send>;

/// The id and the seed of a new execution.
#[derive(Clone, Debug)]
pub struct ExecutionSeed {
    /// The id, which must be unique. The id of a child must follow from its parent's call ([`child_id`]), so that a
    /// call that is sent again starts the same child.
    pub id: Text,
    /// The seed of all randomness in the execution.
    pub seed: u64,
}

/// The id of the child that a call starts: a UUID (version 7, RFC 9562). It has the time of its parent's id, so that
/// families are stored together, and the last byte of its parent's id, so that they belong to one shard. The rest is
/// made from the call.
pub fn child_id(parent: &Parent) -> Text {
    let digest = Sha256::digest(format!("{}/{}", parent.execution, parent.event));
    let mut digits: String = parent.execution.chars().filter(char::is_ascii_hexdigit).collect();
    if digits.len() != 32 {
        digits = "0".repeat(32);
    }
    let own = hex::encode(&digest);
    let part = |text: &str, from: usize, to: usize| text.get(from..to).unwrap_or_default().to_owned();
    Text::from(format!(
        "{}-{}-7{}-8{}-{}{}",
        part(&digits, 0, 8),
        part(&digits, 8, 12),
        part(&own, 0, 3),
        part(&own, 3, 6),
        part(&own, 6, 16),
        part(&digits, 30, 32),
    ))
}

/// The call as the parent of an execution that it starts.
pub(super) fn parent_of(execution: &Text, call: EventId) -> Parent {
    Parent {
        execution: execution.clone(),
        event: call,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn child_id_is_near_its_parent_and_unlike_its_siblings() {
        let parent = |event| parent_of(&Text::from("0190b3e4-8c1d-7abc-9def-0123456789ab"), EventId(event));
        let [one, two] = [child_id(&parent(4)), child_id(&parent(5))];
        assert_ne!(one, two);
        assert_eq!(one, child_id(&parent(4)));
        assert!(one.starts_with("0190b3e4-8c1d-7") && one.ends_with("ab"), "{one}");
        assert_eq!(one.len(), 36);
    }
}
