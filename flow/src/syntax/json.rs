//! JSON (RFC 8259) with positions. Each error is reported and repaired as a person would, and
//! reading goes on, so that one run shows all errors. Containers have a stack of their own, so the
//! depth takes no call stack.

mod recovery;
mod scan;
mod string;
mod string_cache;
#[cfg(test)]
mod tests;

use super::location::pointer_of;
use super::members::without_duplicates;
use super::problems::{MAX_PROBLEMS, excerpt, problem};
use super::source::BYTE_ORDER_MARK;
use super::{MAX_DEPTH, Member, Node, NodeKind, Parse, Source, Span};
use crate::syntax::code::SyntaxCode;
use crate::value::Text;
use scan::{Bracket, Scanner, TokenKind};

/// Parses a JSON text of any size.
pub(super) fn parse(source: &Source) -> Parse {
    let text = source.text();
    let start = if text.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len_utf8()
    } else {
        0
    };
    let mut parser = Parser {
        scan: Scanner::new(text, start),
        frames: Vec::new(),
        lists: 0,
        expect: Expect::Root,
        last_end: start,
        last_mended: false,
        root: None,
        truncated: false,
    };
    parser.run();
    Parse {
        root: parser.root,
        diagnostics: parser.scan.problems.into_diagnostics(),
        truncated: parser.truncated,
    }
}

struct Parser<'a> {
    scan: Scanner<'a>,
    /// The open containers, the outermost first.
    frames: Vec<Frame>,
    /// How many of them are lists.
    lists: usize,
    expect: Expect,
    /// The end of the last word.
    last_end: usize,
    /// Whether the last word itself was wrong.
    last_mended: bool,
    root: Option<Node>,
    /// Whether the text ends too early, or the document ends before the text.
    truncated: bool,
}

/// The possible next token.
#[derive(Clone, Copy)]
enum Expect {
    /// The whole document.
    Root,
    /// A list's item, or its end if no comma came before.
    Item { comma: Option<Span> },
    /// An object's key, or its end if no comma came before.
    Key { comma: Option<Span> },
    /// The colon after a key.
    Colon,
    /// The value after a colon.
    Value,
    /// A comma, or the end of the container.
    Next,
    /// Nothing more.
    Nothing,
}

/// An open container.
struct Frame {
    start: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Object {
        members: Vec<Member>,
        /// The key whose value is being read; `None` while a value without a key is read.
        key: Option<(Text, Span)>,
    },
}

impl Frame {
    fn bracket(&self) -> Bracket {
        match self.content {
            Content::List(_) => Bracket::List,
            Content::Object { .. } => Bracket::Object,
        }
    }

    fn opener(&self) -> Span {
        Span {
            start: self.start,
            end: self.start + 1,
        }
    }
}

