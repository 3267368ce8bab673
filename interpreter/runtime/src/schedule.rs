//! Schedules: when a flow is started without a request (section "schedules" of the language).
//!
//! All of it is arithmetic: an [`Expression`] says which instants it means, a [`Schedule`] which of them start an
//! execution. Clocks, stores and starting are up to the caller. Daylight saving follows Debian's cron (cron(8),
//! "notes"): a fixed hour and minute happens once a day whatever clocks do, and what repeats goes on in real time.

mod cron;
mod expression;
mod field;
mod firing;
#[cfg(test)]
mod tests;

pub use expression::{Expression, ExpressionError};
pub use firing::{CatchUp, Firing, ON_TIME, Overlap, Schedule, ScheduleNameError, Trigger};
