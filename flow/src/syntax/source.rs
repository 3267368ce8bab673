//! A text with its name and the positions of its lines.

use std::sync::OnceLock;

/// The format of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// JSON (RFC 8259).
    Json,
    /// YAML 1.2 with the core schema.
    Yaml,
}

/// A position for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineColumn {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters (Unicode scalar values).
    pub column: usize,
}

/// A text to parse, with the name that people know it by.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
    format: Format,
    /// The start of each line, in bytes; computed on first use.
    lines: OnceLock<Vec<usize>>,
    /// The number of characters before each block of the text; computed on first use.
    characters: OnceLock<Vec<usize>>,
}

/// The size of a block, in bytes: at most this many bytes are counted to find a column, even in a
/// long line.
const BLOCK_BYTES: usize = 4096;

/// The mark that some editors put before UTF-8 text. It is not part of a line.
pub(super) const BYTE_ORDER_MARK: char = '\u{FEFF}';

impl Source {
    /// A text and its name. The ending of the name decides the format (`.json`, `.yaml`, `.yml`).
    /// Without a known ending, a text that begins with `{` is JSON, and any other is YAML.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let (name, text) = (name.into(), text.into());
        let format = format_of_name(&name).unwrap_or_else(|| format_of_text(&text));
        Self {
            name,
            text,
            format,
            lines: OnceLock::new(),
            characters: OnceLock::new(),
        }
    }

    /// Reads the text in this format, whatever its name says.
    #[must_use]
    pub fn with_format(mut self, format: Format) -> Self {
        self.format = format;
        self
    }

    /// The path of the file, or what stands for one in diagnostics.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The format that the text is read in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The line and column of a byte. A byte inside a character counts as the character's first
    /// byte, one past the end as the end.
    pub fn line_column(&self, offset: usize) -> LineColumn {
        let offset = self.text.floor_char_boundary(offset);
        let lines = self.lines();
        let line = lines.partition_point(|&start| start <= offset).max(1);
        let start = lines.get(line - 1).copied().unwrap_or(0);
        LineColumn {
            line,
            column: self
                .characters_before(offset)
                .saturating_sub(self.characters_before(start))
                + 1,
        }
    }

    /// How many characters begin before a byte.
    fn characters_before(&self, offset: usize) -> usize {
        let begin = |bytes: &[u8]| bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count();
        let blocks = self.characters.get_or_init(|| {
            let mut before = 0;
            let blocks = self.text.as_bytes().chunks(BLOCK_BYTES);
            let sum = |block: &[u8]| {
                let first = before;
                before += begin(block);
                first
            };
            blocks.map(sum).collect()
        });
        let block = offset / BLOCK_BYTES;
        let Some(before) = blocks.get(block) else {
            return blocks.last().map_or(0, |before| {
                let last = (blocks.len() - 1) * BLOCK_BYTES;
                before + begin(self.text.as_bytes().get(last..).unwrap_or_default())
            });
        };
        before
            + begin(
                self.text
                    .as_bytes()
                    .get(block * BLOCK_BYTES..offset)
                    .unwrap_or_default(),
            )
    }

    /// The text of a line counted from 1, without its line break; empty if there is no such line.
    pub fn line_text(&self, line: usize) -> &str {
        let lines = self.lines();
        let Some(&start) = line.checked_sub(1).and_then(|index| lines.get(index)) else {
            return "";
        };
        let end = lines.get(line).copied().unwrap_or(self.text.len());
        let text = self.text.get(start..end).unwrap_or_default();
        let text = text.strip_suffix('\n').unwrap_or(text);
        text.strip_suffix('\r').unwrap_or(text)
    }

    fn lines(&self) -> &[usize] {
        self.lines.get_or_init(|| {
            let first = if self.text.starts_with(BYTE_ORDER_MARK) {
                BYTE_ORDER_MARK.len_utf8()
            } else {
                0
            };
            let breaks = self.text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
            std::iter::once(first).chain(breaks.map(|(at, _)| at + 1)).collect()
        })
    }
}

