//! Reports in the form of JUnit, which CI systems read.

use super::CaseReport;
use std::fmt::Write;

/// The cases in JUnit's form: one suite for each file.
pub(super) fn junit(cases: &[CaseReport]) -> String {
    let failed = |cases: &[&CaseReport]| cases.iter().filter(|case| !case.ok).count();
    let mut files: Vec<&str> = cases.iter().map(|case| case.file.as_str()).collect();
    files.dedup();
    let all: Vec<&CaseReport> = cases.iter().collect();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        text,
        "<testsuites tests=\"{}\" failures=\"{}\">",
        all.len(),
        failed(&all)
    );
    for file in files {
        let suite: Vec<&CaseReport> = cases.iter().filter(|case| case.file == file).collect();
        let (name, tests, failures) = (xml(file), suite.len(), failed(&suite));
        let _ = writeln!(
            text,
            "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\">"
        );
        for case in suite {
            let _ = write!(text, "    <testcase classname=\"{name}\" name=\"{}\"", xml(&case.name));
            if case.ok {
                text.push_str("/>\n");
                continue;
            }
            let first = case.problems.first().map(String::as_str).unwrap_or_default();
            let (first, problems) = (xml(first), xml(&case.problems.join("\n")));
            let _ = writeln!(
                text,
                ">\n      <failure message=\"{first}\">{problems}</failure>\n    </testcase>"
            );
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// A text as XML, without characters that XML forbids.
fn xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            control if control.is_control() || matches!(control, '\u{FFFE}' | '\u{FFFF}') => escaped.push('\u{FFFD}'),
            plain => escaped.push(plain),
        }
    }
    escaped
}
