//! What hosts are put together from: configuration to store, connectors and runtime. The only crate that knows them all at once.

pub mod aws;
pub mod callbacks;
mod clock;
pub mod config;
pub mod described;
pub mod escaping;
pub mod export;
mod flow_loading;
pub mod large;
pub mod local;
pub mod node;
pub mod notify;
pub mod optional_connectors;
pub mod problem;
pub mod programs;
pub mod reach;
pub mod replay;
pub mod stores;
pub mod system;
pub mod tables;
pub mod visits;
