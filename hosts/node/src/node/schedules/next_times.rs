//! When schedules trigger next.

use super::Scheduled;
use starbridge_flow::time::{Millis, Timestamp};

/// The longest time between two checks.
const SWEEP: Millis = Millis(60_000);
/// The longest time between two checks while triggers wait for earlier executions, or could not be handled.
const QUEUED_SWEEP: Millis = Millis(1_000);

impl Scheduled {
    /// How long nothing is due after a check at `now`. What could not be handled then is tried again after a while.
    pub(super) fn pause_after(now: Timestamp, schedules: &[Self], all_handled: bool) -> Millis {
        let often = !all_handled || schedules.iter().any(Self::has_queued);
        let usual = if often { QUEUED_SWEEP } else { SWEEP };
        let next = schedules.iter().filter_map(|scheduled| scheduled.next);
        let next = next.filter(|next| all_handled || *next > now).min();
        next.map_or(usual, |next| next.since(now).min(usual))
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_runtime::schedule::{Expression, Schedule};

    #[test]
    fn what_could_not_be_handled_is_tried_again_after_a_while() {
        let minutely = |last| {
            let schedule = Schedule::new("s", Expression::parse("* * * * *").unwrap(), "f").unwrap();
            Scheduled::new(schedule, Timestamp(last))
        };
        // The first is due, the second in half a second.
        let (late, soon) = (minutely(0), minutely(60_000));
        let now = Timestamp(119_500);
        assert_eq!(
            Scheduled::pause_after(now, std::slice::from_ref(&soon), true),
            Millis(500)
        );
        assert_eq!(
            Scheduled::pause_after(now, &[late.clone(), soon.clone()], true),
            Millis(0)
        );
        assert_eq!(Scheduled::pause_after(now, &[late.clone(), soon], false), Millis(500));
        assert_eq!(Scheduled::pause_after(now, &[late], false), QUEUED_SWEEP);
    }
}
