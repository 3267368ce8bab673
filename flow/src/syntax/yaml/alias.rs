//! Anchors, aliases and merge keys. Every copy is counted, so that aliases to aliases can't make a
//! small text huge.

use super::super::problems::problem;
use super::super::{Member, Node, NodeKind};
use crate::diagnostics::Diagnostic;
use crate::syntax::code::SyntaxCode;
use crate::value::Text;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of nodes in all copies of one text. Each 64 bytes of a string count as one
/// more node.
const MAX_COPIED_NODES: usize = 100_000;

/// How large a value is.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// Nodes, with strings counted by their length.
    weight: usize,
    /// The depth of nested containers.
    depth: usize,
}

impl Size {
    /// A value without anything in it.
    pub(super) const ONE: Self = Self { weight: 1, depth: 0 };

    pub(super) fn of_scalar(node: &Node) -> Self {
        Self {
            weight: 1 + node.as_str().map_or(0, str::len) / 64,
            depth: 0,
        }
    }

    /// Adds a contained value.
    pub(super) fn add(&mut self, inner: Self) {
        self.weight = self.weight.saturating_add(inner.weight);
        self.depth = self.depth.max(inner.depth);
    }

    /// The size of a container, where `self` counts its contents.
    pub(super) fn inside_one_more(self) -> Self {
        Self {
            weight: self.weight,
            depth: self.depth + 1,
        }
    }
}

/// The values with anchors.
#[derive(Default)]
pub(super) struct Anchors {
    known: BTreeMap<usize, (Node, Size)>,
    copied: usize,
    refused: bool,
}

/// Why an alias gets no copy.
pub(super) enum Refused {
    /// The copies are too large together. This is reported only once.
    Large,
    /// It would nest too deep.
    Deep,
}

impl Anchors {
    /// Stores a value under the number of its anchor, if it has one. This counts as a copy, too.
    pub(super) fn keep(&mut self, id: usize, node: &Node, size: Size) {
        if id != 0 && self.count(size) {
            self.known.insert(id, (node.clone(), size));
        }
    }

    /// A copy of an anchor's value, for a place where `depth` more containers are allowed; `None`
    /// after a refusal.
    pub(super) fn copy(&mut self, id: usize, depth: usize) -> Result<Option<(Node, Size)>, Refused> {
        let size = self.known.get(&id).map(|&(_, size)| size);
        if size.is_some_and(|size| size.depth > depth) {
            return Err(Refused::Deep);
        }
        if size.is_some_and(|size| self.count(size)) {
            return Ok(self.known.get(&id).cloned());
        }
        if std::mem::replace(&mut self.refused, true) {
            Ok(None)
        } else {
            Err(Refused::Large)
        }
    }

    /// Counts a copy. Returns whether it is allowed.
    fn count(&mut self, size: Size) -> bool {
        self.copied = self.copied.saturating_add(size.weight);
        self.copied <= MAX_COPIED_NODES
    }
}

/// The objects in the value of a `<<`: one, or a list of them.
pub(super) fn mergeable(node: Node) -> (Vec<Node>, Option<Diagnostic<SyntaxCode>>) {
    let nodes = match node.kind {
        NodeKind::Array(items) => items,
        kind => vec![Node { span: node.span, kind }],
    };
    let (fitting, other): (Vec<Node>, Vec<Node>) = nodes
        .into_iter()
        .partition(|node| matches!(node.kind, NodeKind::Object(_)));
    let wrong = other.first().map(|node| {
        let message = format!(
            "`<<` takes an object or a list of objects, and this is {}",
            node.kind_name()
        );
        problem(SyntaxCode::Yaml, node.span, message)
    });
    (fitting, wrong)
}

/// An object's members together with those of `<<`, which come first. The object's own keys win
/// over theirs, and earlier ones over later ones.
pub(super) fn merged(own: Vec<Member>, merges: Vec<Node>) -> Vec<Member> {
    if merges.is_empty() {
        return own;
    }
    let mut known: BTreeSet<Text> = own.iter().map(|member| member.key.clone()).collect();
    let mut members = Vec::new();
    for node in merges {
        if let NodeKind::Object(theirs) = node.kind {
            members.extend(theirs.into_iter().filter(|member| known.insert(member.key.clone())));
        }
    }
    members.extend(own);
    members
}