impl Parser<'_> {
    fn run(&mut self) {
        loop {
            if self.scan.problems.is_full() {
                self.give_up();
                return;
            }
            if matches!(self.expect, Expect::Nothing) {
                if !self.after_the_end() {
                    return;
                }
                continue;
            }
            let token = self.scan.token();
            let mended = self.scan.problems.is_unplaced();
            self.place_problems();
            match token.kind {
                TokenKind::Scalar(kind) => self.scalar(Node { span: token.span, kind }),
                TokenKind::Comma => self.comma(token.span),
                TokenKind::Colon => self.colon(token.span),
                TokenKind::Open(bracket) => self.open(token.span, bracket),
                TokenKind::Close(bracket) => self.close(token.span, bracket),
                TokenKind::End => self.end(),
            }
            self.place_problems();
            self.last_end = token.span.end.max(self.last_end);
            self.last_mended = mended;
        }
    }

    /// Gives new problems the pointer of the parser's position.
    fn place_problems(&mut self) {
        if self.scan.problems.is_unplaced() {
            let pointer = self.pointer();
            self.scan.problems.place(&pointer);
        }
    }

    /// The pointer of the expected value, or else of the container.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for (index, frame) in self.frames.iter().enumerate() {
            let inside = index + 1 < self.frames.len() || matches!(self.expect, Expect::Item { .. });
            match &frame.content {
                Content::List(items) if inside => pointer = pointer_of(&pointer, items.len()),
                Content::Object {
                    key: Some((key, _)), ..
                } => pointer = pointer_of(&pointer, key),
                _ => {}
            }
        }
        pointer
    }

    fn scalar(&mut self, node: Node) {
        match self.expect {
            Expect::Key { .. } => self.key(node),
            Expect::Next => {
                self.missing_comma(node.span);
                self.scalar(node);
            }
            Expect::Colon => {
                self.missing_colon(node.span);
                self.attach(node);
            }
            Expect::Root | Expect::Item { .. } | Expect::Value => self.attach(node),
            Expect::Nothing => {}
        }
    }

    fn key(&mut self, node: Node) {
        let text = match node.kind {
            NodeKind::String(text) => text,
            _ => {
                let written = self.scan.text.get(node.span.start..node.span.end).unwrap_or_default();
                let message = format!("a key must be a string, and `{}` is none", excerpt(written));
                self.scan
                    .problems
                    .add(problem(SyntaxCode::Syntax, node.span, message).fix(
                        "put it in double quotes",
                        node.span,
                        format!("\"{written}\""),
                    ));
                Text::from(written)
            }
        };
        if let Some(Frame {
            content: Content::Object { key, .. },
            ..
        }) = self.frames.last_mut()
        {
            *key = Some((text, node.span));
        }
        self.expect = Expect::Colon;
    }

    fn comma(&mut self, span: Span) {
        match self.expect {
            Expect::Next => {
                self.expect = match self.frames.last().map(Frame::bracket) {
                    Some(Bracket::List) => Expect::Item { comma: Some(span) },
                    Some(Bracket::Object) => Expect::Key { comma: Some(span) },
                    None => Expect::Nothing,
                };
            }
            Expect::Colon | Expect::Value => {
                self.missing_value(span);
                self.comma(span);
            }
            Expect::Root | Expect::Item { .. } | Expect::Key { .. } => {
                let message = "a `,` with nothing before it";
                self.scan
                    .problems
                    .add(problem(SyntaxCode::Syntax, span, message).fix("remove the comma", span, ""));
            }
            Expect::Nothing => {}
        }
    }

    fn colon(&mut self, span: Span) {
        if let Expect::Colon = self.expect {
            self.expect = Expect::Value;
        } else {
            self.stray_colon(span);
        }
    }

    fn open(&mut self, span: Span, bracket: Bracket) {
        match self.expect {
            Expect::Colon => self.missing_colon(span),
            Expect::Key { .. } | Expect::Next => self.opened_without_key(span, bracket),
            Expect::Root | Expect::Item { .. } | Expect::Value | Expect::Nothing => {}
        }
        if self.frames.len() >= MAX_DEPTH {
            self.too_deep(span);
            return;
        }
        let (content, expect) = match bracket {
            Bracket::List => (Content::List(Vec::new()), Expect::Item { comma: None }),
            Bracket::Object => (
                Content::Object {
                    members: Vec::new(),
                    key: None,
                },
                Expect::Key { comma: None },
            ),
        };
        self.lists += usize::from(bracket == Bracket::List);
        self.frames.push(Frame {
            start: span.start,
            content,
        });
        self.expect = expect;
    }

    fn close(&mut self, span: Span, bracket: Bracket) {
        if !self.closes_something(span, bracket) {
            return;
        }
        match self.expect {
            Expect::Item { comma: Some(comma) } | Expect::Key { comma: Some(comma) } => {
                let message = format!("a `,` before `{}`", bracket.closer());
                self.scan
                    .problems
                    .add(problem(SyntaxCode::TrailingComma, comma, message).fix("remove the comma", comma, ""));
                self.expect = Expect::Next;
            }
            Expect::Colon | Expect::Value => self.missing_value(span),
            _ => {}
        }
        self.pop(span.end);
    }

    /// Closes the innermost container.
    fn pop(&mut self, end: usize) {
        self.place_problems();
        let Some(frame) = self.frames.pop() else { return };
        self.expect = Expect::Next;
        let kind = match frame.content {
            Content::List(items) => {
                self.lists -= 1;
                NodeKind::Array(items)
            }
            Content::Object { mut members, .. } => {
                let mut twice = Vec::new();
                without_duplicates(&mut members, |first, second| {
                    if twice.len() < MAX_PROBLEMS {
                        twice.push((second.key.clone(), second.key_span, first.key_span));
                    }
                });
                self.report_duplicates(twice);
                NodeKind::Object(members)
            }
        };
        let span = Span {
            start: frame.start,
            end,
        };
        self.attach(Node { span, kind });
    }

    /// Reports the duplicate keys of an object that was just closed and is not yet attached. Each
    /// has its place and that of the first key with the same name.
    fn report_duplicates(&mut self, twice: Vec<(Text, Span, Span)>) {
        if twice.is_empty() {
            return;
        }
        let mut object = self.pointer();
        if let Some(Content::List(items)) = self.frames.last().map(|frame| &frame.content) {
            object = pointer_of(&object, items.len());
        }
        for (key, span, first) in twice {
            let message = format!("the key `{}` comes twice", excerpt(&key));
            let mut wrong = problem(SyntaxCode::DuplicateKey, span, message).label(first, "first here");
            wrong.pointer = pointer_of(&object, &key);
            self.scan.problems.add(wrong);
        }
    }

    /// Adds a finished value to its container.
    fn attach(&mut self, node: Node) {
        self.expect = Expect::Next;
        match self.frames.last_mut().map(|frame| &mut frame.content) {
            None => {
                self.root = Some(node);
                self.expect = Expect::Nothing;
            }
            Some(Content::List(items)) => items.push(node),
            Some(Content::Object { members, key }) => {
                if let Some((key, key_span)) = key.take() {
                    members.push(Member {
                        key,
                        key_span,
                        value: node,
                    });
                }
            }
        }
    }
}
