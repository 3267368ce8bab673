//! The API as its callers see it.

#[path = "api/access.rs"]
mod access;
#[path = "api/admission.rs"]
mod admission;
#[path = "api/answers.rs"]
mod answers;
#[path = "api/aside.rs"]
mod aside;
#[path = "api/audit.rs"]
mod audit;
#[path = "api/bodies.rs"]
mod bodies;
#[path = "api/browsers.rs"]
mod browsers;
#[path = "api/bulk.rs"]
mod bulk;
#[path = "api/children.rs"]
mod children;
#[path = "api/clock.rs"]
mod clock;
#[path = "api/configuration.rs"]
mod configuration;
#[path = "api/connections.rs"]
mod connections;
#[cfg(feature = "console")]
#[path = "api/console.rs"]
mod console;
#[cfg(feature = "console")]
#[path = "api/console_acts.rs"]
mod console_acts;
#[cfg(feature = "console")]
#[path = "api/console_once.rs"]
mod console_once;
#[cfg(feature = "console")]
#[path = "api/console_places.rs"]
mod console_places;
#[cfg(feature = "console")]
#[path = "api/console_views.rs"]
mod console_views;
#[path = "api/decisions.rs"]
mod decisions;
#[path = "api/document.rs"]
mod document;
#[path = "api/executions.rs"]
mod executions;
#[path = "api/flows.rs"]
mod flows;
#[path = "api/followers.rs"]
mod followers;
#[path = "api/harness.rs"]
mod harness;
#[path = "api/held.rs"]
mod held;
#[path = "api/histories.rs"]
mod histories;
#[path = "api/holders.rs"]
mod holders;
#[path = "api/inside.rs"]
mod inside;
#[path = "api/keys.rs"]
mod keys;
#[path = "api/limits.rs"]
mod limits;
#[path = "api/mailbox.rs"]
mod mailbox;
#[path = "api/messages.rs"]
mod messages;
#[path = "api/notifications.rs"]
mod notifications;
#[path = "api/operators.rs"]
mod operators;
#[path = "api/order.rs"]
mod order;
#[path = "api/outboxes.rs"]
mod outboxes;
#[path = "api/outside.rs"]
mod outside;
#[path = "api/pausing.rs"]
mod pausing;
#[path = "api/pressure.rs"]
mod pressure;
#[path = "api/problems.rs"]
mod problems;
#[path = "api/queues.rs"]
mod queues;
#[path = "api/references.rs"]
mod references;
#[path = "api/reports.rs"]
mod reports;
#[path = "api/retention.rs"]
mod retention;
#[path = "api/schedules.rs"]
mod schedules;
#[path = "api/secrets.rs"]
mod secrets;
#[path = "api/sessions.rs"]
mod sessions;
#[path = "api/sleepers.rs"]
mod sleepers;
#[path = "api/starts.rs"]
mod starts;
#[path = "api/stats.rs"]
mod stats;
#[path = "api/steps.rs"]
mod steps;
#[path = "api/stream.rs"]
mod stream;
#[path = "api/traces.rs"]
mod traces;
#[path = "api/views.rs"]
mod views;
#[path = "api/waiters.rs"]
mod waiters;
#[path = "api/waits.rs"]
mod waits;
#[path = "api/whole_document.rs"]
mod whole_document;
#[path = "api/why.rs"]
mod why;
