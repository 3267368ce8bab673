//! Connectors that are there only when they are configured.

use starbridge_ports::Connector;
use starbridge_runtime::Connectors;
use std::sync::Arc;

type Make = Arc<dyn Fn() -> Arc<dyn Connector> + Send + Sync>;

/// How connectors are made, by the word before the colon of what they can call. What a connector opens lives on the runtime
/// it is used on, so each runtime gets its own.
#[derive(Clone, Default)]
pub struct Further(Vec<(&'static str, Make)>);

impl Further {
    /// Adds one, by how it is made.
    pub fn add(&mut self, scheme: &'static str, make: impl Fn() -> Arc<dyn Connector> + Send + Sync + 'static) {
        self.0.push((scheme, Arc::new(make)));
    }

    /// Makes all of them, for one runtime.
    pub fn insert_into(&self, connectors: &mut Connectors) {
        for (scheme, make) in &self.0 {
            connectors.insert(scheme, make());
        }
    }
}
