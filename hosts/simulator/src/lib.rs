//! Rehearsals: flows run in virtual time with mocks in place of their resources. What `test` and `exec --mock` do.

mod case;
mod compare;
mod interruption;
mod mocks;
mod outcome;
mod silence;
mod world;

pub use case::{Case, Expect, FlowSource, LimitsGiven, Mock, Stop, TestFile, TestFileError};
pub use compare::compare;
pub use interruption::{Crash, Interruption, Moment};
pub use mocks::Mocks;
pub use outcome::Outcome;
pub use silence::Silence;
pub use world::{Flows, Observer, Rehearsal, RehearsalError};
