//! Calls to a Redis of the test's own, and reports from it.

mod service {
    mod errors;
    mod replies;
    mod restarts;
    mod sending;
    pub mod setting;
    mod tls;
    mod trimming;
}
