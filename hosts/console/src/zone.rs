//! The time zone in which times are shown, and times as people read them.

use crate::read::text;
use crate::texts::{Language, Texts};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Value;
use std::ops::Deref;
use std::sync::OnceLock;

/// A time zone that the program knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// Its place among [`Zone::names`]; without one it is UTC.
    place: Option<usize>,
}

fn database() -> &'static TimeZoneDatabase {
    static KNOWN: OnceLock<TimeZoneDatabase> = OnceLock::new();
    KNOWN.get_or_init(TimeZoneDatabase::bundled)
}

impl Zone {
    /// The names of all zones but UTC, in order.
    pub fn names() -> &'static [String] {
        static NAMES: OnceLock<Vec<String>> = OnceLock::new();
        NAMES.get_or_init(|| {
            let names = database().available().map(|name| name.as_str().to_owned());
            let mut names: Vec<String> = names.filter(|name| name != "UTC").collect();
            names.sort_unstable();
            names
        })
    }

    /// The zone of this name (`Asia/Shanghai`); `None` if there is none.
    pub fn parse(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case("UTC") {
            return Some(Self::default());
        }
        let place = Self::names()
            .iter()
            .position(|known| known.eq_ignore_ascii_case(name))?;
        Some(Self { place: Some(place) })
    }

    /// Its name in the database of time zones, as `Asia/Shanghai`.
    pub fn name(self) -> &'static str {
        let name = self.place.and_then(|place| Self::names().get(place));
        name.map_or("UTC", String::as_str)
    }

    fn rules(self) -> TimeZone {
        let zone = self.place.and_then(|_| database().get(self.name()).ok());
        zone.unwrap_or(TimeZone::UTC)
    }

    /// How its clocks differ from UTC at a time: `UTC+8`, `UTC-3:30`.
    pub(crate) fn offset(self, at: Timestamp) -> String {
        let Ok(at) = jiff::Timestamp::from_millisecond(at.0) else {
            return "UTC".to_owned();
        };
        offset(self.rules().to_offset(at).seconds())
    }

    /// A time by its clocks, and the offset where they show this time twice.
    fn civil(self, at: Timestamp) -> Option<(DateTime, String)> {
        let rules = self.rules();
        let zoned = jiff::Timestamp::from_millisecond(at.0).ok()?.to_zoned(rules.clone());
        let shown = zoned.datetime();
        let twice = matches!(
            rules.to_ambiguous_timestamp(shown).offset(),
            AmbiguousOffset::Fold { .. }
        );
        let more = match twice {
            true => format!(" {}", offset(zoned.offset().seconds())),
            false => String::new(),
        };
        Some((shown, more))
    }

    /// How far its clocks are ahead of UTC at a time, in milliseconds.
    pub(crate) fn ahead(self, at: Timestamp) -> i64 {
        let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
        i64::from(self.rules().to_offset(at).seconds()) * 1_000
    }

    /// A time by its clocks in this form; a dash where the calendar ends.
    pub(crate) fn written(self, at: Timestamp, form: &str) -> String {
        match self.civil(at) {
            Some((time, more)) => format!("{}{more}", time.strftime(form)),
            None => "–".to_owned(),
        }
    }

    /// A whole time by its clocks: `2026-11-23 00:43:06`. [`Zone::read`] takes it.
    pub(crate) fn whole(self, at: Timestamp) -> String {
        match self.civil(at) {
            Some((time, _)) => time.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            None => at.to_string(),
        }
    }

    /// A time by its clocks, as people write it: a date, or a date and a time. Of two that its clocks show alike, the first.
    pub fn read(self, written: &str) -> Option<Timestamp> {
        let time: DateTime = written.trim().parse().ok()?;
        let zoned = self.rules().to_ambiguous_zoned(time).compatible().ok()?;
        Some(Timestamp(zoned.timestamp().as_millisecond()))
    }
}

fn offset(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.unsigned_abs() / 60;
    match (minutes / 60, minutes % 60) {
        (0, 0) => "UTC".to_owned(),
        (hours, 0) => format!("UTC{sign}{hours}"),
        (hours, minutes) => format!("UTC{sign}{hours}:{minutes:02}"),
    }
}

/// Who reads a page: in which language, and by which clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    texts: &'static Texts,
    pub(crate) clocks: Zone,
}

impl Deref for Reader {
    type Target = Texts;

    fn deref(&self) -> &Texts {
        self.texts
    }
}

impl Reader {
    pub(crate) fn new(language: Language, zone: Zone) -> Self {
        Self {
            texts: language.texts(),
            clocks: zone,
        }
    }

    /// A time that a value has at a key, in this form; a dash where there is none.
    fn time(self, value: &Value, key: &str, form: &str) -> String {
        let found = Timestamp::parse(text(value, key));
        found.map_or_else(|| "–".to_owned(), |at| self.clocks.written(at, form))
    }

    /// A time that a value has at a key: `11-23 00:43:06`; a dash where there is none.
    pub(crate) fn moment(self, value: &Value, key: &str) -> String {
        self.time(value, key, "%m-%d %H:%M:%S")
    }

    /// The same to the millisecond: many events come within a second.
    pub(crate) fn exact(self, value: &Value, key: &str) -> String {
        self.time(value, key, "%m-%d %H:%M:%S%.3f")
    }

