//! The clients of `examples/outbox`, in Python, Node and Rust, with a PostgreSQL and a pooler.

#[path = "serving/server.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod server;

#[path = "outbox/shops.rs"]
mod shops;
#[path = "outbox/stand.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod stand;
