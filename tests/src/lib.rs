//! The shared parts of the project's tests: the location of the data, and the runners that read it.

pub mod campaigns;
#[path = "random/chance.rs"]
mod chance;
pub mod conformance;
pub mod damage;
pub mod data;
pub mod engine_thread;
pub mod faulty;
pub mod functions;
pub mod fuzzing;
pub mod generated;
pub mod outstanding;
pub mod ports;
pub mod same_history;
pub mod stores;

/// An HTTP client for loopback, of the library the HTTP connector uses.
pub fn client() -> reqwest::Client {
    // Another part of the process may have chosen a provider before: any will do for loopback.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap_or_default()
}
