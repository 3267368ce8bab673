//! Points in time and spans of time in milliseconds, as in histories.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The last moment that can be written, 9999-12-31T23:59:59.999Z: so a stored time is read back
    /// unchanged.
    pub const END: Self = Self(253_402_300_799_999);

    /// The time `span` later, at most [`Timestamp::END`].
    #[must_use]
    pub fn plus(self, span: Millis) -> Self {
        let later = self.0.saturating_add(i64::try_from(span.0).unwrap_or(i64::MAX));
        Self(later.min(Self::END.0.max(self.0)))
    }

    /// The time `span` earlier, at least the first moment of the type.
    #[must_use]
    pub fn minus(self, span: Millis) -> Self {
        Self(self.0.saturating_sub_unsigned(span.0))
    }

    /// The time from `earlier` to here, [`Millis::ZERO`] if it is later.
    pub fn since(self, earlier: Self) -> Millis {
        Millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads RFC 3339, any offset; parts of a millisecond are rounded up, so that a timer is never early.
    pub fn parse(text: &str) -> Option<Self> {
        // An offset of RFC 3339 has hours up to 23; the library takes more.
        let offset = jiff::fmt::temporal::Pieces::parse(text).ok()?.to_numeric_offset()?;
        if offset.seconds().abs() >= 24 * 60 * 60 {
            return None;
        }
        let nanos = match text.parse::<jiff::Timestamp>() {
            Ok(parsed) => parsed.as_nanosecond(),
            Err(_) => near_the_end(text)?,
        };
        i64::try_from(nanos.div_euclid(1_000_000) + i128::from(nanos.rem_euclid(1_000_000) != 0))
            .ok()
            .map(Self)
    }
}

/// The last two days of the year 9999, which the library's instants do not reach, in nanoseconds
/// since 1970.
fn near_the_end(text: &str) -> Option<i128> {
    let pieces = jiff::fmt::temporal::Pieces::parse(text).ok()?;
    let offset = pieces.to_numeric_offset()?;
    let civil = pieces.date().to_datetime(pieces.time()?);
    let since = civil.duration_since(jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0));
    Some(since.as_nanos() - i128::from(offset.seconds()) * 1_000_000_000)
}

/// RFC 3339 in UTC with three digits of a second: `2024-01-01T00:00:00.000Z`.
impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nearest = self.0.min(Self::END.0);
        let Ok(timestamp) = jiff::Timestamp::from_millisecond(nearest) else {
            return beyond(nearest, f);
        };
        match short(nearest, timestamp) {
            Some(text) => f.write_str(std::str::from_utf8(&text).map_err(|_| std::fmt::Error)?),
            None => write!(f, "{timestamp:.3}"),
        }
    }
}

/// The text of an instant from 1970 to 9999. Every event and every answer has several, so this
/// avoids the options of a general format.
fn short(millis: i64, timestamp: jiff::Timestamp) -> Option<[u8; 24]> {
    let millis = u64::try_from(millis).ok()?;
    let date = jiff::tz::Offset::UTC.to_datetime(timestamp).date();
    let year = u64::try_from(date.year()).ok().filter(|year| *year <= 9_999)?;
    let [month, day] = [date.month(), date.day()].map(|part| u64::from(part.unsigned_abs()));
    let second = millis / 1_000;
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let parts = [
        (3, year),
        (6, month),
        (9, day),
        (12, second / 3_600 % 24),
        (15, second / 60 % 60),
        (18, second % 60),
        (22, millis % 1_000),
    ];
    for (last, mut number) in parts {
        let mut at = last;
        while number > 0 {
            *text.get_mut(at)? += u8::try_from(number % 10).ok()?;
            number /= 10;
            at = at.checked_sub(1).unwrap_or(usize::MAX);
        }
    }
    Some(text)
}

/// Writes times that the library's instants do not reach; a time before its first year is
/// written as that year.
fn beyond(millis: i64, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    let since = jiff::SignedDuration::from_millis(millis);
    let civil = jiff::civil::date(1970, 1, 1).at(0, 0, 0, 0).checked_add(since);
    write!(f, "{:.3}Z", civil.unwrap_or(jiff::civil::DateTime::MIN))
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("expected an RFC 3339 timestamp"))
    }
}

/// A span of time in whole milliseconds. Stored forms and messages carry it as a plain number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// This many seconds, at most [`Millis::MAX`].
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000))
    }

    /// This many days of 24 hours, at most [`Millis::MAX`].
    pub const fn from_days(days: u64) -> Self {
        Self::from_secs(days.saturating_mul(24 * 60 * 60))
    }

    /// Whole seconds; a part of a second is dropped.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000
    }

    /// Whole seconds; a part of a second counts as a whole one.
    pub const fn as_secs_rounded_up(self) -> u64 {
        self.0.div_ceil(1_000)
    }

    /// Seconds with their fraction.
    #[expect(clippy::cast_precision_loss, reason = "exact below 285,000 years")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1_000.0
    }

    /// The sum, at most [`Millis::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The rest after `other`, [`Millis::ZERO`] if nothing is left.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// This many times the span, at most [`Millis::MAX`].
    #[must_use]
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

