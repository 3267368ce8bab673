//! Places inside values: JSON pointers, and offsets inside strings.

use super::{Format, Node, NodeKind, Source, Span};
use std::cell::Cell;
use std::fmt::{Display, Write};

/// Finds places inside strings.
#[derive(Clone, Copy, Debug)]
pub struct StringSpan;

impl StringSpan {
    /// The place in the source of `len` bytes of a string's value, from the byte `offset` on.
    /// `node_span` is the string's own span. An offset past the end is the end. If the value can't
    /// be matched to its text (a YAML block, a text over several lines, an alias), the result is
    /// the whole span.
    pub fn in_string(source: &Source, node_span: Span, offset: usize, len: usize) -> Span {
        SpanFinder::new(source).in_string(node_span, offset, len)
    }
}

/// Finds places inside strings, one after the other. A later place in the same string is searched
/// from the last one, so that many places in one string take one walk.
#[derive(Debug)]
pub struct SpanFinder<'s> {
    source: &'s Source,
    last: Cell<Option<Last<'s>>>,
}

/// The last string, and how far it was walked.
#[derive(Clone, Copy, Debug)]
struct Last<'s> {
    span: Span,
    written: Option<Written<'s>>,
    reached: Reached,
}

/// A position both in the source and in the value, where a character or escape begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Reached {
    read: usize,
    made: usize,
}

impl<'s> SpanFinder<'s> {
    /// A finder that has not looked at any string yet.
    pub fn new(source: &'s Source) -> Self {
        Self {
            source,
            last: Cell::new(None),
        }
    }

    /// See [`StringSpan::in_string`].
    pub fn in_string(&self, node_span: Span, offset: usize, len: usize) -> Span {
        let mut last = match self.last.get() {
            Some(last) if last.span == node_span => last,
            _ => self.look_into(node_span),
        };
        if last.reached.made > offset {
            last.reached = Reached::default();
        }
        let range = last
            .written
            .and_then(|written| written.range(offset, offset.saturating_add(len), &mut last.reached));
        self.last.set(Some(last));
        range.map_or(node_span, |(start, end)| Span {
            start: node_span.start + start,
            end: node_span.start + end,
        })
    }

    fn look_into(&self, span: Span) -> Last<'s> {
        let raw = self.source.text().get(span.start..span.end);
        Last {
            span,
            written: raw.and_then(|raw| Written::of(raw, self.source.format())),
            reached: Reached::default(),
        }
    }
}

/// The notation of a string in the source.
#[derive(Clone, Copy, Debug)]
struct Written<'a> {
    /// The text between the quotes.
    inner: &'a str,
    /// The bytes before it.
    quote: usize,
    style: Style,
}

#[derive(Clone, Copy, Debug)]
enum Style {
    Plain,
    /// YAML's `'…'`, where `''` is a quote.
    Single,
    /// `"…"` with the escapes of JSON.
    Json,
    /// `"…"` with the escapes of YAML.
    Yaml,
}

impl<'a> Written<'a> {
    fn of(raw: &'a str, format: Format) -> Option<Self> {
        let quoted = |quote: char| raw.strip_prefix(quote)?.strip_suffix(quote);
        let (inner, quote, style) = match (raw.chars().next()?, format) {
            ('"', Format::Json) => (quoted('"')?, 1, Style::Json),
            ('"', Format::Yaml) => (quoted('"')?, 1, Style::Yaml),
            ('\'', Format::Yaml) => (quoted('\'')?, 1, Style::Single),
            ('|' | '>' | '*' | '!' | '&', Format::Yaml) | (_, Format::Json) => return None,
            (_, Format::Yaml) => (raw, 0, Style::Plain),
        };
        let folded = format == Format::Yaml && inner.contains(['\n', '\r']);
        (!folded).then_some(Self { inner, quote, style })
    }

    /// The bytes of the source that hold the bytes `start..end` of the value. The search begins at
    /// `reached`, which is then set to where they begin.
    fn range(&self, start: usize, end: usize, reached: &mut Reached) -> Option<(usize, usize)> {
        let Reached { mut read, mut made } = *reached;
        let mut from = None;
        while let Some(rest) = self.inner.get(read..).filter(|rest| !rest.is_empty()) {
            if from.is_none() && made >= start {
                from = Some(read);
            }
            if from.is_some() && made >= end {
                break;
            }
            let (source_len, value_len) = self.unit(rest)?;
            if from.is_none() && made + value_len > start {
                from = Some(read);
            }
            if from.is_none() || from == Some(read) {
                *reached = Reached { read, made };
            }
            read += source_len;
            made += value_len;
        }
        let from = from.unwrap_or(read);
        Some((self.quote + from, self.quote + if end > start { read } else { from }))
    }

