//! One JSON object for scripts. Its shape is a promise: members are added, never changed.

use super::Report;
use serde::Serialize;
use starbridge_fdl::diagnostics::{Diagnostic, Fix, Label};
use starbridge_fdl::syntax::{Source, Span};

#[derive(Serialize)]
struct Files<'a> {
    files: Vec<File<'a>>,
}

#[derive(Serialize)]
struct File<'a> {
    file: &'a str,
    diagnostics: Vec<Found<'a>>,
}

#[derive(Serialize)]
struct Found<'a> {
    code: &'static str,
    severity: &'static str,
    message: &'a str,
    help: Option<&'a str>,
    pointer: &'a str,
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

/// A part of a text: lines and columns from 1, columns in characters, the end one past the last character.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

/// The object in one line.
pub fn json(reports: &[Report]) -> String {
    let files = reports.iter().map(|report| File {
        file: report.source.name(),
        diagnostics: report.diagnostics.iter().map(|it| found(&report.source, it)).collect(),
    });
    let files = Files { files: files.collect() };
    let mut text = serde_json::to_string(&files).unwrap_or_default();
    text.push('\n');
    text
}

fn found<'a>(source: &Source, diagnostic: &'a Diagnostic) -> Found<'a> {
    Found {
        code: diagnostic.code.as_str(),
        severity: diagnostic.severity.as_str(),
        message: &diagnostic.message,
        help: diagnostic.help.as_deref(),
        pointer: &diagnostic.pointer,
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
