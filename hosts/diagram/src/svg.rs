//! A flow as SVG: one self-contained file for light and dark pages, readable without colour.

mod legend;
mod style;

use super::icon::Icon;
use super::layout::{Anchor, BADGE, Face, Layout, Line, LineKind, Mark, Placed, Rect, Shape, Tone, What, layout};
use super::status::FlowStatus;
use super::text::{Font, clean, cut, width, wrap, xml};
use super::words::Words;
use legend::Legend;
use starbridge_flow::graph::Flow;
use std::fmt::Write;

/// The space around the picture.
const MARGIN: i32 = 20;
/// The least width of the title and the legend.
const NARROW: i32 = 420;
/// The radius of a line's bends.
const BEND: i32 = 5;
/// The length of an arrow's head, and half its width.
const HEAD: (i32, i32) = (8, 4);
/// The height of the title.
const TITLE: i32 = 26;
/// Lines for how the execution ended, and the height of each.
const ENDING: usize = 3;
const ENDING_LINE: i32 = 16;

/// Draws a flow; with a status, also what happened to its steps.
///
/// The same flow and coloring give the same text. Positions are whole pixels; width and height are those of the
/// picture at its natural size.
pub fn svg(flow: &Flow, status: Option<&FlowStatus>) -> String {
    drawn(flow, status, None, Words::English)
}

/// A picture as a part of a page.
#[derive(Clone, Copy, Default)]
pub struct InPage<'a> {
    /// The language of the page.
    pub words: Words,
    /// Where a step leads, by its name; nowhere without it.
    pub link: Option<&'a dyn Fn(&str) -> String>,
    /// The name of the step that is chosen.
    pub chosen: Option<&'a str>,
    /// Whether a step has only its name, its state and its ways. A picture of more than 200 steps is drawn so in any case.
    pub compact: bool,
}

/// A flow with more steps is drawn compactly in a page: with all that is said about them, browsers take half a second.
const COMPACT: usize = 200;

/// Draws a flow as a part of a page: of class `flow`, without a style element, so that the page's style sheet sets its look.
pub fn svg_in_page(flow: &Flow, status: Option<&FlowStatus>, page: &InPage<'_>) -> String {
    drawn(flow, status, Some(page), page.words)
}

fn drawn(flow: &Flow, status: Option<&FlowStatus>, page: Option<&InPage<'_>>, words: Words) -> String {
    let compact = page.is_some_and(|page| page.compact || flow.steps.len() > COMPACT);
    let layout = layout(flow, status, words, compact);
    let room = layout.width.max(NARROW);
    let legend = Legend::new(&layout, status, words, room);
    let ending = status.and_then(|status| status.ending_in(words));
    let ending = ending.map_or_else(Vec::new, |ending| wrap(&ending, Font::State, room, ENDING));
    let head = MARGIN + TITLE + i32::try_from(ending.len()).unwrap_or(0) * ENDING_LINE;
    let top = head + legend.height();
    let (w, h) = (room + 2 * MARGIN, top + layout.height + MARGIN);
    let mut drawing = Drawing {
        out: String::with_capacity(4096 + layout.boxes.len() * 700),
        words,
        flow,
        page,
        tabs: !compact,
    };
    drawing.open(flow, status, (w, h));
    drawing.title(flow, room);
    for (number, line) in (0..).zip(&ending) {
        let y = MARGIN + TITLE + number * ENDING_LINE + 4;
        drawing.text((MARGIN, y), Anchor::Start, Font::State, Tone::State, line);
        drawing.out.push('\n');
    }
    legend.draw(&mut drawing, (MARGIN, head));
    drawing.group((w - layout.width) / 2, top);
    drawing.layout(&layout);
    drawing.out.push_str("</g>\n</svg>\n");
    drawing.out
}

/// The text of the picture so far. Writing to a string can't fail.
struct Drawing<'a> {
    out: String,
    words: Words,
    flow: &'a Flow,
    page: Option<&'a InPage<'a>>,
    /// Whether keys lead to the links. Of many steps, a list is the better way.
    tabs: bool,
}