    /// The bytes of the first character or escape, in the source and in the value.
    fn unit(&self, rest: &str) -> Option<(usize, usize)> {
        let first = rest.chars().next()?.len_utf8();
        match self.style {
            Style::Single if rest.starts_with("''") => Some((2, 1)),
            Style::Json | Style::Yaml if rest.starts_with('\\') => escape(rest.get(1..)?, self.style),
            _ => Some((first, first)),
        }
    }
}

/// The bytes of an escape, given the text after its backslash.
fn escape(after: &str, style: Style) -> Option<(usize, usize)> {
    let letter = after.chars().next()?;
    let digits = match (letter, style) {
        ('u', _) => 4,
        ('x', Style::Yaml) => 2,
        ('U', Style::Yaml) => 8,
        ('N' | '_', Style::Yaml) => return Some((2, 2)),
        ('L' | 'P', Style::Yaml) => return Some((2, 3)),
        _ => return Some((1 + letter.len_utf8(), 1)),
    };
    let number = u32::from_str_radix(after.get(1..=digits)?, 16).ok()?;
    let length = 2 + digits;
    if (0xD800..0xDC00).contains(&number)
        && let Some(low) = after.get(digits + 1..).and_then(|next| next.strip_prefix("\\u"))
        && low
            .get(..4)
            .is_some_and(|low| u32::from_str_radix(low, 16).is_ok_and(|low| (0xDC00..0xE000).contains(&low)))
    {
        return Some((length + 6, 4));
    }
    // A lone half of a pair was read as the replacement character.
    let letter = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
    Some((length, letter.len_utf8()))
}

/// The JSON pointer of a member or item, given that of the object or list it is in.
pub fn pointer_of(parent: &str, step: impl Display) -> String {
    let mut pointer = String::with_capacity(parent.len() + 16);
    pointer.push_str(parent);
    pointer.push('/');
    // Writing to a string can't fail.
    let _ = write!(Escaping(&mut pointer), "{step}");
    pointer
}

/// Writes a pointer's step: `~` as `~0`, `/` as `~1`.
struct Escaping<'a>(&'a mut String);

impl Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        for letter in text.chars() {
            match letter {
                '~' => self.0.push_str("~0"),
                '/' => self.0.push_str("~1"),
                other => self.0.push(other),
            }
        }
        Ok(())
    }
}

/// The node that a JSON pointer leads to; `""` is the root itself.
pub fn find<'a>(root: &'a Node, pointer: &str) -> Option<&'a Node> {
    if pointer.is_empty() {
        return Some(root);
    }
    let mut node = root;
    for step in pointer.strip_prefix('/')?.split('/') {
        node = match &node.kind {
            NodeKind::Object(_) => node.get(&step.replace("~1", "/").replace("~0", "~"))?,
            NodeKind::Array(items) => items.get(index(step)?)?,
            _ => return None,
        };
    }
    Some(node)
}

