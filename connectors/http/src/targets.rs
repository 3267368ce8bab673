//! The targets of calls, each parsed and admitted once.

use crate::AddressGuard;
use crate::failure;
use crate::target::{admit, parse};
use http::{HeaderValue, Uri};
use starbridge_ports::Outcome;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

/// A URL in the forms that a call needs.
pub(crate) struct Target {
    pub(crate) url: Url,
    /// The form that the client takes; the outcome of the call if there is none.
    pub(crate) uri: Result<Uri, Outcome>,
    /// The `Host` header. The client would make it anew for each request.
    pub(crate) host: Option<HeaderValue>,
}

impl From<Url> for Target {
    fn from(url: Url) -> Self {
        let uri = Uri::try_from(url.as_str()).map_err(|error| failure::outcome(&url, &error));
        let name = url.host_str().unwrap_or_default();
        let host = match url.port() {
            Some(port) => HeaderValue::try_from(format!("{name}:{port}")),
            None => HeaderValue::try_from(name),
        };
        Self {
            uri,
            host: host.ok(),
            url,
        }
    }
}

/// Targets that were parsed and admitted: a flow calls the same few again and again.
#[derive(Default)]
pub(crate) struct Targets(Mutex<HashMap<String, Arc<Target>>>);

/// How many targets are kept, and how long each may be.
const MAX_TARGETS: usize = 256;
const MAX_TARGET_BYTES: usize = 256;

impl Targets {
    /// The target with this text. The guard must be the same in all calls.
    pub(crate) fn get(&self, text: &str, guard: &AddressGuard) -> Result<Arc<Target>, Outcome> {
        // One with a query or a user seldom comes again, and may be secret.
        let keeps = text.len() <= MAX_TARGET_BYTES && !text.contains(['@', '?']);
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if keeps && let Some(known) = lock().get(text) {
            return Ok(known.clone());
        }
        let url = parse(text)?;
        admit(&url, guard)?;
        let target = Arc::new(Target::from(url));
        if keeps {
            let mut known = lock();
            if known.len() >= MAX_TARGETS {
                known.clear();
            }
            known.insert(text.to_owned(), target.clone());
        }
        Ok(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(targets: &Targets) -> usize {
        targets.0.lock().unwrap().len()
    }

    #[test]
    fn target_is_parsed_once() {
        let (targets, guard) = (Targets::default(), AddressGuard::AllowAll);
        let first = targets.get("http://h.example/f", &guard).unwrap();
        let second = targets.get("http://h.example/f", &guard).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(first.uri.as_ref().unwrap().path(), "/f");
    }

    #[test]
    fn host_has_the_port_that_is_not_the_usual_one() {
        for (url, host) in [
            ("http://h.example/f", "h.example"),
            ("http://h.example:80/f", "h.example"),
            ("https://H.example:8443", "h.example:8443"),
            ("http://u:p@[::1]:99/", "[::1]:99"),
        ] {
            let target = Targets::default().get(url, &AddressGuard::AllowAll).unwrap();
            assert_eq!(target.host.as_ref().unwrap(), host, "{url}");
        }
    }

    #[test]
    fn refused_and_secret_targets_are_not_kept() {
        let targets = Targets::default();
        let guard = AddressGuard::PublicOnly { allow: Vec::new() };
        for _ in 0..2 {
            assert!(targets.get("http://127.0.0.1/f", &guard).is_err());
            assert!(targets.get("no url", &guard).is_err());
            assert!(targets.get("http://u:p@h.example/f", &guard).is_ok());
            assert!(targets.get("http://h.example/f?key=s", &guard).is_ok());
        }
        assert_eq!(kept(&targets), 0);
    }

    #[test]
    fn kept_targets_are_bounded() {
        let (targets, guard) = (Targets::default(), AddressGuard::AllowAll);
        for number in 0..3 * MAX_TARGETS {
            let url = format!("http://h.example/{number}");
            assert_eq!(targets.get(&url, &guard).unwrap().url.as_str(), url);
            assert!(kept(&targets) <= MAX_TARGETS);
        }
        let long = format!("http://h.example/{}", "a".repeat(MAX_TARGET_BYTES));
        targets.get(&long, &guard).unwrap();
        assert!(!targets.0.lock().unwrap().contains_key(&long));
    }
}
