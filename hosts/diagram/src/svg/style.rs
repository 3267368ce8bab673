//! Classes and colours. Renderers without dark schemes, nested rules or variables show the light colours.

use super::{Face, Flow, FlowStatus, Font, LineKind, Shape, Tone};
use crate::status::Status;

/// The class of the whole picture. Its rules apply only below it, so that several pictures can be on one page.
pub(super) fn class(flow: &Flow, status: Option<&FlowStatus>) -> String {
    let hash: String = flow.hash.chars().filter(char::is_ascii_alphanumeric).take(12).collect();
    format!("sb-{hash}{}", if status.is_some() { "-h" } else { "" })
}

/// The class of a line.
pub(super) fn line(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Next => "nx",
        LineKind::Goto => "gt",
        LineKind::Catch => "ct",
        LineKind::Depends => "dp",
    }
}

/// The class of a text.
pub(super) fn text(font: Font, tone: Tone) -> &'static str {
    match (font, tone) {
        (Font::Title, _) => "tt",
        (Font::Name, _) => "n",
        (Font::State, _) | (_, Tone::State) => "st",
        (Font::Mono, _) => "m",
        (Font::Small, _) => "q",
    }
}

/// The classes of a box.
pub(super) fn face(face: &Face) -> String {
    let shape = match face.shape {
        Shape::Card | Shape::Pill | Shape::Octagon => "card",
        Shape::Frame | Shape::Stack => "frame",
        Shape::Lane => "lane",
        Shape::Dot | Shape::Ring => "node",
        Shape::Bare => "bare",
    };
    let state = match face.status {
        None if face.taken => " tk",
        None => "",
        Some(Status::NotReached) => " no",
        Some(Status::Running) => " ru",
        Some(Status::Waiting) => " wa",
        Some(Status::Succeeded) => " ok",
        Some(Status::Failed) => " fa",
        Some(Status::Caught) => " ca",
        Some(Status::Cancelled) => " cx",
        Some(Status::Undoing) => " ud",
        Some(Status::RolledBack) => " ub",
        Some(Status::UndoFailed) => " uf",
    };
    format!("{shape}{state}")
}

/// The rules. Each selector is then bound to the picture.
const RULES: &str = "\
text{font-family:'Segoe UI',Roboto,'Helvetica Neue',Arial,'DejaVu Sans',sans-serif;font-size:11px;fill:#1d2731;direction:ltr}
.tt{font-size:17px;font-weight:600}
.n{font-size:13px;font-weight:600}
.m{font-family:ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace}
.st{font-weight:600}
.o{fill:#ffffff;stroke:#5f6f7e;stroke-width:1.2}
.i{fill:#34414d;stroke:none}
.b{fill:#eef2f6;stroke:#b6c2cd;stroke-width:.8}
.k,.s{fill:none;stroke:#34414d;stroke-width:1.5;stroke-linecap:round;stroke-linejoin:round}
.s{stroke-width:2}
.frame .o{fill:#f3f6f9}
.lane .o{fill:#ffffff;stroke:#9aa8b5}
.lane.tk .o{stroke:#1d2731;stroke-width:2.2}
.l{fill:none;stroke:#44525f;stroke-width:1.4;stroke-linejoin:round}
.a{fill:#44525f;stroke:none}
.gt.l{stroke:#1f5fa8}
.gt.a{fill:#1f5fa8}
.ct.l{stroke:#a8341f;stroke-dasharray:5 3}
.ct.a{fill:#a8341f}
.dp.l{stroke:#6a4fa3}
.dp.a{fill:#6a4fa3}
.t.l{stroke-width:3.2}
.ok .o{fill:#e4f5e7;stroke:#2b7a39;stroke-width:1.6}
.ok .s{stroke:#2b7a39}
.ru .o{fill:#d9eafc;stroke:#1559a6;stroke-width:3}
.ru .s{stroke:#1559a6}
.wa .o{fill:#ebe6fb;stroke:#5a3fb0;stroke-width:2;stroke-dasharray:8 3}
.wa .s{stroke:#5a3fb0}
.fa .o{fill:#fbdcd8;stroke:#b3261e;stroke-width:3}
.fa .s{stroke:#b3261e}
.ca .o{fill:#fff0d0;stroke:#8f6200;stroke-width:1.8;stroke-dasharray:9 3 2 3}
.ca .s{stroke:#8f6200}
.cx .o{fill:#e9edf0;stroke:#5f6f7e;stroke-width:1.6;stroke-dasharray:4 4}
.ud .o,.ub .o,.uf .o{fill:#f6e4f3;stroke:#86327a;stroke-width:1.8;stroke-dasharray:2 3}
.ud .s,.ub .s,.uf .s{stroke:#86327a}
.uf .o{stroke-width:3.2}
.no .o{fill:#ffffff;stroke:#9aa8b5;stroke-width:1;stroke-dasharray:1 3}
.no .n,.no .m,.no .q,.no .st{fill:#5d6974;font-weight:400}
.frame.ok .o,.frame.ru .o,.frame.wa .o,.frame.fa .o,.frame.ca .o,.frame.cx .o{fill-opacity:.45}
.bg{fill:#ffffff}
";

/// The differences in the dark scheme.
const DARK: &str = "\
text{fill:#e3e9ef}
.o{fill:#1b232b;stroke:#8b9aa8}
.i{fill:#c4ced8}
.b{fill:#2a3540;stroke:#53626f}
.k,.s{stroke:#c4ced8}
.frame .o{fill:#161d24}
.lane .o{fill:#11171d;stroke:#5c6b78}
.lane.tk .o{stroke:#e3e9ef}
.l{stroke:#a3b1be}
.a{fill:#a3b1be}
.gt.l{stroke:#7db4f0}
.gt.a{fill:#7db4f0}
.ct.l{stroke:#f09a86}
.ct.a{fill:#f09a86}
.dp.l{stroke:#b9a3ea}
.dp.a{fill:#b9a3ea}
.ok .o{fill:#143620;stroke:#67c27b}
.ok .s{stroke:#67c27b}
.ru .o{fill:#12304f;stroke:#7db4f0}
.ru .s{stroke:#7db4f0}
.wa .o{fill:#2a2150;stroke:#b9a3ea}
.wa .s{stroke:#b9a3ea}
.fa .o{fill:#4a1a16;stroke:#f28b7d}
.fa .s{stroke:#f28b7d}
.ca .o{fill:#43320a;stroke:#e3b341}
.ca .s{stroke:#e3b341}
.cx .o{fill:#232b33;stroke:#8b9aa8}
.ud .o,.ub .o,.uf .o{fill:#3d1a38;stroke:#dd8fd0}
.ud .s,.ub .s,.uf .s{stroke:#dd8fd0}
.no .o{fill:#11171d;stroke:#5c6b78}
.no .n,.no .m,.no .q,.no .st{fill:#97a4b0}
.bg{fill:#11171d}
";

/// The style element.
pub(super) fn sheet(class: &str) -> String {
    let light = bound(RULES, class);
    let dark = bound(DARK, class);
    format!("<style>\n{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n</style>\n")
}

/// The rules with each selector below the picture's class.
fn bound(rules: &str, class: &str) -> String {
    let mut bound = String::with_capacity(rules.len() * 2);
    for (selectors, body) in rules.lines().filter_map(|rule| rule.split_once('{')) {
        let each: Vec<String> = selectors
            .split(',')
            .map(|selector| format!(".{class} {selector}"))
            .collect();
        bound.push_str(&each.join(","));
        bound.push('{');
        bound.push_str(body);
        bound.push('\n');
    }
    bound
}
