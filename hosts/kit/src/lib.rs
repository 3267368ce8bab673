//! The kit: what hosts are put together from. The only crate that knows stores, connectors and the runtime at once.

pub mod callbacks;
pub mod exported;
pub mod local;
pub mod picture;
pub mod rehearsal;
pub mod replaying;
pub mod system;
