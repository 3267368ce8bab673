//! Task tokens, with which callbacks report (section "tasks", `waitForCallback`).
//!
//! In mapped values, histories and states a token is only a reference, `task-token:<execution>/<event>`. When a call
//! is sent, the signed token replaces the reference in the places where the definition put it. The token is the
//! call's name with a keyed MAC over it (HMAC-SHA-256, RFC 2104). Two keys may be valid at once, so that keys can
//! change.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use starbridge_flow::hex;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Reference};

/// The largest length of a token, in bytes.
const MAX_TOKEN_BYTES: usize = 2048;
/// The length of a MAC, in bytes.
const MAC_BYTES: usize = 32;
/// Where fewer digits of a MAC are known, the rest can't be guessed: there are 2^48 of it, and wrong tokens are slowed down.
const FEW_DIGITS: usize = 2 * MAC_BYTES - 12;

/// The keys of task tokens. The first one signs, all verify.
#[derive(Clone)]
pub struct TokenKeys {
    /// A MAC over an empty text for each key, to copy from: preparing one costs as much as a short
    /// token.
    keys: Vec<Hmac<Sha256>>,
}

/// Why a token is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// No key of ours signed it.
    Invalid,
}

/// The call that a token was signed for. Only [`TokenKeys::verify`] makes one of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCall {
    /// The execution's id.
    pub execution: Text,
    /// The event that scheduled the call.
    pub call: EventId,
}

impl TokenKeys {
    /// The keys, the newest first.
    pub fn new(keys: Vec<[u8; 32]>) -> Self {
        let keys = keys.into_iter().filter_map(|key| Hmac::new_from_slice(&key).ok());
        Self { keys: keys.collect() }
    }

    /// The token of a call.
    pub fn sign(&self, execution: &str, call: EventId) -> String {
        let body = format!("{execution}/{call}");
        let mac = self.keys.first().map(|key| {
            let mac = key.clone().chain_update(body.as_bytes());
            mac.finalize().into_bytes().to_vec()
        });
        let mac = mac.unwrap_or_default();
        format!("{}.{}", hex::encode(body.as_bytes()), hex::encode(&mac))
    }

    /// A key for another purpose, derived from the signing key. It reveals nothing about that key,
    /// and no token is signed with it.
    pub fn derived(&self, purpose: &str) -> [u8; MAC_BYTES] {
        let derive = |key: &Hmac<Sha256>| {
            // No token's body begins with this byte.
            let mac = key.clone().chain_update([0]).chain_update(purpose.as_bytes());
            mac.finalize().into_bytes().into()
        };
        self.keys.first().map(derive).unwrap_or_default()
    }

    /// Whether a text may contain a token. Cheaper than looking for one.
    pub(crate) fn may_be_in(text: &str) -> bool {
        text.len() > FEW_DIGITS && text.contains('.') && candidates(text).next().is_some()
    }

    /// The text with the reference in place of each of our tokens; `None` if it contains none. One whose end was cut off counts
    /// as long as the rest could be guessed.
    pub(crate) fn referred(&self, text: &str) -> Option<String> {
        if text.len() <= FEW_DIGITS {
            return None;
        }
        let mut referred = None;
        for token in candidates(text) {
            if let Some(SignedCall { execution, call }) = self.begun_by(token) {
                let reference = Reference::Token { execution, call };
                let so_far: &str = referred.as_deref().unwrap_or(text);
                referred = Some(so_far.replace(token, &reference.text()));
            }
        }
        referred
    }

    /// The call of a token that begins like this: with a whole body, and at least some digits of the MAC.
    fn begun_by(&self, part: &str) -> Option<SignedCall> {
        let (body, digits) = part.split_once('.')?;
        if digits.len() == 2 * MAC_BYTES {
            return self.verify(part).ok();
        }
        if part.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let body = hex::decode(body).and_then(|body| String::from_utf8(body).ok())?;
        let is_ours = self.keys.iter().any(|key| {
            let mac = key.clone().chain_update(body.as_bytes()).finalize().into_bytes();
            hex::encode(&mac).starts_with(digits)
        });
        let (execution, call) = body.rsplit_once('/').filter(|_| is_ours)?;
        let call = call.parse().ok()?;
        Some(SignedCall {
            execution: execution.into(),
            call: EventId(call),
        })
    }

