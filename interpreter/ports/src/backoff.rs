//! How long to wait before trying again after a failure.
//!
//! The retries of flows follow the language's own rules instead (`starbridge-machine`, `retry.rs`).

use std::time::Duration;

/// Pauses that double with each failure in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The pause after the first failure.
    pub first: Duration,
    /// The upper limit of a pause.
    pub longest: Duration,
    /// The largest random reduction of a pause, in percent from 0 to 100. With it, clients that
    /// failed together do not come back together.
    pub jitter_percent: u8,
}

impl Backoff {
    /// Doubling pauses without jitter, from `first` up to `longest`.
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            jitter_percent: 0,
        }
    }

    /// Adds jitter to the pauses. More than 100 percent counts as 100.
    #[must_use]
    pub const fn with_jitter(self, percent: u8) -> Self {
        Self {
            jitter_percent: if percent > 100 { 100 } else { percent },
            ..self
        }
    }

    /// The pause after this many failures in a row (from 1), without jitter.
    pub fn longest_after(&self, failures: u32) -> Duration {
        let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(doubled).min(self.longest)
    }

    /// The pause after this many failures in a row (from 1), with jitter. `chance` is a random number: the same
    /// number gives the same pause, and evenly spread numbers give evenly spread pauses.
    pub fn pause_after(&self, failures: u32, chance: u64) -> Duration {
        let longest = self.longest_after(failures);
        let jitter = longest / 100 * u32::from(self.jitter_percent.min(100));
        let off = match u64::try_from(jitter.as_nanos()) {
            Ok(0) => 0,
            Ok(nanos) => chance % nanos,
            Err(_) => chance,
        };
        longest.saturating_sub(Duration::from_nanos(off))
    }

    /// A counter of failures for a loop that tries again.
    pub const fn failures(self) -> Failures {
        Failures {
            backoff: self,
            count: 0,
        }
    }
}

/// A count of failures in a row, with the pauses that follow them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failures {
    backoff: Backoff,
    count: u32,
}

impl Failures {
    /// Counts one more failure and returns the pause after it, without jitter.
    pub fn next_pause(&mut self) -> Duration {
        self.count = self.count.saturating_add(1);
        self.backoff.longest_after(self.count)
    }

    /// Counts one more failure and returns the pause after it, with jitter. `chance` is a random number, as for [`Backoff::pause_after`].
    pub fn next_spread(&mut self, chance: u64) -> Duration {
        self.count = self.count.saturating_add(1);
        self.backoff.pause_after(self.count, chance)
    }

    /// Resets the count after a success.
    pub fn reset(&mut self) {
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(600));

    #[test]
    fn backoff_doubles_up_to_the_longest_pause() {
        for (failures, seconds) in [
            (0, 1),
            (1, 1),
            (2, 2),
            (5, 16),
            (10, 512),
            (11, 600),
            (33, 600),
            (u32::MAX, 600),
        ] {
            let pause = Duration::from_secs(seconds);
            assert_eq!(BACKOFF.longest_after(failures), pause, "{failures}");
            assert_eq!(BACKOFF.pause_after(failures, u64::MAX), pause, "{failures}");
        }
        let endless = Backoff::new(Duration::MAX, Duration::MAX).with_jitter(100);
        assert_eq!(endless.longest_after(7), Duration::MAX);
        assert!(endless.pause_after(7, 1) < Duration::MAX);
    }

    #[test]
    fn backoff_jitter_takes_off_no_more_than_its_share() {
        for (percent, least) in [(20, 800), (50, 500), (100, 0), (255, 0)] {
            let backoff = BACKOFF.with_jitter(percent);
            let step = u64::MAX / 1_000;
            let pauses: BTreeSet<Duration> = (0..1_000).map(|part| backoff.pause_after(1, part * step)).collect();
            let (shortest, longest) = (*pauses.first().unwrap(), *pauses.last().unwrap());
            assert!(shortest >= Duration::from_millis(least), "{percent}: {shortest:?}");
            assert!(longest <= Duration::from_secs(1), "{percent}: {longest:?}");
            let spread = longest - shortest;
            assert!(
                spread > Duration::from_millis((1_000 - least) / 2),
                "{percent}: {spread:?}"
            );
            assert!(pauses.len() > 500, "{percent}: {}", pauses.len());
        }
        let backoff = BACKOFF.with_jitter(20);
        assert_eq!(backoff.pause_after(3, 77), backoff.pause_after(3, 77));
        assert_eq!(backoff.pause_after(1, 0), Duration::from_secs(1));
        assert_eq!(backoff.pause_after(1, 200_000_001), Duration::new(0, 999_999_999));
    }

    #[test]
    fn backoff_starts_again_after_a_success() {
        let mut failures = Backoff::new(Duration::from_millis(50), Duration::from_millis(150)).failures();
        let mut pauses = || [1, 2, 3, 4].map(|_| failures.next_pause().as_millis());
        assert_eq!(pauses(), [50, 100, 150, 150]);
        assert_eq!(pauses(), [150; 4]);
        failures.reset();
        assert_eq!(failures.next_pause().as_millis(), 50);
    }
}
