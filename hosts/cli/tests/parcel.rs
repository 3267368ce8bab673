//! A flow through a function, a worker queue, an external queue and a child flow, on servers that
//! are killed at each moment.

#[path = "parcel/broker.rs"]
mod broker;
#[path = "parcel/faults.rs"]
mod faults;
#[path = "parcel/functions.rs"]
mod functions;
#[path = "parcel/kills.rs"]
mod kills;
#[path = "parcel/world.rs"]
mod world;
