//! The function under the emulator of Lambda's runtime, with a stand-in for table and queues.

#[path = "service/again.rs"]
mod again;
#[path = "service/alone.rs"]
mod alone;
#[path = "service/chain.rs"]
mod chain;
#[path = "service/crashes.rs"]
mod crashes;
#[path = "service/function.rs"]
mod function;
#[path = "service/stand.rs"]
mod stand;
#[path = "service/table.rs"]
mod table;
