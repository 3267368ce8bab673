//! Executions asleep in the store that are to be woken soon. Only the store knows those that sleep longer.

use super::loading::LOADED_AT_ONCE;
use super::{Engine, EngineSettings};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_ports::StoreError;
use std::collections::BTreeSet;

/// How far ahead the engine knows them, and how often it looks again.
const LOOK_AHEAD: Millis = Millis(60_000);
const LOOK_AGAIN: Millis = Millis(30_000);
/// How many it knows at once.
const MAX_KNOWN: usize = 500_000;
/// How many it wakes at once.
const BATCH: usize = 512;

/// The executions to wake soon.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    soon: BTreeSet<(Timestamp, Text)>,
    /// Every execution to be woken before this time is known.
    horizon: Timestamp,
    /// When to look again; `None` if no execution is left to the store.
    look_again: Option<Timestamp>,
}

impl Sleepers {
    /// When there is something to do.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let first = self.soon.first().map(|(due, _)| *due);
        first.into_iter().chain(self.look_again).min()
    }

    /// When the first known one is to be woken.
    pub(super) fn soonest(&self) -> Option<Timestamp> {
        self.soon.first().map(|(due, _)| *due)
    }

    pub(super) fn know(&mut self, due: Timestamp, execution: Text) {
        if due < self.horizon {
            self.soon.insert((due, execution));
        }
    }
}

impl Engine {
    /// Looks in the store for executions to wake within the next minute.
    pub(super) fn look_for_sleepers(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let horizon = now.plus(LOOK_AHEAD);
        let due = self.deps.history.due(self.shard.owned(), horizon, MAX_KNOWN)?;
        self.sleepers.horizon = match due.last() {
            Some((last, _)) if due.len() >= MAX_KNOWN => last.plus(Millis(1)),
            _ => horizon,
        };
        self.sleepers.look_again = Some(now.plus(LOOK_AGAIN));
        for (due, execution) in due {
            self.sleepers.know(due, execution);
        }
        Ok(())
    }

    /// Loads the executions that are due, so that their timers fire.
    pub(super) fn wake_sleepers(&mut self, now: Timestamp) -> Result<(), StoreError> {
        if self.sleepers.look_again.is_some_and(|again| again <= now) {
            self.look_for_sleepers(now)?;
        }
        let mut wanted = Vec::with_capacity(LOADED_AT_ONCE);
        for _ in 0..BATCH {
            if self.sleepers.soon.first().is_none_or(|(due, _)| *due > now) {
                break;
            }
            let Some((_, execution)) = self.sleepers.soon.pop_first() else {
                break;
            };
            // Its shard may have been given up.
            if self.shard.state(&execution).is_none() && self.is_mine(&execution) {
                wanted.push(execution);
            }
            if wanted.len() == LOADED_AT_ONCE {
                self.fetch_many(&wanted)?;
                wanted.clear();
            }
        }
        self.fetch_many(&wanted)
    }

    /// Leaves executions that only wait to the store. With leases, [`Command::Quiesce`](super::Command::Quiesce) does that
    /// for all at once.
    pub(super) fn leave_idle(&mut self) {
        if self.leased.is_some() {
            return;
        }
        for (execution, due) in self.shard.leave_waiting() {
            if let Some(due) = due {
                self.sleepers.know(due, execution);
            }
        }
        self.leave_large();
    }

    /// Leaves executions that only wait, and that there is no room for, to the store.
    pub(super) fn leave_large(&mut self) {
        let EngineSettings {
            hot_executions,
            hot_bytes,
            ..
        } = self.settings;
        for (due, execution) in self.shard.trim(hot_executions, hot_bytes) {
            self.sleepers.know(due, execution);
        }
    }
}
