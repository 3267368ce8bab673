//! Words of a JSON text, and text that is almost JSON: comments, bare words, numbers in free form.

use super::super::number;
use super::super::problems::{Problems, excerpt, is_invisible, problem, shown};
use super::super::{NodeKind, Span};
use super::string_cache::StringCache;
use crate::duration;
use crate::syntax::code::SyntaxCode;
use crate::value::{Number, Text};

/// Reads words from a text. A problem with a word is recorded, and the word is repaired.
pub(super) struct Scanner<'a> {
    pub(super) text: &'a str,
    /// The next byte.
    pub(super) at: usize,
    pub(super) problems: Problems,
    pub(super) words: StringCache,
}

/// A word and its place.
pub(super) struct Token {
    pub(super) span: Span,
    pub(super) kind: TokenKind,
}

pub(super) enum TokenKind {
    Open(Bracket),
    Close(Bracket),
    Colon,
    Comma,
    /// Anything that is a whole value, but not an object or a list.
    Scalar(NodeKind),
    /// The end of the text.
    End,
}

/// Which container.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bracket {
    Object,
    List,
}

impl Bracket {
    pub(super) fn closer(self) -> char {
        match self {
            Self::Object => '}',
            Self::List => ']',
        }
    }

    /// In words, with the article.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::List => "a list",
        }
    }
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Self {
            text,
            at,
            problems: Problems::default(),
            words: StringCache::default(),
        }
    }

    /// The unread rest.
    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The place from a byte up to the next one to be read.
    pub(super) fn since(&self, start: usize) -> Span {
        Span { start, end: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next word; also the end if there are too many problems to read on.
    pub(super) fn token(&mut self) -> Token {
        loop {
            self.skip_blank();
            let start = self.at;
            let kind = match self.peek() {
                None => Some(TokenKind::End),
                _ if self.problems.is_full() => Some(TokenKind::End),
                Some(b'{') => self.sign(TokenKind::Open(Bracket::Object)),
                Some(b'[') => self.sign(TokenKind::Open(Bracket::List)),
                Some(b'}') => self.sign(TokenKind::Close(Bracket::Object)),
                Some(b']') => self.sign(TokenKind::Close(Bracket::List)),
                Some(b':') => self.sign(TokenKind::Colon),
                Some(b',') => self.sign(TokenKind::Comma),
                Some(b'"') => Some(self.string()),
                Some(b'0'..=b'9' | b'-' | b'+' | b'.') => self.number(),
                Some(b'=') => self.instead(TokenKind::Colon, ":"),
                Some(b';') => self.instead(TokenKind::Comma, ","),
                Some(_) => self.word(),
            };
            if let Some(kind) = kind {
                return Token {
                    span: self.since(start),
                    kind,
                };
            }
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "stands beside readers that may find nothing")]
    fn sign(&mut self, kind: TokenKind) -> Option<TokenKind> {
        self.at += 1;
        Some(kind)
    }

    /// A sign of other languages in place of JSON's.
    fn instead(&mut self, kind: TokenKind, json: &str) -> Option<TokenKind> {
        let start = self.at;
        self.at += if self.rest().starts_with("=>") { 2 } else { 1 };
        let span = self.since(start);
        let written = self.text.get(start..self.at).unwrap_or_default();
        self.problems.add(
            problem(SyntaxCode::Syntax, span, format!("`{written}` where JSON has `{json}`")).fix(
                format!("write `{json}`"),
                span,
                json,
            ),
        );
        Some(kind)
    }

    /// Skips blanks and comments.
    pub(super) fn skip_blank(&mut self) {
        loop {
            while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
                self.at += 1;
            }
            let rest = self.rest();
            if self.problems.is_full() {
                return;
            }
            if rest.starts_with('#') || rest.starts_with("//") {
                let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
                self.comment(length, "");
            } else if rest.starts_with("/*") {
                match rest.get(2..).and_then(|inner| inner.find("*/")) {
                    Some(inner) => self.comment(inner + 4, " "),
                    None => {
                        let span = Span {
                            start: self.at,
                            end: self.at + 2,
                        };
                        self.at = self.text.len();
                        self.problems.add(
                            problem(SyntaxCode::Comment, span, "a comment that is not closed")
                                .help("JSON has no comments; use the field `description`, or write YAML"),
                        );
                    }
                }
            } else {
                return;
            }
        }
    }

    fn comment(&mut self, length: usize, replacement: &str) {
        let start = self.at;
        self.at += length;
        let span = self.since(start);
        self.problems.add(
            problem(SyntaxCode::Comment, span, "JSON has no comments")
                .help("use the field `description`, or write YAML")
                .guess("remove the comment", span, replacement),
        );
    }

    fn number(&mut self) -> Option<TokenKind> {
        let start = self.at;
        let rest = self.rest();
        let in_number = |letter: char| letter.is_alphanumeric() || matches!(letter, '+' | '-' | '.' | '_');
        let text = rest
            .split_once(|letter| !in_number(letter))
            .map_or(rest, |(text, _)| text);
        self.at += text.len();
        let span = self.since(start);
        if number::is_json(text) {
            let value = number::value(text).unwrap_or_else(|| {
                self.problems.add(number_range(span, text));
                largest(text.starts_with('-'))
            });
            return Some(TokenKind::Scalar(NodeKind::Number(value)));
        }
        if !text.contains(|letter: char| letter.is_ascii_digit()) {
            return self.not_json(span, text);
        }
        let mended = number::as_json(text)
            .or_else(|| number::other_radix(text))
            .or_else(|| duration::seconds(text).map(|seconds| seconds.to_string()));
        let wrong = problem(
            SyntaxCode::Syntax,
            span,
            format!("`{}` is no number as JSON writes them", excerpt(text)),
        );
        let value = mended.as_deref().and_then(number::value);
        self.problems.add(match mended {
            Some(mended) => wrong.guess(format!("write `{mended}`"), span, mended),
            None => wrong.help("a text goes in double quotes"),
        });
        Some(TokenKind::Scalar(match value {
            Some(value) => NodeKind::Number(value),
            None => NodeKind::String(Text::from(text)),
        }))
    }

    /// A text that begins like a number but has no digits.
    fn not_json(&mut self, span: Span, text: &str) -> Option<TokenKind> {
        match text {
            "-Infinity" | "+Infinity" | "-NaN" | "+NaN" => {
                self.problems
                    .add(problem(SyntaxCode::NumberRange, span, format!("JSON has no `{text}`")));
                Some(TokenKind::Scalar(NodeKind::Null))
            }
            _ => {
                let message = format!("unexpected `{}`", excerpt(text));
                self.problems.add(problem(SyntaxCode::Syntax, span, message));
                None
            }
        }
    }

    /// A word without quotes, a text in other quotes, or an unknown text.
    fn word(&mut self) -> Option<TokenKind> {
        let rest = self.rest();
        let first = rest.chars().next()?;
        if !is_word_start(first) {
            return match self.other_quotes(first) {
                Some(text) => Some(TokenKind::Scalar(NodeKind::String(text))),
                None => self.unexpected(),
            };
        }
        let in_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$' | '-' | '.');
        let word = rest
            .split_once(|letter| !in_word(letter))
            .map_or(rest, |(word, _)| word);
        let start = self.at;
        self.at += word.len();
        let kind = match word {
            "null" => NodeKind::Null,
            "true" => NodeKind::Bool(true),
            "false" => NodeKind::Bool(false),
            other => self.bare_word(other, self.since(start)),
        };
        Some(TokenKind::Scalar(kind))
    }

    fn bare_word(&mut self, word: &str, span: Span) -> NodeKind {
        if let Some(text) = self.bare_address(span.start) {
            return NodeKind::String(Text::from(text));
        }
        let (kind, json) = match word.to_lowercase().as_str() {
            "true" => (NodeKind::Bool(true), "true"),
            "false" => (NodeKind::Bool(false), "false"),
            "null" | "none" | "nil" | "undefined" => (NodeKind::Null, "null"),
            "nan" | "infinity" => {
                self.problems
                    .add(problem(SyntaxCode::NumberRange, span, format!("JSON has no `{word}`")));
                return NodeKind::Null;
            }
            _ if self.rest().starts_with('"') && !self.has_odd_quotes(self.rest().get(1..).unwrap_or_default()) => {
                // The string has its closing quote but no opening quote.
                self.at += 1;
                let at = Span {
                    start: span.start,
                    end: span.start,
                };
                let message = format!("a `\"` is missing before `{}`", excerpt(word));
                self.problems
                    .add(problem(SyntaxCode::Syntax, span, message).guess("insert the quote", at, "\""));
                return NodeKind::String(Text::from(word));
            }
            _ => {
                let message = format!("`{}` must stand in double quotes", excerpt(word));
                // A key must be a string; a value may be a misspelt `true` or number.
                let key = self.rest().trim_start().starts_with(':');
                self.problems.add(problem(SyntaxCode::Syntax, span, message).fixed_by(
                    "put it in double quotes".to_owned(),
                    span,
                    format!("\"{word}\""),
                    key,
                ));
                return NodeKind::String(Text::from(word));
            }
        };
        let message = format!("`{word}` where JSON has `{json}`");
        self.problems
            .add(problem(SyntaxCode::Syntax, span, message).fix(format!("write `{json}`"), span, json));
        kind
    }

    /// A text such as `http://localhost/a` or `queue:jobs` without its opening quote, or without
    /// both quotes. It is a value, so its colon is not a separator.
    fn bare_address(&mut self, start: usize) -> Option<&'a str> {
        let is_value = self.text.get(..start)?.trim_end().ends_with(':');
        let more = self.rest().strip_prefix(':')?;
        let ends = |letter: char| letter.is_whitespace() || matches!(letter, '"' | ',');
        let more = more.split_once(ends).map_or(more, |(more, _)| more);
        if !is_value || more.is_empty() {
            return None;
        }
        let after = self.rest().get(1 + more.len()..).unwrap_or_default();
        let closed = after.strip_prefix('"').is_some_and(|after| !self.has_odd_quotes(after));
        let more = match closed {
            true => more,
            // The end of the containers is not part of it.
            false => more.trim_end_matches(['}', ']']),
        };
        self.at += 1 + more.len();
        let span = self.since(start);
        let text = self.text.get(start..self.at)?;
        self.problems.add(match closed {
            true => {
                self.at += 1;
                let at = Span { start, end: start };
                let message = format!("a `\"` is missing before `{}`", excerpt(text));
                problem(SyntaxCode::Syntax, span, message).guess("insert the quote", at, "\"")
            }
            false => {
                let message = format!("`{}` must stand in double quotes", excerpt(text));
                let title = "put it in double quotes";
                problem(SyntaxCode::Syntax, span, message).guess(title, span, format!("\"{text}\""))
            }
        });
        Some(text)
    }

    /// Skips characters that can't begin anything.
    fn unexpected(&mut self) -> Option<TokenKind> {
        let start = self.at;
        let first = self.rest().chars().next()?;
        self.at += first.len_utf8();
        let odd = |letter: char| {
            !letter.is_alphanumeric() && !" \t\r\n{}[]:,\"'+-.=;/#_$".contains(letter) && !is_invisible(letter)
        };
        if !(is_blank(first) || first == char::REPLACEMENT_CHARACTER) {
            let length = self.rest().find(|letter| !odd(letter)).unwrap_or(self.rest().len());
            self.at += length;
        }
        let span = self.since(start);
        let number = format!("U+{:04X}", u32::from(first));
        self.problems.add(match first {
            '\u{FEFF}' => problem(SyntaxCode::Encoding, span, "a byte order mark inside the text")
                .help("it may stand at the very beginning only")
                .fix("remove it", span, ""),
            char::REPLACEMENT_CHARACTER => problem(
                SyntaxCode::Encoding,
                span,
                format!("a character that could not be read ({number})"),
            )
            .help("save the file as UTF-8"),
            _ if is_blank(first) => problem(SyntaxCode::Syntax, span, format!("an invisible character, {number}"))
                .help("JSON has blanks, tabs and line breaks only")
                .fix("write a blank", span, " "),
            _ => {
                let written = self.text.get(start..self.at).unwrap_or_default();
                let written: String = excerpt(written).chars().map(shown).collect();
                problem(SyntaxCode::Syntax, span, format!("unexpected `{written}`"))
            }
        });
        None
    }

    /// Skips the rest of a container whose opening bracket was just read. Returns whether its end
    /// was found.
    pub(super) fn skip_container(&mut self) -> bool {
        let mut depth = 1_usize;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b'"' => self.skip_string(),
                _ => {}
            }
            if depth == 0 {
                return true;
            }
        }
        false
    }

    fn skip_string(&mut self) {
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'"' => return,
                b'\\' => self.at = (self.at + 1).min(self.text.len()),
                _ => {}
            }
        }
    }
}

/// Looks blank, but is not blank to JSON.
fn is_blank(letter: char) -> bool {
    letter.is_whitespace() || is_invisible(letter)
}

fn is_word_start(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_' || letter == '$'
}

/// The replacement for a number that is too large for a double, so that it stays a number.
fn largest(negative: bool) -> Number {
    let value = if negative { f64::MIN } else { f64::MAX };
    Number::from_f64(value).unwrap_or_else(|| 0.into())
}

fn number_range(span: Span, text: &str) -> crate::diagnostics::Diagnostic<SyntaxCode> {
    let message = format!("`{}` is larger than any number there is", excerpt(text));
    problem(SyntaxCode::NumberRange, span, message).help("numbers are IEEE doubles: at most about 1.8e308")
}