/// For people: the seconds with at most three decimals, `2.5 s`.
impl std::fmt::Display for Millis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest) = (self.0 / 1_000, self.0 % 1_000);
        match rest {
            0 => write!(f, "{whole} s"),
            _ => write!(f, "{whole}.{} s", format!("{rest:03}").trim_end_matches('0')),
        }
    }
}

impl From<Millis> for Duration {
    fn from(span: Millis) -> Self {
        Self::from_millis(span.0)
    }
}

/// A part of a millisecond is dropped; a longer span becomes [`Millis::MAX`].
impl From<Duration> for Millis {
    fn from(span: Duration) -> Self {
        Self(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A span of time in whole seconds, for contracts in seconds: a resource's `Retry-After`, and
/// `retryAfter` in histories. The number of seconds is kept unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seconds(pub u64);

impl Seconds {
    /// No time at all.
    pub const ZERO: Self = Self(0);
}

/// At most [`Millis::MAX`].
impl From<Seconds> for Millis {
    fn from(span: Seconds) -> Self {
        Self::from_secs(span.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trips() {
        assert_eq!(Timestamp(1_704_067_200_000).to_string(), "2024-01-01T00:00:00.000Z");
        assert_eq!(
            Timestamp::parse("2024-01-01T01:00:00+01:00"),
            Some(Timestamp(1_704_067_200_000))
        );
        assert_eq!(
            Timestamp::parse("2024-01-01T00:00:00.0001Z"),
            Some(Timestamp(1_704_067_200_001))
        );
        assert_eq!(Timestamp::parse("2024-01-01"), None);
    }

    #[test]
    fn short_way_writes_what_the_library_writes() {
        // Every day of four centuries, each at a different time of day, and both ends.
        let days = (0..146_097_i64).map(|day| day * 86_400_000 + day * 591 % 86_400_000);
        for millis in days.chain([0, 1, 999, 253_402_207_200_000, Timestamp::END.0]) {
            let timestamp = jiff::Timestamp::from_millisecond(millis.min(253_402_207_200_000)).unwrap();
            let text = short(timestamp.as_millisecond(), timestamp).unwrap();
            assert_eq!(std::str::from_utf8(&text).unwrap(), format!("{timestamp:.3}"));
        }
        assert_eq!(Timestamp(-1).to_string(), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn what_is_written_is_read_back_up_to_the_end_of_time() {
        let near = [253_402_207_200_000, 253_402_207_200_001, 253_402_207_200_999];
        for time in near.into_iter().map(Timestamp).chain([Timestamp::END]) {
            assert_eq!(Timestamp::parse(&time.to_string()), Some(time), "{time}");
        }
        assert_eq!(Timestamp::END.to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Timestamp(i64::MAX).to_string(), Timestamp::END.to_string());
        assert!(Timestamp(i64::MIN).to_string().starts_with("-009999-01-0"));
    }

    #[test]
    fn no_sum_is_later_than_can_be_written() {
        let now = Timestamp(1_704_067_200_000);
        for millis in [u64::MAX, i64::MAX as u64, 1 << 60] {
            assert_eq!(now.plus(Millis(millis)), Timestamp::END);
        }
        assert_eq!(
            Timestamp(i64::MAX).plus(Millis(1)),
            Timestamp(i64::MAX),
            "never earlier"
        );
        assert_eq!(now.plus(Millis(1)), Timestamp(now.0 + 1));
        assert_eq!(now.minus(Millis(1)), Timestamp(now.0 - 1));
        assert_eq!(now.minus(Millis::MAX), Timestamp(i64::MIN));
    }

    #[test]
    fn spans_never_overflow() {
        assert_eq!(Millis::from(Seconds(3)), Millis(3_000));
        assert_eq!(Millis::from_secs(u64::MAX), Millis::MAX);
        assert_eq!(Millis::from_days(u64::MAX), Millis::MAX);
        assert_eq!(Millis::from_days(2), Millis(172_800_000));
        assert_eq!(Millis::MAX.saturating_add(Millis(1)), Millis::MAX);
        assert_eq!(Millis(1).saturating_sub(Millis(2)), Millis::ZERO);
        assert_eq!(Millis(3).saturating_mul(u64::MAX), Millis::MAX);
        assert_eq!((Millis(1_999).as_secs(), Millis(1_001).as_secs_rounded_up()), (1, 2));
        assert_eq!(Timestamp(5).since(Timestamp(9)), Millis::ZERO);
        assert_eq!(Millis::from(Duration::MAX), Millis::MAX);
        assert_eq!(Duration::from(Millis(1_500)), Duration::from_millis(1_500));
    }

    #[test]
    fn spans_are_seconds_for_people_and_numbers_in_json() {
        for (millis, text) in [(0, "0 s"), (7, "0.007 s"), (2_500, "2.5 s"), (90_000, "90 s")] {
            assert_eq!(Millis(millis).to_string(), text);
            assert_eq!(serde_json::to_string(&Millis(millis)).unwrap(), millis.to_string());
        }
        assert_eq!(serde_json::from_str::<Millis>("7").unwrap(), Millis(7));
        assert_eq!(serde_json::to_string(&Seconds(7)).unwrap(), "7");
        assert_eq!(serde_json::from_str::<Seconds>("7").unwrap(), Seconds(7));
    }
}
