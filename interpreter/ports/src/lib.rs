//! Ports: the traits through which the interpreter reaches stores, resources, secrets and the time.
//!
//! Nothing here depends on a driver or an async runtime; an implementation may use both. The traits
//! to implement:
//!
//! - A resource that flows call: [`Connector`], with [`ParamsTable`] for its `serviceParams` and [`CallMetadata`] for its ids.
//! - A store: [`History`], [`Catalogue`], [`Queueing`], [`Notices`], [`Listing`], [`Retention`], [`KeyValue`], [`Audit`],
//!   [`BulkStore`] and [`Admissions`], which together are [`Store`]; [`ExecutionLeases`] if several processes share it, [`Owning`] if its
//!   shards have owners.
//!   [`History`] says in which order it is called.
//! - A queue from which reports arrive: [`ReplySource`].
//! - A table in which others ask for starts in their own transactions: [`Outbox`].
//! - The surroundings of a process: [`Clock`], [`Secrets`], [`ContinuationQueue`].
//!
//! A connector that answers each call with the call's input:
//!
//! ```
//! use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request};
//!
//! struct Echo;
//!
//! impl Connector for Echo {
//!     fn call(&self, request: Request) -> OutcomeFuture<'_> {
//!         Box::pin(async move { Outcome::Result(request.input) })
//!     }
//! }
//!
//! # use starbridge_flow::graph::Pattern;
//! # use starbridge_ports::{CallIds, ResourceFamily};
//! # use std::task::{Context, Poll, Waker};
//! # let input: starbridge_flow::value::Value = [("n".into(), 1u32.into())].into_iter().collect();
//! # let request = Request {
//! #     target: "echo:".to_owned(),
//! #     via: ResourceFamily::Direct,
//! #     pattern: Pattern::RequestResponse,
//! #     input: input.clone(),
//! #     params: None,
//! #     keys: CallIds::default(),
//! #     attempt: 1,
//! #     rollback: false,
//! #     polling: false,
//! #     follow: false,
//! #     timeout_at: None,
//! #     answer_limit: 1 << 20,
//! # };
//! let mut answer = Echo.call(request);
//! let mut context = Context::from_waker(Waker::noop());
//! assert_eq!(answer.as_mut().poll(&mut context), Poll::Ready(Outcome::Result(input.into())));
//! ```
#![warn(clippy::missing_errors_doc)]

mod admission;
mod admissions;
mod audit;
mod backoff;
mod bulk;
mod call_metadata;
mod catalogue;
mod clock;
mod connector;
mod continuation;
mod epochs;
mod error;
mod generation_cache;
mod history;
mod kept_start;
mod leases;
mod listing;
mod message;
mod notices;
mod outbox;
mod outside;
mod owning;
mod params;
mod queueing;
mod recorded_reason;
mod replies;
mod secrets;
mod shard_owners;
mod shards;
mod store;
mod table_rows;
mod turn;
mod waiting_reason;

pub use admission::{
    ADMISSION, ASKED_AT_START, AdmissionChange, Ask, DeclineReason, Dependency, FLOW_POOL, KeptKey, KeyPause, KeyView,
    LinePlace, MET_EVENT, NeededKey, OpenDependency, PoolKey, SCHEDULE_POOL, WATCH_EVENT, Waiter, WaiterAge, Waiters,
};
pub use admissions::{Admissions, EndedHolders};
pub use audit::{Audit, AuditEntry, AuditKind, AuditPage, AuditQuery, BulkItemId, LOCAL_OPERATOR};
pub use backoff::{Backoff, Failures};
pub use bulk::{BulkItem, BulkItems, BulkJob, BulkJobs, BulkPage, BulkResult, BulkState, BulkStore, OpenJob};
pub use call_metadata::{CallField, CallMetadata};
pub use catalogue::{Catalogue, KeptFlow};
pub use clock::{Clock, ClockSet};
pub use connector::{CallIds, Connector, LogTail, Outcome, OutcomeFuture, Request, ResourceFamily, SentMembers};
pub use continuation::ContinuationQueue;
pub use epochs::{Epoch, Epochs, Incarnation};
pub use error::StoreError;
pub use generation_cache::GenerationCache;
pub use history::{
    Append, AttemptLog, Broken, CULPRIT, DeadTasksCleared, ExecutionRecord, FailedUndo, History, LOG_BYTES, Loading,
    Mark, Receivers, RecordedFailure, RecordedPause, Refusal, RequestChange, STATUS_CODES, SUSPECT, StoredHistory,
    code_of, is_ended_code,
};
pub use kept_start::{KeptFork, KeptPlace, KeptRedrive, KeptStart, KeptUndo};
pub use leases::{ExecutionLeases, Heartbeat};
pub use listing::{KeyValue, Listed, Listing, Page, Query, Retention};
pub use message::{Message, MessageBody, MessageId};
pub use notices::{KeptNotice, NextNotice, NoticeChange, Notices};
pub use outbox::{
    Outbox, OutboxError, OutboxFuture, OutboxRefusal, OutboxRights, OutboxRow, OutboxStanding, RefusedRow,
};
pub use outside::{outside_wait, outside_wait_of};
pub use owning::{IncarnationState, Owning};
pub use params::{
    ParamsTable, ReadParam, SharedParams, param_names, read_body, read_idempotency, sends_input, step_key,
};
pub use queueing::{DeadTask, Depth, QueuedTask, Queueing, TaskLease, TaskLeaseChange};
pub use replies::{ReplyError, ReplyFuture, ReplyMessage, ReplySource};
pub use secrets::{Secret, Secrets};
pub use shard_owners::ShardOwners;
pub use shards::{SHARDS, ShardSet, shard_of, shard_of_queue};
pub use store::Store;
pub use table_rows::{Cell, CellKind, Row, RowSink, RowSource, TABLES, Table, TableRows};
pub use turn::{TURN_PAGE_BYTES, Turn, TurnHead, TurnPage};
pub use waiting_reason::{RecordedWait, WaitingReason};