impl Drawing<'_> {
    fn open(&mut self, flow: &Flow, status: Option<&FlowStatus>, (w, h): (i32, i32)) {
        let class = match self.page {
            None => style::class(flow, status),
            Some(_) => "flow".to_owned(),
        };
        // What is inside an image is nothing to go to.
        let role = match self.page.and_then(|page| page.link) {
            None => "img",
            Some(_) => "group",
        };
        let _ = writeln!(
            self.out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"{class}\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
             role=\"{role}\" aria-labelledby=\"{class}-t {class}-d\">"
        );
        let _ = writeln!(self.out, "<title id=\"{class}-t\">{}</title>", xml(&name(flow)));
        let _ = writeln!(
            self.out,
            "<desc id=\"{class}-d\">{}</desc>",
            xml(&description(flow, status, self.words))
        );
        if self.page.is_none() {
            self.out.push_str(&style::sheet(&class));
            let _ = writeln!(self.out, "<rect class=\"bg\" width=\"{w}\" height=\"{h}\"/>");
        }
    }

    fn title(&mut self, flow: &Flow, room: i32) {
        let text = cut(&name(flow), Font::Title, room);
        self.text((MARGIN, MARGIN + 9), Anchor::Start, Font::Title, Tone::Strong, &text);
    }

    fn group(&mut self, x: i32, y: i32) {
        let _ = writeln!(self.out, "<g transform=\"translate({x} {y})\">");
    }

    fn layout(&mut self, layout: &Layout) {
        for placed in &layout.boxes {
            self.placed(placed);
        }
        // Ways that were taken are drawn over the others.
        for taken in [false, true] {
            for line in layout.lines.iter().filter(|line| line.taken == taken) {
                self.line(line);
            }
        }
        let mut joints = layout.joints.clone();
        joints.sort_unstable();
        joints.dedup();
        for (x, y, kind) in joints {
            let _ = writeln!(
                self.out,
                "<circle class=\"a {}\" cx=\"{x}\" cy=\"{y}\" r=\"2.5\"/>",
                style::line(kind)
            );
        }
    }

    fn placed(&mut self, placed: &Placed) {
        let Rect { x, y, .. } = placed.rect;
        let step = match placed.what {
            What::Step(id) => self.flow.step(id).map(|step| step.name.as_str()),
            _ => None,
        };
        let page = self.page.copied().unwrap_or_default();
        let link = page.link.zip(step).map(|(link, step)| link(step));
        let element = if link.is_some() { "a" } else { "g" };
        let chosen = if step.is_some() && page.chosen == step {
            " at"
        } else {
            ""
        };
        let _ = write!(
            self.out,
            "<{element} class=\"{}{chosen}\" transform=\"translate({x} {y})\"",
            style::face(&placed.face)
        );
        if let Some(link) = link {
            let _ = write!(self.out, " href=\"{}\"", xml(&link));
            if !self.tabs {
                self.out.push_str(" tabindex=\"-1\"");
            }
        }
        self.out.push('>');
        if !placed.face.tip.is_empty() {
            let _ = write!(self.out, "<title>{}</title>", xml(&placed.face.tip.join("\n")));
        } else if let What::Begin | What::End | What::Stop = placed.what {
            let what = if placed.what == What::Begin { "begin" } else { "end" };
            let _ = write!(self.out, "<title>{}</title>", self.words.say(what));
        }
        self.outline(placed.rect, &placed.face);
        for mark in &placed.face.marks {
            self.mark(mark);
        }
        let _ = writeln!(self.out, "</{element}>");
    }

    fn outline(&mut self, Rect { w, h, .. }: Rect, face: &Face) {
        match face.shape {
            Shape::Bare => {}
            Shape::Card | Shape::Frame => self.rect((0, 0, w, h), 5),
            Shape::Lane => self.rect((0, 0, w, h), 2),
            Shape::Pill => self.rect((0, 0, w, h), (h / 2).min(22)),
            Shape::Stack => {
                // Sheets behind the first one: it runs many times.
                let _ = write!(self.out, "<path class=\"o\" d=\"M{} {h}v4h{}v-{h}h-4\"/>", 6, w - 2);
                self.rect((0, 0, w, h), 5);
            }
            Shape::Octagon => {
                let cut = 9;
                let (across, down) = (w - 2 * cut, h - 2 * cut);
                let _ = write!(
                    self.out,
                    "<path class=\"o\" d=\"M{cut} 0h{across}l{cut} {cut}v{down}l-{cut} {cut}h-{across}l-{cut} -{cut}v-{down}z\"/>"
                );
            }
            Shape::Dot => self.circle(w / 2, w / 2 - 1, "i"),
            Shape::Ring => {
                self.circle(w / 2, w / 2 - 1, "o");
                self.circle(w / 2, w / 2 - 4, "i");
            }
        }
    }

    fn rect(&mut self, (x, y, w, h): (i32, i32, i32, i32), radius: i32) {
        self.out.push_str("<rect class=\"o\"");
        for (name, value) in [("x", x), ("y", y)].into_iter().filter(|(_, value)| *value != 0) {
            let _ = write!(self.out, " {name}=\"{value}\"");
        }
        let _ = write!(self.out, " width=\"{w}\" height=\"{h}\" rx=\"{radius}\"/>");
    }

    fn circle(&mut self, middle: i32, radius: i32, class: &str) {
        let _ = write!(
            self.out,
            "<circle class=\"{class}\" cx=\"{middle}\" cy=\"{middle}\" r=\"{radius}\"/>"
        );
    }

    fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::Text {
                x,
                y,
                anchor,
                font,
                tone,
                text,
            } => self.text((*x, *y), *anchor, *font, *tone, text),
            Mark::Badge { x, y, w, text } => {
                let h = BADGE;
                let _ = write!(
                    self.out,
                    "<rect class=\"b\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"7\"/>"
                );
                self.text((x + w / 2, y + h / 2), Anchor::Middle, Font::Small, Tone::Quiet, text);
            }
            Mark::Icon { x, y, icon } => self.icon((*x, *y), *icon),
        }
    }

    fn icon(&mut self, (x, y): (i32, i32), icon: Icon) {
        let class = if let Icon::State(_) = icon { "s" } else { "k" };
        let _ = write!(
            self.out,
            "<path class=\"{class}\" transform=\"translate({x} {y})\" d=\"{}\"/>",
            icon.path()
        );
    }

    fn text(&mut self, (x, y): (i32, i32), anchor: Anchor, font: Font, tone: Tone, text: &str) {
        // `y` is the middle; text is drawn from its base line.
        let base = y + font.size() * 36 / 100;
        let class = style::text(font, tone);
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let _ = write!(
            self.out,
            "<text class=\"{class}\" x=\"{x}\" y=\"{base}\"{anchor}>{}</text>",
            xml(text)
        );
    }

    fn line(&mut self, line: &Line) {
        let kind = style::line(line.kind);
        let taken = if line.taken { " t" } else { "" };
        let curve = line.kind == LineKind::Depends
            && line.points.first().map(|from| from.1) != line.points.last().map(|to| to.1);
        let path = if curve {
            curved(&line.points)
        } else {
            bent(&line.points, line.arrow)
        };
        let _ = write!(self.out, "<path class=\"l {kind}{taken}\" d=\"{path}\"/>");
        if let (true, [.., before, end]) = (line.arrow, line.points.as_slice()) {
            // A curve arrives from straight above.
            let before = if curve { (end.0, end.1 - HEAD.0) } else { *before };
            let _ = write!(self.out, "<path class=\"a {kind}\" d=\"{}\"/>", head(before, *end));
        }
        self.out.push('\n');
    }
}

