//! The text of a schedule: cron with or without seconds and time zone, or `@every`.

use super::cron::Cron;
use super::field::{self, Unit};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use starbridge_flow::time::Timestamp;
use std::ops::Range;

/// The largest length of an expression, in bytes.
const MAX_EXPRESSION_BYTES: usize = 512;
/// Names for expressions, without their `@`.
const NICKNAMES: [(&str, &str); 7] = [
    ("hourly", "0 * * * *"),
    ("daily", "0 0 * * *"),
    ("midnight", "0 0 * * *"),
    ("weekly", "0 0 * * 0"),
    ("monthly", "0 0 1 * *"),
    ("yearly", "0 0 1 1 *"),
    ("annually", "0 0 1 1 *"),
];

/// When a schedule triggers.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    when: When,
}

#[derive(Clone, Debug)]
enum When {
    Cron(Box<Cron>),
    /// At all multiples of this many seconds since 1970.
    Every(i64),
}

/// Why a text is not an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronError {
    /// What is wrong.
    pub message: String,
    /// What to do about it; empty if there is no advice.
    pub help: String,
    /// The bytes of the text that the error is about.
    pub place: Range<usize>,
}

impl std::fmt::Display for CronError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (at character {})", self.message, self.place.start + 1)?;
        if self.help.is_empty() {
            return Ok(());
        }
        write!(f, "; {}", self.help)
    }
}

impl std::error::Error for CronError {}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl std::fmt::Display for Expression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// [`CronError`] says what is wrong, where, and what to do.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        if text.len() > MAX_EXPRESSION_BYTES {
            let message = format!(
                "the expression has {} bytes, more than the {MAX_EXPRESSION_BYTES} allowed",
                text.len()
            );
            return Err(error(0..text.len(), message, ""));
        }
        let (zone, start) = zoned(text)?;
        let rest = text.get(start..).unwrap_or_default().trim_end();
        let when = match rest.strip_prefix('@') {
            Some(word) => nicknamed(word, zone, start)?,
            None => cron(rest, zone, start)?,
        };
        Ok(Self {
            text: text.trim().to_owned(),
            when,
        })
    }

    /// The text of the expression.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The first instant after another one that the expression means, in whole seconds; `None` after the year 9999.
    pub fn next_after(&self, time: Timestamp) -> Option<Timestamp> {
        let second = time.0.div_euclid(1000);
        let next = match &self.when {
            When::Cron(cron) => cron.next_after(second)?,
            When::Every(seconds) => second.div_euclid(*seconds).checked_add(1)?.checked_mul(*seconds)?,
        };
        next.checked_mul(1000).map(Timestamp)
    }

    /// An instant by the clocks of the expression's zone (RFC 9557); `None` where it has none, or has no such time.
    pub fn by_its_clocks(&self, time: Timestamp) -> Option<String> {
        let When::Cron(cron) = &self.when else { return None };
        let instant = jiff::Timestamp::from_millisecond(time.0).ok()?;
        Some(instant.to_zoned(cron.zone.clone()).to_string())
    }

    /// The last instant after `after`, up to and including `until`, that the expression means. Takes about forty
    /// steps, however many instants lie between.
    pub fn last_within(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let reached = |from: Timestamp| self.next_after(from).filter(|next| *next <= until);
        let mut found = reached(after)?;
        let (mut low, mut high) = (found.0, until.0);
        // INVARIANT: the expression means `found`, and no instant after `high`.
        while low < high {
            let middle = low + high.saturating_sub(low) / 2;
            match reached(Timestamp(middle)) {
                Some(next) => {
                    found = next;
                    low = next.0;
                }
                None => high = middle,
            }
        }
        Some(found)
    }
}

