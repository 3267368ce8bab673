//! The API as its callers meet it.

#[path = "api/access.rs"]
mod access;
#[path = "api/executions.rs"]
mod executions;
#[path = "api/flows.rs"]
mod flows;
#[path = "api/harness.rs"]
mod harness;
#[path = "api/held.rs"]
mod held;
#[path = "api/histories.rs"]
mod histories;
#[path = "api/limits.rs"]
mod limits;
#[path = "api/mailbox.rs"]
mod mailbox;
#[path = "api/notifications.rs"]
mod notifications;
#[path = "api/outside.rs"]
mod outside;
#[path = "api/pressure.rs"]
mod pressure;
#[path = "api/queues.rs"]
mod queues;
#[path = "api/reports.rs"]
mod reports;
#[path = "api/retention.rs"]
mod retention;
#[path = "api/secrets.rs"]
mod secrets;
#[path = "api/sleepers.rs"]
mod sleepers;
