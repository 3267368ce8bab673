//! How many executions ended over time, as a row of bars.

use crate::read::{number, path_part, text};
use crate::zone::Reader;
use starbridge_flow::value::Value;

/// The height of the picture, and how far apart its bars are.
const HEIGHT: u64 = 60;
pub(crate) const STEP: usize = 10;

/// A span of time in the picture: where it is, how high its parts are, what they say, and where they lead.
pub(crate) struct Bar {
    pub(crate) x: usize,
    pub(crate) well_top: usize,
    pub(crate) well: usize,
    pub(crate) failed_top: usize,
    pub(crate) failed: usize,
    pub(crate) says: String,
    pub(crate) href: String,
}

/// Some bars that lead to one place.
pub(crate) struct Group {
    pub(crate) x: usize,
    pub(crate) width: usize,
    pub(crate) says: String,
    pub(crate) href: String,
    pub(crate) bars: Vec<Bar>,
}

/// A number that leads to what it counts.
pub(crate) struct Figure {
    pub(crate) class: &'static str,
    pub(crate) sign: &'static str,
    pub(crate) count: String,
    pub(crate) word: &'static str,
    pub(crate) href: String,
}

fn of(span: &Value, key: &str) -> u64 {
    number(span, key).unwrap_or_default()
}

/// A line over all spans: where it goes, how it looks, what it is, and how many there were.
pub(crate) struct Line {
    pub(crate) class: &'static str,
    pub(crate) path: String,
    pub(crate) word: &'static str,
}

/// What began, what ended and what failed, as lines, and the most of all.
pub(crate) fn lines(spans: &[Value], t: Reader) -> (Vec<Line>, u64) {
    let kinds = [
        ("l-ended", "ended", t.ended),
        ("l-started", "started", t.started),
        ("l-failed", "failed", t.failed),
    ];
    let counts = spans.iter().flat_map(|span| kinds.map(|(_, key, _)| of(span, key)));
    let most = counts.max().unwrap_or_default();
    let line = |(class, key, word): (&'static str, &str, &'static str)| Line {
        class,
        path: line_of(spans.iter().map(|span| of(span, key)), most),
        word,
    };
    (kinds.map(line).into(), most)
}

/// A line through these counts. Where there is nothing for long, there is no line.
fn line_of(counts: impl Iterator<Item = u64>, most: u64) -> String {
    let counts: Vec<u64> = counts.collect();
    let is_some = |at: Option<usize>| at.and_then(|at| counts.get(at)).is_some_and(|count| *count > 0);
    let (mut path, mut goes_on) = (String::new(), false);
    for (at, count) in counts.iter().enumerate() {
        let is_near = *count > 0 || is_some(at.checked_sub(1)) || is_some(Some(at + 1));
        if is_near {
            let high = count.saturating_mul(HEIGHT) / most.max(1);
            let sign = if goes_on { 'L' } else { 'M' };
            path.push_str(&format!("{sign}{} {}", at * STEP + STEP / 2, HEIGHT - high.min(HEIGHT)));
        }
        goes_on = is_near;
    }
    path
}

/// The most that ended in one of the spans.
pub(crate) fn most(spans: &[Value]) -> u64 {
    spans.iter().map(|span| of(span, "ended")).max().unwrap_or_default()
}

