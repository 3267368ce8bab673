//! The time. Durations are measured on a clock that is never set.
//!
//! The clock begins at the wall clock's time, and then follows the time since the machine was started (which counts
//! while it is suspended), even if the wall clock is set. It corrects the difference to the wall clock so slowly that
//! no duration shows it. So it never goes back, and setting the wall clock makes no timer end early or late.
//!
//! For a node of a cluster the wall clock is that of the database. The node reads it with each heartbeat, and adds the time since
//! the machine was started: all nodes go by one clock, whatever their machines show.

#![allow(clippy::disallowed_methods, reason = "this is where the clock comes in")]

#[cfg(feature = "postgres")]
mod database;

#[cfg(feature = "postgres")]
use database::DatabaseClock;
use starbridge_flow::time::Timestamp;
use starbridge_ports::Clock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
#[cfg(feature = "postgres")]
use std::time::Instant;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The clock of the system. All values in a process are the same clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let (steady, wall) = (since_boot(), since_1970());
        let mut kept = kept();
        let clock = kept.get_or_insert_with(|| Steady::begin(steady, wall));
        let now = clock.at(steady, wall);
        let noticed = clock.notice(wall);
        drop(kept);
        if let Some(away) = noticed {
            let seconds = away.as_secs();
            tracing::warn!(
                seconds,
                "the clock was set: durations go on as they were, schedules go by it at once, times at the \
                 next start"
            );
        }
        timestamp(now)
    }

    fn wall_time(&self) -> Timestamp {
        wall_time()
    }
}

impl SystemClock {
    /// Uses the clock of a database as the wall clock. It showed so many microseconds since 1970 at some moment between the two
    /// others. The first call sets the clock, so no execution may be timed before; later calls correct the difference
    /// as any other.
    #[cfg(feature = "postgres")]
    pub(crate) fn follow(self, shown: i64, asked: Instant, answered: Instant) {
        let steady = since_boot();
        let ago = |then: Instant| signed(steady.saturating_sub(nanos(then.elapsed())));
        let mut database = DATABASE.lock().unwrap_or_else(PoisonError::into_inner);
        let begins = !database.is_known();
        let ahead = database.read(shown.saturating_mul(1_000), ago(asked), ago(answered));
        AHEAD.store(ahead, Ordering::Relaxed);
        if begins {
            *kept() = None;
        }
        let off = database.notice(signed(machine_time()), signed(steady).saturating_add(ahead));
        drop(database);
        if let Some(off) = off {
            tracing::warn!(
                milliseconds = off.as_millis(),
                "the clock of this machine is not that of the database, which counts: set both by a time server"
            );
        }
    }

    /// Jumps to the wall clock's time if that is ahead, for a process that was frozen for an
    /// unknown time.
    pub fn catch_up(self) {
        let (steady, wall) = (since_boot(), since_1970());
        kept()
            .get_or_insert_with(|| Steady::begin(steady, wall))
            .catch_up(steady, wall);
    }
}

/// The wall clock's time, for events at a time of day. It may go back.
pub fn wall_time() -> Timestamp {
    timestamp(since_1970())
}

static KEPT: Mutex<Option<Steady>> = Mutex::new(None);

fn kept() -> MutexGuard<'static, Option<Steady>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn timestamp(since_1970: Nanos) -> Timestamp {
    Timestamp(i64::try_from(since_1970 / NANOS_PER_MILLI).unwrap_or(i64::MAX))
}

/// The clock of the database, for a node of a cluster.
#[cfg(feature = "postgres")]
static DATABASE: Mutex<DatabaseClock> = Mutex::new(DatabaseClock::unknown());
/// How much it is ahead of the time since the machine was started, in nanoseconds; [`OWN`] if the machine's own clock counts.
static AHEAD: AtomicI64 = AtomicI64::new(OWN);
const OWN: i64 = i64::MIN;

/// The time since 1970 by the wall clock. One that is set to an earlier time counts as 1970.
fn since_1970() -> Nanos {
    match AHEAD.load(Ordering::Relaxed) {
        OWN => machine_time(),
        ahead => since_boot().saturating_add_signed(ahead),
    }
}

/// The time since 1970 by the machine's own clock.
fn machine_time() -> Nanos {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanos)
}

#[cfg(feature = "postgres")]
fn signed(time: Nanos) -> i64 {
    i64::try_from(time).unwrap_or(i64::MAX)
}

#[cfg(target_os = "linux")]
fn since_boot() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let [seconds, rest] = [time.tv_sec, time.tv_nsec].map(|part| Nanos::try_from(part).unwrap_or(0));
    seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(rest)
}

#[cfg(not(target_os = "linux"))]
fn since_boot() -> Nanos {
    use std::sync::OnceLock;
    use std::time::Instant;
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    nanos(BEGUN.get_or_init(Instant::now).elapsed())
}

/// A span of time in nanoseconds, 584 years at most. Every operation reads the clock several times,
/// and arithmetic with one number is faster than with the two of a [`Duration`].
type Nanos = u64;

const NANOS_PER_MILLI: Nanos = 1_000_000;
const NANOS_PER_SECOND: Nanos = 1_000_000_000;

fn nanos(span: Duration) -> Nanos {
    let seconds = span.as_secs().saturating_mul(NANOS_PER_SECOND);
    seconds.saturating_add(Nanos::from(span.subsec_nanos()))
}

