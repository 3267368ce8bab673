//! The value of a YAML scalar by the core schema and its tag.

use super::super::problems::{excerpt, problem};
use super::super::{NodeKind, Span, number};
use crate::diagnostics::Diagnostic;
use crate::syntax::code::SyntaxCode;
use crate::value::{Number, Text};
use granit_parser::{ScalarStyle, Tag};

/// A scalar in the text.
pub(super) struct Scalar<'a> {
    /// Its characters, with escapes resolved.
    pub(super) value: &'a str,
    pub(super) style: ScalarStyle,
    pub(super) span: Span,
}

/// The type that a tag asks for.
#[derive(Clone, Copy)]
pub(super) enum Tagged<'a> {
    /// There is no tag.
    Not,
    /// `!`: always a text.
    Text,
    /// A tag of the core schema: `null`, `bool`, `int`, `float`, `str`, `seq` or `map`.
    Core(&'a str),
    /// Any other tag.
    Unknown,
}

impl<'a> Tagged<'a> {
    pub(super) fn of(tag: Option<&'a Tag>) -> Self {
        match tag {
            None => Self::Not,
            Some(tag) if tag.handle().is_empty() && tag.suffix() == "!" => Self::Text,
            Some(tag) => tag.core_suffix().map_or(Self::Unknown, Self::Core),
        }
    }
}

/// The value of a text without quotes.
enum Plain {
    Null,
    Bool(bool),
    /// An integer or a float, in JSON's form.
    Number(String),
    /// An infinity or NaN.
    NotFinite,
    Text,
}

