//! The time line: a lane for each visit. Long stretches in which nothing begins or ends are squeezed, and say how long
//! they are.

use super::parts::path;
use super::view::View;
use crate::read::{duration, is_set, items, number, span, text, time};
use crate::texts::Texts;
use crate::words::{State, state};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Value;

/// The width of a line, and the height of a lane.
const WIDTH: i64 = 1_000;
const HEIGHT: i64 = 16;
/// The shortest bar that can be seen, and the width of what is squeezed.
const SHORTEST: i64 = 3;
const SQUEEZED: i64 = 36;
/// A stretch is squeezed if it is so many times as long as all that is not squeezed, and at least so long.
const TIMES: i64 = 4;
const LEAST: i64 = 1_500;
/// At most so many stretches are squeezed.
const MOST: usize = 6;

/// A stretch of time on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    from: i64,
    to: i64,
    x: i64,
    width: i64,
    squeezed: bool,
}

/// Where a time stands on the line.
struct Scale(Vec<Piece>);

impl Scale {
    /// The scale for what begins and ends at these times.
    fn of(mut times: Vec<i64>) -> Self {
        times.sort_unstable();
        times.dedup();
        let mut pieces: Vec<Piece> = times
            .iter()
            .zip(times.iter().skip(1))
            .map(|(&from, &to)| Piece {
                from,
                to,
                x: 0,
                width: 0,
                squeezed: false,
            })
            .collect();
        let length = |piece: &Piece| piece.to - piece.from;
        for _ in 0..MOST {
            let whole: i64 = pieces.iter().filter(|piece| !piece.squeezed).map(length).sum();
            let longest = pieces
                .iter_mut()
                .filter(|piece| !piece.squeezed)
                .max_by_key(|piece| length(piece));
            let Some(longest) = longest else { break };
            let own = length(longest);
            if own < LEAST || own < (whole - own).saturating_mul(TIMES) || whole == own {
                break;
            }
            longest.squeezed = true;
        }
        let squeezed = pieces.iter().filter(|piece| piece.squeezed).count();
        let room = WIDTH - SQUEEZED * i64::try_from(squeezed).unwrap_or(0);
        let whole: i64 = pieces.iter().filter(|piece| !piece.squeezed).map(length).sum();
        let (mut x, mut passed) = (0, 0);
        for piece in &mut pieces {
            piece.x = x;
            if piece.squeezed {
                x += SQUEEZED;
            } else {
                // From the sum, so that rounding does not add up.
                let before = room.saturating_mul(passed) / whole.max(1);
                passed += piece.to - piece.from;
                x += room.saturating_mul(passed) / whole.max(1) - before;
            }
            piece.width = x - piece.x;
        }
        Self(pieces)
    }

    fn x(&self, at: Timestamp) -> i64 {
        let after = self.0.partition_point(|piece| piece.to < at.0);
        let Some(piece) = self.0.get(after) else {
            return self.0.last().map_or(0, |last| last.x + last.width);
        };
        let into = (at.0 - piece.from).clamp(0, piece.to - piece.from);
        piece.x + piece.width.saturating_mul(into) / (piece.to - piece.from).max(1)
    }

    /// The stretches that are squeezed: where, and how long they are.
    fn squeezed(&self) -> Vec<(i64, i64, String)> {
        let squeezed = self.0.iter().filter(|piece| piece.squeezed);
        squeezed
            .map(|piece| {
                (
                    piece.x,
                    piece.width,
                    duration(Timestamp(piece.to).since(Timestamp(piece.from))),
                )
            })
            .collect()
    }
}

/// A bar in a lane.
pub(super) struct Bar {
    pub(super) class: &'static str,
    pub(super) x: i64,
    pub(super) y: i64,
    pub(super) width: i64,
    pub(super) height: i64,
    /// What it is, for whoever points at it.
    pub(super) says: String,
}

/// A visit on the line.
pub(super) struct Lane {
    pub(super) event: u64,
    pub(super) href: String,
    pub(super) chosen: bool,
    pub(super) step: String,
    pub(super) path: String,
    pub(super) depth: usize,
    pub(super) state: State,
    pub(super) note: String,
    pub(super) took: String,
    pub(super) bars: Vec<Bar>,
}

/// The time line.
pub(super) struct Timeline {
    pub(super) lanes: Vec<Lane>,
    pub(super) squeezed: Vec<(i64, i64, String)>,
    pub(super) more: Option<String>,
    /// What the bars mean, of those that are there.
    pub(super) legend: Vec<(&'static str, &'static str)>,
}