/// A list's index as JSON pointers write it: digits without leading zeros.
fn index(step: &str) -> Option<usize> {
    let plain = step == "0" || !step.starts_with(['0', '+']);
    if plain { step.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::parse;

    /// Checks the source text for each searched substring of a string's value.
    fn check(name: &str, text: &str, pointer: &str, cases: &[(&str, &str)]) {
        let source = Source::new(name, text);
        let parsed = parse(&source);
        let node = find(parsed.root.as_ref().unwrap(), pointer).unwrap();
        let value = node.as_str().unwrap();
        for (wanted, found) in cases {
            let offset = value.find(wanted).unwrap();
            let span = StringSpan::in_string(&source, node.span, offset, wanted.len());
            assert_eq!(&text[span.start..span.end], *found, "{text}: {wanted}");
        }
    }

    #[test]
    fn offsets_in_json_strings() {
        check(
            "a.json",
            r#"{"a": "$.b.c"}"#,
            "/a",
            &[("$.b.c", "$.b.c"), ("c", "c"), ("", "")],
        );
        check(
            "a.json",
            r#"["\n\u00e9\"é\ud83d\ude00x\/y"]"#,
            "/0",
            &[
                ("\n", r"\n"),
                ("\"", r#"\""#),
                ("😀", r"\ud83d\ude00"),
                ("😀x", r"\ud83d\ude00x"),
                ("x", "x"),
                ("/y", r"\/y"),
                ("y", "y"),
            ],
        );
    }

    #[test]
    fn offsets_in_yaml_scalars() {
        check("a.yaml", "a: $.b == 'x'", "/a", &[("==", "=="), ("'x'", "'x'")]);
        check("a.yaml", "a: 'it''s $.b'", "/a", &[("$.b", "$.b"), ("'", "''")]);
        check(
            "a.yaml",
            r#"a: "\x41\u00e9\U0001F600\L\ud83d\ude00 $.b""#,
            "/a",
            &[("A", r"\x41"), ("é", r"\u00e9"), ("\u{2028}", r"\L"), ("$.b", "$.b")],
        );
        check("a.yaml", "a: |\n  $.b\n  c\n", "/a", &[("c", "|\n  $.b\n  c")]);
        check("a.yaml", "a: >-\n  \"$.b\"", "/a", &[("$.b", ">-\n  \"$.b\"")]);
        check("a.yaml", "a: one\n  two", "/a", &[("two", "one\n  two")]);
        check("a.yaml", "a: &x one\nb: *x", "/b", &[("ne", "*x")]);
    }

    #[test]
    fn the_next_place_is_looked_for_from_the_last() {
        let text = r#"["a\n\u00e9b\"c\ud83d\ude00d"]"#;
        let source = Source::new("a.json", text);
        let parsed = parse(&source);
        let node = find(parsed.root.as_ref().unwrap(), "/0").unwrap();
        let spans = SpanFinder::new(&source);
        let bytes = node.as_str().unwrap().len();
        let offsets: Vec<usize> = (0..=bytes + 1).chain((0..bytes).rev()).collect();
        for offset in offsets {
            for len in [0, 1, 3] {
                let alone = StringSpan::in_string(&source, node.span, offset, len);
                assert_eq!(spans.in_string(node.span, offset, len), alone, "{offset} {len}");
            }
        }
        spans.in_string(node.span, bytes - 1, 1);
        let reached = spans.last.get().unwrap().reached;
        assert_eq!((reached.made, reached.read), (bytes - 1, text.len() - 5));
    }

    #[test]
    fn offsets_past_the_end_and_inside_characters() {
        let source = Source::new("a.json", r#""aé""#);
        let whole = Span { start: 0, end: 5 };
        let at = |offset, len| {
            let span = StringSpan::in_string(&source, whole, offset, len);
            (span.start, span.end)
        };
        assert_eq!(at(0, 0), (1, 1));
        assert_eq!(at(3, 0), (4, 4));
        assert_eq!(at(99, 3), (4, 4));
        assert_eq!(at(0, usize::MAX), (1, 4));
        assert_eq!(at(2, 1), (2, 4));
        let nowhere = Span { start: 90, end: 95 };
        assert_eq!(StringSpan::in_string(&source, nowhere, 0, 1), nowhere);
    }

    #[test]
    fn pointers_lead_where_they_say() {
        assert_eq!(pointer_of("", "a/b~c"), "/a~1b~0c");
        assert_eq!(pointer_of("/x", 3), "/x/3");
        let source = Source::new("a.json", r#"{"a/b~c": [1, {"": 2}], "~1": 3}"#);
        let root = parse(&source).root.unwrap();
        let number = |pointer| match find(&root, pointer).map(|node| &node.kind) {
            Some(NodeKind::Number(number)) => number.as_u64(),
            _ => None,
        };
        assert_eq!(number("/a~1b~0c/0"), Some(1));
        assert_eq!(number("/a~1b~0c/1/"), Some(2));
        assert_eq!(number("/~01"), Some(3));
        for nowhere in ["a", "/a~1b~0c/00", "/a~1b~0c/+1", "/a~1b~0c/2", "/~01/x", "/"] {
            assert_eq!(number(nowhere), None, "{nowhere}");
        }
        assert!(find(&root, "").is_some());
    }
}
