//! The marks at the slider: where in the history something failed, was tried again or was paused.

use crate::read::{items, number};
use crate::texts::with_noun;
use crate::zone::Reader;
use starbridge_flow::value::Value;

/// The width of the picture. Its height is 10.
const WIDTH: u64 = 1_000;

/// The marks of one kind.
pub(super) struct Mark {
    pub(super) class: &'static str,
    /// A line at each of its events.
    pub(super) path: String,
    /// How many there are.
    pub(super) says: String,
}

impl Mark {
    /// A mark for each kind that there is, in a history with so many events.
    pub(super) fn all(incidents: &Value, end: u64, t: Reader) -> Vec<Self> {
        // Heights and widths differ, so that they are told apart without colours.
        let kinds = [
            ("pauses", "m-pause", 7, t.one_pause, t.pauses),
            ("retries", "m-retry", 4, t.one_retry, t.retries),
            ("failures", "m-fail", 0, t.one_failure, t.failures),
        ];
        let found = kinds.into_iter().filter_map(|(kind, class, top, one, many)| {
            let places = incidents.get(kind)?;
            let count = number(places, "count").filter(|count| *count > 0)?;
            let events = items(places, "events").iter();
            let events = events.filter_map(|event| event.as_number()?.as_u64());
            let lines = events.map(|event| format!("M{} {top}V10", place(event, end)));
            Some(Self {
                class,
                path: lines.collect(),
                says: with_noun(count, one, many),
            })
        });
        found.collect()
    }
}

/// Where the slider stands at an event.
fn place(event: u64, end: u64) -> u64 {
    event.saturating_sub(1).min(end).saturating_mul(WIDTH) / end.saturating_sub(1).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texts::Language;
    use crate::zone::Zone;

    #[test]
    fn each_kind_has_its_line_where_the_slider_stands_at_the_event() {
        let json = br#"{"failures": {"count": 2, "events": [1, 11]}, "retries": {"count": 1, "events": [6]}, "pauses": {"count": 0, "events": []}}"#;
        let incidents = Value::read_bounded(json, 1 << 12).unwrap();
        let t = Reader::new(Language::English, Zone::default());
        let shown: Vec<_> = Mark::all(&incidents, 11, t)
            .into_iter()
            .map(|mark| (mark.class, mark.path, mark.says))
            .collect();
        let expected = [
            ("m-retry", "M500 4V10", "1 retry"),
            ("m-fail", "M0 0V10M1000 0V10", "2 failures"),
        ];
        assert_eq!(
            shown,
            expected.map(|(class, path, says)| (class, path.to_owned(), says.to_owned()))
        );
        assert!(Mark::all(&Value::Null, 11, t).is_empty());
    }
}