/// What bars mean.
fn legend(lanes: &[Lane], t: &'static Texts) -> Vec<(&'static str, &'static str)> {
    let all = [
        ("b-ok", t.succeeded),
        ("b-run", t.running),
        ("b-fail", t.failed),
        ("b-caught", t.caught),
        ("b-idle", t.retrying),
        ("b-wait", t.waiting),
        ("b-queue", t.in_queue),
        ("b-man", t.manual),
        ("b-undo", t.rolled_back),
        ("b-stop", t.cancelled),
    ];
    let is_there = |class: &str| lanes.iter().flat_map(|lane| &lane.bars).any(|bar| bar.class == class);
    all.into_iter().filter(|(class, _)| is_there(class)).collect()
}

impl Timeline {
    pub(super) fn of(line: &Value, view: &View<'_>, now: Timestamp, t: &'static Texts) -> Self {
        let lanes = items(line, "items");
        let now = time(line, "to").unwrap_or(now);
        let mut times = vec![now.0];
        for lane in lanes {
            times.extend(time(lane, "enteredTime").map(|at| at.0));
            times.extend(time(lane, "endedTime").map(|at| at.0));
            for part in items(lane, "spans") {
                let keys = ["startedTime", "heldTime", "endedTime"].into_iter();
                times.extend(keys.filter_map(|key| time(part, key)).map(|at| at.0));
            }
        }
        if lanes.is_empty() {
            times.clear();
        }
        let scale = Scale::of(times);
        let whole = (time(line, "from").unwrap_or(now), now);
        let lanes: Vec<Lane> = lanes
            .iter()
            .map(|lane| Lane::of(lane, view, &scale, whole, t))
            .collect();
        Self {
            legend: legend(&lanes, t),
            lanes,
            squeezed: scale.squeezed(),
            more: crate::read::next(line),
        }
    }
}

impl Lane {
    fn of(lane: &Value, view: &View<'_>, scale: &Scale, whole: (Timestamp, Timestamp), t: &'static Texts) -> Self {
        let now = whole.1;
        let begin = time(lane, "enteredTime");
        let end = time(lane, "endedTime").or(Some(now));
        let parts = items(lane, "spans");
        let is_try = |part: &&Value| text(part, "kind") == "attempt" && !is_set(part, "rollback");
        let tries = parts.iter().filter(is_try).count();
        let children = number(lane, "children");
        let shown = state(text(lane, "status"), t);
        let mut bars = Vec::new();
        match (items(lane, "bands"), children, begin) {
            ([], None, _) if !parts.is_empty() => {
                bars.extend(parts.iter().flat_map(|part| of_span(part, scale, now, t)))
            }
            ([], _, Some(begin)) => {
                let says = format!("{}: {}", text(lane, "step"), shown.word);
                bars.push(bar(
                    scale,
                    (begin, end.unwrap_or(begin)),
                    class(shown.class),
                    HEIGHT / 4,
                    says,
                ));
            }
            (bands, _, _) => bars.extend(banded(bands, whole, scale)),
        }
        let event = number(lane, "event").unwrap_or_default();
        Self {
            event,
            href: view.with_visit(event),
            chosen: view.visit == Some(event),
            step: text(lane, "step").to_owned(),
            path: path(lane),
            depth: items(lane, "path").len().min(6),
            state: shown,
            note: match (children, tries) {
                (Some(children), _) => children.to_string(),
                (None, 2..) => format!("{tries} {}", t.attempts_of),
                _ => String::new(),
            },
            took: span(begin, end),
            bars,
        }
    }
}

fn class(state: &str) -> &'static str {
    match state {
        "ok" => "b-ok",
        "run" => "b-run",
        "wait" => "b-wait",
        "man" => "b-man",
        "fail" => "b-fail",
        "caught" => "b-caught",
        "undo" => "b-undo",
        _ => "b-stop",
    }
}

fn bar(scale: &Scale, (from, to): (Timestamp, Timestamp), class: &'static str, height: i64, says: String) -> Bar {
    let x = scale.x(from);
    let width = (scale.x(to) - x).max(SHORTEST);
    Bar {
        class,
        x: x.min(WIDTH - width),
        y: (HEIGHT - height) / 2,
        width,
        height,
        says,
    }
}

