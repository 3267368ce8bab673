//! Parses RFC 9535 text into segments.
//!
//! It is our own parser, because a general one could not give the following: the same answer for
//! any remaining stack, time that grows only with the text, exact integers in literals, checked
//! types, and errors that point at their place.

use super::segment::{Segment, Selector, Slice};
use crate::expression_error::ExpressionError;
use crate::string_literal::{self, Rules};
use crate::value::Text;

/// The maximum depth of nested filters, parentheses and functions.
pub(super) const MAX_NESTING: usize = 32;
/// The largest integer of an index or a slice, 2⁵³−1, as in RFC 9535.
const MAX_INTEGER: i64 = (1 << 53) - 1;

/// Boxed, because parsers call each other deeply and each keeps room for an error.
pub(super) type Parsed<T> = Result<T, Box<ExpressionError>>;

/// A place in a text that holds a query.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) nesting: usize,
    /// Whether some filter refers to the root.
    pub(super) absolute: bool,
}

impl<'a> Parser<'a> {
    /// Starts at byte `at`, after the root's name.
    pub(super) fn new(text: &'a str, at: usize) -> Self {
        Self {
            text,
            at,
            nesting: 0,
            absolute: false,
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips the byte if it comes next.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let there = self.byte() == Some(byte);
        if there {
            self.at += 1;
        }
        there
    }

    /// Skips blank space.
    pub(super) fn blank(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The next character or the end, for messages.
    pub(super) fn next_shown(&self) -> String {
        self.rest()
            .chars()
            .next()
            .map_or_else(|| "the end".to_owned(), |c| format!("`{c}`"))
    }

    /// An error at the next character.
    pub(super) fn unexpected(&self, expected: &str) -> Box<ExpressionError> {
        let len = self.rest().chars().next().map_or(0, char::len_utf8);
        ExpressionError::boxed(
            self.at,
            len,
            format!("expected {expected}, found {}", self.next_shown()),
        )
    }

    /// All segments from here on. Stops at text that can't begin a segment, before any blank space
    /// in front of it.
    pub(super) fn segments(&mut self) -> Parsed<Vec<Segment>> {
        let mut segments = Vec::new();
        loop {
            let before = self.at;
            self.blank();
            let descends = self.rest().starts_with("..");
            let selectors = match self.byte() {
                Some(b'.') if descends => self.after_dots(),
                Some(b'.') => self.after_dot(),
                Some(b'[') => self.bracketed(),
                _ => {
                    self.at = before;
                    return Ok(segments);
                }
            };
            segments.push(segment(selectors?, descends));
        }
    }

    fn after_dot(&mut self) -> Parsed<Vec<Selector>> {
        self.at += 1;
        if self.take(b'*') {
            return Ok(vec![Selector::All]);
        }
        Ok(vec![Selector::Key(self.shorthand("a name or `*` after `.`")?)])
    }

    fn after_dots(&mut self) -> Parsed<Vec<Selector>> {
        self.at += 2;
        if self.byte() == Some(b'[') {
            return self.bracketed();
        }
        if self.take(b'*') {
            return Ok(vec![Selector::All]);
        }
        Ok(vec![Selector::Key(self.shorthand("a name, `*` or `[` after `..`")?)])
    }

    /// A name without quotes.
    fn shorthand(&mut self, expected: &str) -> Parsed<Text> {
        let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
        let rest = self.rest();
        if !rest.starts_with(begins) {
            let help = match self.byte() {
                Some(b'0'..=b'9' | b'-') => {
                    "a name that begins like this stands in brackets and quotes: `['1a']`; an index is `[0]`"
                }
                Some(b'"' | b'\'') => "a name in quotes stands in brackets: `['a b']`",
                _ => "names of letters, digits and `_` follow a dot; others stand in brackets and quotes: `['a b']`",
            };
            return Err(self.unexpected(expected).with_help(help));
        }
        let len = rest
            .find(|c: char| !begins(c) && !c.is_ascii_digit())
            .unwrap_or(rest.len());
        self.at += len;
        Ok(Text::from(rest.get(..len).unwrap_or_default()))
    }

    /// `[`, selectors, `]`
    fn bracketed(&mut self) -> Parsed<Vec<Selector>> {
        let open = self.at;
        let mut selectors = Vec::new();
        loop {
            // The byte before is the bracket or the comma.
            self.at += 1;
            self.blank();
            selectors.push(self.selector()?);
            self.blank();
            match self.byte() {
                Some(b',') => {}
                Some(b']') => {
                    self.at += 1;
                    return Ok(selectors);
                }
                _ => return Err(self.unclosed(open)),
            }
        }
    }

    fn unclosed(&self, open: usize) -> Box<ExpressionError> {
        if self.byte().is_some() {
            return self.unexpected("`,` or `]`");
        }
        ExpressionError::boxed(open, self.at - open, "the bracket is not closed").with_help("close it with `]`")
    }

    fn selector(&mut self) -> Parsed<Selector> {
        match self.byte() {
            Some(b'?') => self.filter_selector(),
            Some(b'"' | b'\'') => self.string().map(|name| Selector::Key(Text::from(name))),
            Some(b'*') => {
                self.at += 1;
                Ok(Selector::All)
            }
            Some(b'-' | b':' | b'0'..=b'9') => self.index_or_slice(),
            _ => Err(self.no_selector()),
        }
    }

    fn filter_selector(&mut self) -> Parsed<Selector> {
        self.at += 1;
        self.blank();
        self.nested(self.at, Self::filter).map(Selector::Filter)
    }

    fn no_selector(&self) -> Box<ExpressionError> {
        let Some(byte) = self.byte() else {
            return ExpressionError::boxed(self.at, 0, "the bracket is not closed").with_help("close it with `]`");
        };
        let error = self.unexpected("a name in quotes, an index, `*`, a slice or `?`");
        let word = byte.is_ascii_alphabetic() || byte == b'_' || !byte.is_ascii();
        if word {
            error.with_help("a name in brackets stands in quotes: `['a']`")
        } else {
            error
        }
    }

    fn index_or_slice(&mut self) -> Parsed<Selector> {
        let start = self.optional_integer()?;
        let after = self.at;
        self.blank();
        if !self.take(b':') {
            self.at = after;
            // Without a colon this is an index: an integer came first, or this would not have been
            // called.
            return start.map(Selector::Index).ok_or_else(|| self.unexpected("an index"));
        }
        self.blank();
        let end = self.optional_integer()?;
        let after = self.at;
        self.blank();
        let mut step = None;
        if self.take(b':') {
            let after_colon = self.at;
            self.blank();
            step = self.optional_integer()?;
            if step.is_none() {
                self.at = after_colon;
            }
        } else {
            self.at = after;
        }
        let step = step.unwrap_or(1);
        Ok(Selector::Slice(Slice { start, end, step }))
    }

    fn optional_integer(&mut self) -> Parsed<Option<i64>> {
        match self.byte() {
            Some(b'-' | b'0'..=b'9') => self.integer().map(Some),
            _ => Ok(None),
        }
    }

    fn integer(&mut self) -> Parsed<i64> {
        let rest = self.rest();
        let digits_at = usize::from(rest.starts_with('-'));
        let digits = rest.get(digits_at..).unwrap_or_default();
        let len = digits_at + digits.bytes().take_while(u8::is_ascii_digit).count();
        let written = rest.get(..len).unwrap_or_default();
        let fault = |message: String| Err(ExpressionError::boxed(self.at, len.max(1), message));
        if len == digits_at {
            return fault("expected digits after `-`".to_owned());
        }
        if written == "-0" || (digits.starts_with('0') && len > digits_at + 1) {
            return fault(format!(
                "`{written}` is no index: leading zeros and `-0` are not written"
            ));
        }
        match written.parse::<i64>() {
            Ok(value) if (-MAX_INTEGER..=MAX_INTEGER).contains(&value) => {
                self.at += len;
                Ok(value)
            }
            _ => fault(format!(
                "`{written}` is too large for an index: the largest is 9007199254740991"
            )),
        }
    }

    pub(super) fn string(&mut self) -> Parsed<String> {
        match string_literal::read(self.text, self.at, Rules::Path) {
            Ok((said, end)) => {
                self.at = end;
                Ok(said)
            }
            Err(fault) => Err(Box::new(fault.into())),
        }
    }

    /// Parses something nested that begins at `begin`. This bounds every recursion of the parser
    /// and every walk over its result.
    pub(super) fn nested<T>(&mut self, begin: usize, parse: fn(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == MAX_NESTING {
            let message = format!("more than {MAX_NESTING} filters, parentheses and functions inside each other");
            return Err(ExpressionError::boxed(begin, 1, message));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }
}

/// The segment of these selectors; a single key or index is the plain case.
fn segment(mut selectors: Vec<Selector>, descends: bool) -> Segment {
    if descends {
        return Segment::Descendants(selectors);
    }
    match (selectors.pop(), selectors.is_empty()) {
        (Some(Selector::Key(key)), true) => Segment::Key(key),
        (Some(Selector::Index(index)), true) => Segment::Index(index),
        (last, _) => {
            selectors.extend(last);
            Segment::Children(selectors)
        }
    }
}