impl Scalar<'_> {
    /// The place, the value, and its problem. `tag` is the place of the tag, `before` the end of
    /// the preceding text.
    pub(super) fn resolve(
        &self,
        tagged: Tagged<'_>,
        tag: Option<Span>,
        text: &str,
        before: usize,
    ) -> (Span, NodeKind, Option<Diagnostic<SyntaxCode>>) {
        let span = self.place(text, before);
        let string = || NodeKind::String(Text::from(self.value));
        match tagged {
            Tagged::Not if self.style == ScalarStyle::Plain => {
                let (kind, wrong) = self.plain(span);
                (span, kind, wrong)
            }
            Tagged::Not | Tagged::Text | Tagged::Core("str") => (span, string(), None),
            Tagged::Core(name) => {
                let kind = self.as_core(name);
                let wrong = kind.is_none().then(|| {
                    let message = format!("`{}` is not what the tag `!!{name}` says", excerpt(self.value));
                    problem(SyntaxCode::Yaml, span, message)
                });
                (span, kind.unwrap_or_else(string), wrong)
            }
            Tagged::Unknown => self.unknown(span, tag.unwrap_or(span), text),
        }
    }

    /// Its place: a block from its `|` or `>` on, without the line breaks at its end.
    fn place(&self, text: &str, before: usize) -> Span {
        if !matches!(self.style, ScalarStyle::Literal | ScalarStyle::Folded) {
            return self.span;
        }
        let header = text.get(before..self.span.start).unwrap_or_default();
        let mark = header.char_indices().find(|&(at, letter)| {
            let first = header
                .get(..at)
                .is_none_or(|before| before.is_empty() || before.ends_with(char::is_whitespace));
            matches!(letter, '|' | '>') && first
        });
        let start = mark.map_or(self.span.start, |(at, _)| before + at);
        let written = text.get(start..self.span.end).unwrap_or_default();
        Span {
            start,
            end: start + written.trim_end().len(),
        }
    }

    fn plain(&self, span: Span) -> (NodeKind, Option<Diagnostic<SyntaxCode>>) {
        // The parser writes `~` for a missing value.
        match resolve(self.value) {
            Plain::Null => (NodeKind::Null, None),
            Plain::Bool(value) => (NodeKind::Bool(value), None),
            Plain::Text => (NodeKind::String(Text::from(self.value)), None),
            Plain::NotFinite => {
                let message = format!("`{}` is no number that data can hold", self.value);
                let wrong =
                    problem(SyntaxCode::NumberRange, span, message).help("data is JSON, which has no infinities");
                (NodeKind::Null, Some(wrong))
            }
            Plain::Number(json) => match number::value(&json) {
                Some(value) => (NodeKind::Number(value), None),
                None => {
                    let message = format!("`{}` is larger than any number there is", excerpt(self.value));
                    let wrong = problem(SyntaxCode::NumberRange, span, message)
                        .help("numbers are IEEE doubles: at most about 1.8e308");
                    let largest = if json.starts_with('-') { f64::MIN } else { f64::MAX };
                    let kind = Number::from_f64(largest).map_or(NodeKind::Null, NodeKind::Number);
                    (kind, Some(wrong))
                }
            },
        }
    }

    /// The value that a tag of the core schema asks for, if the scalar has it.
    fn as_core(&self, name: &str) -> Option<NodeKind> {
        match (name, resolve(self.value)) {
            ("null", Plain::Null) => Some(NodeKind::Null),
            ("bool", Plain::Bool(value)) => Some(NodeKind::Bool(value)),
            ("int", Plain::Number(json)) if !json.contains(['.', 'e', 'E']) => {
                number::value(&json).map(NodeKind::Number)
            }
            ("float", Plain::Number(json)) => {
                let value = number::value(&json)?.as_f64()?;
                Number::from_f64(value).map(NodeKind::Number)
            }
            _ => None,
        }
    }

    /// A text with an unknown tag. A tag that does not begin with a letter is hardly meant as a
    /// tag, so it belongs to the text, as in `condition: !($.done == true)`.
    fn unknown(&self, span: Span, tag: Span, text: &str) -> (Span, NodeKind, Option<Diagnostic<SyntaxCode>>) {
        let written = text.get(tag.start..tag.end).unwrap_or_default();
        let name = written.trim_start_matches(['!', '<']);
        let whole = Span {
            start: tag.start,
            end: span.end.max(tag.end),
        };
        let all = text.get(whole.start..whole.end).unwrap_or_default().trim_end();
        let part = self.style == ScalarStyle::Plain && !name.starts_with(char::is_alphabetic) && !all.contains('\n');
        if part {
            let message = format!(
                "`{}` reads as a YAML tag; kept as the text `{}`",
                excerpt(written),
                excerpt(all)
            );
            let wrong = problem(SyntaxCode::YamlTag, tag, message).help("a text that begins with `!` goes in quotes");
            let wrong = match quoted(all) {
                Some(quoted) => wrong.fix("put it in quotes", whole, quoted),
                None => wrong,
            };
            return (whole, NodeKind::String(Text::from(all)), Some(wrong));
        }
        let value = match self.value {
            "" => "an empty text".to_owned(),
            value => format!("the text `{}`", excerpt(value)),
        };
        let message = format!("the tag `{}` is not known; the value is {value}", excerpt(written));
        let wrong =
            problem(SyntaxCode::YamlTag, tag, message).help("tags of other tools must be replaced before a flow runs");
        (span, NodeKind::String(Text::from(self.value)), Some(wrong))
    }
}

/// A text of one line in the simplest YAML quotes that work.
pub(super) fn quoted(text: &str) -> Option<String> {
    if text.contains(char::is_control) {
        None
    } else if !text.contains(['"', '\\']) {
        Some(format!("\"{text}\""))
    } else {
        Some(format!("'{}'", text.replace('\'', "''")))
    }
}

/// The core schema (YAML 1.2, section 10.3.2).
fn resolve(text: &str) -> Plain {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Plain::Null,
        "true" | "True" | "TRUE" => return Plain::Bool(true),
        "false" | "False" | "FALSE" => return Plain::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Plain::NotFinite,
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" => return Plain::NotFinite,
        _ if !unsigned.starts_with(|letter: char| letter.is_ascii_digit() || letter == '.') => return Plain::Text,
        _ => {}
    }
    if let Some(decimal) = number::other_radix(text) {
        return Plain::Number(decimal);
    }
    if text.contains('_') {
        return Plain::Text;
    }
    number::as_json(text).map_or(Plain::Text, Plain::Number)
}
