//! A place in the tree, with the path to it. The JSON pointer is made only when a diagnostic asks
//! for it.

use super::outline::Outline;
use crate::diagnostics::{Code, Diagnostic, quoted};
use crate::graph::StepId;
use crate::syntax::{Node, NodeKind, Span, pointer_of};

/// A value of the definition, and the path to it.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) node: &'a Node,
    key: Key<'a>,
    key_span: Option<Span>,
    parent: Option<&'a Cursor<'a>>,
}

#[derive(Clone, Copy)]
enum Key<'a> {
    Root,
    Step(&'a Outline<'a>, StepId),
    Name(&'a str),
    Index(usize),
}

impl<'a> Cursor<'a> {
    /// The whole definition.
    pub(super) fn root(node: &'a Node) -> Self {
        Self::new(node, Key::Root)
    }

    /// A cursor at a step of the outline.
    pub(super) fn step(node: &'a Node, outline: &'a Outline<'a>, id: StepId) -> Self {
        Self::new(node, Key::Step(outline, id))
    }

    fn new(node: &'a Node, key: Key<'a>) -> Self {
        Self {
            node,
            key,
            key_span: None,
            parent: None,
        }
    }

    /// The member of that name.
    pub(super) fn member<'b>(&'b self, name: &str) -> Option<Cursor<'b>> {
        let member = self.node.member(name)?;
        Some(Cursor {
            node: &member.value,
            key: Key::Name(&member.key),
            key_span: Some(member.key_span),
            parent: Some(self),
        })
    }

    /// The members with their keys, in the order of the text.
    pub(super) fn members<'b>(&'b self) -> impl Iterator<Item = (&'b str, Cursor<'b>)> {
        self.node.members().iter().map(move |member| {
            let cursor = Cursor {
                node: &member.value,
                key: Key::Name(&member.key),
                key_span: Some(member.key_span),
                parent: Some(self),
            };
            (&*member.key, cursor)
        })
    }

    /// The items in their order; none if this is no list.
    pub(super) fn items<'b>(&'b self) -> impl Iterator<Item = Cursor<'b>> {
        self.node.items().iter().enumerate().map(move |(index, node)| Cursor {
            node,
            key: Key::Index(index),
            key_span: None,
            parent: Some(self),
        })
    }

    /// The items of a list; an object that is given in its place counts as the only one.
    pub(super) fn entries<'b>(&'b self) -> impl Iterator<Item = Cursor<'b>> {
        let own: Cursor<'b> = *self;
        let alone = matches!(self.node.kind, NodeKind::Object(_)).then_some(own);
        self.items().chain(alone)
    }

    /// The number of the step, if it is one.
    pub(super) fn step_id(&self) -> Option<StepId> {
        match self.key {
            Key::Step(_, id) => Some(id),
            _ => None,
        }
    }

    /// The key it stands under, if it is a member.
    pub(super) fn name(&self) -> Option<&'a str> {
        match self.key {
            Key::Name(name) => Some(name),
            _ => None,
        }
    }

    /// The string here, if it is one.
    pub(super) fn str(&self) -> Option<&'a str> {
        self.node.as_str()
    }

    /// The JSON pointer.
    pub(super) fn pointer(&self) -> String {
        let parent = || self.parent.map(Cursor::pointer).unwrap_or_default();
        match self.key {
            Key::Root => String::new(),
            Key::Step(outline, id) => outline.pointer(id),
            Key::Name(name) => pointer_of(&parent(), name),
            Key::Index(index) => format!("{}/{index}", parent()),
        }
    }

    /// How messages name it.
    pub(super) fn called(&self) -> String {
        match self.key {
            Key::Root => "the definition".to_owned(),
            Key::Step(..) => "a step".to_owned(),
            Key::Name(name) => quoted(name),
            Key::Index(_) => match self.parent.map(|parent| parent.key) {
                Some(Key::Name(name)) => format!("an item of {}", quoted(name)),
                _ => "an item".to_owned(),
            },
        }
    }

    /// Where its key stands; the value itself if it has no key.
    pub(super) fn key_span(&self) -> Span {
        self.key_span.unwrap_or(self.node.span)
    }

    /// A short span to show for an object as a whole: its name, or else its first key.
    pub(super) fn head(&self) -> Span {
        self.node
            .get("name")
            .filter(|name| name.as_str().is_some())
            .map(|name| name.span)
            .or_else(|| self.node.members().first().map(|member| member.key_span))
            .unwrap_or(self.node.span)
    }

    /// A diagnostic about the value.
    pub(super) fn problem(&self, code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, self.node.span, self.pointer(), message)
    }

    /// A diagnostic about an object as a whole.
    pub(super) fn problem_of_whole(&self, code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, self.head(), self.pointer(), message)
    }

    /// A diagnostic about the presence of the member.
    pub(super) fn problem_of_key(&self, code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(code, self.key_span(), self.pointer(), message)
    }
}
