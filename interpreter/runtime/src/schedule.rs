//! Schedules: when a flow is started without a request (section "schedules" of the language).
//!
//! All of it is arithmetic: an [`Expression`] gives the instants it means, a [`Schedule`] selects
//! those that start an execution. The caller brings clocks and stores, and starts the executions.
//! Daylight saving follows Debian's cron (cron(8), "notes"): a fixed hour and minute happens once a
//! day even when clocks change, and a repeating expression goes on in real time.

mod cron;
mod expression;
mod field;
mod firing;
#[cfg(test)]
mod tests;

pub use expression::{CronError, Expression};
pub use firing::{CatchUp, Firing, ON_TIME, Overlap, Schedule, ScheduleNameError, Trigger};