fn format_of_name(name: &str) -> Option<Format> {
    let (_, ending) = name.rsplit_once('.')?;
    if ending.eq_ignore_ascii_case("json") {
        Some(Format::Json)
    } else if ending.eq_ignore_ascii_case("yaml") || ending.eq_ignore_ascii_case("yml") {
        Some(Format::Yaml)
    } else {
        None
    }
}

fn format_of_text(text: &str) -> Format {
    let text = text.trim_start_matches(|c: char| c == BYTE_ORDER_MARK || c.is_whitespace());
    if text.starts_with('{') {
        Format::Json
    } else {
        Format::Yaml
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_the_format_and_then_the_text() {
        for (name, text, format) in [
            ("a.json", "type: flow", Format::Json),
            ("a.test.JSON", "", Format::Json),
            ("a.yaml", "{}", Format::Yaml),
            ("a.yml", "{}", Format::Yaml),
            ("a.txt", "{}", Format::Json),
            ("<stdin>", "\u{FEFF}\r\n {}", Format::Json),
            ("<stdin>", "# {}", Format::Yaml),
            ("", "", Format::Yaml),
        ] {
            assert_eq!(Source::new(name, text).format(), format, "{name} {text}");
        }
        assert_eq!(
            Source::new("a.json", "").with_format(Format::Yaml).format(),
            Format::Yaml
        );
    }

    #[test]
    fn lines_and_columns_count_characters_from_one() {
        let source = Source::new("a.json", "ab\r\n星🎵x\n\nlast");
        let at = |offset| {
            let place = source.line_column(offset);
            (place.line, place.column)
        };
        assert_eq!(at(0), (1, 1));
        assert_eq!(at(2), (1, 3));
        assert_eq!(at(4), (2, 1));
        assert_eq!(at(5), (2, 1), "inside a character");
        assert_eq!(at(7), (2, 2));
        assert_eq!(at(11), (2, 3));
        assert_eq!(at(13), (3, 1));
        assert_eq!(at(14), (4, 1));
        assert_eq!(at(18), (4, 5));
        assert_eq!(at(1000), (4, 5));
        assert_eq!(source.line_text(1), "ab");
        assert_eq!(source.line_text(2), "星🎵x");
        assert_eq!(source.line_text(3), "");
        assert_eq!(source.line_text(4), "last");
        assert_eq!(source.line_text(0), "");
        assert_eq!(source.line_text(5), "");
    }

    #[test]
    fn a_byte_order_mark_is_no_column() {
        let source = Source::new("a.json", "\u{FEFF}{}\nx");
        assert_eq!(source.line_column(3), LineColumn { line: 1, column: 1 });
        assert_eq!(source.line_column(0), LineColumn { line: 1, column: 1 });
        assert_eq!(source.line_text(1), "{}");
        assert_eq!(source.line_column(6), LineColumn { line: 2, column: 1 });
    }

    #[test]
    fn columns_of_long_lines_are_those_of_their_characters() {
        let text = format!("{}\n{}", "aé😀".repeat(3_000), "ключ ".repeat(3_000));
        let source = Source::new("a.json", text.as_str());
        let second = text.find('\n').unwrap() + 1;
        for (offset, _) in text.char_indices().filter(|(at, _)| at % 7 == 0) {
            let start = if offset < second { 0 } else { second };
            let column = text[start..offset].chars().count() + 1;
            assert_eq!(source.line_column(offset).column, column, "{offset}");
        }
        let end = source.line_column(text.len());
        assert_eq!((end.line, end.column), (2, 15_001));
        let block = "a".repeat(2 * BLOCK_BYTES);
        assert_eq!(
            Source::new("a", block).line_column(2 * BLOCK_BYTES).column,
            2 * BLOCK_BYTES + 1
        );
    }
}
