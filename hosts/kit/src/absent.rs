//! Connectors this program was built without.

use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request};

/// Stands where a connector would, and names the feature it comes with.
pub(crate) struct Absent(pub(crate) &'static str);

impl Absent {
    /// What is wrong, for people.
    pub(crate) fn problem(&self, what: &str) -> String {
        format!(
            "`{what}` can't be used here: this program was built without `{}`",
            self.0
        )
    }
}

impl Connector for Absent {
    fn call(&self, request: Request) -> OutcomeFuture<'_> {
        let outcome = Outcome::failed("FnF.NoSuchResource", self.problem(&request.target));
        Box::pin(std::future::ready(outcome))
    }
}
