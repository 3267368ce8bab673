//! What the server and the listener for callbacks share: [`connections`] limits how many there are
//! and how long each may take. [`body`] limits how many bytes requests have together and how slowly
//! they may come, within a [`budget`]. [`reading`] reads members from bodies and queries.
//! [`callback_listener`] takes reports for a process without a server.

pub mod body;
pub mod budget;
pub mod callback_listener;
pub mod connections;
pub mod reading;
pub mod report_body;
