//! HTTP functions: a POST of the input, a JSON object as the answer (section "tasks").
//!
//! No proxies from the environment, no cookies, no redirects, no compression, no retries of its own: what is sent is
//! what the flow says, and an answer is read to its limit and one byte. A call is bounded by whoever made it: dropping its
//! future closes the connection. One whose step sets no time is bounded here, by [`HttpSettings::timeout`].
//!
//! # What is sent
//!
//! The input as JSON by POST. `serviceParams` may say otherwise: if it is an object with one of `method`, `headers`, `query`,
//! `body`, `idempotency`, these are used, the body is the input where none is given (nothing under GET and HEAD), and
//! another member beside them is an error; anything else in `serviceParams` is the body as it stands.
//!
//! # Errors beside those an answer names
//!
//! | name | when |
//! |---|---|
//! | `FnF.NoSuchResource` | nothing is sent: the target is no HTTP URL, the [`Guard`] refuses its address, or `serviceParams` cannot be sent (a header with a line break, a method that is no word) |
//! | `HTTP.ConnectionFailed` | no address, no connection, no handshake, no whole answer, or too many informational answers (1xx) before it; the cause says which |
//! | `FnF.TaskTimeout` | the step sets no time, and there was no whole answer within [`HttpSettings::timeout`] |
//! | `HTTP.202` | under `poll`: the `Location` of a 202 is no URL of the same origin |

mod answer;
mod carried;
mod client;
mod compose;
mod dialer;
mod excess;
mod failure;
mod guard;
mod informational;
mod lookup;
mod outcome;
mod params;
mod retry_after;
mod settings;
mod stream;
mod target;

pub use guard::{Allowed, BadRule, Guard, Network};
pub use lookup::{Lookup, LookupFuture, SystemLookup};
pub use settings::HttpSettings;
pub use target::is_refused;

use client::Clients;
use starbridge_flow::graph::Pattern;
use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request, SentMembers};

/// Calls HTTP functions.
pub struct HttpConnector {
    clients: Clients,
    settings: HttpSettings,
}

impl HttpConnector {
    /// A connector with its own pools of connections.
    pub fn new(settings: HttpSettings) -> Self {
        Self {
            clients: Clients::new(&settings),
            settings,
        }
    }

    async fn carry(&self, request: &Request) -> Result<Outcome, Outcome> {
        let url = target::parse(&request.target)?;
        target::admit(&url, &self.settings.guard)?;
        let message = compose::compose(request, url.clone())?;
        let client = self.clients.of_scheme(url.scheme())?;
        match client.send(message).await {
            Ok(response) => Ok(outcome::of(request, &url, response, self.settings.clock.as_deref()).await),
            Err(error) => Err(failure::outcome(&url, error.as_ref())),
        }
    }

    /// The same within the time a call has that nobody else bounds.
    async fn carry_in_time(&self, request: &Request) -> Outcome {
        let carried = async { self.carry(request).await.unwrap_or_else(|refused| refused) };
        // A step's own time that counts until somebody reports is not for the answer alone.
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
