//! What the project's tests share: where the data is, and the runners that read it.

pub mod conformance;
pub mod data;
pub mod functions;
pub mod fuzzing;
pub mod generated;
