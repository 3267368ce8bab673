//! Calls over real connections to a server in the test, on a free port of the loopback interface.

mod calls {
    mod answers;
    mod connections;
    mod failures;
    mod guard;
    mod informational;
    mod requests;
    mod secure;
    pub mod server;
    pub mod setting;
}