    /// The call that a token was signed for.
    ///
    /// # Errors
    ///
    /// [`TokenError::Invalid`] if no key of ours signed it.
    pub fn verify(&self, token: &str) -> Result<SignedCall, TokenError> {
        let (body, mac) = token.split_once('.').ok_or(TokenError::Invalid)?;
        if token.len() > MAX_TOKEN_BYTES {
            return Err(TokenError::Invalid);
        }
        // A call has one token only: `sign` writes lower case.
        if token.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(TokenError::Invalid);
        }
        let body = hex::decode(body).and_then(|body| String::from_utf8(body).ok());
        let body = body.ok_or(TokenError::Invalid)?;
        // The length is checked before the comparison, so that a shorter MAC can't pass.
        let mac: [u8; MAC_BYTES] = hex::decode_array(mac).ok_or(TokenError::Invalid)?;
        let ours = self.keys.iter().any(|key| {
            let expected = key.clone().chain_update(body.as_bytes());
            // This compares in constant time.
            expected.verify_slice(&mac).is_ok()
        });
        if !ours {
            return Err(TokenError::Invalid);
        }
        let (execution, call) = body.rsplit_once('/').ok_or(TokenError::Invalid)?;
        let call = call.parse().map_err(|_| TokenError::Invalid)?;
        Ok(SignedCall {
            execution: execution.into(),
            call: EventId(call),
        })
    }
}

impl std::fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenKeys(…)")
    }
}

fn is_digit(byte: &u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')
}

/// How many bytes at the beginning of a text may be the end of a token of ours whose beginning was cut off: what is missing of its
/// body is known to many.
pub(crate) fn end_of_token(text: &str) -> Option<usize> {
    let digits = |text: &str| text.bytes().take_while(is_digit).count();
    let first = digits(text);
    let mac = text.get(first..)?.strip_prefix('.').map(digits);
    match mac {
        Some(mac) if mac == 2 * MAC_BYTES => Some(first + 1 + mac),
        _ if (FEW_DIGITS..=2 * MAC_BYTES).contains(&first) => Some(first),
        _ => None,
    }
}

/// The parts of a text that look like tokens: hexadecimal digits, a dot, and the digits of a MAC or of its beginning.
fn candidates(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('.').filter_map(move |(dot, _)| {
        let bytes = text.as_bytes();
        let before = bytes.get(..dot)?.iter().rev().take_while(|byte| is_digit(byte)).count();
        let after = bytes
            .get(dot + 1..)?
            .iter()
            .take(2 * MAC_BYTES)
            .take_while(|byte| is_digit(byte))
            .count();
        // The text before it may end in a digit, so an even number of digits is taken: the body has two digits a
        // byte.
        (before >= 2 && after >= FEW_DIGITS).then(|| text.get(dot - before / 2 * 2..dot + 1 + after))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_of_others_is_refused() {
        let old = [1; 32];
        let new = [2; 32];
        let token = TokenKeys::new(vec![old]).sign("e/1", EventId(7));
        let both = TokenKeys::new(vec![new, old]);
        let signed = SignedCall {
            execution: "e/1".into(),
            call: EventId(7),
        };
        assert_eq!(both.verify(&token), Ok(signed));
        assert_eq!(TokenKeys::new(vec![new]).verify(&token), Err(TokenError::Invalid));
        for index in 0..token.len() {
            let mut forged = token.clone().into_bytes();
            forged[index] = if forged[index] == b'0' { b'1' } else { b'0' };
            let forged = String::from_utf8(forged).unwrap();
            assert_eq!(both.verify(&forged), Err(TokenError::Invalid), "{forged}");
        }
        assert!(both.verify(&token.to_uppercase()).is_err());
        for rubbish in ["", ".", "zz.zz", "é", "00", "00.00"] {
            assert_eq!(both.verify(rubbish), Err(TokenError::Invalid));
        }
    }

    #[test]
    fn token_with_part_of_a_signature_is_refused() {
        let keys = TokenKeys::new(vec![[1; 32], [2; 32]]);
        let token = keys.sign("e", EventId(7));
        let (body, mac) = token.split_once('.').unwrap();
        assert_eq!(mac.len(), 2 * MAC_BYTES);
        let mut wrong: Vec<String> = (0..mac.len()).map(|digits| mac[..digits].to_owned()).collect();
        wrong.extend((1..mac.len()).map(|digits| mac[digits..].to_owned()));
        wrong.extend((1..=MAC_BYTES).flat_map(|bytes| {
            [
                format!("{mac}{}", "00".repeat(bytes)),
                format!("{}{mac}", "00".repeat(bytes)),
            ]
        }));
        wrong.extend([
            format!("{mac}{mac}"),
            format!("{mac}."),
            format!("{mac}.{mac}"),
            format!(".{mac}"),
            format!("{mac}0"),
        ]);
        wrong.extend([mac.to_uppercase(), format!(" {mac}"), format!("{mac} ")]);
        for wrong in wrong {
            let forged = format!("{body}.{wrong}");
            assert_eq!(keys.verify(&forged), Err(TokenError::Invalid), "{forged}");
        }
        let capital = format!("{}.{mac}", body.to_uppercase());
        assert!(capital == token || keys.verify(&capital).is_err(), "{capital}");
        // The token of another call, and of no key at all.
        let other = hex::encode(b"e/8");
        assert!(keys.verify(&format!("{other}.{mac}")).is_err());
        assert!(TokenKeys::new(Vec::new()).verify(&token).is_err());
        assert!(keys.verify(&token).is_ok());
    }
}
