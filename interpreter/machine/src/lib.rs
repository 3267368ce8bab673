//! The pure interpreter of flows: a state and a signal give events, and events give a state.
//!
//! A [`State`] is a fold over the events of one execution. Nothing here knows a clock, a store, a network or chance: time
//! comes with each signal, and randomness from the seed in the first event. Replay uses the same [`State::apply`] as
//! running, so the two can't differ.
//!
//! For each signal the caller takes these steps, in this order; [`State`] has the details:
//!
//! 1. [`State::advance`] decides: it takes a signal and pushes the events of one turn.
//! 2. The caller makes these events durable.
//! 3. [`State::calls_to_send_after`] gives the calls to send, [`State::next_wakeup`] the time to come back.
//! 4. While [`State::must_continue`] holds, the next signal is [`Signal::Continue`].
//!
//! ```
//! use starbridge_flow::limits::Limits;
//! use starbridge_flow::syntax::Source;
//! use starbridge_flow::time::Timestamp;
//! use starbridge_flow::value::Object;
//! use starbridge_machine::{EventId, Signal, StartRecord, StartTerms, State, Status};
//! use std::sync::Arc;
//!
//! let limits = Arc::new(Limits::default());
//! let definition = r#"{"version": "v1", "type": "flow", "steps": [
//!     {"type": "task", "name": "charge", "resourceArn": "http://shop.example/charge"}]}"#;
//! let flow = starbridge_fdl::check(&Source::new("flow.json", definition), &limits).flow.unwrap();
//!
//! let mut state = State::new("e-1", Arc::clone(&limits));
//! let mut history = Vec::new();
//! let start = StartRecord {
//!     flow: "shop".into(),
//!     version: 1,
//!     definition_hash: "".into(), // the machine fills in the hash and its own version
//!     machine: 0,
//!     name: "first".into(),
//!     input: Object::new().into(),
//!     seed: 1,
//!     labels: None,
//!     parent: None,
//!     tokens: Vec::new(),
//!     terms: StartTerms::default(),
//! };
//! state.advance(&flow, Signal::Start(Box::new(start)), Timestamp(0), &mut history)?;
//!
//! // The history is durable now, so the call may leave.
//! let call = state.calls_to_send_after(&flow, EventId(0)).next().unwrap();
//! assert_eq!(call.resource.as_str(), "http://shop.example/charge");
//!
//! let answer = Signal::Succeeded { call: call.call, result: Object::new().into(), worker: None, held_time: None };
//! state.advance(&flow, answer, Timestamp(40), &mut history)?;
//! assert_eq!(state.status(), Status::Succeeded);
//!
//! // Folding the history gives the same state.
//! let mut folded = State::new("e-1", limits);
//! history.iter().for_each(|event| folded.apply(&flow, event));
//! assert_eq!(folded.checkpoint(&flow), state.checkpoint(&flow));
//! # Ok::<(), starbridge_machine::Rejection>(())
//! ```
#![warn(clippy::missing_errors_doc)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

#[macro_use]
mod enum_names;

mod advance;
mod apply;
mod close;
mod context;
mod effect;
mod event;
mod fork;
pub mod history;
mod inspect;
mod pause;
mod references;
mod reorder;
mod replay;
mod retry;
mod signal;
mod state;
mod steps;
mod turn;
mod undo;

pub use effect::{CallPart, CallReference, CallToSend, Reference, call_type};
pub use event::{
    Bounds, CancelReason, Child, Decision, EditedInput, Event, EventId, EventKind, Exit, Failure, Holder,
    LateResultCode, NewDefinition, Parent, PathItem, Resolution, ResolutionAction, ScheduledCall, StartRecord,
    StartTerms, StepPath, TokenGrant, Waited, WaitedFor, WaitedKey,
};
pub use fork::{Fork, ForkError, Forked, copied};
pub use inspect::{EventData, FailedCall, FailedRollback, ManualRequest, OpenStep, StepState};
pub use replay::turn_length;
pub use signal::{EndBeforeStart, NewOrder, Rejection, Signal, Timer};
pub use state::{Checkpoint, CheckpointError, OpenWait, OpenWaitKind, Paused, State, Status};
pub use turn::cut;
pub use turn::{TURN_BYTES, TURN_EVENTS};

/// The version of the machine: it reads histories that need this one or a lower one.
pub const MACHINE_VERSION: u32 = 2;