/// The bars of an attempt or a pause. The height speaks, too: what failed is tall, what waits is thin.
fn of_span(part: &Value, scale: &Scale, now: Timestamp, t: &'static Texts) -> Vec<Bar> {
    let from = time(part, "startedTime").unwrap_or(now);
    let to = time(part, "endedTime").unwrap_or(now).max(from);
    let took = span(Some(from), Some(to));
    let undone = is_set(part, "rollback");
    let attempt = number(part, "attempt").unwrap_or(1);
    let (class, height, word) = match (text(part, "kind"), text(part, "status")) {
        ("backoff", _) => ("b-idle", 2, t.retrying),
        ("wait", _) => ("b-wait", HEIGHT / 3, t.waiting),
        ("manual", _) => ("b-man", HEIGHT / 3, t.manual),
        (_, "failed") => ("b-fail", HEIGHT, t.failed),
        (_, "cancelled") => ("b-stop", HEIGHT / 2, t.cancelled),
        (_, "open") if undone => ("b-undo", HEIGHT / 2, t.rolling_back),
        (_, "open") => ("b-run", HEIGHT * 2 / 3, t.running),
        _ if undone => ("b-undo", HEIGHT * 2 / 3, t.rolled_back),
        _ => ("b-ok", HEIGHT * 2 / 3, t.succeeded),
    };
    let error = text(part, "error");
    let says = match error {
        "" => format!("{attempt}. {word}, {took}"),
        error => format!("{attempt}. {word}, {took}: {error}"),
    };
    let queued = text(part, "resource").starts_with("queue:");
    let held = time(part, "heldTime").map(|held| held.clamp(from, to));
    match (queued, held) {
        (true, Some(held)) => vec![
            bar(
                scale,
                (from, held),
                "b-queue",
                HEIGHT / 2,
                format!("{}, {}", t.in_queue, span(Some(from), Some(held))),
            ),
            bar(scale, (held, to), class, height, says),
        ],
        (true, None) if class == "b-run" => vec![bar(
            scale,
            (from, to),
            "b-queue",
            HEIGHT / 2,
            format!("{}, {took}", t.in_queue),
        )],
        _ => vec![bar(scale, (from, to), class, height, says)],
    }
}

/// How much went on inside of a composite, and how much of it failed, in equal parts of the whole time.
fn banded(bands: &[Value], (from, to): (Timestamp, Timestamp), scale: &Scale) -> Vec<Bar> {
    let count = |band: &Value, at: usize| {
        let counts = band.as_array();
        let count = counts.and_then(|counts| counts.values().get(at)?.as_number()?.as_i64());
        count.unwrap_or(0)
    };
    let most = bands.iter().map(|band| count(band, 0)).max().unwrap_or(0).max(1);
    let parts = i64::try_from(bands.len().max(1)).unwrap_or(1);
    let begin = |number: i64| Timestamp(from.0 + (to.0 - from.0).max(0).saturating_mul(number) / parts);
    let mut bars = Vec::new();
    for (number, band) in (0_i64..).zip(bands) {
        let (x, end) = (scale.x(begin(number)), scale.x(begin(number + 1)));
        for (class, part) in [("b-ok", count(band, 0)), ("b-fail", count(band, 1))] {
            if part > 0 {
                let height = (HEIGHT.saturating_mul(part) / most).max(1);
                bars.push(Bar {
                    class,
                    x,
                    y: HEIGHT - height,
                    width: (end - x).max(1),
                    height,
                    says: part.to_string(),
                });
            }
        }
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pauses_are_squeezed_and_say_how_long_they_are() {
        let hours = 2 * 3_600_000;
        let scale = Scale::of(vec![0, 300, 300 + hours, 800 + hours]);
        assert_eq!(scale.squeezed().len(), 1);
        assert_eq!(scale.squeezed()[0].2, "2 h 0 min");
        // What is left has the rest of the line.
        assert_eq!((scale.x(Timestamp(0)), scale.x(Timestamp(800 + hours))), (0, WIDTH));
        assert!(scale.x(Timestamp(300)) > WIDTH / 4, "{}", scale.x(Timestamp(300)));
        // One stretch alone, and stretches alike, are shown as they are.
        assert!(Scale::of(vec![0, hours]).squeezed().is_empty());
        assert!(Scale::of(vec![0, hours, 2 * hours]).squeezed().is_empty());
    }

    #[test]
    fn nothing_on_the_line_is_no_fault() {
        let scale = Scale::of(Vec::new());
        assert_eq!(scale.x(Timestamp(7)), 0);
        assert_eq!(Scale::of(vec![5]).x(Timestamp(5)), 0);
    }
}