fn to_size(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn says(time: &str, spans: &[Value], t: Reader) -> String {
    let sum = |key: &str| spans.iter().map(|span| of(span, key)).sum::<u64>();
    format!(
        "{time}: {} {}, {} {}, {} {}",
        t.started,
        sum("started"),
        t.ended,
        sum("ended"),
        t.failed,
        sum("failed")
    )
}

/// What asks for executions that ended in a span of time.
fn ended_within(begin: &str, end: &str) -> String {
    match end.is_empty() {
        true => format!("endedFrom={}", path_part(begin)),
        false => format!("endedFrom={}&endedTo={}", path_part(begin), path_part(end)),
    }
}

/// A bar for each span. Where something ended, it leads to the list of that.
pub(crate) fn bars(spans: &[Value], t: Reader) -> Vec<Bar> {
    let most = most(spans);
    // What is there can be seen, however little it is beside the rest.
    let high = |count: u64| match count {
        0 => 0,
        count => (count.saturating_mul(HEIGHT) / most.max(1)).clamp(2, HEIGHT),
    };
    let bar = |(at, span): (usize, &Value)| {
        let (ended, failed) = (of(span, "ended"), of(span, "failed"));
        let (all, failed_high) = (high(ended), high(failed.min(ended)));
        let end = spans.get(at + 1).map(|next| text(next, "time")).unwrap_or_default();
        Bar {
            x: at * STEP,
            well_top: to_size(HEIGHT - all),
            well: to_size(all - failed_high.min(all)),
            failed_top: to_size(HEIGHT - failed_high),
            failed: to_size(failed_high),
            says: says(&t.clock(span, "time"), std::slice::from_ref(span), t),
            href: match ended {
                0 => String::new(),
                _ => format!("/executions?{}", ended_within(text(span, "time"), end)),
            },
        }
    };
    spans.iter().enumerate().map(bar).collect()
}

/// The bars of each hour. Each hour in which something ended leads to the list of that, within what is listed already: `within`
/// is an address that ends in `?` or `&`.
pub(crate) fn hours(spans: &[Value], within: &str, t: Reader) -> Vec<Group> {
    let hour = |span: &Value| t.hour(span, "time");
    let mut rest = bars(spans, t);
    let mut groups = Vec::new();
    let mut begin = 0;
    for spans_of in spans.chunk_by(|one, next| hour(one) == hour(next)) {
        let after = rest.split_off(spans_of.len().min(rest.len()));
        let end = begin + spans_of.len();
        let from = spans_of.first().map(|span| text(span, "time")).unwrap_or_default();
        let to = spans.get(end).map(|next| text(next, "time")).unwrap_or_default();
        let time = spans_of.first().map(|span| t.clock(span, "time")).unwrap_or_default();
        groups.push(Group {
            x: begin * STEP,
            width: spans_of.len() * STEP,
            says: says(&time, spans_of, t),
            href: match spans_of.iter().any(|span| of(span, "ended") > 0) {
                true => format!("{within}{}", ended_within(from, to)),
                false => String::new(),
            },
            bars: std::mem::replace(&mut rest, after),
        });
        begin = end;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts::Language;
    use crate::zone::Zone;

    #[test]
    fn line_is_drawn_where_something_is_and_beside_it() {
        assert_eq!(
            line_of([0, 0, 6, 0, 0, 0, 3].into_iter(), 6),
            "M15 60L25 0L35 60M55 60L65 30"
        );
        assert_eq!(line_of([0, 0].into_iter(), 0), "");
    }

    #[test]
    fn each_hour_leads_to_what_ended_in_it() {
        let span = |time: &str, ended: u64| {
            let json = format!(r#"{{"time": "2026-11-22T{time}:00Z", "started": 1, "ended": {ended}, "failed": 1}}"#);
            Value::read_bounded(json.as_bytes(), 1 << 16).unwrap()
        };
        let spans = [span("22:30", 8), span("22:45", 0), span("23:00", 0), span("23:15", 2)];
        let hours = hours(
            &spans,
            "/executions?flow=a&",
            Reader::new(Language::English, Zone::default()),
        );
        let shown: Vec<_> = hours.iter().map(|hour| (hour.x, hour.width, hour.bars.len())).collect();
        assert_eq!(shown, [(0, 20, 2), (20, 20, 2)]);
        assert_eq!(
            hours[0].href,
            "/executions?flow=a&endedFrom=2026-11-22T22%3A30%3A00Z&endedTo=2026-11-22T23%3A00%3A00Z"
        );
        assert_eq!(hours[1].href, "/executions?flow=a&endedFrom=2026-11-22T23%3A00%3A00Z");
        assert_eq!(hours[1].says, "23:00: Started 2, Ended 2, Failed 2");
        let heights: Vec<_> = hours
            .iter()
            .flat_map(|hour| &hour.bars)
            .map(|bar| (bar.well, bar.failed))
            .collect();
        assert_eq!(heights, [(53, 7), (0, 0), (0, 0), (8, 7)]);
    }
}
