//! The time line: a lane for each visit. Long stretches in which nothing begins or ends are squeezed, and say how long
//! they are.

use super::parts::path;
use super::view::View;
use crate::read::{duration, is_set, items, number, span, text, time};
use crate::words::{State, state};
use crate::zone::Reader;
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
/// At most so many times stand on the line, and they are so far apart.
const TICKS: i64 = 6;
const APART: i64 = 120;
/// The distances between them, in milliseconds.
const STEPS: [i64; 24] = [
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    30_000,
    60_000,
    300_000,
    600_000,
    1_800_000,
    3_600_000,
    10_800_000,
    21_600_000,
    43_200_000,
    86_400_000,
    604_800_000,
];

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

    /// The times between which the line is even, each with its place. Those of a squeezed stretch stand closer together.
    fn corners(&self) -> Vec<(i64, i64)> {
        let mut corners: Vec<(i64, i64)> = Vec::new();
        let (first, last) = (self.0.first(), self.0.last());
        corners.extend(first.map(|first| (first.x, first.from)));
        for piece in self.0.iter().filter(|piece| piece.squeezed) {
            corners.extend([(piece.x, piece.from), (piece.x + piece.width, piece.to)]);
        }
        corners.extend(last.map(|last| (last.x + last.width, last.to)));
        corners.dedup();
        corners
    }

    /// Times that stand on the line, by clocks that are so far from UTC: some five, at even distances where nothing is squeezed.
    fn ticks(&self, ahead: i64) -> (i64, Vec<(i64, i64)>) {
        let whole: i64 = self
            .0
            .iter()
            .filter(|piece| !piece.squeezed)
            .map(|piece| piece.to - piece.from)
            .sum();
        let every = STEPS
            .into_iter()
            .find(|step| whole / step <= TICKS)
            .unwrap_or(whole / TICKS + 1);
        let mut ticks: Vec<(i64, i64)> = Vec::new();
        let corners = self.corners();
        // What stands on the line has room for its words, and so has the length of a squeezed stretch.
        let mut free = 0;
        for (one, next) in corners.iter().zip(corners.iter().skip(1)) {
            let stretch = (one.1, next.1);
            let is_squeezed = |piece: &Piece| piece.squeezed && (piece.from, piece.to) == stretch;
            if self.0.iter().any(is_squeezed) {
                free = one.0 + APART;
                continue;
            }
            let first = (one.1 + ahead + every - 1).div_euclid(every);
            let times = (first..).map(|number| number * every - ahead);
            for time in times.take_while(|time| *time <= next.1) {
                let x = self.x(Timestamp(time));
                if (free..=next.0 - APART).contains(&x) {
                    ticks.push((x, time));
                    free = x + APART;
                }
            }
        }
        (every, ticks)
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
    /// Times on the line: where each stands, in hundredths of its width, and what it says.
    pub(super) ticks: Vec<(String, String)>,
    /// The lines under them.
    pub(super) grid: String,
    /// Where times stand, for a script with which a stretch is chosen: `place:time`, with spaces between.
    pub(super) corners: String,
    /// The way back to all of it, where a part is shown.
    pub(super) whole: Option<String>,
    /// What the bars mean, of those that are there.
    pub(super) legend: Vec<(&'static str, &'static str)>,
}

/// What bars mean.
fn legend(lanes: &[Lane], t: Reader) -> Vec<(&'static str, &'static str)> {
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
    pub(super) fn of(line: &Value, view: &View<'_>, now: Timestamp, t: Reader) -> Self {
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
        // Of a stretch, what was before and after is not on the line.
        let within = |at: i64| {
            let after = view.from.map_or(at, |from| at.max(from.0));
            view.to.map_or(after, |to| after.min(to.0))
        };
        times.iter_mut().for_each(|at| *at = within(*at));
        times.extend(
            view.from
                .or(view.to)
                .into_iter()
                .flat_map(|_| [view.from, view.to])
                .flatten()
                .map(|at| at.0),
        );
        let scale = Scale::of(times);
        let whole = (time(line, "from").unwrap_or(now), now);
        let (every, ticks) = scale.ticks(t.clocks.ahead(whole.0));
        let form = if every < 1_000 {
            "%H:%M:%S%.3f"
        } else if every < 60_000 {
            "%H:%M:%S"
        } else if every < 86_400_000 {
            "%m-%d %H:%M"
        } else {
            "%m-%d"
        };
        let part = |(x, at): &(i64, i64)| (format!("{}.{}", x / 10, x % 10), t.clocks.written(Timestamp(*at), form));
        let corners = scale.corners().into_iter().map(|(x, at)| format!("{x}:{at}"));
        let lanes: Vec<Lane> = lanes
            .iter()
            .map(|lane| Lane::of(lane, view, &scale, whole, t))
            .collect();
        Self {
            ticks: ticks.iter().map(part).collect(),
            grid: ticks.iter().map(|(x, _)| format!("M{x} 0V16")).collect(),
            corners: corners.collect::<Vec<_>>().join(" "),
            whole: view.from.or(view.to).map(|_| view.within(None, None)),
            legend: legend(&lanes, t),
            lanes,
            squeezed: scale.squeezed(),
            more: crate::read::next(line),
        }
    }
}

impl Lane {
    fn of(lane: &Value, view: &View<'_>, scale: &Scale, whole: (Timestamp, Timestamp), t: Reader) -> Self {
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
fn of_span(part: &Value, scale: &Scale, now: Timestamp, t: Reader) -> Vec<Bar> {
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
        // Between these the line is even, so a place on it is a time.
        let corners = scale.corners();
        assert_eq!(corners.len(), 4, "{corners:?}");
        assert_eq!((corners[0], corners[3]), ((0, 0), (WIDTH, 800 + hours)));
        assert_eq!((corners[1].1, corners[2].1), (300, 300 + hours));
        assert_eq!(corners[2].0 - corners[1].0, SQUEEZED);
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
    fn times_on_the_line_are_round_by_the_clocks_of_the_reader() {
        let scale = Scale::of(vec![1_300, 11_700]);
        let (every, ticks) = scale.ticks(0);
        assert_eq!(every, 2_000);
        let times: Vec<i64> = ticks.iter().map(|(_, time)| *time).collect();
        assert_eq!(times, [2_000, 4_000, 6_000, 8_000, 10_000]);
        assert_eq!(ticks[0].0, 67);
        // A day begins when the clocks say so.
        let day = 86_400_000;
        let (every, ticks) = Scale::of(vec![0, 4 * day]).ticks(8 * 3_600_000);
        assert_eq!((every, ticks[0].1), (day, day - 8 * 3_600_000));
    }

    #[test]
    fn nothing_on_the_line_is_no_fault() {
        let scale = Scale::of(Vec::new());
        assert_eq!(scale.x(Timestamp(7)), 0);
        assert_eq!(Scale::of(vec![5]).x(Timestamp(5)), 0);
    }
}
