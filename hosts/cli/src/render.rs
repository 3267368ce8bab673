//! Diagnostics as text: for people, for scripts, for code scanners and for pipelines. Only this
//! module knows their forms.

mod github;
mod human;
mod json;
mod sarif;

pub use human::human;

use clap::ValueEnum;
use starbridge_fdl::diagnostics::{Diagnostic, Severity};
use starbridge_flow::syntax::Source;

/// A form in which diagnostics are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The lines concerned, underlined, with what to do
    Human,
    /// One JSON object
    Json,
    /// SARIF 2.1.0, which code scanners read
    Sarif,
    /// Workflow commands, which GitHub Actions shows beside the lines
    Github,
}

/// A text and its diagnostics.
#[derive(Clone, Debug)]
pub struct Report {
    /// The text.
    pub source: Source,
    /// The diagnostics, in order of place.
    pub diagnostics: Vec<Diagnostic>,
}

/// All diagnostics in the given form. Every form except the one for people ends with a line break
/// if it is not empty. The form for people has no colours here.
pub fn render(format: Format, reports: &[Report]) -> String {
    match format {
        Format::Human => {
            const COLUMNS: usize = 140;
            anstream::adapter::strip_str(&human(reports, COLUMNS)).to_string()
        }
        Format::Json => json::json(reports),
        Format::Sarif => sarif::sarif(reports),
        Format::Github => github::github(reports),
    }
}

/// The number of diagnostics, in a line: `3 errors, 1 warning in 2 files`.
pub fn summary(reports: &[Report]) -> String {
    let found: Vec<&[Diagnostic]> = reports
        .iter()
        .map(|report| report.diagnostics.as_slice())
        .filter(|found| !found.is_empty())
        .collect();
    let (all, concerned) = (reports.len(), found.len());
    if concerned == 0 {
        return format!("no problems in {}", counted(all, "file"));
    }
    let files = if concerned == all {
        counted(all, "file")
    } else {
        format!("{concerned} of {}", counted(all, "file"))
    };
    format!("{} in {files}", counts(&found))
}

/// The numbers of errors and warnings: `3 errors, 1 warning`.
pub fn counts(found: &[&[Diagnostic]]) -> String {
    let count = |severity: Severity| {
        let all = found.iter().flat_map(|diagnostics| diagnostics.iter());
        all.filter(|diagnostic| diagnostic.severity == severity).count()
    };
    let parts = [(count(Severity::Error), "error"), (count(Severity::Warning), "warning")];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|&(count, _)| count > 0)
        .map(|(count, word)| counted(count, word))
        .collect();
    parts.join(", ")
}

fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}
