//! The progress of the iterations of a foreach.

use crate::table::distance_words;
use starbridge_flow::time::{Millis, Timestamp};

/// From this many iterations on, the remaining time is estimated.
const MIN_FOR_ESTIMATE: u64 = 3;

/// The iterations of a foreach.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// The number of iterations, if it is known.
    pub(super) total: Option<u64>,
    pub(super) done: u64,
    pub(super) failed: u64,
}

impl Counts {
    /// `19 of 200, 1 failed`.
    pub(super) fn words(self) -> String {
        let of = match self.total {
            Some(total) => format!("{} of {total}", self.done),
            None => self.iterations(),
        };
        format!("{of}{}", self.failed_words())
    }

    /// `3 iterations`.
    pub(super) fn iterations(self) -> String {
        let plural = if self.done == 1 { "" } else { "s" };
        format!("{} iteration{plural}", self.done)
    }

    /// `, 1 failed`; empty if none has.
    pub(super) fn failed_words(self) -> String {
        match self.failed {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        }
    }

    /// The estimated remaining time: `, about 25 s left`.
    pub(super) fn left(self, since: Timestamp, now: Timestamp) -> String {
        let Some(total) = self
            .total
            .filter(|total| self.done >= MIN_FOR_ESTIMATE && *total > self.done)
        else {
            return String::new();
        };
        let each = Millis(now.since(since).0 / self.done);
        format!(
            ", about {} left",
            distance_words(each.saturating_mul(total - self.done))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_the_failed_and_the_rest_are_told() {
        let counts = Counts {
            total: Some(200),
            done: 20,
            failed: 1,
        };
        let begun = Timestamp(1_000);
        assert_eq!(counts.words(), "20 of 200, 1 failed");
        assert_eq!(counts.left(begun, begun.plus(Millis(2_000))), ", about 18 s left");
        let unknown = Counts {
            total: None,
            failed: 0,
            ..counts
        };
        assert_eq!(unknown.words() + &unknown.left(begun, begun), "20 iterations");
        let early = Counts { done: 1, ..counts };
        assert_eq!(early.left(begun, begun.plus(Millis(9))), "");
    }
}
