//! The lines concerned, underlined, with advice: the form for people.

use super::Report;
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{
    Annotation, AnnotationKind, Element, Group, Level, Origin, Patch, Renderer, Snippet, normalize_untrusted_str,
};
use starbridge_fdl::diagnostics::{Diagnostic, Fix, Severity};
use starbridge_flow::syntax::{Source, Span};
use std::ops::Range;

/// Places no further apart than this many lines are shown in one piece.
const NEAR: usize = 20;
/// Of a place with more lines than this, only the first line is shown.
const TALL: usize = 12;
/// Of a very long line only so many bytes on either side of a place are shown,
const WIDE: usize = 400;
/// and of one with a fix, which is shown twice and never folded, so many.
const WIDE_FIX: usize = 50;

/// All diagnostics, with colours, in this many columns.
pub fn human(reports: &[Report], columns: usize) -> String {
    let renderer = Renderer::styled().term_width(columns).decor_style(DecorStyle::Ascii);
    let mut text = String::new();
    for report in reports {
        for found in &report.diagnostics {
            text += &renderer.render(&groups(&report.source, found));
            text += "\n\n";
        }
    }
    text
}

/// A diagnostic and, if there is one, its fix.
fn groups<'a>(source: &'a Source, found: &'a Diagnostic) -> Vec<Group<'a>> {
    let level = match found.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = level
        .primary_title(found.message.as_str())
        .id(found.code.as_str())
        .elements(pieces(source, found));
    match (&found.fix, &found.help) {
        (Some(fix), help) => vec![group, suggestion(source, fix, help.as_ref().unwrap_or(&fix.title))],
        (None, Some(help)) => {
            group = group.element(Level::HELP.message(normalize_untrusted_str(help)));
            vec![group]
        }
        (None, None) => vec![group],
    }
}

/// A place with its message.
struct Mark<'a> {
    span: Span,
    kind: AnnotationKind,
    label: Option<&'a str>,
    lines: Range<usize>,
}

/// The pieces of the text that the diagnostic is about; the piece with the problem itself comes
/// first.
fn pieces<'a>(source: &'a Source, found: &'a Diagnostic) -> Vec<Element<'a>> {
    if source.text().is_empty() {
        return vec![origin(source, found.span).into()];
    }
    let mark = |span: Span, kind, label| {
        let span = within(source, span);
        let (first, last) = (source.line_column(span.start).line, source.line_column(span.end).line);
        let lines = first..last + 1;
        Mark {
            span,
            kind,
            label,
            lines,
        }
    };
    let mut marks = vec![mark(found.span, AnnotationKind::Primary, None)];
    let labels = found.labels.iter();
    marks.extend(labels.map(|label| mark(label.span, AnnotationKind::Context, Some(label.message.as_str()))));
    marks.sort_by_key(|mark| (mark.lines.start, mark.span.start));
    let mut clusters: Vec<Vec<Mark<'a>>> = Vec::new();
    for mark in marks {
        match clusters.last_mut() {
            Some(cluster) if cluster.iter().any(|other| is_near(&mark, other)) => cluster.push(mark),
            _ => clusters.push(vec![mark]),
        }
    }
    let has_problem = |cluster: &Vec<Mark<'a>>| cluster.iter().any(|mark| mark.kind == AnnotationKind::Primary);
    clusters.sort_by_key(|cluster| !has_problem(cluster));
    clusters.iter().flat_map(|cluster| piece(source, cluster)).collect()
}

/// Whether a place is shown in one piece with an earlier one: if it is near by lines and, within a
/// long line, by bytes.
fn is_near(mark: &Mark<'_>, earlier: &Mark<'_>) -> bool {
    let in_another_line = mark.lines.start > earlier.lines.end;
    mark.lines.start <= earlier.lines.end + NEAR && (in_another_line || mark.span.start <= earlier.span.end + 2 * WIDE)
}

/// A piece of the text with its marks, below the place it is from.
fn piece<'a>(source: &'a Source, marks: &[Mark<'a>]) -> Vec<Element<'a>> {
    let named = marks
        .iter()
        .find(|mark| mark.kind == AnnotationKind::Primary)
        .or(marks.first());
    let place = named.map_or(Span::default(), |mark| mark.span);
    let start = marks.iter().map(|mark| mark.span.start).min().unwrap_or(0);
    let end = marks.iter().map(|mark| mark.span.end).max().unwrap_or(start);
    let window = window(source, Span { start, end }, WIDE);
    let annotations = marks.iter().map(|mark| annotation(mark, window.start));
    let snippet = Snippet::source(source.text().get(window.start..window.end).unwrap_or_default())
        .line_start(source.line_column(window.start).line)
        .annotations(annotations.collect::<Vec<_>>());
    if source.line_column(window.start).column == 1 {
        return vec![snippet.path(source.name()).into()];
    }
    // If the beginning of a line is cut off, the column is not visible.
    vec![origin(source, place).into(), snippet.into()]
}

fn annotation<'a>(mark: &Mark<'a>, window: usize) -> Annotation<'a> {
    let range = mark.span.start.saturating_sub(window)..mark.span.end.saturating_sub(window);
    mark.kind.span(range).label(mark.label)
}

fn origin(source: &Source, span: Span) -> Origin<'_> {
    let place = source.line_column(span.start);
    Origin::path(source.name()).line(place.line).char_column(place.column)
}

/// The fix as the lines before and after it, below a short text.
fn suggestion<'a>(source: &'a Source, fix: &'a Fix, words: &str) -> Group<'a> {
    let window = window(source, fix.span, WIDE_FIX);
    let range = fix.span.start.saturating_sub(window.start)..fix.span.end.saturating_sub(window.start);
    let snippet = Snippet::source(source.text().get(window.start..window.end).unwrap_or_default())
        .line_start(source.line_column(window.start).line)
        .patch(Patch::new(range, fix.replacement.as_str()));
    Level::HELP
        .secondary_title(normalize_untrusted_str(words))
        .element(snippet)
}

/// The part of a place that is underlined: within the text, and only the first line of a tall one.
fn within(source: &Source, span: Span) -> Span {
    let text = source.text();
    let start = text.floor_char_boundary(span.start.min(text.len()));
    let end = text.ceil_char_boundary(span.end.clamp(start, text.len()));
    let lines = text.get(start..end).unwrap_or_default();
    if lines.matches('\n').count() < TALL {
        return Span { start, end };
    }
    let first = lines.lines().next().unwrap_or_default();
    Span {
        start,
        end: start + first.len(),
    }
}

/// The whole lines of a place. Of lines that are longer than any terminal, only the part near the
/// place.
fn window(source: &Source, span: Span, wide: usize) -> Span {
    const LONG: usize = 2 * WIDE;
    let text = source.text();
    let before = text.get(..span.start).unwrap_or_default();
    let after = text.get(span.end..).unwrap_or_default();
    // A byte order mark is not part of a line.
    let mark = if text.starts_with('\u{FEFF}') {
        '\u{FEFF}'.len_utf8()
    } else {
        0
    };
    let start = before.rfind('\n').map_or(mark, |at| at + 1).min(span.start);
    let rest = after.split('\n').next().unwrap_or_default();
    let end = span.end + rest.strip_suffix('\r').unwrap_or(rest).len();
    let near = |far: usize, reach: usize| if far > LONG { reach } else { far };
    Span {
        start: text.floor_char_boundary(span.start - near(span.start - start, wide)),
        end: text.ceil_char_boundary(span.end + near(end - span.end, wide)),
    }
}
