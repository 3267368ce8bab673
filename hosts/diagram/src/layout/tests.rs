//! Properties of every picture: nothing overlaps, nothing is cut off, no line runs through a box.

mod random;

use super::*;
use crate::text::width;
use random::Random;
use starbridge_fdl::check;
use starbridge_flow::diagnostics::Severity;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use std::sync::Arc;

fn flow(seed: u64, steps: usize) -> Arc<Flow> {
    let checked = check(&Source::new("flow.json", Random::flow(seed, steps)), &Limits::default());
    checked.flow.unwrap_or_else(|| {
        let mut found = checked.diagnostics;
        found.retain(|found| found.severity == Severity::Error);
        panic!("seed {seed}: {found:#?}")
    })
}

/// Layouts of many small flows, some of 60 steps and one of 300, each with the seed it was made from.
fn layouts() -> impl Iterator<Item = (String, Layout)> {
    let sizes = (0..300).map(|seed| (seed, 10)).chain((0..40).map(|seed| (seed, 60)));
    sizes.chain([(1, 300)]).map(|(seed, steps)| {
        let flow = flow(seed, steps);
        (
            format!("seed {seed}, {steps} steps"),
            layout(&flow, None, Words::English, false),
        )
    })
}

impl Rect {
    fn right(self) -> i32 {
        self.x + self.w
    }

    fn bottom(self) -> i32 {
        self.y + self.h
    }

    fn holds(self, inner: Self) -> bool {
        self.x <= inner.x && self.y <= inner.y && inner.right() <= self.right() && inner.bottom() <= self.bottom()
    }

    fn overlaps(self, other: Self) -> bool {
        self.x < other.right() && other.x < self.right() && self.y < other.bottom() && other.y < self.bottom()
    }
}

/// The room that a mark of a box takes.
fn room(placed: &Placed, mark: &Mark) -> Rect {
    let (x, y, w, h) = match mark {
        Mark::Text {
            x,
            y,
            anchor,
            font,
            text,
            ..
        } => {
            let w = width(text, *font);
            let left = match anchor {
                Anchor::Start => *x,
                Anchor::Middle => x - w / 2,
                Anchor::End => x - w,
            };
            (left, y - font.size() / 2, w, font.size())
        }
        Mark::Badge { x, y, w, .. } => (*x, *y, *w, BADGE),
        Mark::Icon { x, y, .. } => (*x, *y, 14, 14),
    };
    Rect {
        x: placed.rect.x + x,
        y: placed.rect.y + y,
        w,
        h,
    }
}

#[test]
fn boxes_lie_beside_each_other_or_inside_the_one_around() {
    for (name, layout) in layouts() {
        let whole = Rect {
            x: 0,
            y: 0,
            w: layout.width,
            h: layout.height,
        };
        for (index, placed) in layout.boxes.iter().enumerate() {
            let around = placed.parent.map_or(whole, |parent| layout.boxes[parent].rect);
            assert!(around.holds(placed.rect), "{name}: {:?} leaves {around:?}", placed.rect);
            let siblings = layout.boxes[..index]
                .iter()
                .filter(|other| other.parent == placed.parent);
            for sibling in siblings {
                assert!(
                    !sibling.rect.overlaps(placed.rect),
                    "{name}: {:?} on {:?}",
                    sibling.rect,
                    placed.rect
                );
            }
        }
    }
}

#[test]
fn text_stays_in_its_box_and_off_those_inside() {
    for (name, layout) in layouts() {
        for (index, placed) in layout.boxes.iter().enumerate() {
            let rooms: Vec<Rect> = placed.face.marks.iter().map(|mark| room(placed, mark)).collect();
            let inside: Vec<Rect> = layout
                .boxes
                .iter()
                .filter(|inner| inner.parent == Some(index))
                .map(|inner| inner.rect)
                .collect();
            for (number, mark) in rooms.iter().enumerate() {
                assert!(
                    placed.rect.holds(*mark),
                    "{name}: {:?} of {placed:?}",
                    placed.face.marks[number]
                );
                let others = rooms[..number].iter().chain(&inside);
                for other in others {
                    assert!(!mark.overlaps(*other), "{name}: {mark:?} on {other:?} in {placed:?}");
                }
            }
        }
    }
}

