//! The parts of hosts: from the configuration to store, connectors and runtime. This is the only
//! crate that depends on all of them.
//!
//! A server reads a [`config::Config`], opens a store ([`configured_store`], [`stores`], [`leased_store`]), and starts a [`node::Node`]. `exec` runs one
//! flow with a [`local::LocalRun`]. [`notify`] delivers notices, [`callbacks`] takes reports over [`http`], [`export`], [`replay`] and
//! [`visits`] are for histories, [`problem`] and [`json`] are the forms of answers.
//!
//! ```
//! use starbridge_node::{config::Config, node::Node, stores};
//! use starbridge_machine::Status;
//! use starbridge_runtime::StartRequest;
//! use std::time::Duration;
//!
//! # // An error means that it is installed already.
//! # let _ = rustls::crypto::ring::default_provider().install_default();
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! let settings = Config::default().node(stores::in_memory())?;
//! let node = Node::start(settings)?;
//! let definition = r#"{"version": "v1", "type": "flow", "steps": [{"type": "succeed", "name": "done"}]}"#;
//! node.put_flow("shop", definition.to_owned(), None).unwrap();
//!
//! # runtime.block_on(async {
//! let request = StartRequest { flow: "shop".into(), ..StartRequest::default() };
//! let started = node.begin(request, true).await.unwrap();
//! let ended = match started.end {
//!     Some(end) => end.await.unwrap(),
//!     None => started.snapshot, // it ended with its first turn
//! };
//! assert_eq!(ended.record.status, Status::Succeeded);
//! node.drain(Duration::from_secs(1)).await.unwrap();
//! # });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::missing_errors_doc)]

pub mod aws;
pub mod callbacks;
mod clock;
pub mod cluster;
mod codes;
pub mod config;
pub mod configured_store;
pub mod escaping;
pub mod export;
mod fit;
mod flow_loading;
pub mod http;
pub mod json;
pub mod leased_store;
pub mod local;
pub mod node;
pub mod notify;
pub mod offload;
pub mod optional_connectors;
pub mod problem;
pub mod programs;
pub mod replay;
pub mod sender_turns;
pub mod store_care;
pub mod store_copy;
pub mod stores;
pub mod supported_resources;
pub mod system;
pub mod test_case;
pub mod visits;
