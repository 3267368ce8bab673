//! Values of the right type and range, or a diagnostic.

use super::Checker;
use super::cursor::Cursor;
use crate::diagnostics::Code;
use crate::duration;
use crate::limits::EXECUTION_TIMEOUT;
use crate::syntax::{Format, Node, NodeKind, Span};
use crate::time::Millis;
use crate::value::{Number, Text};
use std::ops::RangeInclusive;

impl Checker<'_> {
    /// Reports that a value has the wrong type. Offers a fix if the meaning is clear.
    pub(super) fn wrong_type(&self, cursor: &Cursor<'_>, expected: &str) {
        let message = format!(
            "{} must be {expected}, not {}",
            cursor.called(),
            cursor.node.kind_name()
        );
        let found = cursor.problem(Code::WrongType, message);
        let written = self.written(cursor.node.span);
        let numeric = expected.contains("number");
        let list = expected.starts_with("a list of");
        let fix = match &cursor.node.kind {
            NodeKind::String(value) if numeric && serde_json::from_str::<Number>(value).is_ok() => {
                Some(("take the quotes off", value.to_string()))
            }
            NodeKind::String(value) if numeric => {
                let seconds = duration::seconds(value);
                // If only whole numbers are valid, a time is rounded up, never down.
                let up = |seconds: Number| match expected.contains("whole") {
                    true => seconds.as_f64().unwrap_or_default().ceil().to_string(),
                    false => seconds.to_string(),
                };
                seconds.map(|seconds| ("write the number of seconds", up(seconds)))
            }
            NodeKind::String(value) if expected.contains("true") && matches!(&**value, "true" | "false") => {
                Some(("take the quotes off", value.to_string()))
            }
            NodeKind::String(value) if expected.contains("true") => {
                let word = match value.to_lowercase().as_str() {
                    "yes" | "on" | "y" | "true" => Some("true"),
                    "no" | "off" | "n" | "false" => Some("false"),
                    _ => None,
                };
                word.map(|word| ("write it as a boolean", word.to_owned()))
            }
            NodeKind::Number(_) | NodeKind::Bool(_) if expected.starts_with("a string") => {
                Some(("put it in quotes", format!("\"{written}\"")))
            }
            NodeKind::String(_) if expected.ends_with("names") && !written.contains('\n') => {
                Some(("make it a list", format!("[{written}]")))
            }
            NodeKind::Object(_) if expected == "a list of steps" && cursor.node.get("type").is_none() => None,
            NodeKind::Object(_) if list => Some(("make it a list", self.as_item(cursor.node))),
            _ => None,
        };
        self.report(match fix {
            Some((title, replacement)) => {
                let help = match &cursor.node.kind {
                    NodeKind::Object(_) => "a list stands in `[` and `]`, also one of a single object".to_owned(),
                    _ => format!("write `{replacement}`"),
                };
                found.help(help).fix(title, cursor.node.span, replacement)
            }
            None if list && matches!(cursor.node.kind, NodeKind::Object(_)) => {
                found.help("a list stands in `[` and `]`")
            }
            None => found,
        });
    }

    /// The text at a place.
    pub(super) fn written(&self, span: Span) -> &str {
        self.source.text().get(span.start..span.end).unwrap_or("")
    }

    /// The text of an object as the only item of a list.
    fn as_item(&self, node: &Node) -> String {
        let written = self.written(node.span);
        match self.source.format() == Format::Yaml && !written.starts_with('{') {
            // Text after the key in its line continues in the next ones.
            true => format!("- {}", written.trim_end().replace('\n', "\n  ")),
            false => format!("[{written}]"),
        }
    }

    /// Whether it is an object.
    pub(super) fn is_object(&self, cursor: &Cursor<'_>) -> bool {
        let good = matches!(cursor.node.kind, NodeKind::Object(_));
        if !good {
            self.wrong_type(cursor, "an object");
        }
        good
    }

    /// Whether it is a list; `of` names its items.
    pub(super) fn is_list(&self, cursor: &Cursor<'_>, of: &str) -> bool {
        let good = matches!(cursor.node.kind, NodeKind::Array(_));
        if !good {
            self.wrong_type(cursor, &format!("a list of {of}"));
        }
        good
    }

    /// Whether it is a list of objects, or can be read as one. A single object is reported, and
    /// read as the only item.
    pub(super) fn is_listed(&self, cursor: &Cursor<'_>, of: &str) -> bool {
        self.is_list(cursor, of) || matches!(cursor.node.kind, NodeKind::Object(_))
    }

    /// A string.
    pub(super) fn text(&self, cursor: &Cursor<'_>) -> Option<Text> {
        if let NodeKind::String(text) = &cursor.node.kind {
            return Some(text.clone());
        }
        self.wrong_type(cursor, "a string");
        None
    }

    /// A string that is not empty.
    pub(super) fn filled(&self, cursor: &Cursor<'_>) -> Option<Text> {
        let text = self.text(cursor)?;
        if text.is_empty() {
            self.report(cursor.problem(Code::EmptyText, format!("{} must not be empty", cursor.called())));
            return None;
        }
        Some(text)
    }

    /// `true` or `false`.
    pub(super) fn flag(&self, cursor: &Cursor<'_>) -> Option<bool> {
        if let NodeKind::Bool(value) = cursor.node.kind {
            return Some(value);
        }
        self.wrong_type(cursor, "true or false");
        None
    }

    /// One of some words.
    pub(super) fn word(&self, cursor: &Cursor<'_>, words: &[&str]) -> Option<Text> {
        let text = self.text(cursor)?;
        if words.contains(&&*text) {
            return Some(text);
        }
        self.unknown_word(cursor, Code::UnknownWord, &text, words);
        None
    }

    /// Reports that a word is not one of the allowed ones.
    pub(super) fn unknown_word(&self, cursor: &Cursor<'_>, code: Code, word: &str, words: &[&str]) {
        let found = cursor.problem(code, format!("{} can't be `{word}`", cursor.called()));
        self.report(match self.near_word(word, words) {
            Some(near) => self.did_you_mean(found, cursor, near),
            None => found.help(format!("it is one of {}", in_words(words))),
        });
    }

    /// A whole number in a range.
    pub(super) fn whole(&self, cursor: &Cursor<'_>, range: RangeInclusive<u64>) -> Option<u64> {
        let NodeKind::Number(number) = &cursor.node.kind else {
            self.wrong_type(cursor, "a whole number");
            return None;
        };
        let value = number.as_f64().unwrap_or(f64::NAN);
        if value.fract() != 0.0 {
            let message = format!("{} must be a whole number, not {number}", cursor.called());
            self.report(cursor.problem(Code::WrongType, message));
            return None;
        }
        let whole = number
            .as_u64()
            .or_else(|| (0.0..1e18).contains(&value).then_some(value as u64));
        match whole {
            Some(whole) if range.contains(&whole) => Some(whole),
            _ => {
                self.out_of_range(cursor, number, *range.start() as f64, *range.end() as f64);
                None
            }
        }
    }

    /// Any number in a range.
    pub(super) fn number(&self, cursor: &Cursor<'_>, range: RangeInclusive<f64>) -> Option<f64> {
        let NodeKind::Number(number) = &cursor.node.kind else {
            self.wrong_type(cursor, "a number");
            return None;
        };
        match number.as_f64() {
            Some(value) if range.contains(&value) => Some(value),
            _ => {
                self.out_of_range(cursor, number, *range.start(), *range.end());
                None
            }
        }
    }

    fn out_of_range(&self, cursor: &Cursor<'_>, number: &Number, least: f64, most: f64) {
        let range = if most >= u32::MAX.into() {
            format!("at least {least}")
        } else {
            format!("from {least} to {most}")
        };
        let message = format!("{} must be {range}, not {number}", cursor.called());
        self.report(cursor.problem(Code::OutOfRange, message));
    }

    /// A pause in seconds, with fractions; rounded up to whole milliseconds.
    pub(super) fn pause(&self, cursor: &Cursor<'_>) -> Option<Millis> {
        let seconds = self.number(cursor, 0.0..=f64::MAX)?;
        self.bounded(cursor, seconds)?;
        // Within a year of milliseconds the product is far below 2⁵³; the first rounding removes
        // the binary rounding error.
        Some(Millis(((seconds * 1e6).round() / 1e3).ceil() as u64))
    }

    /// A bound in whole seconds, at least 1.
    pub(super) fn timeout(&self, cursor: &Cursor<'_>) -> Option<Millis> {
        let seconds = self.whole(cursor, 1..=u64::MAX)?;
        self.bounded(cursor, seconds as f64)?;
        Some(Millis::from_secs(seconds))
    }

    fn bounded(&self, cursor: &Cursor<'_>, seconds: f64) -> Option<()> {
        if seconds <= EXECUTION_TIMEOUT.as_secs_f64() {
            return Some(());
        }
        let message = format!("{} is longer than an execution may take", cursor.called());
        self.report(cursor.problem(Code::TimeoutTooLong, message).help(format!(
            "the most is {}, one year of 365 days",
            EXECUTION_TIMEOUT.as_secs()
        )));
        None
    }
}

/// Words for a message: `` `a`, `b` and `c` ``.
pub(super) fn in_words(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}
