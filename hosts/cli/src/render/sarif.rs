//! SARIF 2.1.0, the format in which code scanners and editors exchange findings.

use super::Report;
use serde_json::{Value, json};
use starbridge_fdl::diagnostics::{Code, Diagnostic, Fix};
use starbridge_flow::syntax::{Source, Span};
use std::fmt::Write;

/// One log with one run.
pub fn sarif(reports: &[Report]) -> String {
    let mut codes: Vec<Code> = reports
        .iter()
        .flat_map(|report| &report.diagnostics)
        .map(|found| found.code)
        .collect();
    codes.sort_unstable();
    codes.dedup();
    let results = reports.iter().flat_map(|report| {
        let findings = report.diagnostics.iter();
        findings.map(|found| result(&report.source, found, &codes))
    });
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {
                "driver": {
                    "name": "starbridge",
                    "version": env!("CARGO_PKG_VERSION"),
                    "rules": codes.iter().copied().map(rule).collect::<Vec<Value>>(),
                },
            },
            "columnKind": "unicodeCodePoints",
            "artifacts": reports.iter().map(|report| json!({
                "location": artifact(&report.source),
                "encoding": "utf-8",
            })).collect::<Vec<Value>>(),
            "results": results.collect::<Vec<Value>>(),
        }],
    });
    format!("{log}\n")
}

fn rule(code: Code) -> Value {
    let page = code.page();
    json!({
        "id": code.as_str(),
        "name": format!("{code:?}"),
        "shortDescription": {"text": code.title()},
        "help": {"text": page, "markdown": page},
        "defaultConfiguration": {"level": code.severity().as_str()},
    })
}

fn result(source: &Source, found: &Diagnostic, codes: &[Code]) -> Value {
    let mut text = found.message.clone();
    if let Some(help) = &found.help {
        text += &format!("\nhelp: {help}");
    }
    let mut location = json!({"physicalLocation": physical(source, found.span)});
    if !found.pointer.is_empty() {
        location["logicalLocations"] = json!([{"fullyQualifiedName": found.pointer}]);
    }
    let mut result = json!({
        "ruleId": found.code.as_str(),
        "ruleIndex": codes.binary_search(&found.code).unwrap_or_default(),
        "level": found.severity.as_str(),
        "message": {"text": text},
        "locations": [location],
    });
    if !found.labels.is_empty() {
        let related = (1usize..).zip(&found.labels).map(|(id, label)| {
            json!({
                "id": id,
                "message": {"text": label.message},
                "physicalLocation": physical(source, label.span),
            })
        });
        result["relatedLocations"] = related.collect();
    }
    if let Some(mended) = &found.fix {
        result["fixes"] = json!([fix(source, mended)]);
    }
    result
}

fn fix(source: &Source, fix: &Fix) -> Value {
    json!({
        "description": {"text": fix.title},
        "artifactChanges": [{
            "artifactLocation": artifact(source),
            "replacements": [{
                "deletedRegion": region(source, fix.span),
                "insertedContent": {"text": fix.replacement},
            }],
        }],
    })
}

fn physical(source: &Source, span: Span) -> Value {
    json!({"artifactLocation": artifact(source), "region": region(source, span)})
}

fn region(source: &Source, span: Span) -> Value {
    let (start, end) = (source.line_column(span.start), source.line_column(span.end));
    json!({
        "startLine": start.line,
        "startColumn": start.column,
        "endLine": end.line,
        "endColumn": end.column,
    })
}

fn artifact(source: &Source) -> Value {
    json!({"uri": uri(source.name())})
}

/// A file's name as a URI reference: each byte that is reserved or not allowed becomes a percent
/// sign and two digits.
fn uri(name: &str) -> String {
    let mut uri = if name.starts_with('/') {
        "file://".to_owned()
    } else {
        String::new()
    };
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_uri_references() {
        assert_eq!(uri("flows/a b:c.json"), "flows/a%20b%3Ac.json");
        assert_eq!(uri("/tmp/星.json"), "file:///tmp/%E6%98%9F.json");
        assert_eq!(uri("<stdin>"), "%3Cstdin%3E");
    }
}
