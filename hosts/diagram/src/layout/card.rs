//! The rows of text in a box: name, details, badges, status, and the exits at its sides.

use super::{Anchor, Face, Mark, Shape, Tone};
use crate::icon::Icon;
use crate::status::Status;
use crate::text::{Font, cut, width, wrap};
use starbridge_flow::graph::StepId;

/// The least width of a card.
pub(super) const NARROW: i32 = 150;
/// The greatest width that text asks for. Longer text is cut.
pub(super) const WIDE: i32 = 272;
/// The height of a badge.
pub(crate) const BADGE: i32 = 15;
/// The space between a box's side and its text.
const SIDE: i32 = 10;
/// The space above the first row and below the last.
const EDGE: i32 = 7;
/// The distance from the left of an icon to the text after it.
const ICON: i32 = 20;
/// Lines a state may take.
const STATE: usize = 3;
/// The space between badges.
const GAP: i32 = 4;
/// The space between a badge's border and its text.
const BADGE_SIDE: i32 = 5;

/// A side of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// Where ways that lead back leave and arrive.
    Left,
    /// Where ways that lead on leave and arrive.
    Right,
}

/// A way out of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exit {
    pub(super) target: StepId,
    pub(super) side: Side,
    pub(super) catch: bool,
    pub(super) taken: bool,
}

/// A row of a box.
#[derive(Clone, Debug)]
pub(super) enum Row {
    /// The name of the step.
    Name(Option<Icon>, String),
    /// A text, in at most this many lines.
    Line(Font, String, usize),
    /// Badges, in as many lines as they need.
    Badges(Vec<String>),
    /// The status.
    State(Status, String),
    /// A centred text.
    Note(String),
    /// An exit at a side: its occasion, and where it leads. Without the last part it leads nowhere in this list.
    Exit(String, String, Option<Exit>),
}

/// Rows in their places.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    pub(super) marks: Vec<Mark>,
    pub(super) h: i32,
    /// The exits and their heights.
    pub(super) exits: Vec<(i32, Exit)>,
}

/// The height of the middle of a box's first row. Lines arrive there at its sides.
pub(super) const ARRIVAL: i32 = EDGE + 10;

impl Row {
    fn natural(&self) -> i32 {
        match self {
            Self::Name(icon, text) => width(text, Font::Name) + icon.map_or(0, |_| ICON),
            Self::Line(font, text, _) => width(text, *font),
            Self::Badges(badges) => badges.iter().map(|badge| badge_width(badge) + GAP).sum::<i32>() - GAP,
            Self::State(_, text) => width(text, Font::State) + ICON,
            Self::Exit(when, to, _) => width(when, Font::Small) + width(to, Font::Small),
            Self::Note(text) => width(text, Font::Small),
        }
    }
}

fn badge_width(text: &str) -> i32 {
    width(text, Font::Small) + 2 * BADGE_SIDE
}

/// The width that the rows ask for, within bounds.
pub(super) fn natural(rows: &[Row]) -> i32 {
    let most = rows.iter().map(Row::natural).max().unwrap_or(0);
    most.saturating_add(2 * SIDE).clamp(NARROW, WIDE)
}

/// Puts rows one below the other into a box of this width.
pub(super) fn set(rows: &[Row], w: i32) -> Rows {
    let mut set = Rows {
        h: EDGE,
        ..Rows::default()
    };
    for row in rows {
        set.row(row, w);
    }
    set.h += EDGE;
    set
}

impl Rows {
    fn row(&mut self, row: &Row, w: i32) {
        let room = w - 2 * SIDE;
        match row {
            Row::Name(icon, text) => self.name(*icon, text, room),
            Row::Line(font, text, lines) => {
                for line in wrap(text, *font, room, *lines) {
                    self.text(SIDE, 15, Anchor::Start, *font, Tone::Quiet, line);
                }
            }
            Row::Badges(badges) => self.badges(badges, room),
            Row::State(status, text) => {
                let (x, y) = (SIDE, self.h + 2);
                self.marks.push(Mark::Icon {
                    x,
                    y,
                    icon: Icon::State(*status),
                });
                for (number, line) in wrap(text, Font::State, room - ICON, STATE).into_iter().enumerate() {
                    let h = if number == 0 { 18 } else { 15 };
                    self.text(SIDE + ICON, h, Anchor::Start, Font::State, Tone::State, line);
                }
            }
            Row::Note(text) => {
                let text = cut(text, Font::Small, room);
                self.text(w / 2, 15, Anchor::Middle, Font::Small, Tone::Quiet, text);
            }
            Row::Exit(when, to, exit) => {
                // The target matters more than the occasion.
                let to = cut(to, Font::Small, room * 2 / 3);
                let text = cut(when, Font::Small, room - width(&to, Font::Small)) + &to;
                let (x, anchor) = match exit.map(|exit| exit.side) {
                    Some(Side::Right) => (w - SIDE, Anchor::End),
                    _ => (SIDE, Anchor::Start),
                };
                self.exits.extend(exit.map(|exit| (self.h + 8, exit)));
                self.text(x, 17, anchor, Font::Small, Tone::Quiet, text);
            }
        }
    }

    fn name(&mut self, icon: Option<Icon>, text: &str, room: i32) {
        let indent = if icon.is_some() { ICON } else { 0 };
        if let Some(icon) = icon {
            let (x, y) = (SIDE, self.h + 3);
            self.marks.push(Mark::Icon { x, y, icon });
        }
        for (number, line) in wrap(text, Font::Name, room - indent, 2).into_iter().enumerate() {
            let h = if number == 0 { 20 } else { 16 };
            self.text(SIDE + indent, h, Anchor::Start, Font::Name, Tone::Strong, line);
        }
    }

    fn badges(&mut self, badges: &[String], room: i32) {
        const LINE: i32 = BADGE + 4;
        let mut x = SIDE;
        for badge in badges {
            let text = cut(badge, Font::Small, room - 2 * BADGE_SIDE);
            let w = badge_width(&text);
            if x > SIDE && x + w > SIDE + room {
                x = SIDE;
                self.h += LINE;
            }
            self.marks.push(Mark::Badge {
                x,
                y: self.h + 2,
                w,
                text,
            });
            x += w + GAP;
        }
        self.h += LINE;
    }

    fn text(&mut self, x: i32, h: i32, anchor: Anchor, font: Font, tone: Tone, text: String) {
        let y = self.h + h / 2;
        self.marks.push(Mark::Text {
            x,
            y,
            anchor,
            font,
            tone,
            text,
        });
        self.h += h;
    }
}

impl Face {
    /// An empty box of this shape.
    pub(crate) fn plain(shape: Shape) -> Self {
        Self {
            shape,
            icon: None,
            status: None,
            taken: false,
            marks: Vec::new(),
            tip: Vec::new(),
        }
    }
}
