//! The legend, with only what occurs in the picture.

use super::Drawing;
use super::{Anchor, FlowStatus, Font, Layout, Line, LineKind, Tone, small, style};
use crate::icon::Icon;
use crate::layout::{Face, Shape};
use crate::status::Status;
use crate::words::Words;
use std::fmt::Write;

/// The height of a row.
const ROW: i32 = 22;
/// The width of a sample of a line or box.
const SAMPLE: i32 = 24;
/// The space between a sample and its text, and between entries.
const GAP: (i32, i32) = (7, 18);

enum Entry {
    State(Status, String),
    Line(LineKind, bool, &'static str),
}

/// The entries in their places.
pub(super) struct Legend {
    entries: Vec<(i32, i32, Entry)>,
    height: i32,
}

impl Entry {
    fn text(&self) -> &str {
        match self {
            Self::State(_, text) => text,
            Self::Line(_, _, text) => text,
        }
    }
}

impl Legend {
    /// The entries for a picture, in rows of this width.
    pub(super) fn new(layout: &Layout, status: Option<&FlowStatus>, words: Words, room: i32) -> Self {
        let states = status.map(FlowStatus::occurring).unwrap_or_default();
        let states = states
            .into_iter()
            .map(|(status, count)| Entry::State(status, format!("{} ({count})", words.say(status.as_str()))));
        let kinds = [
            (LineKind::Goto, "goto"),
            (LineKind::Catch, "caught error"),
            (LineKind::Depends, "depends on"),
        ];
        let occurs = |kind: LineKind| layout.lines.iter().any(|line| line.kind == kind);
        let lines = kinds
            .into_iter()
            .filter(|(kind, _)| occurs(*kind))
            .map(|(kind, text)| Entry::Line(kind, false, words.say(text)));
        let taken = layout.lines.iter().any(|line| line.taken).then_some(Entry::Line(
            LineKind::Next,
            true,
            words.say("way taken"),
        ));
        let (mut x, mut y) = (0, 0);
        let mut entries = Vec::new();
        for entry in states.chain(lines).chain(taken) {
            let w = SAMPLE + GAP.0 + small(entry.text());
            if x > 0 && x + w > room {
                x = 0;
                y += ROW;
            }
            entries.push((x, y, entry));
            x += w + GAP.1;
        }
        let height = if entries.is_empty() { 0 } else { y + ROW };
        Self {
            entries,
            height: height + 8,
        }
    }

    pub(super) fn height(&self) -> i32 {
        self.height
    }

    pub(super) fn draw(&self, drawing: &mut Drawing<'_>, (x, y): (i32, i32)) {
        for (dx, dy, entry) in &self.entries {
            let (x, y) = (x + dx, y + dy + ROW / 2 - 2);
            match entry {
                Entry::State(status, _) => {
                    let face = Face {
                        status: Some(*status),
                        ..Face::plain(Shape::Card)
                    };
                    let class = style::face(&face);
                    let _ = write!(drawing.out, "<g class=\"{class}\">");
                    drawing.rect((x, y - 8, SAMPLE, 16), 3);
                    drawing.icon((x + 5, y - 7), Icon::State(*status));
                    drawing.out.push_str("</g>");
                }
                Entry::Line(kind, taken, _) => drawing.line(&Line {
                    points: vec![(x, y), (x + SAMPLE, y)],
                    kind: *kind,
                    taken: *taken,
                    arrow: true,
                }),
            }
            let text = (x + SAMPLE + GAP.0, y);
            drawing.text(text, Anchor::Start, Font::Small, Tone::Quiet, entry.text());
            drawing.out.push('\n');
        }
    }
}
