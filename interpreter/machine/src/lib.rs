//! The pure interpreter: [`State::advance`] decides, [`State::apply`] folds. [`State::calls_to_send_after`] says what is to be
//! sent, [`State::next_wakeup`] and [`State::due`] which timers are to be given back, [`State::must_continue`] whether a turn was cut.
//!
//! A state is a fold over the events of one execution. Nothing here knows a clock, a store, a network or chance: time
//! comes with each signal, randomness from the seed in the first event. Replay is the same `apply`, so recovery and
//! running cannot differ.
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

#[macro_use]
mod words;

mod advance;
mod apply;
mod close;
mod context;
mod effect;
mod event;
mod fork;
pub mod history;
mod inspect;
mod references;
mod replay;
mod retry;
mod signal;
mod state;
mod steps;
mod turn;
mod undo;

pub use effect::{CallPart, CallReference, CallToSend, Reference, call_type};
pub use event::{
    Bounds, CancelReason, Child, Decision, Event, EventId, EventKind, Exit, Failure, Grant, LateResultCode, Parent,
    Path, PathItem, Resolution, ResolutionAction, Scheduled, Started,
};
pub use fork::{Fork, ForkError, Forked, copied};
pub use inspect::{OpenStep, StepState};
pub use signal::{Rejection, Signal, Timer};
pub use state::{Checkpoint, CheckpointError, State, Status};
pub use turn::{TURN_BYTES, TURN_EVENTS};

/// Version of the machine, as each history's first event names it.
pub const MACHINE_VERSION: u32 = 1;
