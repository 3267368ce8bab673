//! Parses text into a tree with positions. Parsing never fails: errors come back as diagnostics,
//! together with as much of the tree as there is.

mod code;
mod json;
mod location;
mod members;
mod number;
mod problems;
mod source;
#[cfg(test)]
mod tests;
mod yaml;

pub use crate::span::Span;
pub use code::SyntaxCode;
pub use location::{SpanFinder, StringSpan, find, pointer_of};
pub use source::{Format, LineColumn, Source};

use crate::diagnostics::Diagnostic;
use crate::limits::Limits;
use crate::value::{Number, Text, Value};

/// A value in the source, with its place.
#[derive(Debug)]
pub struct Node {
    /// The place.
    pub span: Span,
    /// The content.
    pub kind: NodeKind,
}

/// The content of a node.
#[derive(Clone, Debug)]
pub enum NodeKind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An exact integer, or an IEEE double.
    Number(Number),
    /// A string, with escapes resolved.
    String(Text),
    /// A list.
    Array(Vec<Node>),
    /// An object; a duplicate key is listed once, with its first value.
    Object(Vec<Member>),
}

/// A member of an object in the source.
#[derive(Clone, Debug)]
pub struct Member {
    /// With escapes resolved.
    pub key: Text,
    /// Where the key stands.
    pub key_span: Span,
    /// What stands behind the colon.
    pub value: Node,
}

/// The result of parsing a source.
#[derive(Clone, Debug, Default)]
pub struct Parse {
    /// The tree, if there is any.
    pub root: Option<Node>,
    /// The errors of the text as JSON or YAML, in order of place.
    pub diagnostics: Vec<Diagnostic<SyntaxCode>>,
    /// Whether the text could not be read to its end. The text may contain parts that the tree
    /// lacks.
    pub truncated: bool,
}

/// The maximum depth of nested containers in a text. Flows need about three for each composite.
pub const MAX_DEPTH: usize = 512;

/// Parses a source in its format, if it is not longer than the default limit of definitions.
pub fn parse(source: &Source) -> Parse {
    parse_within(source, Limits::default().definition_bytes)
}

/// [`parse`] for a source of at most this many bytes. A longer source is not read at all.
pub fn parse_within(source: &Source, bytes: usize) -> Parse {
    let text = source.text();
    if text.len() > bytes {
        let message = format!("the definition has {} bytes, more than the {bytes} allowed", text.len());
        return refused(
            SyntaxCode::TooLarge,
            &message,
            "move parts of it into child flows (`flow:NAME`)",
        );
    }
    // Neither JSON nor YAML has this character, but every other byte of UTF-16 is one.
    if text.bytes().take(64).any(|byte| byte == 0) {
        let message = "the text has NUL characters: it may be UTF-16";
        return refused(SyntaxCode::Encoding, message, "save the file as UTF-8");
    }
    if let Some((message, help)) = other_text(source) {
        return refused(SyntaxCode::Syntax, message, help);
    }
    match source.format() {
        Format::Json => json::parse(source),
        Format::Yaml => yaml::parse(source),
    }
}

/// The kind of a text that should be JSON but is not: YAML, or something around it.
fn other_text(source: &Source) -> Option<(&'static str, &'static str)> {
    let text = source
        .text()
        .trim_start_matches(|letter: char| letter == source::BYTE_ORDER_MARK || letter.is_whitespace());
    if is_fenced(text) {
        let help = "leave out the lines with the three backquotes, and what stands around them";
        return Some(("the definition stands in a fence of Markdown", help));
    }
    if source.format() == Format::Yaml {
        return None;
    }
    let line = text
        .lines()
        .map(str::trim_end)
        .find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let key = line.split_once(':').filter(|(key, value)| {
        let plain = key
            .chars()
            .all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-'));
        plain && !key.is_empty() && (value.is_empty() || value.starts_with(' ')) && !line.ends_with([',', '}', ']'])
    });
    (line == "---" || key.is_some()).then_some((
        "this is YAML, and JSON was expected",
        "name the file `.yaml`; an object of JSON begins with `{`",
    ))
}

