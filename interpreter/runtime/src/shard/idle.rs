//! Which executions stay in memory: those that run, and of those that only wait as many as there is room for.

use super::waiting::WaitingStart;
use super::{LoadedExecution, Shard};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use std::collections::VecDeque;

/// How long a list of idle executions may get before stale entries are removed.
const IDLE_LIST_TRIM: usize = 1024;
/// An execution that holds this many bytes of data, or more, is large.
pub(crate) const LARGE_BYTES: usize = 64 * 1024;

/// Executions that only wait, in the order in which they became idle. Entries of those that go on or have ended are stale.
#[derive(Debug, Default)]
pub(super) struct IdleLists {
    small: VecDeque<Text>,
    /// The large ones among them.
    large: VecDeque<Text>,
}

impl Shard {
    /// Executions that are not loaded and something is for, in the order in which they are wanted: some of the next ones.
    pub fn wanted(&self, most: usize) -> Vec<Text> {
        let mut wanted: Vec<Text> = Vec::new();
        for (to, _) in self.inbox.iter().take(most) {
            let here = self.executions.contains_key(to)
                || self.waits_to_begin(to)
                || self.is_aside(to)
                || self.is_held_off(to);
            if !here && self.owns(to) && !wanted.contains(to) {
                wanted.push(to.clone());
            }
        }
        wanted
    }

    /// The bytes of data that the large ones among the loaded executions hold, and those that wait to begin, as compact JSON.
    pub fn loaded_bytes(&self) -> usize {
        let waiting = self.large_waiting.iter();
        let waiting = waiting.filter(|(id, _)| self.waiting.contains_key(*id));
        self.loaded_bytes + waiting.map(|(_, bytes)| bytes).sum::<usize>()
    }

    /// Counts a large execution that waits to begin for as long as it is in memory.
    pub(super) fn weigh_waiting(&mut self, id: &Text) {
        let bytes = self.waiting.get(id).map_or(0, WaitingStart::input_bytes);
        if bytes >= LARGE_BYTES {
            self.large_waiting.insert(id.clone(), bytes);
        }
    }

    /// Forgets large executions that no longer wait here to begin.
    pub(super) fn forget_large_waiting(&mut self) {
        self.large_waiting.retain(|id, _| self.waiting.contains_key(id));
    }

    /// Counts again what an execution holds, after an append of this many bytes. A small one is looked at only once its appends
    /// could have made it large, so most cost nothing.
    pub(super) fn weigh(&mut self, id: &Text, appended: usize) {
        let Some(live) = self.executions.get_mut(id) else {
            return;
        };
        live.uncounted_bytes = live.uncounted_bytes.saturating_add(appended);
        if live.uncounted_bytes < LARGE_BYTES && live.counted_bytes == 0 {
            return;
        }
        live.uncounted_bytes = 0;
        let held = live.state.held();
        let counted = if held < LARGE_BYTES { 0 } else { held };
        self.loaded_bytes = self
            .loaded_bytes
            .saturating_sub(live.counted_bytes)
            .saturating_add(counted);
        live.counted_bytes = counted;
    }

    /// Takes the bytes of an execution that is no longer loaded from the sum.
    pub(super) fn uncount(&mut self, removed: Option<&LoadedExecution>) {
        let counted = removed.map_or(0, |live| live.counted_bytes);
        self.loaded_bytes = self.loaded_bytes.saturating_sub(counted);
    }

    /// Drops an execution from memory. The store has it.
    pub fn forget(&mut self, execution: &str) {
        let Some((id, live)) = self.executions.remove_entry(execution) else {
            return;
        };
        self.uncount(Some(&live));
        if let Some(wakeup) = live.wakeup {
            self.wakeups.remove(&(wakeup, id.clone()));
        }
        for call in live.state.calls_in_flight() {
            self.sync_calls.remove(&(id.clone(), call));
        }
    }

    pub(super) fn note_idle(&mut self, id: Text) {
        let Some(live) = self.executions.get_mut(&id).filter(|live| live.is_idle()) else {
            return;
        };
        if live.state.status().is_ended() {
            self.ended.push(id);
        } else if live.counted_bytes > 0 {
            if !live.listed_large {
                live.listed_large = true;
                self.idle.large.push_back(id);
            }
        } else if !live.listed_idle {
            live.listed_idle = true;
            self.idle.small.push_back(id);
        }
    }

    /// Drops executions that have ended, then the longest idle of those that only wait, until at most `at_most` are
    /// loaded and the large ones hold at most `bytes` of data. Returns those that have to be woken, with the time.
    pub fn trim(&mut self, at_most: usize, bytes: usize) -> Vec<(Timestamp, Text)> {
        for id in std::mem::take(&mut self.ended) {
            let over = |live: &LoadedExecution| live.is_idle() && live.state.status().is_ended();
            if self.executions.get(&id).is_some_and(|live| over(live)) {
                self.forget(&id);
            }
        }
        self.drop_stale_entries();
        let mut asleep = Vec::new();
        while self.loaded_bytes > bytes
            && let Some(id) = self.idle.large.pop_front()
        {
            asleep.extend(self.leave_to_store(&id));
        }
        while self.executions.len() > at_most
            && let Some(id) = self.idle.small.pop_front().or_else(|| self.idle.large.pop_front())
        {
            asleep.extend(self.leave_to_store(&id));
        }
        asleep
    }

    fn drop_stale_entries(&mut self) {
        let (executions, most) = (&self.executions, IDLE_LIST_TRIM + 2 * self.executions.len());
        if self.idle.small.len() > most {
            let listed = |id: &Text| executions.get(id).is_some_and(|live| live.listed_idle);
            self.idle.small.retain(listed);
        }
        if self.idle.large.len() > most {
            let listed = |id: &Text| executions.get(id).is_some_and(|live| live.listed_large);
            self.idle.large.retain(listed);
        }
    }

    /// Drops an execution that was in a list, if it still only waits. Returns when it has to be woken.
    fn leave_to_store(&mut self, id: &Text) -> Option<(Timestamp, Text)> {
        let live = self.executions.get_mut(id)?;
        (live.listed_idle, live.listed_large) = (false, false);
        if !live.is_idle() {
            return None;
        }
        let wakeup = live.state.next_wakeup();
        self.forget(id);
        wakeup.map(|due| (due, id.clone()))
    }
}
