//! Executions that sleep in the store and are to be woken soon. Those that sleep longer are known to the store alone.

use super::Engine;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::StoreError;
use std::collections::BTreeSet;

/// How far ahead sleepers are known, and how often that is renewed, in milliseconds.
const AHEAD_MS: u64 = 60_000;
const RENEWED_MS: u64 = 30_000;
/// Sleepers known at once.
const KNOWN: usize = 500_000;
/// Sleepers woken in one go.
const TOGETHER: usize = 512;

/// Who is to be woken soon.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    soon: BTreeSet<(Timestamp, Text)>,
    /// All that are due before are known.
    horizon: Timestamp,
    /// When to look again; never, where nothing is left to the store.
    look_again: Option<Timestamp>,
}

impl Sleepers {
    /// When there is something to do.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let first = self.soon.first().map(|(due, _)| *due);
        first.into_iter().chain(self.look_again).min()
    }

    /// When the first of those known is to be woken.
    pub(super) fn soonest(&self) -> Option<Timestamp> {
        self.soon.first().map(|(due, _)| *due)
    }

    fn know(&mut self, due: Timestamp, execution: Text) {
        if due < self.horizon {
            self.soon.insert((due, execution));
        }
    }
}

impl Engine {
    /// Looks who is to be woken in the next minute.
    pub(super) fn look_for_sleepers(&mut self, now: Timestamp) -> Result<(), StoreError> {
        let horizon = now.plus_millis(AHEAD_MS);
        let due = self.world.history.due(horizon, KNOWN)?;
        self.sleepers.horizon = match due.last() {
            Some((last, _)) if due.len() >= KNOWN => last.plus_millis(1),
            _ => horizon,
        };
        self.sleepers.look_again = Some(now.plus_millis(RENEWED_MS));
        for (due, execution) in due {
            if self.is_mine(&execution) {
                self.sleepers.know(due, execution);
            }
        }
        Ok(())
    }

    /// Brings in those that are due, so that their timers fire.
    pub(super) fn wake_sleepers(&mut self, now: Timestamp) -> Result<(), StoreError> {
        if self.sleepers.look_again.is_some_and(|again| again <= now) {
            self.look_for_sleepers(now)?;
        }
        for _ in 0..TOGETHER {
            if self.sleepers.soon.first().is_none_or(|(due, _)| *due > now) {
                break;
            }
            let Some((_, execution)) = self.sleepers.soon.pop_first() else {
                break;
            };
            if self.shard.state(&execution).is_none() {
                self.fetch(&execution)?;
            }
        }
        Ok(())
    }

    /// Leaves to the store what only waits; what is here for a time only is given back all at once.
    pub(super) fn leave_idle(&mut self) {
        if self.visiting.is_some() {
            return;
        }
        for (due, execution) in self.shard.trim(self.settings.hot_executions) {
            self.sleepers.know(due, execution);
        }
    }
}
