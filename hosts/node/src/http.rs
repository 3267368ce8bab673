//! What the server and the listener for callbacks share: [`connections`] bounds how many there are and how long each may take,
//! [`body`] how many bytes requests have together and how slowly they may come, within a [`budget`]. [`reading`] takes members
//! out of bodies and queries. [`callback_listener`] takes reports for a process without a server.

pub mod body;
pub mod budget;
pub mod callback_listener;
pub mod connections;
pub mod reading;
pub mod report_body;
