//! One queue: which tasks wait, and how many may be taken now.

use super::Ticks;
use super::settings::QueueSettings;
use super::waiting_tasks::WaitingTasks;
use starbridge_flow::time::Millis;

/// The tasks, polls and settings under one name.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) settings: QueueSettings,
    pub(super) waiting: WaitingTasks,
    /// How many tasks workers hold.
    pub(super) held: u64,
    /// How many tasks the rate allows to take, and when that was counted.
    allowance: f64,
    counted: Ticks,
}

impl Queue {
    pub(super) fn configure(&mut self, settings: QueueSettings, now: Ticks) {
        self.settings = settings;
        // A new rate begins with one task, not with what the old one had saved up.
        self.allowance = 1.0;
        self.counted = now;
    }

    /// Whether the queue has nothing to remember.
    pub(super) fn is_over(&self) -> bool {
        self.held == 0 && self.waiting.is_over() && self.settings == QueueSettings::default()
    }

    /// How many tasks may be taken now.
    pub(super) fn free(&mut self, now: Ticks) -> u64 {
        if self.settings.paused {
            return 0;
        }
        let most = self.settings.max_concurrent.unwrap_or(u64::MAX);
        let room = most.saturating_sub(self.held);
        match self.settings.rate_per_second {
            None => room,
            Some(rate) => {
                self.count_rate(rate, now);
                room.min(whole(self.allowance))
            }
        }
    }

    fn count_rate(&mut self, rate: f64, now: Ticks) {
        let passed = now.saturating_sub(self.counted);
        // Up to one second's tasks may be saved up.
        let gained = rate * passed.as_secs_f64();
        self.allowance = (self.allowance + gained).min(rate.max(1.0));
        self.counted = now;
    }

    /// Counts a task that was taken.
    pub(super) fn took(&mut self) {
        self.held += 1;
        if self.settings.rate_per_second.is_some() {
            self.allowance -= 1.0;
        }
    }

    /// When the rate allows the next task, if nothing but the rate prevents it.
    pub(super) fn free_at(&self) -> Option<Ticks> {
        let rate = self.settings.rate_per_second?;
        let room = self.settings.max_concurrent.is_none_or(|most| self.held < most);
        if self.settings.paused || !room || self.waiting.count() == 0 {
            return None;
        }
        let missing = (1.0 - self.allowance).max(0.0);
        Some(
            self.counted
                .saturating_add(Millis(whole((missing * 1000.0 / rate).ceil()))),
        )
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is negative counts as nothing, and rates are bounded"
)]
fn whole(number: f64) -> u64 {
    number as u64
}
