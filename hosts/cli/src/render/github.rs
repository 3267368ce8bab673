//! Workflow commands: GitHub Actions shows each beside the line it is about.

use super::Report;
use starbridge_node::escaping::escaped;
use std::fmt::Write;

/// One command per line.
pub fn github(reports: &[Report]) -> String {
    let mut text = String::new();
    for report in reports {
        for found in &report.diagnostics {
            let place = report.source.line_column(found.span.start);
            let help = found.help.as_ref().map(|help| format!("\nhelp: {help}"));
            let _ = writeln!(
                text,
                "::{} file={},line={},col={},title={}::{}{}",
                found.severity.as_str(),
                property(report.source.name()),
                place.line,
                place.column,
                found.code,
                data(&found.message),
                data(&help.unwrap_or_default()),
            );
        }
    }
    text
}

/// The text after a command's `::`, where line breaks would end it.
fn data(text: &str) -> String {
    let text = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    escaped(&text).into_owned()
}

/// The value of a property, where a comma and a colon would end it too.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_fdl::diagnostics::{Code, Diagnostic};
    use starbridge_flow::syntax::{Source, Span};

    #[test]
    fn nothing_in_a_name_or_message_ends_the_command() {
        let found =
            Diagnostic::new(Code::Syntax, Span { start: 1, end: 2 }, "", "50% of:\r\nit, ::error::").help("a\nb");
        let report = Report {
            source: Source::new("a,b:c%\n.json", "{x}"),
            diagnostics: vec![found],
        };
        assert_eq!(
            github(&[report]),
            "::error file=a%2Cb%3Ac%25%0A.json,line=1,col=2,title=FDL0001::50%25 of:%0D%0Ait, ::error::%0Ahelp: a%0Ab\n"
        );
    }
}
