//! Task tokens: what a callback reports with (section "tasks", `waitForCallback`).
//!
//! Inside, in mapped values, history and state, a token is only a reference, `task-token:<execution>/<event>`. When a
//! value leaves for a resource, each string that is exactly such a reference becomes the signed token: the reference
//! with a keyed MAC (HMAC-SHA-256, RFC 2104) over it. Two keys may live at once, so that keys can change.

use crate::hexadecimal;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use starbridge_fdl::value::{Array, Object, Value};
use starbridge_machine::EventId;

/// Characters of the longest token looked at.
const LONGEST: usize = 2048;
const REFERENCE: &str = "task-token:";

/// The keys tokens are signed with: the first signs, all verify.
#[derive(Clone)]
pub struct TokenKeys {
    keys: Vec<[u8; 32]>,
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// It is not ours.
    Invalid,
}

impl TokenKeys {
    /// Keys, the newest first.
    pub fn new(keys: Vec<[u8; 32]>) -> Self {
        Self { keys }
    }

    /// The token of a call.
    pub fn sign(&self, execution: &str, call: EventId) -> String {
        let body = format!("{execution}/{call}");
        let key = self.keys.first().copied().unwrap_or_default();
        let mac = tag(&key, &body);
        format!("{}.{}", hexadecimal::write(body.as_bytes()), hexadecimal::write(&mac))
    }

    /// The call a token is for.
    pub fn verify(&self, token: &str) -> Result<(String, EventId), TokenError> {
        let (body, mac) = token.split_once('.').ok_or(TokenError::Invalid)?;
        if token.len() > LONGEST {
            return Err(TokenError::Invalid);
        }
        let body = hexadecimal::read(body).and_then(|body| String::from_utf8(body).ok());
        let body = body.ok_or(TokenError::Invalid)?;
        let mac = hexadecimal::read(mac).ok_or(TokenError::Invalid)?;
        let ours = self.keys.iter().any(|key| {
            new_mac(key).is_some_and(|mut expected| {
                expected.update(body.as_bytes());
                // Compares in constant time.
                expected.verify_slice(&mac).is_ok()
            })
        });
        if !ours {
            return Err(TokenError::Invalid);
        }
        let (execution, call) = body.rsplit_once('/').ok_or(TokenError::Invalid)?;
        let call = call.parse().map_err(|_| TokenError::Invalid)?;
        Ok((execution.to_owned(), EventId(call)))
    }
}

impl std::fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKeys(…)")
    }
}

fn new_mac(key: &[u8]) -> Option<Hmac<Sha256>> {
    Hmac::<Sha256>::new_from_slice(key).ok()
}

fn tag(key: &[u8], body: &str) -> Vec<u8> {
    match new_mac(key) {
        Some(mut mac) => {
            mac.update(body.as_bytes());
            mac.finalize().into_bytes().to_vec()
        }
        None => Vec::new(),
    }
}

/// The execution and call a string refers to, if it is exactly a reference.
pub fn reference_of(text: &str) -> Option<(&str, EventId)> {
    let (execution, call) = text.strip_prefix(REFERENCE)?.rsplit_once('/')?;
    Some((execution, EventId(call.parse().ok()?)))
}

/// The value with each reference to a call of one of these executions replaced by its token; nothing where there is none.
pub fn sign_references(value: &Value, executions: &[&str], keys: &TokenKeys) -> Option<Value> {
    match value {
        Value::String(text) => {
            let (execution, call) = reference_of(text)?;
            executions
                .contains(&execution)
                .then(|| Value::from(keys.sign(execution, call)))
        }
        Value::Array(array) => {
            let signed: Vec<Option<Value>> = array
                .values()
                .iter()
                .map(|value| sign_references(value, executions, keys))
                .collect();
            signed.iter().any(Option::is_some).then(|| {
                let values = array.values().iter().zip(signed);
                let array: Array = values
                    .map(|(value, signed)| signed.unwrap_or_else(|| value.clone()))
                    .collect();
                array.into()
            })
        }
        Value::Object(object) => {
            let mut signed: Option<Object> = None;
            for (key, value) in object {
                if let Some(value) = sign_references(value, executions, keys) {
                    signed.get_or_insert_with(|| object.clone()).insert(key.clone(), value);
                }
            }
            signed.map(Value::from)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_tokens_pass() {
        let old = [1; 32];
        let new = [2; 32];
        let token = TokenKeys::new(vec![old]).sign("e/1", EventId(7));
        let both = TokenKeys::new(vec![new, old]);
        assert_eq!(both.verify(&token), Ok(("e/1".to_owned(), EventId(7))));
        assert_eq!(TokenKeys::new(vec![new]).verify(&token), Err(TokenError::Invalid));
        for index in 0..token.len() {
            let mut forged = token.clone().into_bytes();
            forged[index] = if forged[index] == b'0' { b'1' } else { b'0' };
            let forged = String::from_utf8(forged).unwrap();
            assert_eq!(both.verify(&forged), Err(TokenError::Invalid), "{forged}");
        }
        for rubbish in ["", ".", "zz.zz", "é", "00", "00.00"] {
            assert_eq!(both.verify(rubbish), Err(TokenError::Invalid));
        }
    }

    #[test]
    fn references_become_tokens_only_when_exact() {
        let keys = TokenKeys::new(vec![[3; 32]]);
        let value: Value =
            serde_json_value(r#"{"a":["task-token:x/4"],"b":"see task-token:x/4","c":"task-token:y/4"}"#);
        let signed = sign_references(&value, &["x"], &keys).unwrap();
        let object = signed.as_object().unwrap();
        let token = object.get("a").unwrap().as_array().unwrap().at(0).unwrap().clone();
        assert_eq!(keys.verify(token.as_str().unwrap()), Ok(("x".to_owned(), EventId(4))));
        assert_eq!(object.get("b").unwrap().as_str(), Some("see task-token:x/4"));
        assert_eq!(object.get("c").unwrap().as_str(), Some("task-token:y/4"));
        assert_eq!(sign_references(&"plain".into(), &["x"], &keys), None);
    }

    fn serde_json_value(json: &str) -> Value {
        Value::from(&serde_json::from_str::<serde_json::Value>(json).unwrap())
    }
}
