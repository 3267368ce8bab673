//! YAML 1.2 with the core schema, with positions, from the events of `granit-parser`. Of the rest
//! of YAML only merge keys (`<<`) are known, because real files use them. The tree is built without
//! recursion, and copies by aliases are bounded.

mod alias;
mod message;
mod scalar;
#[cfg(test)]
mod tests;

use super::location::pointer_of;
use super::members::without_duplicates;
use super::problems::{MAX_PROBLEMS, Problems, excerpt, problem};
use super::{MAX_DEPTH, Member, Node, NodeKind, Parse, Source, Span};
use crate::diagnostics::Diagnostic;
use crate::syntax::code::SyntaxCode;
use crate::value::Text;
use alias::{Anchors, Size, merged};
use granit_parser::{Event, Parser, ScalarStyle};
use scalar::{Scalar, Tagged};

/// Parses a YAML text of any size.
pub(super) fn parse(source: &Source) -> Parse {
    let text = source.text();
    let mut builder = Builder {
        text,
        frames: Vec::new(),
        anchors: Anchors::default(),
        problems: Problems::default(),
        last_end: 0,
        documents: 0,
        root: None,
    };
    let truncated = !builder.run();
    builder.finish();
    Parse {
        root: builder.root,
        diagnostics: builder.problems.into_diagnostics(),
        truncated,
    }
}

struct Builder<'a> {
    text: &'a str,
    /// The open collections, the outermost first.
    frames: Vec<Frame>,
    anchors: Anchors,
    problems: Problems,
    /// The end of the last scalar or collection.
    last_end: usize,
    documents: usize,
    root: Option<Node>,
}

/// An open collection.
struct Frame {
    start: usize,
    /// The number of its anchor; 0 if it has none.
    anchor: usize,
    size: Size,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Object {
        members: Vec<Member>,
        /// The values of its `<<` keys.
        merges: Vec<Node>,
        key: Key,
    },
}

/// The state of an object between keys and values.
#[derive(Clone)]
enum Key {
    /// A key is next.
    Expected,
    /// The value of this key is next.
    Of(Text, Span),
    /// The value of `<<` is next.
    Merge,
    /// A value is next whose key was not a key.
    Bad,
}