/// A line touches the boxes that it connects and is inside those around it. It may leave a composite in which it
/// begins, and crosses nothing else.
#[test]
fn lines_run_between_boxes() {
    for (name, layout) in layouts() {
        let mut full = vec![false; layout.boxes.len()];
        for parent in layout.boxes.iter().filter_map(|placed| placed.parent) {
            full[parent] = true;
        }
        for line in &layout.lines {
            let begin = point(line.points[0]);
            for stretch in stretches(line) {
                for (placed, full) in layout.boxes.iter().zip(&full) {
                    let around = *full && (placed.rect.holds(stretch) || placed.rect.holds(begin));
                    assert!(
                        around || !crosses(placed.rect, stretch),
                        "{name}: {stretch:?} of {line:?} crosses {:?} {:?}",
                        placed.what,
                        placed.rect
                    );
                }
            }
        }
    }
}

fn point((x, y): (i32, i32)) -> Rect {
    Rect { x, y, w: 0, h: 0 }
}

/// The straight parts of a line; of a slanted part, points close together.
fn stretches(line: &Line) -> Vec<Rect> {
    const STEPS: i32 = 64;
    let between = line.points.windows(2).flat_map(|ends| {
        let ((x1, y1), (x2, y2)) = (ends[0], ends[1]);
        if x1 == x2 || y1 == y2 {
            return vec![Rect {
                x: x1.min(x2),
                y: y1.min(y2),
                w: (x1 - x2).abs(),
                h: (y1 - y2).abs(),
            }];
        }
        assert_eq!(line.kind, LineKind::Depends, "{line:?} is slanted");
        let part = |from: i32, to: i32, step: i32| from + (to - from) * step / STEPS;
        (0..=STEPS)
            .map(|step| point((part(x1, x2, step), part(y1, y2, step))))
            .collect()
    });
    between.collect()
}

/// Whether a straight part without width or height has a point inside a box and not on its border.
fn crosses(rect: Rect, stretch: Rect) -> bool {
    rect.x < stretch.right() && stretch.x < rect.right() && rect.y < stretch.bottom() && stretch.y < rect.bottom()
}

#[test]
fn the_same_flow_gives_the_same_picture() {
    for seed in 0..20 {
        let (one, two) = (flow(seed, 40), flow(seed, 40));
        assert_eq!(
            layout(&one, None, Words::English, false),
            layout(&two, None, Words::English, false)
        );
        assert_eq!(crate::svg(&one, None), crate::svg(&two, None));
    }
}

/// A way that passes only narrow boxes runs close to them, even if the column is wide elsewhere.
#[test]
fn ways_run_close_to_the_boxes_they_pass() {
    let task = |name: &str, rest: &str| {
        format!(r#"{{"type":"task","name":"{name}","resourceArn":"http://127.0.0.1:1/f"{rest}}}"#)
    };
    let branch = |name: &str| format!(r#"{{"steps":[{}]}}"#, task(name, ""));
    let wide = ["p1", "p2", "p3", "p4"].map(branch).join(",");
    let catch = r#","catch":[{"errors":["E"],"goto":"mend"}]"#;
    let text = format!(
        r#"{{"version":"v1","type":"flow","steps":[{{"type":"parallel","name":"wide","branches":[{wide}]}},{},{},{}]}}"#,
        task("ask", catch),
        r#"{"type":"succeed","name":"done"}"#,
        task("mend", ""),
    );
    let checked = check(&Source::new("flow.json", text), &Limits::default());
    let layout = layout(&checked.flow.unwrap(), None, Words::English, false);
    let catch = layout.lines.iter().find(|line| line.kind == LineKind::Catch).unwrap();
    let furthest = catch.points.iter().map(|(x, _)| *x).max().unwrap();
    let card = Rect::right(
        layout
            .boxes
            .iter()
            .find(|placed| placed.rect.y > layout.height / 2)
            .unwrap()
            .rect,
    );
    let widest = layout.boxes.iter().map(|placed| placed.rect.right()).max().unwrap();
    assert!(furthest < card + 30, "{furthest} beside a card that ends at {card}");
    assert!(card + 100 < widest, "{card} and {widest}");
    assert_eq!(layout.width, widest, "the way needs no room beside the widest box");
}