/// The point at this distance from `to` in the direction of `from`. Lines are horizontal or vertical.
fn towards(to: (i32, i32), from: (i32, i32), far: i32) -> (i32, i32) {
    let by = |to: i32, from: i32| (from - to).signum() * far.min((from - to).abs());
    (to.0 + by(to.0, from.0), to.1 + by(to.1, from.1))
}

/// Path data of a line with rounded bends. With an arrow it ends inside the arrow's head.
fn bent(points: &[(i32, i32)], arrow: bool) -> String {
    let mut pen = Pen::default();
    let last = points.len().saturating_sub(1);
    for (index, &point) in points.iter().enumerate() {
        let (before, after) = (
            index.checked_sub(1).and_then(|index| points.get(index)),
            points.get(index + 1),
        );
        match (before, after) {
            (None, _) => pen.begin(point),
            (Some(&before), None) if arrow && index == last => pen.line(towards(point, before, HEAD.0 - 2)),
            (Some(_), None) => pen.line(point),
            (Some(&before), Some(&after)) => {
                let half = |other: (i32, i32)| ((other.0 - point.0).abs() + (other.1 - point.1).abs()) / 2;
                let radius = BEND.min(half(before)).min(half(after));
                pen.line(towards(point, before, radius));
                pen.bend(point, towards(point, after, radius));
            }
        }
    }
    pen.path
}