impl Builder<'_> {
    /// Reads all events. Returns whether the text could be read to its end.
    fn run(&mut self) -> bool {
        let options = granit_parser::options! {
            emit_unresolved_aliases: true,
            flow_nesting_limit: MAX_DEPTH,
            block_nesting_limit: MAX_DEPTH,
        };
        for event in Parser::new_from_str_with_options(self.text, options) {
            let went_on = match event {
                Ok((event, span)) => self.event(event, &span),
                Err(error) => {
                    self.add(message::of(&error, self.text));
                    false
                }
            };
            if self.problems.is_full() {
                self.problems.leave_off();
                return false;
            }
            if !went_on {
                return false;
            }
        }
        true
    }

    /// Takes one event. Returns whether to go on.
    fn event(&mut self, event: Event<'_>, at: &granit_parser::Span) -> bool {
        let span = self.span(at);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let wrong = problem(SyntaxCode::YamlDocuments, span, "a second document begins here");
                    self.add(wrong.help("a file holds one definition"));
                    return false;
                }
            }
            Event::Scalar(value, style, anchor, tag) => {
                let tagged = Tagged::of(tag.as_deref());
                let tag = at.tag_span().map(|tag| self.span(&tag));
                self.scalar(
                    &Scalar {
                        value: &value,
                        style,
                        span,
                    },
                    tagged,
                    tag,
                    anchor,
                );
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.collection_tag(Tagged::of(tag.as_deref()), "seq", at);
                return self.open(span, anchor, Content::List(Vec::new()));
            }
            Event::MappingStart(_, anchor, tag) => {
                self.collection_tag(Tagged::of(tag.as_deref()), "map", at);
                let content = Content::Object {
                    members: Vec::new(),
                    merges: Vec::new(),
                    key: Key::Expected,
                };
                return self.open(span, anchor, content);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                // A block-style collection ends at its last value, not where the next word begins.
                let end = if span.end > span.start { span.end } else { self.last_end };
                self.close(end);
            }
            Event::Alias(id) => self.alias(id, span),
            Event::UnresolvedAlias(name) => {
                let message = format!("`*{}` refers to no anchor before it", excerpt(&name));
                let help = "a text that begins with `*` goes in quotes";
                self.add(problem(SyntaxCode::YamlAlias, span, message).help(help));
                self.attach(null(span), Size::ONE);
            }
            _ => {}
        }
        true
    }

    /// A parser's span in bytes of the source.
    fn span(&self, span: &granit_parser::Span) -> Span {
        let range = span.byte_range().unwrap_or_default();
        let start = self.text.floor_char_boundary(range.start);
        Span {
            start,
            end: self.text.floor_char_boundary(range.end).max(start),
        }
    }

    /// Adds a problem of the current value.
    fn add(&mut self, wrong: Diagnostic<SyntaxCode>) {
        self.problems.add(wrong);
        let pointer = self.pointer();
        self.problems.place(&pointer);
    }

    /// The pointer of the current value.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for frame in &self.frames {
            match &frame.content {
                Content::List(items) => pointer = pointer_of(&pointer, items.len()),
                Content::Object {
                    key: Key::Of(key, _), ..
                } => pointer = pointer_of(&pointer, key),
                Content::Object { .. } => {}
            }
        }
        pointer
    }

    fn expects_key(&self) -> bool {
        matches!(
            self.frames.last().map(|frame| &frame.content),
            Some(Content::Object { key: Key::Expected, .. })
        )
    }

    fn scalar(&mut self, scalar: &Scalar<'_>, tagged: Tagged<'_>, tag: Option<Span>, anchor: usize) {
        let (span, kind, wrong) = scalar.resolve(tagged, tag, self.text, self.last_end);
        if let Some(wrong) = wrong {
            self.add(wrong);
        }
        self.last_end = self.last_end.max(span.end);
        let node = Node { span, kind };
        let size = Size::of_scalar(&node);
        self.anchors.keep(anchor, &node, size);
        let merge = scalar.style == ScalarStyle::Plain && scalar.value == "<<" && matches!(tagged, Tagged::Not);
        if merge && self.expects_key() {
            self.set_key(Key::Merge);
        } else {
            self.attach(node, size);
        }
    }

    /// Checks the tag of a collection that begins.
    fn collection_tag(&mut self, tagged: Tagged<'_>, own: &str, at: &granit_parser::Span) {
        let Some(tag) = at.tag_span().map(|tag| self.span(&tag)) else {
            return;
        };
        let written = self.text.get(tag.start..tag.end).unwrap_or_default();
        match tagged {
            Tagged::Not | Tagged::Text => {}
            Tagged::Core(name) if name == own => {}
            Tagged::Core(_) => {
                let kind = if own == "seq" { "a list" } else { "an object" };
                self.add(problem(SyntaxCode::Yaml, tag, format!("`{written}` on {kind}")));
            }
            Tagged::Unknown => {
                let message = format!(
                    "the tag `{}` is not known; the value is read without it",
                    excerpt(written)
                );
                self.add(problem(SyntaxCode::YamlTag, tag, message));
            }
        }
    }

    /// Begins a collection. Returns whether to go on.
    fn open(&mut self, span: Span, anchor: usize, content: Content) -> bool {
        if self.frames.len() >= MAX_DEPTH {
            let message = format!("more than {MAX_DEPTH} lists and objects inside each other");
            self.add(problem(SyntaxCode::NestedTooDeep, span, message));
            return false;
        }
        self.last_end = self.last_end.max(span.end);
        self.frames.push(Frame {
            start: span.start,
            anchor,
            size: Size::ONE,
            content,
        });
        true
    }

    /// Ends the innermost collection.
    fn close(&mut self, end: usize) {
        let Some(frame) = self.frames.pop() else { return };
        let kind = match frame.content {
            Content::List(items) => NodeKind::Array(items),
            Content::Object {
                mut members, merges, ..
            } => {
                let mut twice = Vec::new();
                without_duplicates(&mut members, |first, second| {
                    if twice.len() >= MAX_PROBLEMS {
                        return;
                    }
                    let message = format!("the key `{}` comes twice", excerpt(&second.key));
                    let wrong = problem(SyntaxCode::DuplicateKey, second.key_span, message);
                    twice.push((second.key.clone(), wrong.label(first.key_span, "first here")));
                });
                for (key, mut wrong) in twice {
                    wrong.pointer = pointer_of(&self.pointer(), &key);
                    self.add(wrong);
                }
                NodeKind::Object(merged(members, merges))
            }
        };
        let span = Span {
            start: frame.start,
            end: end.max(frame.start),
        };
        self.last_end = self.last_end.max(span.end);
        let node = Node { span, kind };
        let size = frame.size.inside_one_more();
        self.anchors.keep(frame.anchor, &node, size);
        self.attach(node, size);
    }

    /// Puts a copy of an anchor's value here.
    fn alias(&mut self, id: usize, span: Span) {
        self.last_end = self.last_end.max(span.end);
        if self.frames.iter().any(|frame| frame.anchor == id) {
            let message = "an alias to the value it stands in";
            self.add(problem(SyntaxCode::YamlAlias, span, message));
            self.attach(null(span), Size::ONE);
            return;
        }
        let copied = match self.anchors.copy(id, MAX_DEPTH - self.frames.len().min(MAX_DEPTH)) {
            Ok(copied) => copied,
            Err(alias::Refused::Deep) => {
                let message =
                    format!("more than {MAX_DEPTH} lists and objects inside each other, with what aliases bring in");
                self.add(problem(SyntaxCode::NestedTooDeep, span, message));
                None
            }
            Err(alias::Refused::Large) => {
                let message = "aliases bring in more than a definition may hold";
                let help = "an alias is a copy: aliases to values with aliases grow very fast";
                self.add(problem(SyntaxCode::YamlAlias, span, message).help(help));
                None
            }
        };
        match copied {
            // The contents keep their own places in the text; the whole has the place of the alias.
            Some((node, size)) => self.attach(Node { span, kind: node.kind }, size),
            None => self.attach(null(span), Size::ONE),
        }
    }

    /// Adds a finished value to its collection: a key, a value or an item.
    fn attach(&mut self, node: Node, size: Size) {
        if self.expects_key() {
            self.key(node);
            return;
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return;
        };
        frame.size.add(size);
        match &mut frame.content {
            Content::List(items) => items.push(node),
            Content::Object { members, merges, key } => match std::mem::replace(key, Key::Expected) {
                Key::Of(key, key_span) => members.push(Member {
                    key,
                    key_span,
                    value: node,
                }),
                Key::Merge => {
                    let (fitting, wrong) = alias::mergeable(node);
                    merges.extend(fitting);
                    if let Some(wrong) = wrong {
                        self.add(wrong);
                    }
                }
                Key::Bad | Key::Expected => {}
            },
        }
    }

    fn key(&mut self, node: Node) {
        let written = self.text.get(node.span.start..node.span.end).unwrap_or_default();
        let key = match node.kind {
            NodeKind::String(text) => Key::Of(text, node.span),
            NodeKind::Array(_) | NodeKind::Object(_) => {
                let message = format!("{} as a key", node.kind_name());
                self.add(problem(SyntaxCode::YamlKey, node.span, message).help("keys are strings"));
                Key::Bad
            }
            _ if written.is_empty() => {
                self.add(problem(SyntaxCode::YamlKey, node.span, "a key is missing here"));
                Key::Bad
            }
            _ => {
                let message = format!(
                    "a key must be a string, and `{}` is {}",
                    excerpt(written),
                    node.kind_name()
                );
                let wrong = problem(SyntaxCode::YamlKey, node.span, message);
                let key = Text::from(written);
                self.add(wrong.fix("put it in quotes", node.span, format!("\"{written}\"")));
                Key::Of(key, node.span)
            }
        };
        self.set_key(key);
    }

    fn set_key(&mut self, next: Key) {
        if let Some(Content::Object { key, .. }) = self.frames.last_mut().map(|frame| &mut frame.content) {
            *key = next;
        }
    }

    /// Closes what an error left open, and checks whether there was any content.
    fn finish(&mut self) {
        while !self.frames.is_empty() {
            self.close(self.last_end);
        }
        let blank = self
            .root
            .as_ref()
            .is_none_or(|root| matches!(root.kind, NodeKind::Null) && root.span.start == root.span.end);
        if blank && self.problems.is_empty() {
            self.root = None;
            let message = "there is nothing in the file";
            let help = "a flow is an object with `version`, `type` and `steps`";
            self.add(problem(SyntaxCode::Empty, Span::default(), message).help(help));
        }
    }
}

fn null(span: Span) -> Node {
    Node {
        span,
        kind: NodeKind::Null,
    }
}
