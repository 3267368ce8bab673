//! The narrow traits through which the interpreter meets the world, in words of the domain.
//!
//! Nothing here knows a driver or an async runtime. Who implements a trait may use both.

mod backoff;
mod call_metadata;
mod catalogue;
mod clock;
mod connector;
mod continuation;
mod error;
mod history;
mod leases;
mod listing;
mod message;
mod notices;
mod outside;
mod params;
mod queueing;
mod replies;
mod secrets;
mod shards;

pub use backoff::{Backoff, Failures};
pub use call_metadata::{CallField, CallMetadata};
pub use catalogue::{Catalogue, KeptFlow};
pub use clock::{Clock, ClockSet};
pub use connector::{Connector, Keys, Outcome, OutcomeFuture, Request, SentMembers, Via};
pub use continuation::ContinuationQueue;
pub use error::StoreError;
pub use history::{
    Append, Broken, CULPRIT, DeadTasksCleared, History, Mark, Record, RecordedFailure, Refusal, STATUSES, SUSPECT,
    StoredHistory, Turn, code_of,
};
pub use leases::{Beat, ExecutionLeases};
pub use listing::{KeyValue, Listed, Listing, Page, Query, Retention, Store};
pub use message::{Message, MessageBody, MessageId};
pub use notices::{KeptNotice, NextNotice, NoticeChange, Notices};
pub use outside::{outside_wait, outside_wait_of};
pub use params::{ParamsTable, ReadParam, param_names, step_key};
pub use queueing::{DeadTask, Depth, QueuedTask, Queueing, TaskLease, TaskLeaseChange};
pub use replies::{ReplyError, ReplyFuture, ReplyMessage, ReplySource};
pub use secrets::{Secret, Secrets};
pub use shards::{SHARDS, owner_index, shard_of};
