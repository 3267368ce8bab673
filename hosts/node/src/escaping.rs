//! Escapes text from outside for terminals and logs, so that nothing in it moves the cursor, ends
//! the line or changes the reading direction.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Whether a character is invisible and controls a terminal or the layout of text: the controls
/// (C0, DEL, C1), marks and overrides of direction, separators of lines and paragraphs, and tags.
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// A text on one line, with `
/// `, `\u{1b}` and similar escapes in place of controls.
pub fn escaped(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// A text that may have several lines, with escapes in place of all other controls.
pub fn escaped_lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n')
}

fn escape(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_bad = |c: char| is_control(c) && !keep(c);
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_bad(c) {
            written.extend(c.escape_default());
        } else {
            written.push(c);
        }
    }
    Cow::Owned(written)
}

/// Writes lines of JSON, with `\u…` in place of controls that JSON leaves unchanged. Each write must be whole lines.
#[derive(Debug)]
pub struct JsonLines<W>(pub W);

impl<W: Write> Write for JsonLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.0.write_all(escaped_json(text).as_bytes())?,
            Err(_) => self.0.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A text that may have several lines and colours, with escapes in place of everything else that controls a terminal.
pub fn escaped_but_colours(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| is_control(c) && c != '\n' && c != '\t';
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(is_bad) {
        let (before, from) = rest.split_at(at);
        written.push_str(before);
        let taken = match colour(from) {
            0 => from.chars().next().map_or(0, |c| {
                written.extend(c.escape_default());
                c.len_utf8()
            }),
            bytes => {
                written.push_str(from.get(..bytes).unwrap_or_default());
                bytes
            }
        };
        rest = from.get(taken..).unwrap_or_default();
    }
    written.push_str(rest);
    Cow::Owned(written)
}

/// The length of the escape sequence for colours (`ESC [ … m`) at the beginning of a text, in bytes; 0 if there is
/// none.
fn colour(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\x1b[") else {
        return 0;
    };
    let digits = parameters
        .bytes()
        .take_while(|byte| matches!(byte, b'0'..=b'9' | b';'))
        .count();
    match parameters.as_bytes().get(digits) {
        Some(b'm') => "\x1b[".len() + digits + 1,
        _ => 0,
    }
}

/// A JSON text with `\u…` in place of controls that JSON leaves unchanged. Between its values, only line ends are
/// controls.
pub fn escaped_json(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| is_control(c) && c != '\n';
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut written = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_bad(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string can't fail.
                let _ = write!(written, "\\u{unit:04x}");
            }
        } else {
            written.push(c);
        }
    }
    Cow::Owned(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaping_shows_control_characters() {
        assert_eq!(escaped("plain é 漢 👩‍💻"), "plain é 漢 👩‍💻");
        for (text, expected) in [
            ("a\nb", "a\\nb"),
            ("a\r\tb", "a\\r\\tb"),
            ("\x1b[2Jgone\x07", "\\u{1b}[2Jgone\\u{7}"),
            ("\u{9b}2J\u{85}\x7f\0", "\\u{9b}2J\\u{85}\\u{7f}\\u{0}"),
            (
                "\u{202e}txt\u{202c}\u{2066}\u{2069}",
                "\\u{202e}txt\\u{202c}\\u{2066}\\u{2069}",
            ),
            (
                "a\u{2028}b\u{2029}\u{200f}\u{e0041}",
                "a\\u{2028}b\\u{2029}\\u{200f}\\u{e0041}",
            ),
        ] {
            assert_eq!(escaped(text), expected);
        }
        assert_eq!(escaped_lines("a\n\x1bb"), "a\n\\u{1b}b");
    }

    #[test]
    fn escaping_leaves_only_colours_of_terminal_sequences() {
        for (text, expected) in [
            (
                "\x1b[1m\x1b[38;5;9merror\x1b[0m:\tx\n",
                "\x1b[1m\x1b[38;5;9merror\x1b[0m:\tx\n",
            ),
            ("\x1b[2J\x1b[1mx\x1b]0;t\x07", "\\u{1b}[2J\x1b[1mx\\u{1b}]0;t\\u{7}"),
            (
                "\u{9b}31m\u{85}\u{202e}\r\x1b[",
                "\\u{9b}31m\\u{85}\\u{202e}\\r\\u{1b}[",
            ),
        ] {
            assert_eq!(escaped_but_colours(text), expected);
        }
    }

    #[test]
    fn escaping_keeps_json_lines_json() {
        let given = "\x7f\u{9b}\u{202e}\u{e0041}\u{2028} é";
        let mut lines = JsonLines(Vec::new());
        let line = format!("{}\n", serde_json::json!({"error": given}));
        lines.write_all(line.as_bytes()).unwrap();
        let written = String::from_utf8(lines.0).unwrap();
        assert!(!written.trim_end_matches('\n').contains(is_control), "{written}");
        let read: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(read["error"], given);
    }
}
