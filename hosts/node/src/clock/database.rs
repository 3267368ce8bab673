//! The clock of a database, as precisely as a node can know it over a network.

use std::time::Duration;

/// How many nanoseconds the machine's own clock may differ before that is logged.
const LOGGED: i64 = 1_000_000_000;

/// What is known of it. All times are nanoseconds.
#[derive(Debug)]
pub(super) struct DatabaseClock {
    /// How much it is ahead of the time since the machine was started.
    ahead: Option<i64>,
    logged: bool,
}

impl DatabaseClock {
    pub(super) const fn unknown() -> Self {
        Self {
            ahead: None,
            logged: false,
        }
    }

    /// Notes that it showed `shown` at some moment between two others of the time since the start. Returns how much it is ahead.
    ///
    /// Earlier knowledge is kept where the answer does not contradict it, so a slow answer changes nothing.
    pub(super) fn read(&mut self, shown: i64, asked: i64, answered: i64) -> i64 {
        let (least, most) = (
            shown.saturating_sub(answered),
            shown.saturating_sub(asked.min(answered)),
        );
        let ahead = match self.ahead {
            None => least.midpoint(most),
            Some(before) => before.clamp(least, most),
        };
        *self.ahead.insert(ahead)
    }

    pub(super) fn is_known(&self) -> bool {
        self.ahead.is_some()
    }

    /// How far `machine`, the time that the machine shows, is from `database`: returned once, when the difference has become large.
    pub(super) fn notice(&mut self, machine: i64, database: i64) -> Option<Duration> {
        let off = machine.saturating_sub(database).saturating_abs();
        let new = off >= LOGGED && !self.logged;
        // It must become much smaller before it can count as large again.
        self.logged = off >= LOGGED || (self.logged && off > LOGGED / 2);
        new.then(|| Duration::from_nanos(off.unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_of_a_database_is_read_as_exactly_as_it_answers() {
        let mut clock = DatabaseClock::unknown();
        assert!(!clock.is_known());
        // Between 100 and 140 it showed 1,000.
        assert_eq!(clock.read(1_000, 100, 140), 880);
        assert!(clock.is_known());
        // A slow answer says nothing new.
        assert_eq!(clock.read(2_000, 500, 1_500), 880);
        // A quick one does.
        assert_eq!(clock.read(3_000, 2_100, 2_110), 890);
        // It was set, forwards and back.
        assert_eq!(clock.read(9_000, 3_000, 3_010), 5_990);
        assert_eq!(clock.read(4_000, 4_000, 4_010), 0);
    }

    #[test]
    fn clock_of_a_machine_that_differs_is_logged_once() {
        let mut clock = DatabaseClock::unknown();
        let second = 1_000_000_000;
        assert_eq!(clock.notice(10 * second, 10 * second + 1), None);
        assert_eq!(clock.notice(10 * second, 11 * second), Some(Duration::from_secs(1)));
        assert_eq!(clock.notice(10 * second, 3_610 * second), None);
        assert_eq!(clock.notice(10 * second, 10 * second), None);
        assert_eq!(clock.notice(3_610 * second, 10 * second), Some(Duration::from_hours(1)));
    }
}
