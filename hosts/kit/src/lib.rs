//! The kit: what hosts are put together from. The only crate that knows stores, connectors and the runtime at once.

pub mod aws;
pub mod callbacks;
mod clock;
pub mod config;
pub mod described;
pub mod escaping;
pub mod exported;
pub mod further;
pub mod large;
pub mod local;
pub mod node;
pub mod notify;
pub mod picture;
pub mod problem;
pub mod programs;
pub mod reach;
pub mod rehearsal;
pub mod replaying;
pub mod stores;
pub mod system;
pub mod tables;
pub mod visits;
