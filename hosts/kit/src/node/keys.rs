//! The keys tokens are signed with, kept in the store so that a token outlives the process that gave it out.

use super::NodeError;
use crate::system::random_key;
use starbridge_ports::{Store, StoreError};
use starbridge_runtime::{TokenKeys, hexadecimal};

const KIND: &str = "token-key";
/// The key that signs, and the one before it, which is still good.
const NAMES: [&str; 2] = ["current", "previous"];

/// The store's keys; the first time, a new one.
pub(crate) fn token_keys(store: &dyn Store) -> Result<TokenKeys, NodeError> {
    let mut keys = Vec::new();
    for name in NAMES {
        if let Some(text) = store.fetch(KIND, name)? {
            let key = hexadecimal::read_exactly(&text).ok_or_else(|| {
                NodeError::Store(StoreError::Corrupt(format!(
                    "the {name} key of task tokens is not readable"
                )))
            })?;
            keys.push(key);
        }
    }
    if keys.is_empty() {
        let key = new_key()?;
        store.keep(KIND, NAMES[0], &hexadecimal::write(&key))?;
        keys.push(key);
    }
    Ok(TokenKeys::new(keys))
}

/// Makes a new key the one that signs; the one before stays good for tokens given out under it, the one before that does
/// not. Counts from the next start.
pub fn rotate(store: &dyn Store) -> Result<(), NodeError> {
    if let Some(current) = store.fetch(KIND, NAMES[0])? {
        store.keep(KIND, NAMES[1], &current)?;
    }
    store.keep(KIND, NAMES[0], &hexadecimal::write(&new_key()?))?;
    Ok(())
}

fn new_key() -> Result<[u8; 32], NodeError> {
    random_key().map_err(NodeError::System)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::in_memory;
    use starbridge_machine::EventId;

    #[test]
    fn two_keys_are_good_at_a_time() {
        let store = in_memory();
        let store = store.as_ref();
        let first = token_keys(store).unwrap().sign("e", EventId(1));
        rotate(store).unwrap();
        let keys = token_keys(store).unwrap();
        let second = keys.sign("e", EventId(1));
        assert_ne!(first, second);
        assert!(keys.verify(&first).is_ok() && keys.verify(&second).is_ok());
        rotate(store).unwrap();
        let keys = token_keys(store).unwrap();
        assert!(keys.verify(&first).is_err() && keys.verify(&second).is_ok());
    }
}
