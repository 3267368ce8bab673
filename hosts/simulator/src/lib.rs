//! Simulations: flows that run in virtual time, with mocks in place of their resources. `test` and `exec --mock` use them.
//!
//! Read a [`TestFile`], compile its flows, run a [`Simulation`] for each [`Case`], and [`compare`] the [`Outcome`] with what the
//! case expects:
//!
//! ```
//! use starbridge_flow::{limits::Limits, syntax::Source};
//! use starbridge_simulator::{Flows, Simulation, TestFile, compare};
//! use std::collections::BTreeMap;
//!
//! let definition = r#"{"version": "v1", "type": "flow", "steps": [
//!     {"type": "task", "name": "charge", "resourceArn": "http://shop.example/charge",
//!      "retry": [{"errors": ["Busy"], "intervalSeconds": 60, "maxAttempts": 1}]}]}"#;
//! let cases = r#"{"flow": "shop.flow.json", "cases": [
//!     {"name": "a busy shop is asked again",
//!      "mocks": {"charge": [{"error": "Busy"}, {"result": {"paid": true}}]},
//!      "expect": {"status": "Succeeded", "elapsedSeconds": 60}}]}"#;
//!
//! let limits = Limits::default();
//! let flow = starbridge_fdl::check(&Source::new("shop.flow.json", definition), &limits).flow.unwrap();
//! let case = TestFile::parse(cases)?.cases.remove(0);
//!
//! let flows = Flows { name: "shop".to_owned(), flow, children: BTreeMap::new() };
//! let outcome = Simulation::new(flows, case.clone(), limits).run()?;
//! assert!(compare(&case.expect, &outcome).is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::missing_errors_doc)]

mod case;
mod compare;
mod interruption;
mod mocks;
mod numbers;
mod outcome;
mod silence;
mod simulation;

pub use case::{Case, Expect, FlowSource, LimitsGiven, Mock, Pause, Stop, TestFile, TestFileError};
pub use compare::compare;
pub use interruption::{Crash, Interruption, Moment};
pub use mocks::Mocks;
pub use outcome::Outcome;
pub use silence::Silence;
pub use simulation::{Flows, Observer, Simulation, SimulationError};
