//! The narrow traits through which the interpreter meets the world, in words of the domain.
//!
//! Nothing here knows a driver or an async runtime. Who implements a trait may use both.

mod clock;
mod connector;
mod history;
mod secrets;

pub use clock::Clock;
pub use connector::{Connector, Keys, Outcome, OutcomeFuture, Request, Via};
pub use history::{Append, History, StoreError, StoredHistory};
pub use secrets::{Secret, Secrets};
