//! Connectors that exist only if they are configured.

use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request};
use starbridge_runtime::Connectors;
use std::sync::Arc;

type Make = Arc<dyn Fn() -> Arc<dyn Connector> + Send + Sync>;

/// How to make connectors, each by the word before the colon of the resources it can call.
/// Connections that a connector opens belong to its runtime, so each runtime gets its own
/// connectors.
#[derive(Clone, Default)]
pub struct OptionalConnectors(Vec<(&'static str, Make)>, Vec<(&'static str, &'static str)>);

impl OptionalConnectors {
    /// Adds a connector by a function that makes it.
    pub fn add(&mut self, scheme: &'static str, make: impl Fn() -> Arc<dyn Connector> + Send + Sync + 'static) {
        self.0.push((scheme, Arc::new(make)));
    }

    /// Records why resources of this kind can't be called.
    pub fn add_unavailable(&mut self, scheme: &'static str, why: &'static str) {
        self.1.push((scheme, why));
        self.add(scheme, move || Arc::new(UnavailableConnector(why)));
    }

    /// The kinds of resources that can't be called, with the reasons.
    pub fn unavailable(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.1.iter().copied()
    }

    /// Makes all connectors, for one runtime.
    pub fn insert_into(&self, connectors: &mut Connectors) {
        for (scheme, make) in &self.0 {
            connectors.insert(scheme, make());
        }
    }
}

/// Takes the place of a connector that does not exist, and fails every call with the reason.
struct UnavailableConnector(&'static str);

impl Connector for UnavailableConnector {
    fn call(&self, request: Request) -> OutcomeFuture<'_> {
        let cause = format!("`{}` can't be called here: {}", request.target, self.0);
        Box::pin(std::future::ready(Outcome::not_sent(cause)))
    }
}
