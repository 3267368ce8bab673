//! When schedules trigger next.

use super::Scheduled;
use starbridge_flow::time::Timestamp;

impl Scheduled {
    /// When it triggers next, so many times at most, each in UTC and by the clocks of its zone.
    pub fn next_times(&self, most: usize) -> Vec<(Timestamp, Option<String>)> {
        let expression = &self.schedule.expression;
        let first = self.next.filter(|_| !self.schedule.paused);
        let times = std::iter::successors(first, |time| expression.next_after(*time));
        times
            .take(most)
            .map(|time| (time, expression.by_its_clocks(time)))
            .collect()
    }
}
