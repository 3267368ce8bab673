//! The errors that a server answers.

use super::Answer;
use crate::exit::Exit;
use crate::output::Output;
use crate::render::{self, Report};
use serde::Deserialize;
use starbridge_fdl::diagnostics::{Code, Diagnostic, Fix, Label, Severity};
use starbridge_flow::syntax::{Source, Span};
use starbridge_flow::value::{Object, Value};
use starbridge_node::escaping::escaped_lines;

/// A problem (RFC 9457).
#[derive(Clone, Debug)]
pub struct Problem {
    /// The status it came with.
    pub status: u16,
    body: Object,
}

impl Problem {
    /// Reads an error answer.
    pub(super) fn read(answer: &Answer) -> Self {
        Self {
            status: answer.status,
            body: answer.object(),
        }
    }

    /// The code of the problem.
    pub fn code(&self) -> &str {
        self.member("code").unwrap_or_default()
    }

    /// The detail, in words.
    pub fn detail(&self) -> Option<&str> {
        self.member("detail")
    }

    fn member(&self, key: &str) -> Option<&str> {
        self.body.get(key).and_then(Value::as_str)
    }

    /// The exit for it: a bad request, or a temporary failure.
    pub fn exit(&self) -> Exit {
        match self.status {
            429 => Exit::Fault,
            400..500 => Exit::Bad,
            _ => Exit::Fault,
        }
    }

    /// Prints it with advice: first of all, existing things with similar names.
    pub(super) fn say(&self, output: Output, with_token: bool, near: Option<&str>) -> Exit {
        let message = match self.detail() {
            // Text that a server quotes from others has no line breaks of its own.
            Some(detail) => escaped_lines(detail).into_owned(),
            None => format!("the server answered with status {}", self.status),
        };
        let message = self.with_difference(message, output);
        let taken = self.member("execution").unwrap_or_default();
        let help = match self.code() {
            "Unauthorized" if with_token => "ask who runs the server for another one".to_owned(),
            "Unauthorized" => "give one with `--token-file`, or in STARBRIDGE_TOKEN".to_owned(),
            "ExecutionAlreadyExists" => format!("`starbridge show {taken}` shows it; another name starts another one"),
            "NoSuchFlow" => "`starbridge flow list` shows the flows there are".to_owned(),
            "NoSuchExecution" => {
                "an execution is given by its id or as FLOW/NAME; `starbridge list` shows them".to_owned()
            }
            "NotEnded" => "`starbridge stop` ends it".to_owned(),
            "NoSuchSchedule" => "`starbridge schedule list` shows the schedules there are".to_owned(),
            "NoSuchQueue" => "`starbridge queue list` shows the queues there are".to_owned(),
            "NoSuchKey" => "`starbridge key list` shows the keys that are held, waited for or set".to_owned(),
            "NoSuchRoute" | "" => "is it a starbridge server, and no older than this command?".to_owned(),
            _ => String::new(),
        };
        let help = match near {
            Some(near) if help.is_empty() => near.to_owned(),
            Some(near) if near.ends_with('?') => format!("{near} {help}"),
            Some(near) => format!("{near}; {help}"),
            None => help,
        };
        let code = match self.code() {
            "" => "UnknownAnswer",
            code => code,
        };
        output.fail_with(
            self.exit(),
            code,
            &message,
            (!help.is_empty()).then_some(&help),
            &self.more(),
        )
    }

    /// The message with what was done and what would be done, one a line, where a definition does not fit. Programs get
    /// them as members.
    fn with_difference(&self, mut message: String, output: Output) -> String {
        for key in ["recorded", "expected", "why"] {
            let told = self
                .body
                .get(key)
                .filter(|told| **told != Value::Null && !output.json());
            if let Some(told) = told.filter(|_| self.code() == "DefinitionDoesNotFit") {
                message.push_str(&format!("\n{key}: {}", told.to_plain_text()));
            }
        }
        message
    }

    /// What programs get besides code and message.
    fn more(&self) -> Object {
        let keys = [
            "diagnostics",
            "event",
            "recorded",
            "expected",
            "why",
            "by",
            "action",
            "resolvedTime",
        ];
        let given = keys
            .iter()
            .filter_map(|key| Some(((*key).into(), self.body.get(key)?.clone())));
        given.collect()
    }

    /// Prints it in the form of `validate`, if it is about this text. `undone` says what was not done for that.
    pub fn say_about(&self, source: &Source, undone: &str, output: Output) -> Option<Exit> {
        let diagnostics = diagnostics(source, &self.body);
        if diagnostics.is_empty() {
            return None;
        }
        let counts = render::counts(&[diagnostics.as_slice()]);
        if !output.json() {
            show(source, diagnostics, output);
        }
        let message = format!("{undone}: {counts}");
        Some(output.fail_with(self.exit(), self.code(), &message, None, &self.more()))
    }
}