    /// The hour and minute of a time that a value has at a key; empty where there is none.
    pub(crate) fn clock(self, value: &Value, key: &str) -> String {
        match text(value, key) {
            "" => String::new(),
            _ => self.time(value, key, "%H:%M"),
        }
    }

    /// The hour and its day.
    pub(crate) fn hour(self, value: &Value, key: &str) -> String {
        self.time(value, key, "%m-%d %H")
    }

    /// A sentence of the API, with its times by the clocks of whoever reads it.
    pub(crate) fn retold(self, sentence: &str) -> String {
        let mut told = String::with_capacity(sentence.len());
        let mut rest = sentence;
        while let Some(at) = rest.find(is_digit) {
            let (before, from) = rest.split_at(at);
            told.push_str(before);
            let length = from.find(|letter: char| !is_of_time(letter)).unwrap_or(from.len());
            let (word, after) = from.split_at(length);
            // A sentence can end with a time.
            let time = word.trim_end_matches('.');
            let shown = match time.ends_with('Z') {
                true => Timestamp::parse(time).and_then(|at| self.clocks.civil(at)),
                false => None,
            };
            match shown {
                Some((shown, more)) => {
                    told.push_str(&format!("{}{more}", shown.strftime("%m-%d %H:%M:%S")));
                    told.push_str(word.get(time.len()..).unwrap_or_default());
                }
                None => told.push_str(word),
            }
            rest = after;
        }
        told.push_str(rest);
        told
    }
}

fn is_digit(letter: char) -> bool {
    letter.is_ascii_digit()
}

fn is_of_time(letter: char) -> bool {
    letter.is_ascii_digit() || "-:.TZ".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(zone: &str) -> Reader {
        Reader::new(Language::English, Zone::parse(zone).unwrap())
    }

    fn at(time: &str) -> Value {
        Value::from(
            [("time".into(), Value::from(time.to_owned()))]
                .into_iter()
                .collect::<starbridge_flow::value::Object>(),
        )
    }

    #[test]
    fn times_are_those_of_the_clocks_of_the_zone() {
        let shown = |zone, time| reader(zone).moment(&at(time), "time");
        assert_eq!(shown("UTC", "2026-11-22T16:43:06.310Z"), "11-22 16:43:06");
        assert_eq!(shown("asia/shanghai", "2026-11-22T16:43:06.310Z"), "11-23 00:43:06");
        assert_eq!(shown("America/St_Johns", "2026-11-22T16:43:06.310Z"), "11-22 13:13:06");
        assert_eq!(shown("UTC", "soon"), "–");
        assert_eq!(
            reader("Asia/Kolkata").exact(&at("2026-11-22T16:43:06.310Z"), "time"),
            "11-22 22:13:06.310"
        );
        assert_eq!(
            reader("Asia/Kolkata").clock(&at("2026-11-22T16:43:06.310Z"), "time"),
            "22:13"
        );
        let now = Timestamp::parse("2026-11-22T16:43:06Z").unwrap();
        for (zone, offset) in [
            ("UTC", "UTC"),
            ("Asia/Shanghai", "UTC+8"),
            ("America/St_Johns", "UTC-3:30"),
        ] {
            assert_eq!(reader(zone).clocks.offset(now), offset);
        }
        assert_eq!(Zone::parse("Mars/Olympus"), None);
    }

    #[test]
    fn an_hour_that_the_clocks_show_twice_says_which() {
        let shown = |time| reader("Europe/Berlin").moment(&at(time), "time");
        // The clocks go back from 3:00 to 2:00.
        assert_eq!(shown("2026-10-24T23:59:59Z"), "10-25 01:59:59");
        assert_eq!(shown("2026-10-25T00:30:00Z"), "10-25 02:30:00 UTC+2");
        assert_eq!(shown("2026-10-25T01:30:00Z"), "10-25 02:30:00 UTC+1");
        assert_eq!(shown("2026-10-25T02:00:00Z"), "10-25 03:00:00");
    }

    #[test]
    fn what_is_written_by_the_clocks_of_the_zone_is_read_so() {
        let read = |zone, written| Zone::parse(zone).unwrap().read(written).map(|time| time.to_string());
        let shanghai = "2026-11-22T16:43:06.000Z";
        assert_eq!(read("Asia/Shanghai", "2026-11-23 00:43:06").as_deref(), Some(shanghai));
        assert_eq!(read("Asia/Shanghai", " 2026-11-23T00:43:06").as_deref(), Some(shanghai));
        assert_eq!(
            read("Asia/Shanghai", "2026-11-23").as_deref(),
            Some("2026-11-22T16:00:00.000Z")
        );
        assert_eq!(read("Asia/Shanghai", "yesterday"), None);
        let zone = Zone::parse("Asia/Shanghai").unwrap();
        assert_eq!(zone.whole(Timestamp::parse(shanghai).unwrap()), "2026-11-23 00:43:06");
    }

    #[test]
    fn sentence_has_the_times_of_the_zone_and_is_else_as_it_was() {
        let told = reader("Asia/Shanghai")
            .retold("`t-2026-1` waits; it goes on at 2026-11-27T19:48:01.541Z. 3 of 4 at 10:00Z");
        assert_eq!(told, "`t-2026-1` waits; it goes on at 11-28 03:48:01. 3 of 4 at 10:00Z");
    }
}
