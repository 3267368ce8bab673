//! The instants that a cron expression means, in its time zone (`CRON_TZ=`), with daylight saving.

use super::field::Field;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Timestamp, ToSpan};

/// A cron expression in a time zone.
#[derive(Clone, Debug)]
pub(super) struct Cron {
    pub(super) second: Field,
    pub(super) minute: Field,
    pub(super) hour: Field,
    pub(super) day: Field,
    pub(super) month: Field,
    pub(super) weekday: Field,
    pub(super) zone: TimeZone,
}

impl Cron {
    /// Whether it means any day at all. It means none only if none of its months has any of its
    /// days of the month.
    pub(super) fn is_possible(&self) -> bool {
        const MONTH_DAYS: [u32; 13] = [0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let least = self.day.values.trailing_zeros();
        let fits = (0..)
            .zip(MONTH_DAYS)
            .any(|(month, days)| has(self.month, month) && least <= days);
        fits || self.either_day()
    }

    /// The first instant after another one, both in seconds since 1970.
    pub(super) fn next_after(&self, second: i64) -> Option<i64> {
        if self.repeats() {
            self.next_in_real_time(second)
        } else {
            self.next_by_the_clock(second)
        }
    }

    /// Whether it means a rhythm rather than times of day.
    fn repeats(&self) -> bool {
        self.second.star || self.minute.star || self.hour.star
    }

    /// Each local time leads to one instant: a time that happens twice leads to the first, a
    /// skipped one to the first instant after the gap. So later local times never lead to earlier
    /// instants, and the first local time whose instant is late enough is the answer.
    fn next_by_the_clock(&self, second: i64) -> Option<i64> {
        let after = Timestamp::from_second(second).ok()?;
        let mut from = self.zone.to_datetime(after);
        loop {
            let time = self.next_time(from)?;
            let instant = self.instant(time)?;
            if instant > after {
                return Some(instant.as_second());
            }
            from = time.checked_add(1.second()).ok()?;
        }
    }

    fn instant(&self, time: DateTime) -> Option<Timestamp> {
        match self.zone.to_ambiguous_timestamp(time).offset() {
            AmbiguousOffset::Unambiguous { offset } | AmbiguousOffset::Fold { before: offset, .. } => {
                offset.to_timestamp(time).ok()
            }
            AmbiguousOffset::Gap { after, .. } => {
                // With the offset after the gap it would have been before the gap.
                let before = after.to_timestamp(time).ok()?;
                let mut changes = self.zone.following(before);
                changes
                    .find(|change| change.offset() == after)
                    .map(|change| change.timestamp())
            }
        }
    }

    /// The first second after another whose local time the expression means, even if that local
    /// time already occurred.
    fn next_in_real_time(&self, second: i64) -> Option<i64> {
        let mut from = Timestamp::from_second(second.checked_add(1)?).ok()?;
        loop {
            let offset = self.zone.to_offset(from);
            let time = self.next_time(offset.to_datetime(from))?;
            let instant = offset.to_timestamp(time).ok()?;
            match self.zone.following(from).next() {
                Some(change) if change.timestamp() <= instant => from = change.timestamp(),
                _ => return Some(instant.as_second()),
            }
        }
    }

    /// The first local time at `from` or later, on a clock that is never changed; `None` after the year 9999.
    fn next_time(&self, from: DateTime) -> Option<DateTime> {
        let mut date = from.date();
        let mut time = (
            u32::try_from(from.hour()).ok()?,
            u32::try_from(from.minute()).ok()?,
            u32::try_from(from.second()).ok()?,
        );
        loop {
            if !has(self.month, u32::try_from(date.month()).ok()?) {
                date = date.last_of_month().tomorrow().ok()?;
            } else if let Some((hour, minute, second)) = self.is_day(date).then(|| self.time_of_day(time)).flatten() {
                let part = |value: u32| i8::try_from(value).ok();
                return Some(date.at(part(hour)?, part(minute)?, part(second)?, 0));
            } else {
                date = date.tomorrow().ok()?;
            }
            time = (0, 0, 0);
        }
    }

    /// Whether the expression means a day of one of its months. As in every cron, days of the month
    /// and days of the week are alternatives if both are restricted.
    fn is_day(&self, date: Date) -> bool {
        let day = u32::try_from(date.day()).is_ok_and(|day| has(self.day, day));
        let weekday = u32::try_from(date.weekday().to_sunday_zero_offset()).is_ok_and(|day| has(self.weekday, day));
        if self.either_day() {
            day || weekday
        } else {
            day && weekday
        }
    }

    fn either_day(&self) -> bool {
        !self.day.star && !self.weekday.star
    }

    /// The first time of day at or after another.
    fn time_of_day(&self, (hour, minute, second): (u32, u32, u32)) -> Option<(u32, u32, u32)> {
        if has(self.hour, hour) {
            if has(self.minute, minute)
                && let Some(second) = next(self.second, second)
            {
                return Some((hour, minute, second));
            }
            if let Some(minute) = next(self.minute, minute + 1) {
                return Some((hour, minute, next(self.second, 0)?));
            }
        }
        Some((next(self.hour, hour + 1)?, next(self.minute, 0)?, next(self.second, 0)?))
    }
}

fn has(field: Field, value: u32) -> bool {
    field.values.checked_shr(value).is_some_and(|values| values & 1 == 1)
}

/// The least value of a field that is at least `least`.
fn next(field: Field, least: u32) -> Option<u32> {
    let above = field.values.checked_shr(least)?;
    (above != 0).then(|| least + above.trailing_zeros())
}