/// Shows a server's diagnostics of a text in the form of `validate`.
pub fn show(source: &Source, diagnostics: Vec<Diagnostic>, output: Output) {
    let report = Report {
        source: source.clone(),
        diagnostics,
    };
    output.say(&render::human(&[report], output.columns()));
}

/// The diagnostics in an answer about a text.
pub fn diagnostics(source: &Source, body: &Object) -> Vec<Diagnostic> {
    let found = body.get("diagnostics").map(Value::to_json).unwrap_or_default();
    let found: Vec<Found> = serde_json::from_str(&found).unwrap_or_default();
    let places = Places::of(source);
    found.into_iter().filter_map(|found| found.place(&places)).collect()
}

#[derive(Deserialize)]
struct Found {
    code: String,
    severity: String,
    message: String,
    help: Option<String>,
    pointer: String,
    #[serde(flatten)]
    region: Region,
    #[serde(default)]
    labels: Vec<Labelled>,
    fix: Option<Change>,
}

#[derive(Deserialize)]
struct Labelled {
    message: String,
    #[serde(flatten)]
    region: Region,
}

#[derive(Deserialize)]
struct Change {
    title: String,
    #[serde(flatten)]
    region: Region,
    replacement: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

/// The starts of the lines in a text.
struct Places<'a> {
    source: &'a Source,
    lines: Vec<usize>,
}

impl<'a> Places<'a> {
    fn of(source: &'a Source) -> Self {
        let breaks = source.text().match_indices('\n').map(|(at, _)| at + 1);
        Self {
            source,
            lines: [0].into_iter().chain(breaks).collect(),
        }
    }

    /// The byte at a line and column. Both count from 1, and columns count characters.
    fn byte(&self, line: usize, column: usize) -> usize {
        let text = self.source.text();
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or(text.len());
        let rest = text.get(start..).unwrap_or_default();
        let mark = if start == 0 && rest.starts_with('\u{FEFF}') {
            '\u{FEFF}'.len_utf8()
        } else {
            0
        };
        let line = rest.get(mark..).unwrap_or_default();
        let within = line.char_indices().nth(column.saturating_sub(1));
        start + mark + within.map_or(line.len(), |(at, _)| at)
    }

    fn span(&self, region: &Region) -> Span {
        let start = self.byte(region.line, region.column);
        let end = self.byte(region.end_line, region.end_column);
        Span {
            start,
            end: end.max(start),
        }
    }
}

impl Found {
    /// The diagnostic in its text; a later server's may have a code that is not known here.
    fn place(self, places: &Places<'_>) -> Option<Diagnostic> {
        let label = |label: Labelled| Label {
            span: places.span(&label.region),
            message: label.message,
        };
        Some(Diagnostic {
            code: Code::parse(&self.code)?,
            severity: match self.severity.as_str() {
                "warning" => Severity::Warning,
                _ => Severity::Error,
            },
            message: self.message,
            span: places.span(&self.region),
            pointer: self.pointer,
            labels: self.labels.into_iter().map(label).collect(),
            help: self.help,
            fix: self.fix.map(|fix| Fix {
                title: fix.title,
                span: places.span(&fix.region),
                replacement: fix.replacement,
                sure: false,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_flow::limits::Limits;
    use starbridge_node::json::diagnosed;

    #[test]
    fn what_a_server_found_stands_where_it_was_found() {
        let texts = [
            "{\"version\": \"v1\", \"type\": \"flow\", \"steps\": [{\"type\": \"pass\", \"name\": \"ä\", \"goto\": \"b\"}]}",
            "\u{FEFF}{\n  \"version\": \"v1\",\r\n  \"type\": \"flow\", \"steps\": [\n{\"type\": \"choice\", \"nam\": \"é\"}]}\n",
            "version: v1\ntype: flow\nsteps:\n  - type: wait\n    name: 星\n  - type: wait\n    name: 星\n",
            "",
            "{",
        ];
        for text in texts {
            let source = Source::new("flow", text);
            let mut found = starbridge_fdl::check(&source, &Limits::default()).diagnostics;
            assert!(!found.is_empty(), "{text}");
            let list = serde_json::json!({"diagnostics": diagnosed(&source, &found).to_list()});
            let body: Object = serde_json::from_str(&list.to_string()).unwrap();
            // A server's fixes are shown, but not applied.
            let fixes = found.iter_mut().filter_map(|found| found.fix.as_mut());
            fixes.for_each(|fix| fix.sure = false);
            assert_eq!(diagnostics(&source, &body), found, "{text}");
        }
    }
}
