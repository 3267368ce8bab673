//! The store in PostgreSQL, as a real one has it: the suite of all stores, random runs, and what only it does.

mod away;
mod cluster;
mod copying;
mod nodes;
mod opening;
mod plans;
mod served;
mod stand;
mod suite;
mod texts;
mod unfit;
