//! HTTP functions: a POST of the input, a JSON object as the answer (section "tasks").
//!
//! There are no proxies from the environment, no cookies, no redirects, no compression, and no
//! retries: exactly the flow's request is sent, and an answer is read up to its limit. The caller
//! bounds a call: dropping its future closes the connection. [`HttpSettings::timeout`] bounds calls
//! of steps without a timeout.
//!
//! # Requests
//!
//! A request is a POST of the input as JSON. If `serviceParams` is an object with one of `method`, `headers`, `query`, `body`,
//! `idempotency`, these change it. The body is still the input if none is given (nothing under GET and HEAD), and any other
//! member is an error. Otherwise the whole of `serviceParams` is the body.
//!
//! # Errors that no answer names
//!
//! | name | when |
//! |---|---|
//! | `FnF.NoSuchResource` | nothing is sent: the target is not an HTTP URL, the [`AddressGuard`] refuses its address, or `serviceParams` can't be sent (a header with a line break, a method that is not a word) |
//! | `HTTP.ConnectionFailed` | no address, no connection, no handshake, no complete answer, or too many informational answers (1xx) before it; the cause says which |
//! | `FnF.TaskTimeout` | the step has no timeout, and there was no complete answer within [`HttpSettings::timeout`] |
//! | `HTTP.202` | under `poll`: the `Location` of a 202 is not a URL of the same origin |
//!
//! # Example
//!
//! A server lets its flows call public addresses and one internal network:
//!
//! ```
//! use starbridge_connector_http::{AddressGuard, HttpConnector, HttpSettings, is_refused};
//!
//! let guard = AddressGuard::PublicOnly { allow: vec!["10.1.0.0/16".parse()?] };
//! assert!(is_refused("http://169.254.169.254/latest/meta-data", &guard));
//! assert!(!is_refused("http://10.1.2.3/charge", &guard));
//!
//! let connector = HttpConnector::new(HttpSettings { guard, ..HttpSettings::default() });
//! # drop(connector);
//! # Ok::<(), starbridge_connector_http::BadRule>(())
//! ```
#![warn(clippy::missing_errors_doc)]

mod address_guard;
mod answer;
mod carried;
mod client;
mod compose;
mod dialer;
mod excess;
mod failure;
mod informational;
mod outcome;
mod params;
mod resolver;
mod retry_after;
mod settings;
mod stream;
mod target;
mod targets;

pub use address_guard::{AddressGuard, Allowed, BadRule, Network};
pub use resolver::{ResolveFuture, Resolver, SystemResolver};
pub use settings::HttpSettings;
pub use target::is_refused;

use client::Clients;
use starbridge_flow::graph::Pattern;
use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request, SentMembers};
use targets::Targets;

/// Calls HTTP functions: the connector for `http:` and `https:`.
pub struct HttpConnector {
    clients: Clients,
    targets: Targets,
    settings: HttpSettings,
}

impl HttpConnector {
    /// A connector with its own pools of connections. Nothing is opened before the first call.
    pub fn new(settings: HttpSettings) -> Self {
        Self {
            clients: Clients::new(&settings),
            targets: Targets::default(),
            settings,
        }
    }

    async fn carry(&self, request: &Request) -> Result<Outcome, Outcome> {
        let target = self.targets.get(&request.target, &self.settings.guard)?;
        let message = compose::compose(request, &target)?;
        let url = &target.url;
        let client = self.clients.of_scheme(url.scheme())?;
        match client.send(message).await {
            Ok(response) => Ok(outcome::of(request, url, response, self.settings.clock.as_deref()).await),
            Err(error) => Err(failure::outcome(url, error.as_ref())),
        }
    }

    /// Makes a call within [`HttpSettings::timeout`], if its step has no timeout.
    async fn carry_in_time(&self, request: &Request) -> Outcome {
        let carried = async { self.carry(request).await.unwrap_or_else(|refused| refused) };
        // If a step waits for a callback, its timeout is not for the answer alone.
        let unbounded = request.timeout_at.is_none() || request.pattern == Pattern::WaitForCallback;
        match self.settings.timeout.filter(|_| unbounded) {
            None => carried.await,
            Some(timeout) => match tokio::time::timeout(timeout, carried).await {
                Ok(outcome) => outcome,
                Err(_) => failure::too_late(&request.target, timeout),
            },
        }
    }
}

impl Connector for HttpConnector {
    fn call(&self, request: Request) -> OutcomeFuture<'_> {
        Box::pin(async move { self.carry_in_time(&request).await })
    }

    fn sent_members(&self) -> SentMembers {
        SentMembers {
            known: &params::KNOWN,
            sent: &["headers", "query", "body"],
        }
    }
}
