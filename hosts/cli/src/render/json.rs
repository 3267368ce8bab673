//! One JSON object for scripts.

use super::Report;
use serde::Serialize;
use starbridge_node::json::{DiagnosedFile, diagnosed};

#[derive(Serialize)]
struct Files<'a> {
    files: Vec<DiagnosedFile<'a>>,
}

/// The object in one line.
pub fn json(reports: &[Report]) -> String {
    let files = reports
        .iter()
        .map(|report| diagnosed(&report.source, &report.diagnostics));
    let files = Files { files: files.collect() };
    let mut text = serde_json::to_string(&files).unwrap_or_default();
    text.push('\n');
    text
}
