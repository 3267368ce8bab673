//! The keys of task tokens: from the configuration or from the store, so that a token outlives the process that
//! signed it.

use super::NodeError;
use crate::system::random_key;
use sha2::{Digest, Sha256};
use starbridge_flow::hex;
use starbridge_ports::{Store, StoreError};
use starbridge_runtime::TokenKeys;

const KIND: &str = "token-key";
/// The key that signs, and the one before it, which is still valid.
const NAMES: [&str; 2] = ["current", "previous"];
/// The length of a key, in bytes.
const KEY_BYTES: usize = 32;

/// The keys of the configuration, then those of the store. The first signs, all are valid. If there are none, a new
/// one is stored.
pub(crate) fn token_keys(store: &dyn Store, configured: &[[u8; KEY_BYTES]]) -> Result<TokenKeys, NodeError> {
    let mut keys = configured.to_vec();
    for name in NAMES {
        if let Some(text) = store.get_value(KIND, name)? {
            keys.push(read_kept(name, &text)?);
        }
    }
    if keys.is_empty() {
        // Another process may begin on the store at the same time: the first key that is there counts for both.
        let kept = store.put_new_value(KIND, NAMES[0], &hex::encode(&new_key()?))?;
        keys.push(read_kept(NAMES[0], &kept)?);
    }
    Ok(TokenKeys::new(keys))
}

fn read_kept(name: &str, text: &str) -> Result<[u8; KEY_BYTES], NodeError> {
    hex::decode_array(text).ok_or_else(|| {
        NodeError::Store(StoreError::Corrupt(format!(
            "the {name} key of task tokens is not readable"
        )))
    })
}

/// Reads the keys in a secret: each 32 bytes or more in base64 or hexadecimal digits, with white space between them.
/// The error repeats nothing of them.
pub(crate) fn read_keys(text: &str) -> Result<Vec<[u8; KEY_BYTES]>, String> {
    let keys: Option<Vec<_>> = text.split_whitespace().map(read_key).collect();
    keys.filter(|keys| !keys.is_empty())
        .ok_or_else(|| "must be 32 bytes or more, in base64 or hexadecimal digits".to_owned())
}

fn read_key(text: &str) -> Option<[u8; KEY_BYTES]> {
    let bytes = match text.len().is_multiple_of(2) && text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        true => hex::decode(text)?,
        false => base64(text)?,
    };
    match bytes.len() {
        ..KEY_BYTES => None,
        KEY_BYTES => bytes.try_into().ok(),
        _ => Some(Sha256::digest(&bytes).into()),
    }
}

/// Reads base64 with either alphabet (RFC 4648, sections 4 and 5), padded or not.
fn base64(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut kept) = (Vec::new(), 0_u32, 0_u32);
    for letter in text.trim_end_matches('=').bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        kept += 6;
        if kept >= 8 {
            kept -= 8;
            bytes.push(u8::try_from((bits >> kept) & 0xff).ok()?);
            bits &= (1 << kept) - 1;
        }
    }
    // The remaining bits only fill up the last byte and must be zero.
    (kept < 6 && bits == 0).then_some(bytes)
}

/// Deletes the keys of the store. No token that one of them signed is valid any more.
///
/// # Errors
///
/// [`NodeError::Store`] if the store fails.
pub fn discard(store: &dyn Store) -> Result<(), NodeError> {
    for name in NAMES {
        store.delete_value(KIND, name, None)?;
    }
    Ok(())
}

/// Stores a new key, which signs from the next start on. The key before stays valid for its tokens; the one before
/// that does not.
///
/// # Errors
///
/// [`NodeError::Store`] if the store fails, [`NodeError::System`] if the system gives no random bytes.
pub fn rotate(store: &dyn Store) -> Result<(), NodeError> {
    if let Some(current) = store.get_value(KIND, NAMES[0])? {
        store.put_value(KIND, NAMES[1], &current, None)?;
    }
    store.put_value(KIND, NAMES[0], &hex::encode(&new_key()?), None)?;
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
    fn processes_that_begin_at_once_have_one_key() {
        let store = in_memory();
        let begin = || token_keys(store.as_ref(), &[]).unwrap();
        let both: Vec<TokenKeys> = std::thread::scope(|scope| {
            let begun: Vec<_> = (0..8).map(|_| scope.spawn(begin)).collect();
            begun.into_iter().map(|keys| keys.join().unwrap()).collect()
        });
        let token = both[0].sign("e", EventId(1));
        assert!(both.iter().all(|keys| keys.verify(&token).is_ok()));
    }

    #[test]
    fn token_key_rotation_keeps_two_keys_valid() {
        let store = in_memory();
        let store = store.as_ref();
        let first = token_keys(store, &[]).unwrap().sign("e", EventId(1));
        rotate(store).unwrap();
        let keys = token_keys(store, &[]).unwrap();
        let second = keys.sign("e", EventId(1));
        assert_ne!(first, second);
        assert!(keys.verify(&first).is_ok() && keys.verify(&second).is_ok());
        rotate(store).unwrap();
        let keys = token_keys(store, &[]).unwrap();
        assert!(keys.verify(&first).is_err() && keys.verify(&second).is_ok());
    }

    #[test]
    fn token_key_of_the_configuration_signs_and_those_of_the_store_verify() {
        let store = in_memory();
        let store = store.as_ref();
        let configured = [[7; KEY_BYTES], [8; KEY_BYTES]];
        // A store that never had a key gets none.
        token_keys(store, &configured).unwrap();
        assert_eq!(store.list_values(KIND).unwrap(), []);
        let old = token_keys(store, &[]).unwrap().sign("e", EventId(1));
        let keys = token_keys(store, &configured).unwrap();
        let new = keys.sign("e", EventId(1));
        assert_eq!(new, TokenKeys::new(vec![[7; KEY_BYTES]]).sign("e", EventId(1)));
        let second = TokenKeys::new(vec![[8; KEY_BYTES]]).sign("e", EventId(1));
        assert!(
            [&old, &new, &second]
                .into_iter()
                .all(|token| keys.verify(token).is_ok())
        );
        discard(store).unwrap();
        assert_eq!(store.list_values(KIND).unwrap(), []);
        let keys = token_keys(store, &configured).unwrap();
        assert!(keys.verify(&old).is_err() && keys.verify(&new).is_ok());
    }

    #[test]
    fn token_key_is_read_in_both_forms() {
        let zeros = [0; KEY_BYTES];
        let ones = [0xff; KEY_BYTES];
        let (digits, base) = ("00".repeat(KEY_BYTES), format!("{}8=", "/".repeat(42)));
        assert_eq!(read_keys(&format!("{digits}\n{base}\n")).unwrap(), [zeros, ones]);
        assert_eq!(read_keys(&base.replace('/', "_").replace('=', "")).unwrap(), [ones]);
        assert_eq!(read_keys(&"FF".repeat(KEY_BYTES)).unwrap(), [ones]);
        // All bytes of a longer key count.
        let longer = read_keys(&"00".repeat(KEY_BYTES + 1)).unwrap();
        assert_ne!(longer, [zeros]);
        assert_ne!(longer, read_keys(&"00".repeat(KEY_BYTES + 2)).unwrap());
        for wrong in [
            "",
            " ",
            "short",
            &"00".repeat(KEY_BYTES - 1),
            &"é".repeat(KEY_BYTES),
            &format!("{digits} short"),
        ] {
            let error = read_keys(wrong).unwrap_err();
            assert!(error.contains("32 bytes") && !error.contains("short"), "{error}");
        }
    }
}