/// Writes path data. All but its beginning is relative: the same line elsewhere is nearly the same text, so that pages
/// with many are small.
#[derive(Default)]
struct Pen {
    path: String,
    at: (i32, i32),
}

impl Pen {
    fn begin(&mut self, at: (i32, i32)) {
        let _ = write!(self.path, "M{} {}", at.0, at.1);
        self.at = at;
    }

    fn line(&mut self, to: (i32, i32)) {
        let _ = match (to.0 - self.at.0, to.1 - self.at.1) {
            (across, 0) => write!(self.path, "h{across}"),
            (0, down) => write!(self.path, "v{down}"),
            (across, down) => write!(self.path, "l{across} {down}"),
        };
        self.at = to;
    }

    fn bend(&mut self, over: (i32, i32), to: (i32, i32)) {
        let (x, y) = self.at;
        let _ = write!(self.path, "q{} {} {} {}", over.0 - x, over.1 - y, to.0 - x, to.1 - y);
        self.at = to;
    }
}

/// Path data of a curve downwards to the second point, then straight on.
fn curved(points: &[(i32, i32)]) -> String {
    let mut path = String::new();
    if let [from, to, rest @ ..] = points {
        let end = if rest.is_empty() { to.1 - HEAD.0 + 2 } else { to.1 };
        let middle = (from.1 + end) / 2;
        let _ = write!(
            path,
            "M{} {}C{} {middle} {} {middle} {} {end}",
            from.0, from.1, from.0, to.0, to.0
        );
        for point in rest {
            let _ = write!(path, "L{} {}", point.0, point.1);
        }
    }
    path
}

/// Path data of an arrow's head.
fn head(before: (i32, i32), end: (i32, i32)) -> String {
    let back = towards(end, before, HEAD.0);
    // Across the direction, x and y change places.
    let (dx, dy) = ((back.1 - end.1).signum() * HEAD.1, (back.0 - end.0).signum() * HEAD.1);
    let mut pen = Pen::default();
    pen.begin(end);
    pen.line((back.0 + dx, back.1 + dy));
    pen.line((back.0 - dx, back.1 - dy));
    pen.path.push('z');
    pen.path
}

/// The flow's name as a title.
fn name(flow: &Flow) -> String {
    let name = flow
        .name
        .as_ref()
        .map(|name| clean(name))
        .filter(|name| !name.trim().is_empty());
    name.unwrap_or_else(|| "flow".to_owned())
}

/// A description of the picture, for readers who do not see it.
fn description(flow: &Flow, status: Option<&FlowStatus>, words: Words) -> String {
    /// How many steps it names.
    const NAMED: usize = 20;
    let first = flow.lists.first().map_or(&[][..], |list| &list.steps);
    let names: Vec<String> = first
        .iter()
        .take(NAMED)
        .filter_map(|&id| flow.step(id))
        .map(|step| format!("{} ({})", clean(&step.name), words.say(Icon::of(&step.kind).word())))
        .collect();
    let more = if first.len() > NAMED {
        words.say(" and so on")
    } else {
        ""
    };
    let names = names.join(", ") + more;
    let mut text = words.fill("A flow of {} steps: {}.", &[&flow.steps.len().to_string(), &names]);
    if let Some(status) = status {
        let states: Vec<String> = status
            .occurring()
            .into_iter()
            .map(|(status, count)| format!("{count} {}", words.say(status.as_str())))
            .collect();
        if let Some(ending) = status.ending_in(words) {
            text.push_str(&words.fill(" {}.", &[&ending]));
        }
        text.push_str(&words.fill(" Steps: {}.", &[&states.join(", ")]));
    }
    text
}

/// The width of a small text, for the legend.
fn small(text: &str) -> i32 {
    width(text, Font::Small)
}
