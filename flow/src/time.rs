//! Points in time, in milliseconds, as histories carry them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// The last moment that can be written, 9999-12-31T23:59:59.999Z: what is read back is what was kept.
    pub const END: Self = Self(253_402_300_799_999);

    /// This many milliseconds later, at most [`Timestamp::END`].
    pub fn plus_millis(self, millis: u64) -> Self {
        let later = self.0.saturating_add(i64::try_from(millis).unwrap_or(i64::MAX));
        Self(later.min(Self::END.0.max(self.0)))
    }

    /// Milliseconds from `earlier` to here, 0 if it is later.
    pub fn millis_since(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// Reads RFC 3339, any offset; parts of a millisecond are rounded up, so that a timer is never early.
    pub fn parse(text: &str) -> Option<Self> {
        let nanos = match text.parse::<jiff::Timestamp>() {
            Ok(parsed) => parsed.as_nanosecond(),
            Err(_) => near_the_end(text)?,
        };
        i64::try_from(nanos.div_euclid(1_000_000) + i128::from(nanos.rem_euclid(1_000_000) != 0))
            .ok()
            .map(Self)
    }
}

/// The last two days of the year 9999, which an instant of that library does not reach: nanoseconds since 1970.
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
        write!(f, "{timestamp:.3}")
    }
}

/// The same for what an instant of that library does not reach; before all years it knows, the first of them.
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
            assert_eq!(now.plus_millis(millis), Timestamp::END);
        }
        assert_eq!(Timestamp(i64::MAX).plus_millis(1), Timestamp(i64::MAX), "never earlier");
        assert_eq!(now.plus_millis(1), Timestamp(now.0 + 1));
    }
}
