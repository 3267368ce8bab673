//! Starting flows in one's own transaction, with a PostgreSQL, the command, and clients that do what clients do.

#[path = "serving/server.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod server;

#[path = "outbox/buyers.rs"]
mod buyers;
#[path = "outbox/ends.rs"]
mod ends;
#[path = "outbox/nodes.rs"]
mod nodes;
#[path = "outbox/owners.rs"]
mod owners;
#[path = "outbox/refusals.rs"]
mod refusals;
#[path = "outbox/stand.rs"]
mod stand;
#[path = "outbox/strangers.rs"]
mod strangers;
#[path = "outbox/transactions.rs"]
mod transactions;
#[path = "outbox/way.rs"]
mod way;
#[path = "outbox/witness.rs"]
mod witness;
