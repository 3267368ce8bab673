//! Tables and times, for people to read.

use starbridge_flow::time::{Millis, Timestamp};
use starbridge_node::escaping::escaped;
use std::borrow::Cow;
use std::io::IsTerminal;
use std::time::{SystemTime, UNIX_EPOCH};
use terminal_size::{Width, terminal_size};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text for an empty cell.
pub const NOTHING: &str = "–";

/// The fewest columns of a terminal that a cell is cut to.
const LEAST: usize = 8;

/// Rows below their heads, each column as wide as it must be. On a terminal the last one is cut where the line ends.
pub fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let terminal = std::io::stdout().is_terminal().then(terminal_size).flatten();
    table_within(heads, rows, terminal.map(|(Width(width), _)| width.into()))
}

fn table_within(heads: &[&str], rows: &[Vec<String>], room: Option<usize>) -> String {
    let clean = |cell: &String| escaped(cell).into_owned();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(clean).collect()).collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let head = heads.get(column).map_or(0, |head| head.width());
        cells.map(|cell| cell.width()).max().unwrap_or(0).max(head)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let last = widths.len().saturating_sub(1);
    let before: usize = widths.iter().take(last).map(|width| width + 2).sum();
    let rest = room.map(|room| room.saturating_sub(before).max(LEAST));
    let line = |cells: &[&str]| {
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            match rest.filter(|_| column == last) {
                Some(rest) => line.push_str(&cut(cell, rest)),
                None => line.push_str(cell),
            }
            let space = (width + 2).saturating_sub(cell.width());
            line.extend(std::iter::repeat_n(' ', space));
        }
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    };
    let mut text = bold(&line(heads));
    for row in &rows {
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        text.push_str(&colour(&line(&cells), &cells));
    }
    text
}

/// A text of at most so many columns of a terminal.
fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if text.width() <= columns {
        return text.into();
    }
    let mut taken = 0;
    let fits = |c: &char| {
        taken += c.width().unwrap_or(0);
        // The last one is for the sign that something is missing.
        taken < columns
    };
    let mut short: String = text.chars().take_while(fits).collect();
    short.push('…');
    short.into()
}

/// Names with what they are, one a line.
pub fn listing(entries: &[(&str, String)]) -> String {
    let width = entries.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in entries {
        let value = escaped(value);
        let line = format!("{}{}", bold(&format!("{name:width$}  ")), value);
        text.push_str(&colour(line.trim_end(), &[&value]));
        text.push('\n');
    }
    text
}

fn bold(text: &str) -> String {
    format!("\x1b[1m{text}\x1b[0m")
}

/// A line with the status of an execution or a step in its colour.
fn colour(line: &str, cells: &[&str]) -> String {
    for cell in cells {
        let code = match *cell {
            "Succeeded" | "succeeded" => "32",
            "Failed" | "TimedOut" | "RollbackFailed" | "failed" | "rollbackFailed" => "31",
            "Running" | "running" | "waiting" | "polling" | "retrying" => "36",
            "Manual" | "RollingBack" | "Stopped" | "RolledBack" | "manual" | "cancelled" | "rolledBack" => "33",
            _ => continue,
        };
        return line.replacen(cell, &format!("\x1b[{code}m{cell}\x1b[0m"), 1);
    }
    line.to_owned()
}

/// A time for people: the distance from now on a terminal, otherwise unchanged.
pub fn time(text: Option<&str>) -> String {
    let Some(text) = text else {
        return NOTHING.to_owned();
    };
    match Timestamp::parse(text) {
        Some(time) if std::io::stdout().is_terminal() => distance(time, now()),
        _ => text.to_owned(),
    }
}

/// The time by this machine's clock.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The time of day now, in UTC.
pub fn clock() -> String {
    now().to_string().get(11..19).unwrap_or_default().to_owned()
}

/// The distance of a time from now, in its largest unit.
fn distance(time: Timestamp, now: Timestamp) -> String {
    let (far, ahead) = match time.since(now) {
        Millis::ZERO => (now.since(time), false),
        ahead => (ahead, true),
    };
    let far = distance_words(far);
    if ahead {
        format!("in {far}")
    } else {
        format!("{far} ago")
    }
}

/// A span of time in its largest unit.
pub fn distance_words(span: Millis) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// How long something took, or has taken so far.
pub fn took(from: Option<&str>, to: Option<&str>) -> Option<String> {
    let from = Timestamp::parse(from?)?;
    let to = Timestamp::parse(to?)?;
    Some(to.since(from).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_node::escaping::is_control;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            vec!["é".to_owned(), "x".to_owned()],
            vec!["long".to_owned(), "y".to_owned()],
        ];
        let text = anstream::adapter::strip_str(&table(&["A", "B"], &rows)).to_string();
        assert_eq!(text, "A     B\né     x\nlong  y\n");
    }

    #[test]
    fn column_of_wide_characters_is_as_wide_as_they_are() {
        let rows = [
            vec!["支付".to_owned(), "x".to_owned()],
            vec!["pay".to_owned(), "y".to_owned()],
        ];
        let text = anstream::adapter::strip_str(&table(&["A", "B"], &rows)).to_string();
        assert_eq!(text, "A     B\n支付  x\npay   y\n");
    }

    #[test]
    fn last_column_ends_where_the_terminal_does() {
        let rows = [vec!["a".to_owned(), "支付订单 is over".to_owned()]];
        let within = |room| anstream::adapter::strip_str(&table_within(&["A", "B"], &rows, room)).to_string();
        assert_eq!(within(Some(14)), "A  B\na  支付订单 i…\n");
        assert_eq!(within(Some(13)), "A  B\na  支付订单 …\n");
        assert_eq!(within(Some(12)), "A  B\na  支付订单…\n");
        assert_eq!(within(Some(3)), "A  B\na  支付订…\n");
        assert_eq!(within(None), "A  B\na  支付订单 is over\n");
    }

    #[test]
    fn what_others_wrote_can_not_drive_the_terminal() {
        let bad = "\x1b[2Jgone\nid  flow  Succeeded\u{9b}2J\u{202e}\r";
        for text in [
            table(&["A"], &[vec![bad.to_owned()]]),
            listing(&[("error", bad.to_owned())]),
        ] {
            let lines = text.lines().count();
            let plain = anstream::adapter::strip_str(&text).to_string();
            assert_eq!(lines, plain.lines().count());
            assert!(lines <= 2, "{text:?}");
            assert!(plain.contains("\\u{1b}[2Jgone\\nid"), "{plain:?}");
            assert!(!plain.trim_end().contains(|c| is_control(c) && c != '\n'), "{plain:?}");
        }
    }

    #[test]
    fn times_are_told_in_their_largest_unit() {
        let now = Timestamp(10_000_000_000);
        for (millis, word) in [
            (0, "0 s ago"),
            (-119_000, "119 s ago"),
            (-120_000, "2 min ago"),
            (-7_200_000, "2 h ago"),
            (-200_000_000, "2 days ago"),
            (90_000, "in 90 s"),
        ] {
            assert_eq!(distance(Timestamp(now.0 + millis), now), word);
        }
    }
}
