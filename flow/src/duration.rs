//! Spans of time as people and other languages write them: `5s`, `1h30m`, `PT5M`.

use crate::value::Number;

/// The seconds of such a text; `None` for any other text.
pub fn seconds(text: &str) -> Option<Number> {
    let text = text.trim();
    let seconds = match text.strip_prefix(['P', 'p']) {
        Some(iso) => of_iso(iso),
        None => of_words(text),
    }?;
    let whole = seconds.fract() == 0.0 && (0.0..1e15).contains(&seconds);
    match whole {
        true => Some((seconds as u64).into()),
        false => Number::from_f64(seconds),
    }
}

/// The part after the `P` of an ISO 8601 duration: days and weeks, then, after a `T`, hours,
/// minutes and seconds.
fn of_iso(text: &str) -> Option<f64> {
    let (days, time) = match text.split_once(['T', 't']) {
        Some((days, time)) if !time.is_empty() => (days, time),
        Some(_) => return None,
        None => (text, ""),
    };
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let of_day = |unit: &str| match unit {
        "w" => Some(604_800.0),
        "d" => Some(86_400.0),
        _ => None,
    };
    let of_time = |unit: &str| match unit {
        "h" => Some(3_600.0),
        "m" => Some(60.0),
        "s" => Some(1.0),
        _ => None,
    };
    Some(sum(days, of_day)? + sum(time, of_time)?)
}

fn of_words(text: &str) -> Option<f64> {
    if text.is_empty() {
        return None;
    }
    sum(text, |unit| match unit {
        "ms" => Some(0.001),
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1.0),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60.0),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3_600.0),
        "d" | "day" | "days" => Some(86_400.0),
        "w" | "week" | "weeks" => Some(604_800.0),
        _ => None,
    })
}

/// The sum of numbers, each with a unit; 0 for an empty text.
fn sum(text: &str, unit_of: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let mut rest = text.trim();
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !(letter.is_ascii_digit() || letter == '.'))?;
        let (number, behind) = rest.split_at(digits);
        let number: f64 = number.parse().ok()?;
        let behind = behind.trim_start();
        let end = behind
            .find(|letter: char| !letter.is_ascii_alphabetic())
            .unwrap_or(behind.len());
        let (unit, next) = behind.split_at(end);
        sum += number * unit_of(&unit.to_ascii_lowercase())?;
        rest = next.trim_start();
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_seconds() {
        for (text, expected) in [
            ("5s", "5"),
            ("1h", "3600"),
            ("1h30m", "5400"),
            ("2 minutes", "120"),
            ("500ms", "0.5"),
            ("1.5h", "5400"),
            ("PT5M", "300"),
            ("P1DT2H", "93600"),
            ("P2W", "1209600"),
            ("PT0.5S", "0.5"),
        ] {
            assert_eq!(
                seconds(text).map(|seconds| seconds.to_string()).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        for text in [
            "", "5", "s", "P", "PT", "P5", "5 apples", "h1", "1h,2m", "P1M", "1..5s", "é1s",
        ] {
            assert_eq!(seconds(text).map(|seconds| seconds.to_string()), None, "{text}");
        }
    }
}
