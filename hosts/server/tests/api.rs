//! The API as its callers meet it.

#[path = "api/access.rs"]
mod access;
#[path = "api/executions.rs"]
mod executions;
#[path = "api/flows.rs"]
mod flows;
#[path = "api/harness.rs"]
mod harness;
#[path = "api/histories.rs"]
mod histories;
#[path = "api/queues.rs"]
mod queues;
#[path = "api/secrets.rs"]
mod secrets;
