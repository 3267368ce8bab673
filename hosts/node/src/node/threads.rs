//! The threads of a node. If one fails, the node ends.

use super::NodeError;
use starbridge_ports::StoreError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokio::sync::watch;

/// How the node has ended; `None` while it runs.
pub(super) type End = Option<Result<(), NodeError>>;

pub(super) fn no_thread(error: &std::io::Error) -> NodeError {
    NodeError::System(format!("a thread can't be started: {error}"))
}

pub(super) fn spawn(name: &str, work: impl FnOnce(String) + Send + 'static) -> Result<(), NodeError> {
    let own = name.to_owned();
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread
        .spawn(move || work(own))
        .map(drop)
        .map_err(|error| no_thread(&error))
}

/// Runs the work of a thread. A panic ends the node, and a new start goes on from what is durable.
pub(super) fn unless_it_panics(name: &str, work: impl FnOnce() -> Result<(), NodeError>) -> Result<(), NodeError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(NodeError::System(format!("the thread {name} panicked"))))
}

/// Records how the node ended. The first end counts.
pub(super) fn note(end: &watch::Sender<End>, over: Result<(), NodeError>) {
    end.send_modify(|end| {
        end.get_or_insert(over);
    });
}

pub(super) fn runtime() -> Result<tokio::runtime::Runtime, NodeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| NodeError::System(format!("a runtime can't be started: {error}")))
}

pub(super) fn block_on(work: impl Future<Output = Result<(), StoreError>>) -> Result<(), NodeError> {
    runtime()?.block_on(work).map_err(NodeError::Store)
}