/// Whether a fence of Markdown begins in it before the definition does. Text of people may stand before the fence.
fn is_fenced(text: &str) -> bool {
    let begins = |line: &&str| line.starts_with("```") || line.starts_with(['{', '[', '"', '\'']) || is_key(line);
    text.lines().find(begins).is_some_and(|line| line.starts_with("```"))
}

/// Whether the line begins with a key of YAML: a word, a colon, and a blank or nothing.
fn is_key(line: &str) -> bool {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '$');
    line.split_once(':').is_some_and(|(key, value)| {
        !key.is_empty() && key.chars().all(plain) && (value.trim().is_empty() || value.starts_with(' '))
    })
}

/// The result for a text that is not read at all.
fn refused(code: SyntaxCode, message: &str, help: &str) -> Parse {
    Parse {
        root: None,
        diagnostics: vec![Diagnostic::new(code, Span::default(), "", message).help(help)],
        truncated: true,
    }
}

impl Node {
    /// The member of that name, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.member(key).map(|member| &member.value)
    }

    /// The member of that name with its key, if this is an object that has it.
    pub fn member(&self, key: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.key == *key)
    }

    /// The members; empty if this is not an object.
    pub fn members(&self) -> &[Member] {
        match &self.kind {
            NodeKind::Object(members) => members,
            _ => &[],
        }
    }

    /// The items; empty if this is not a list.
    pub fn items(&self) -> &[Node] {
        match &self.kind {
            NodeKind::Array(items) => items,
            _ => &[],
        }
    }

    /// The characters, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            NodeKind::String(text) => Some(text),
            _ => None,
        }
    }

    /// What kind of value this is, in the words of JSON with its article.
    pub fn kind_name(&self) -> &'static str {
        match &self.kind {
            NodeKind::Null => "null",
            NodeKind::Bool(_) => "a boolean",
            NodeKind::Number(_) => "a number",
            NodeKind::String(_) => "a string",
            NodeKind::Array(_) => "a list",
            NodeKind::Object(_) => "an object",
        }
    }

    /// The value without places.
    pub fn to_value(&self) -> Value {
        self.fold(|node, values: Vec<Value>| match &node.kind {
            NodeKind::Null => Value::Null,
            NodeKind::Bool(value) => Value::Bool(*value),
            NodeKind::Number(number) => Value::Number(number.clone()),
            NodeKind::String(text) => Value::String(text.clone()),
            NodeKind::Array(_) => Value::from(values),
            NodeKind::Object(members) => {
                let keys = members.iter().map(|member| member.key.clone());
                Value::Object(keys.zip(values).collect())
            }
        })
    }

    /// Folds this node and everything in it, from the inside out: `make` gets each node with the
    /// results for its items or members, in order. The depth takes no call stack.
    fn fold<T>(&self, mut make: impl FnMut(&Self, Vec<T>) -> T) -> T {
        let mut outer: Vec<(&Self, Vec<T>)> = Vec::new();
        let (mut node, mut made) = (self, Vec::new());
        loop {
            let index = made.len();
            let inner = match &node.kind {
                NodeKind::Array(items) => items.get(index),
                NodeKind::Object(members) => members.get(index).map(|member| &member.value),
                _ => None,
            };
            if let Some(inner) = inner {
                outer.push((std::mem::replace(&mut node, inner), std::mem::take(&mut made)));
                continue;
            }
            let whole = make(node, made);
            let Some(around) = outer.pop() else { return whole };
            (node, made) = around;
            made.push(whole);
        }
    }
}

impl Clone for Node {
    fn clone(&self) -> Self {
        self.fold(|node, nodes: Vec<Self>| Self {
            span: node.span,
            kind: match &node.kind {
                NodeKind::Array(_) => NodeKind::Array(nodes),
                NodeKind::Object(members) => {
                    let copy = |(member, value): (&Member, Self)| Member {
                        key: member.key.clone(),
                        key_span: member.key_span,
                        value,
                    };
                    NodeKind::Object(members.iter().zip(nodes).map(copy).collect())
                }
                scalar => scalar.clone(),
            },
        })
    }
}