fn error(place: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> CronError {
    CronError {
        message: message.into(),
        help: help.into(),
        place,
    }
}

/// The time zone at the beginning of a text (UTC if there is none), and the position of the rest.
fn zoned(text: &str) -> Result<(TimeZone, usize), CronError> {
    const PREFIX: &str = "CRON_TZ=";
    let mut words = words(text);
    let Some((at, first)) = words.next() else {
        return Ok((TimeZone::UTC, text.len()));
    };
    let Some(name) = first.strip_prefix(PREFIX) else {
        if first.starts_with("TZ=") {
            return Err(error(
                at..at + first.len(),
                format!("`{first}` is no field"),
                "write `CRON_TZ=`",
            ));
        }
        return Ok((TimeZone::UTC, at));
    };
    let zone = zone(name, at + PREFIX.len())?;
    Ok((zone, words.next().map_or(text.len(), |(at, _)| at)))
}

fn zone(name: &str, start: usize) -> Result<TimeZone, CronError> {
    let place = start..start + name.len();
    if name.is_empty() {
        return Err(error(
            place,
            "a time zone is missing after `CRON_TZ=`",
            "write one like `Europe/Berlin`",
        ));
    }
    let message = || format!("no time zone is called `{name}`");
    let help = "time zones are those of the IANA database, like `Europe/Berlin`";
    // The zones are built in, so that a schedule means the same on every machine.
    TimeZoneDatabase::bundled()
        .get(name)
        .map_err(|_| error(place, message(), help))
}

/// Reads what follows an `@`. `start` is its position.
fn nicknamed(word: &str, zone: TimeZone, start: usize) -> Result<When, CronError> {
    let place = start..start + 1 + word.len();
    if let Some(duration) = word
        .strip_prefix("every")
        .filter(|rest| rest.is_empty() || rest.starts_with(' '))
    {
        let text = duration.trim_start();
        let at = place.end - text.len();
        return every(text, at).map(When::Every);
    }
    match NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
        Some((_, meant)) => cron(meant, zone, start),
        None => {
            let help = "there are `@every 1h30m`, `@hourly`, `@daily`, `@weekly`, `@monthly` and `@yearly`";
            Err(error(place, format!("`@{word}` is not known"), help))
        }
    }
}

/// Reads a duration like `1h30m`, in seconds.
fn every(text: &str, start: usize) -> Result<i64, CronError> {
    const HELP: &str = "write it in hours, minutes and seconds, like `1h30m` or `45s`";
    let place = start..start + text.len();
    let wrong = || error(place.clone(), format!("`{text}` is no duration"), HELP);
    if text.is_empty() {
        return Err(error(place, "a duration is missing after `@every`", HELP));
    }
    let (mut rest, mut sum, mut units) = (text, 0_i64, [('h', 3600), ('m', 60), ('s', 1)].as_slice());
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, after) = rest.split_at_checked(digits).ok_or_else(wrong)?;
        let unit = after.chars().next().ok_or_else(wrong)?;
        let index = units.iter().position(|(known, _)| *known == unit).ok_or_else(wrong)?;
        let (used, left) = units.split_at_checked(index + 1).ok_or_else(wrong)?;
        let seconds = used.last().map_or(1, |(_, seconds)| *seconds);
        let part = number
            .parse::<i64>()
            .ok()
            .and_then(|number| number.checked_mul(seconds));
        sum = part.and_then(|part| sum.checked_add(part)).ok_or_else(wrong)?;
        units = left;
        rest = after.get(unit.len_utf8()..).unwrap_or_default();
    }
    const YEAR_SECONDS: i64 = 365 * 24 * 3600;
    if !(1..=YEAR_SECONDS).contains(&sum) {
        return Err(error(
            place,
            format!("`{text}` is not between a second and 365 days"),
            "",
        ));
    }
    Ok(sum)
}

/// Reads five fields, or six with the seconds first.
fn cron(text: &str, zone: TimeZone, start: usize) -> Result<When, CronError> {
    let fields: Vec<(usize, &str)> = words(text).map(|(at, field)| (start + at, field)).collect();
    let units = match fields.len() {
        5 => Unit::ALL.get(1..).unwrap_or_default(),
        6 => Unit::ALL.as_slice(),
        count => {
            let help =
                "the fields are minute, hour, day of month, month and day of week, with seconds before them if wanted";
            let message = format!("an expression has five fields or six, not {count}");
            return Err(error(start..start + text.len(), message, help));
        }
    };
    let mut found = [field::Field { values: 1, star: false }; 6];
    let places = found.iter_mut().skip(6 - units.len());
    for (((at, text), unit), place) in fields.iter().zip(units).zip(places) {
        *place = field::parse(*unit, text).map_err(|wrong| {
            let begin = at + wrong.start;
            let message = format!("{}: {}", unit.name(), wrong.message);
            error(begin..begin + wrong.len, message, wrong.help)
        })?;
    }
    let [second, minute, hour, day, month, weekday] = found;
    let cron = Cron {
        second,
        minute,
        hour,
        day,
        month,
        weekday,
        zone,
    };
    if !cron.is_possible() {
        let days = fields
            .iter()
            .rev()
            .nth(2)
            .map_or(start..start, |(at, text)| *at..at + text.len());
        let message = "day of month: no month it is for has such a day";
        return Err(error(
            days,
            message,
            "February has at most 29 days; April, June, September and November have 30",
        ));
    }
    Ok(When::Cron(Box::new(cron)))
}

/// The words of a text, each with its position.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut end = 0;
    text.split_whitespace().map(move |word| {
        let start = end + text.get(end..).and_then(|rest| rest.find(word)).unwrap_or(0);
        end = start + word.len();
        (start, word)
    })
}
