//! HTTP functions: a POST of the input, a JSON object as the answer (section "tasks").
//!
//! No proxies from the environment, no cookies, no redirects, no compression, no retries of its own: what is sent is
//! what the flow says, and an answer is read to its limit and one byte.

mod answer;
mod carried;
mod client;
mod compose;
mod failure;
mod guard;
mod lookup;
mod outcome;
mod params;
mod retry_after;
mod settings;
mod target;

pub use guard::{Allowed, BadRule, Guard, Network};
pub use lookup::{Lookup, LookupFuture, SystemLookup};
pub use settings::HttpSettings;

use client::Clients;
use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request};

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

    async fn carry(&self, request: Request) -> Outcome {
        let admitted = target::parse(&request.target)
            .and_then(|url| target::admit(&url, &self.settings.guard).map(|()| url));
        let url = match admitted {
            Ok(url) => url,
            Err(outcome) => return outcome,
        };
        let composed = self
            .clients
            .of_scheme(url.scheme())
            .and_then(|client| Ok((client, compose::compose(&request, url.clone())?)));
        let (client, composed) = match composed {
            Ok(ready) => ready,
            Err(outcome) => return outcome,
        };
        match client.execute(composed).await {
            Ok(response) => outcome::of(&request, &url, response, self.settings.clock.as_deref()).await,
            Err(error) => failure::outcome(&url, &error),
        }
    }
}

impl Connector for HttpConnector {
    fn call(&self, request: Request) -> OutcomeFuture<'_> {
        Box::pin(self.carry(request))
    }
}
