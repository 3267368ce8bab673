//! Strings of a JSON text: escapes, and text that is almost a string.

use super::super::problems::{excerpt, problem, shown};
use super::super::{NodeKind, Span};
use super::scan::{Scanner, TokenKind};
use crate::syntax::code::SyntaxCode;
use crate::value::Text;

/// The maximum look-ahead for a mistake, in bytes. Without a bound, a text full of mistakes would
/// take quadratic time.
const LOOK_AHEAD_BYTES: usize = 200;

/// A string that is being read.
#[derive(Default)]
struct Reading {
    value: String,
    /// The first raw control character.
    control: Option<(usize, char)>,
    /// The first quote that should have been escaped.
    quote: Option<usize>,
}

impl Scanner<'_> {
    /// A string in double quotes; the next byte is the first quote.
    pub(super) fn string(&mut self) -> TokenKind {
        let rest = self.text.as_bytes().get(self.at + 1..).unwrap_or_default();
        let plain = rest
            .iter()
            .position(|&byte| byte == b'"' || byte == b'\\' || byte < 0x20)
            .unwrap_or(rest.len());
        let ends = rest.get(plain) == Some(&b'"') && !rest.get(plain + 1).is_some_and(u8::is_ascii_alphanumeric);
        let text = if ends {
            let start = self.at + 1;
            self.at = start + plain + 1;
            let written = self.text.get(start..start + plain).unwrap_or_default();
            self.words.shared(written)
        } else {
            Text::from(self.string_with_escapes())
        };
        TokenKind::Scalar(NodeKind::String(text))
    }

    fn string_with_escapes(&mut self) -> String {
        let start = self.at;
        let mut reading = Reading::default();
        self.at += 1;
        loop {
            let rest = self.rest();
            let plain = rest
                .find(|letter: char| letter == '"' || letter == '\\' || letter < '\u{20}')
                .unwrap_or(rest.len());
            reading.value.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain;
            match rest.get(plain..).and_then(|rest| rest.chars().next()) {
                Some('"')
                    if !self.ends_too_late(start) && self.is_inner_quote(&reading.value, reading.quote.is_some()) =>
                {
                    reading.quote.get_or_insert(self.at);
                    reading.value.push('"');
                    self.at += 1;
                }
                Some('"') if self.ends_too_late(start) => {
                    self.unclosed(start, &mut reading.value);
                    return reading.value;
                }
                Some('"') => {
                    self.at += 1;
                    break;
                }
                Some('\\') => {
                    let letter = self.escape();
                    reading.value.push(letter);
                }
                Some(control @ ('\n' | '\r')) if self.goes_on() => {
                    reading.control.get_or_insert((self.at, control));
                    reading.value.push(control);
                    self.at += 1;
                }
                Some('\n' | '\r') | None => {
                    self.unclosed(start, &mut reading.value);
                    return reading.value;
                }
                Some(control) => {
                    reading.control.get_or_insert((self.at, control));
                    reading.value.push(control);
                    self.at += 1;
                }
            }
        }
        self.add_fix(start, &reading);
        reading.value
    }

    /// Reports raw control characters and quotes in a string that ends at the next byte.
    fn add_fix(&mut self, start: usize, reading: &Reading) {
        let span = self.since(start);
        let inner = self.text.get(start + 1..self.at - 1).unwrap_or_default();
        if let Some((at, control)) = reading.control {
            let name = match control {
                '\n' | '\r' => "a line break".to_owned(),
                '\t' => "a tab".to_owned(),
                other => format!("the control character {}", shown(other)),
            };
            let place = Span {
                start: at,
                end: at + control.len_utf8(),
            };
            let message = format!("{name} inside a string must be written `{}`", escaped(control));
            let inner = inner.replace("\r\n", "\n");
            let inner: String = inner
                .split_inclusive(|letter: char| letter < ' ')
                .map(control_escaped)
                .collect();
            self.problems.add(problem(SyntaxCode::Syntax, place, message).fixed_by(
                "escape it".to_owned(),
                span,
                format!("\"{inner}\""),
                // A line break may mean that a quote was forgotten.
                !matches!(control, '\n' | '\r'),
            ));
        } else if let Some(at) = reading.quote {
            let place = Span { start: at, end: at + 1 };
            let mut inner = String::with_capacity(reading.value.len());
            for letter in reading.value.chars() {
                inner.push_str(&escaped(letter));
            }
            // Quotes around a word come in pairs; a single one may be the end of another string.
            let pairs = reading.value.matches('"').count().is_multiple_of(2);
            self.problems.add(
                problem(
                    SyntaxCode::Syntax,
                    place,
                    "a `\"` inside a string must be written `\\\"`",
                )
                .fixed_by("escape the quotes".to_owned(), span, format!("\"{inner}\""), pairs),
            );
        }
    }

    /// Whether the quote at the next byte belongs to the text, like both inner quotes of `"he said
    /// "yes" to me"`: a letter directly follows (after the second such quote also after a blank),
    /// and another quote that may end the string stands in the same line. Valid JSON has no letter
    /// there. So it does where it ends a word at the end of the text, as in `"$.state == "open""`.
    fn is_inner_quote(&self, before: &str, second: bool) -> bool {
        let after = self.rest().get(1..).unwrap_or_default();
        if second
            && !before.matches('"').count().is_multiple_of(2)
            && let Some(rest) = after.strip_prefix('"')
        {
            let rest = rest.trim_start();
            return rest.is_empty() || rest.starts_with([',', '}', ']']);
        }
        let next = if second { after.trim_start_matches(' ') } else { after };
        if !next.starts_with(|letter: char| letter.is_ascii_alphanumeric()) {
            return false;
        }
        let near = after
            .get(..after.floor_char_boundary(LOOK_AHEAD_BYTES))
            .unwrap_or_default();
        let line = near.split(['\n', '\r']).next().unwrap_or_default();
        let Some(next) = line.find('"') else { return false };
        let following = line.get(next + 1..).unwrap_or_default().trim_start();
        let between = line.get(..next).unwrap_or_default().trim_end();
        // A key with its colon, or a string after a comma, is a word of its own.
        !following.starts_with(':') && !between.ends_with([',', ':', '[', '{'])
    }

    /// Whether the string continues after the line break at the next byte: the next quote ends it.
    fn goes_on(&self) -> bool {
        let rest = self.rest();
        let Some(quote) = rest.find('"') else { return false };
        let after = rest.get(quote + 1..).unwrap_or_default().trim_start();
        after.is_empty() || after.starts_with([',', '}', ']'])
    }

    /// Whether the quote at the next byte begins another string, because the current one has no
    /// end: a word directly follows, a `,` or `:` comes before it, and the line has an odd number
    /// of quotes.
    fn ends_too_late(&self, start: usize) -> bool {
        let after = self.rest().get(1..).unwrap_or_default();
        let long = self.at - start > LOOK_AHEAD_BYTES;
        if long || !after.starts_with(|letter: char| letter.is_alphanumeric() || letter == '$') {
            return false;
        }
        let written = self.text.get(start + 1..self.at).unwrap_or_default();
        let marks = written.get(likely_end(written)..).unwrap_or_default();
        marks.contains([',', ':']) && self.has_odd_quotes(after)
    }

    /// Whether a quote of the line that continues with `after` has no partner.
    pub(super) fn has_odd_quotes(&self, after: &str) -> bool {
        let near = after
            .get(..after.floor_char_boundary(LOOK_AHEAD_BYTES))
            .unwrap_or_default();
        let line = near.split(['\n', '\r']).next().unwrap_or_default();
        line.matches('"').count() % 2 == 1
    }

    /// Ends a string without an end where its text most likely ends.
    fn unclosed(&mut self, start: usize, value: &mut String) {
        let read = self.at;
        let written = self.text.get(start + 1..read).unwrap_or_default();
        let cut = written.len() - likely_end(written);
        value.truncate(value.floor_char_boundary(value.len().saturating_sub(cut)));
        self.at = read - cut;
        let end = Span {
            start: self.at,
            end: self.at,
        };
        let behind = self.rest().split(['\n', '\r']).next().unwrap_or_default();
        // The message quotes the text after the missing quote up to the end of the next word in
        // quotes.
        let quote = behind.get(cut + 1..).and_then(|behind| behind.find('"'));
        let behind = quote.map_or(Some(behind), |quote| behind.get(..cut + quote + 2));
        let place = match behind.unwrap_or_default().trim() {
            "" => "at the end of the line".to_owned(),
            behind => format!("before `{}`", excerpt(behind)),
        };
        let message = format!("the string that begins here has no end: a `\"` is missing {place}");
        self.problems
            .add(problem(SyntaxCode::Syntax, self.since(start), message).guess("close it", end, "\""));
    }

    /// The character of an escape; the next byte is its backslash.
    fn escape(&mut self) -> char {
        let start = self.at;
        let letter = self.rest().chars().nth(1);
        self.at += 1;
        let Some(letter) = letter.filter(|&letter| letter >= ' ') else {
            let span = self.since(start);
            let message = "a `\\` alone: a backslash is written `\\\\`";
            self.problems
                .add(problem(SyntaxCode::Syntax, span, message).guess("double the backslash", span, "\\\\"));
            return '\\';
        };
        self.at += letter.len_utf8();
        match letter {
            '"' | '\\' | '/' => letter,
            'b' => '\u{8}',
            'f' => '\u{C}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => self.unicode_escape(start),
            other => {
                let span = self.since(start);
                let (title, replacement) = match other {
                    '\'' => ("remove the backslash", "'".to_owned()),
                    _ => ("double the backslash", format!("\\\\{other}")),
                };
                let message = format!("JSON has no escape `\\{}`", shown(other));
                self.problems
                    .add(problem(SyntaxCode::Syntax, span, message).guess(title, span, replacement));
                other
            }
        }
    }

    /// The character of a `\u` escape, whose four digits are next.
    fn unicode_escape(&mut self, start: usize) -> char {
        let Some(number) = self.four_digits() else {
            self.problems.add(problem(
                SyntaxCode::Syntax,
                self.since(start),
                "`\\u` needs four hexadecimal digits",
            ));
            return char::REPLACEMENT_CHARACTER;
        };
        if let Some(letter) = char::from_u32(number) {
            return letter;
        }
        let behind = self.at;
        if number < 0xDC00 && self.rest().starts_with("\\u") {
            self.at += 2;
            if let Some(low @ 0xDC00..=0xDFFF) = self.four_digits() {
                let joined = 0x1_0000 + ((number - 0xD800) << 10) + (low - 0xDC00);
                return char::from_u32(joined).unwrap_or(char::REPLACEMENT_CHARACTER);
            }
            self.at = behind;
        }
        let message = format!("`\\u{number:04x}` is half of a surrogate pair");
        self.problems.add(
            problem(SyntaxCode::Syntax, self.since(start), message).help("write both halves, or the character itself"),
        );
        char::REPLACEMENT_CHARACTER
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    /// A text in quotes that are not JSON's, if the next character is such a quote and its partner
    /// is in the same line.
    pub(super) fn other_quotes(&mut self, first: char) -> Option<Text> {
        let closers: &[char] = match first {
            '\'' => &['\''],
            '`' => &['`'],
            '“' | '”' | '„' => &['”', '“', '"'],
            '‘' | '’' => &['’', '‘'],
            _ => return None,
        };
        let after = self.rest().get(first.len_utf8()..)?;
        let near = after.get(..after.floor_char_boundary(LOOK_AHEAD_BYTES))?;
        let mut value = String::new();
        let mut letters = near.char_indices();
        let (end, closer) = loop {
            match letters.next()? {
                (_, '\n' | '\r') => return None,
                (_, '\\') => match letters.next()?.1 {
                    'n' => value.push('\n'),
                    't' => value.push('\t'),
                    '\n' | '\r' => return None,
                    other => value.push(other),
                },
                (at, letter) if closers.contains(&letter) => break (at, letter),
                (_, letter) => value.push(letter),
            }
        };
        let start = self.at;
        self.at += first.len_utf8() + end + closer.len_utf8();
        let span = self.since(start);
        let json: String = value.chars().map(escaped).collect();
        let message = format!("`{}` must stand in double quotes", excerpt(&value));
        self.problems.add(problem(SyntaxCode::Syntax, span, message).fixed_by(
            "put it in double quotes".to_owned(),
            span,
            format!("\"{json}\""),
            !value.contains('"'),
        ));
        Some(Text::from(value))
    }
}

/// The most likely end of a text without a closing quote: before the JSON signs at its end.
/// Brackets that close brackets of the text itself belong to it.
fn likely_end(written: &str) -> usize {
    let blank = |letter: char| letter == ' ' || letter == '\t';
    let text = written.trim_end_matches(|letter| blank(letter) || "{}[],:".contains(letter));
    let end = text.len();
    if !text.contains(['{', '[']) {
        return end;
    }
    let marks = written.get(end..).unwrap_or_default();
    marks.find([',', ':']).map_or(written.len(), |mark| end + mark)
}

/// The text, with its last character escaped if it is a raw control character.
fn control_escaped(text: &str) -> String {
    match text.chars().next_back().filter(|&letter| letter < ' ') {
        Some(control) => text.trim_end_matches(control).to_owned() + &escaped(control),
        None => text.to_owned(),
    }
}

/// A character as a JSON string writes it.
pub(super) fn escaped(letter: char) -> String {
    match letter {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        control if control < ' ' => format!("\\u{:04x}", u32::from(control)),
        other => other.to_string(),
    }
}
