//! Schedules: when a flow is started by itself (section "schedules" of the language).
//!
//! All of it is arithmetic: an [`Expression`] says which instants it means, a [`Schedule`] which of them lead to a start.
//! Clocks, stores and starting are the caller's. Daylight saving is that of Debian's cron (cron(8), "notes"):
//! what stands at fixed hours and minutes happens once a day whatever clocks do, what repeats goes on in real time.

mod cron;
mod expression;
mod field;
mod firing;
#[cfg(test)]
mod tests;

pub use expression::{Expression, ExpressionError};
pub use firing::{CatchUp, Firing, ON_TIME_MS, Overlap, Schedule, ScheduleNameError, Trigger};
