//! Calls to a Redis that the test starts, and reports from it.

mod service {
    mod errors;
    mod replies;
    mod restarts;
    mod sending;
    pub mod setting;
    mod tls;
    mod trimming;
}
