//! Connectors that are there only when they are configured.

use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request};
use starbridge_runtime::Connectors;
use std::sync::Arc;

type Make = Arc<dyn Fn() -> Arc<dyn Connector> + Send + Sync>;

/// How connectors are made, by the word before the colon of what they can call. What a connector opens lives on the runtime
/// it is used on, so each runtime gets its own.
#[derive(Clone, Default)]
pub struct OptionalConnectors(Vec<(&'static str, Make)>, Vec<(&'static str, &'static str)>);

impl OptionalConnectors {
    /// Adds one, by how it is made.
    pub fn add(&mut self, scheme: &'static str, make: impl Fn() -> Arc<dyn Connector> + Send + Sync + 'static) {
        self.0.push((scheme, Arc::new(make)));
    }

    /// Says of resources of this kind why they can't be called.
    pub fn lack(&mut self, scheme: &'static str, why: &'static str) {
        self.1.push((scheme, why));
        self.add(scheme, move || Arc::new(Lacking(why)));
    }

    /// What is not there, and why.
    pub fn lacking(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.1.iter().copied()
    }

    /// Makes all of them, for one runtime.
    pub fn insert_into(&self, connectors: &mut Connectors) {
        for (scheme, make) in &self.0 {
            connectors.insert(scheme, make());
        }
    }
}

/// Stands where a connector would.
struct Lacking(&'static str);

impl Connector for Lacking {
    fn call(&self, request: Request) -> OutcomeFuture<'_> {
        let cause = format!("`{}` can't be called here: {}", request.target, self.0);
        Box::pin(std::future::ready(Outcome::not_sent(cause)))
    }
}