/// The speed of correction: one second in 200.
const CATCH_UP_PART: Nanos = 200;
/// Larger differences are logged.
const SAID: Nanos = 10 * NANOS_PER_SECOND;

/// A clock that follows another one that is never set.
#[derive(Debug)]
struct Steady {
    /// The other clock's time at the last look.
    steady: Nanos,
    /// The time that was shown then.
    shown: Nanos,
    said: bool,
}

impl Steady {
    fn begin(steady: Nanos, wall: Nanos) -> Self {
        Self {
            steady,
            shown: wall,
            said: false,
        }
    }

    /// INVARIANT: the shown time never goes back, and goes at most a 200th faster or slower than real time.
    fn at(&mut self, steady: Nanos, wall: Nanos) -> Nanos {
        // Two threads that look at the same time may arrive here in the other order.
        let passed = steady.saturating_sub(self.steady);
        let usual = self.shown.saturating_add(passed);
        let most = passed / CATCH_UP_PART;
        self.shown = match wall.checked_sub(usual) {
            Some(behind) => usual + behind.min(most),
            None => usual - (usual - wall).min(most),
        };
        self.steady += passed;
        self.shown
    }

    fn catch_up(&mut self, steady: Nanos, wall: Nanos) {
        self.at(steady, wall);
        self.shown = self.shown.max(wall);
    }

    /// The difference between the two clocks, once when it has become large.
    fn notice(&mut self, wall: Nanos) -> Option<Duration> {
        let away = self.shown.abs_diff(wall);
        let much = away > SAID;
        let new = much && !self.said;
        // It must become much smaller before it can count as large again.
        self.said = much || (self.said && away > SAID / 2);
        new.then_some(Duration::from_nanos(away))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_SECONDS: u64 = 3_600;

    fn secs(seconds: u64) -> Nanos {
        seconds * NANOS_PER_SECOND
    }

    /// Starts a clock at an hour. Returns its time `after` this many seconds on a machine whose
    /// wall clock was set to `wall` meanwhile.
    fn shown(wall: u64, after: u64) -> Nanos {
        let mut clock = Steady::begin(secs(5), secs(HOUR_SECONDS));
        let mut last = secs(HOUR_SECONDS);
        for step in 1..=after * 10 {
            let passed = step * 100 * NANOS_PER_MILLI;
            let now = clock.at(secs(5) + passed, secs(wall) + passed);
            assert!(now >= last, "it went back");
            last = now;
        }
        last - secs(HOUR_SECONDS)
    }

    #[test]
    fn clock_durations_are_those_of_the_steady_clock() {
        for wall in [HOUR_SECONDS, 0, 2 * HOUR_SECONDS, 400 * 24 * HOUR_SECONDS] {
            let three = shown(wall, 3);
            let off = three.abs_diff(secs(3));
            assert!(off <= secs(3) / CATCH_UP_PART, "set to {wall}: {three:?}");
        }
        assert_eq!(shown(HOUR_SECONDS, 3), secs(3));
    }

    #[test]
    fn clock_before_1970_measures_durations() {
        let mut clock = Steady::begin(secs(5), 0);
        for second in 1..=HOUR_SECONDS {
            let shown = clock.at(secs(5 + second), 0);
            let off = shown.abs_diff(secs(second));
            assert!(off <= secs(second) / CATCH_UP_PART, "after {second} s: {shown}");
        }
    }

    #[test]
    fn clock_difference_is_caught_up_in_time() {
        // One second in 200, and then no further correction.
        assert_eq!(shown(HOUR_SECONDS + 1, 400), secs(401));
        assert_eq!(shown(HOUR_SECONDS - 1, 400), secs(399));
    }

    #[test]
    fn clock_of_a_suspended_process_goes_on_at_the_wall_clock() {
        let mut clock = Steady::begin(secs(5), secs(HOUR_SECONDS));
        clock.catch_up(secs(6), secs(2 * HOUR_SECONDS));
        assert_eq!(
            clock.at(secs(7), secs(2 * HOUR_SECONDS + 1)),
            secs(2 * HOUR_SECONDS + 1)
        );
        // It never goes back.
        clock.catch_up(secs(8), secs(HOUR_SECONDS));
        assert!(clock.at(secs(8), secs(HOUR_SECONDS)) > secs(2 * HOUR_SECONDS));
    }

    #[test]
    fn clock_reads_in_another_order_do_no_harm() {
        let mut clock = Steady::begin(secs(5), secs(HOUR_SECONDS));
        let later = clock.at(secs(9), secs(HOUR_SECONDS + 4));
        assert_eq!(clock.at(secs(8), secs(HOUR_SECONDS + 3)), later);
        assert_eq!(clock.at(secs(10), secs(HOUR_SECONDS + 5)), secs(HOUR_SECONDS + 5));
    }

    #[test]
    fn clock_that_is_set_is_logged_once() {
        let mut clock = Steady::begin(secs(5), secs(HOUR_SECONDS));
        let mut notice = |wall: u64| {
            clock.at(secs(5), secs(wall));
            clock.notice(secs(wall)).map(|away| away.as_secs())
        };
        assert_eq!(notice(HOUR_SECONDS), None);
        assert_eq!(notice(HOUR_SECONDS + 60), Some(60));
        assert_eq!(notice(HOUR_SECONDS + 60), None);
        assert_eq!(notice(HOUR_SECONDS), None);
        assert_eq!(notice(0), Some(HOUR_SECONDS));
    }
}
