//! Sessions: who is signed in, and what their forms have to send back.
//!
//! A session is a cookie: until when it holds, and a MAC over that and the token's hash. Nothing is kept of it, so it
//! outlives a restart, and is void as soon as the token leaves the configuration or the store's key is changed.

use crate::access::{Access, Token};
use crate::scope::{Scope, allow};
use axum::http::{HeaderMap, header};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use starbridge_flow::hex;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_node::node::Node;
use std::sync::atomic::{AtomicU64, Ordering};

/// How long a session holds.
const SESSION: Millis = Millis::from_secs(12 * 60 * 60);
/// The cookie where the browser came without TLS, and where it came with it.
const PLAIN: &str = "starbridge";
const SECURE: &str = "__Host-starbridge";

/// What signs sessions and forms.
pub struct Sessions {
    key: Option<Hmac<Sha256>>,
    /// What forms without a session are bound to: this process.
    process: String,
    /// How many pages have a form's token.
    pages: AtomicU64,
}

/// The bytes by which the tokens of two pages differ.
type Salt = [u8; 16];

/// Who looks at a page.
#[derive(Clone, Debug)]
pub enum Visitor {
    /// Somebody who needs no token, because there is none.
    Anybody,
    /// Nobody is signed in.
    Stranger,
    /// Whoever signed in with this token.
    Known {
        name: Text,
        scopes: Vec<Scope>,
        /// The value of the cookie.
        cookie: String,
    },
}

impl Visitor {
    /// Whether they may do what needs this scope.
    pub fn may(&self, scope: Scope) -> bool {
        match self {
            Self::Anybody => true,
            Self::Stranger => false,
            Self::Known { scopes, .. } => allow(scopes, scope),
        }
    }

    /// The name of their token.
    pub fn name(&self) -> Option<&Text> {
        match self {
            Self::Known { name, .. } => Some(name),
            Self::Anybody | Self::Stranger => None,
        }
    }
}

impl Sessions {
    /// Sessions under a key of the node's store.
    pub fn of(node: &Node) -> Self {
        Self {
            key: Hmac::new_from_slice(&node.key_for("starbridge console sessions")).ok(),
            process: format!("{} {}", std::process::id(), node.now()),
            pages: AtomicU64::new(0),
        }
    }

    /// A MAC over parts, each with its length, so that none can be taken for a part of another.
    fn mac(&self, parts: &[&[u8]]) -> Option<Hmac<Sha256>> {
        let begun = self.key.clone()?;
        Some(parts.iter().fold(begun, |mac, part| {
            mac.chain_update(part.len().to_be_bytes()).chain_update(part)
        }))
    }

    /// The value of a new cookie, for whoever has this token.
    pub fn begin(&self, token: &Token, now: Timestamp) -> Option<String> {
        let until = now.plus(SESSION).0.to_string();
        let mac = self.mac(&[b"session", token.hash(), until.as_bytes()])?;
        Some(format!("{until}.{}", hex::encode(&mac.finalize().into_bytes())))
    }

    /// Who sent a request with these headers.
    pub fn visitor(&self, access: &Access, headers: &HeaderMap, now: Timestamp) -> Visitor {
        if access.is_open() {
            return Visitor::Anybody;
        }
        // A cookie of the first name cannot be set without TLS, so it is believed first.
        let cookie = cookie(headers, SECURE).or_else(|| cookie(headers, PLAIN));
        let token = cookie.and_then(|cookie| self.token(access, cookie, now));
        match (token, cookie) {
            (Some(token), Some(cookie)) => Visitor::Known {
                name: token.name.clone(),
                scopes: token.scopes.clone(),
                cookie: cookie.to_owned(),
            },
            _ => Visitor::Stranger,
        }
    }

    /// The token that a cookie stands for.
    fn token<'a>(&self, access: &'a Access, cookie: &str, now: Timestamp) -> Option<&'a Token> {
        let (until, mac) = cookie.split_once('.')?;
        let given: [u8; 32] = hex::decode_array(mac)?;
        if is_over(cookie, now) {
            return None;
        }
        access.tokens().iter().find(|token| {
            let expected = self.mac(&[b"session", token.hash(), until.as_bytes()]);
            // This compares in constant time.
            expected.is_some_and(|expected| expected.verify_slice(&given).is_ok())
        })
    }

    /// Whether a request has a cookie of a session that would still hold, if it were ours.
    pub fn is_forged(&self, access: &Access, headers: &HeaderMap, now: Timestamp) -> bool {
        let given = cookie(headers, SECURE).or_else(|| cookie(headers, PLAIN));
        given.is_some_and(|given| !is_over(given, now) && self.token(access, given, now).is_none())
    }

    /// What the forms of a visitor have to send back. Each page has another one: a constant text in compressed pages could be
    /// guessed by their length (BREACH, 2013).
    pub fn forgery(&self, visitor: &Visitor) -> String {
        let page = self.pages.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let salt = self.mac(&[b"page", self.process.as_bytes(), &page]);
        let mut salted = Salt::default();
        for (salted, byte) in salted
            .iter_mut()
            .zip(salt.into_iter().flat_map(|mac| mac.finalize().into_bytes()))
        {
            *salted = byte;
        }
        let mac = self.form_mac(visitor, &salted);
        mac.map(|mac| hex::encode(&[&salted[..], &mac.finalize().into_bytes()].concat()))
            .unwrap_or_default()
    }

    /// Whether a form was made for this visitor.
    pub fn is_ours(&self, visitor: &Visitor, sent: &str) -> bool {
        let Some((salt, mac)) = sent.split_at_checked(2 * size_of::<Salt>()) else {
            return false;
        };
        let (Some(salt), Some(given)) = (hex::decode_array(salt), hex::decode_array::<32>(mac)) else {
            return false;
        };
        self.form_mac(visitor, &salt)
            .is_some_and(|mac| mac.verify_slice(&given).is_ok())
    }

    fn form_mac(&self, visitor: &Visitor, salt: &Salt) -> Option<Hmac<Sha256>> {
        match visitor {
            Visitor::Known { cookie, .. } => self.mac(&[b"form", cookie.as_bytes(), salt]),
            Visitor::Anybody | Visitor::Stranger => self.mac(&[b"open form", self.process.as_bytes(), salt]),
        }
    }
}

/// Whether a session's cookie says itself that its time is over, or is none.
fn is_over(cookie: &str, now: Timestamp) -> bool {
    let until = cookie.split_once('.').and_then(|(until, _)| until.parse::<i64>().ok());
    until.is_none_or(|until| until <= now.0)
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions(…)")
    }
}

/// The header that sets a session, or ends it where there is no value.
pub fn set_cookie(value: Option<&str>, secure: bool) -> String {
    let (name, secure) = if secure { (SECURE, "; Secure") } else { (PLAIN, "") };
    let (value, seconds) = match value {
        Some(value) => (value, SESSION.as_secs()),
        None => ("", 0),
    };
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}")
}

/// A cookie of a request.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    let mut named = pairs.filter_map(|pair| pair.trim().split_once('='));
    named.find(|(known, _)| *known == name).map(|(_, value)| value)
}
