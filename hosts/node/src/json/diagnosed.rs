//! The diagnostics of a definition, for scripts. The form is stable: members are added, never
//! changed.

use serde::Serialize;
use starbridge_fdl::diagnostics::{Diagnostic, Fix, Label};
use starbridge_flow::syntax::{Source, Span};
use std::borrow::Cow;

/// The diagnostics of one text.
#[derive(Serialize)]
pub struct DiagnosedFile<'a> {
    file: &'a str,
    diagnostics: Vec<Found<'a>>,
}

/// The diagnostics of a text, with lines and columns from 1.
pub fn diagnosed<'a>(source: &'a Source, diagnostics: &'a [Diagnostic]) -> DiagnosedFile<'a> {
    DiagnosedFile {
        file: source.name(),
        diagnostics: diagnostics.iter().map(|it| found(source, it)).collect(),
    }
}

impl DiagnosedFile<'_> {
    /// The diagnostics alone, as a list.
    pub fn to_list(&self) -> serde_json::Value {
        serde_json::to_value(&self.diagnostics).unwrap_or_default()
    }
}

#[derive(Serialize)]
struct Found<'a> {
    code: &'static str,
    severity: &'static str,
    message: &'a str,
    help: Option<&'a str>,
    pointer: Cow<'a, str>,
    #[serde(flatten)]
    region: Region,
    labels: Vec<Labelled<'a>>,
    fix: Option<Change<'a>>,
}

#[derive(Serialize)]
struct Labelled<'a> {
    message: &'a str,
    #[serde(flatten)]
    region: Region,
}

#[derive(Serialize)]
struct Change<'a> {
    title: &'a str,
    #[serde(flatten)]
    region: Region,
    replacement: &'a str,
}

/// A part of a text. Lines and columns count from 1, columns in characters; the end is one past the last character.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

/// How many characters of a pointer are shown. A key may be as long as a definition.
const POINTER_CHARS: usize = 512;

fn cut(pointer: &str) -> Cow<'_, str> {
    match pointer.char_indices().nth(POINTER_CHARS) {
        None => Cow::Borrowed(pointer),
        Some((end, _)) => Cow::Owned(format!("{}…", pointer.get(..end).unwrap_or_default())),
    }
}

fn found<'a>(source: &Source, diagnostic: &'a Diagnostic) -> Found<'a> {
    Found {
        code: diagnostic.code.as_str(),
        severity: diagnostic.severity.as_str(),
        message: &diagnostic.message,
        help: diagnostic.help.as_deref(),
        pointer: cut(&diagnostic.pointer),
        region: region(source, diagnostic.span),
        labels: diagnostic.labels.iter().map(|label| labelled(source, label)).collect(),
        fix: diagnostic.fix.as_ref().map(|fix| change(source, fix)),
    }
}

fn labelled<'a>(source: &Source, label: &'a Label) -> Labelled<'a> {
    Labelled {
        message: &label.message,
        region: region(source, label.span),
    }
}

fn change<'a>(source: &Source, fix: &'a Fix) -> Change<'a> {
    Change {
        title: &fix.title,
        region: region(source, fix.span),
        replacement: &fix.replacement,
    }
}

fn region(source: &Source, span: Span) -> Region {
    let (start, end) = (source.line_column(span.start), source.line_column(span.end));
    Region {
        line: start.line,
        column: start.column,
        end_line: end.line,
        end_column: end.column,
    }
}
