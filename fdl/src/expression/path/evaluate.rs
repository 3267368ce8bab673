//! Finding what a query asks for, by reference, in the order RFC 9535 gives.

use super::segment::{Comparison, Filter, Operand, Segment, Selector, Slice, Subquery};
use crate::graph::Root;
use crate::value::{Value, compare_numbers};
use std::borrow::Cow;
use std::cmp::Ordering;

/// A place in the data: the root, which may be no value in itself, or a value below it.
#[derive(Clone, Copy)]
pub(super) enum Node<'a> {
    Root(Root<'a>),
    Value(&'a Value),
}

impl<'a> Node<'a> {
    fn key(self, key: &str) -> Option<&'a Value> {
        match self {
            Self::Root(root) => root.member(key),
            Self::Value(Value::Object(object)) => object.get(key),
            Self::Value(_) => None,
        }
    }

    fn index(self, index: i64) -> Option<&'a Value> {
        match self {
            Self::Root(root) => root.item(index),
            Self::Value(Value::Array(array)) => array.at(index),
            Self::Value(_) => None,
        }
    }

    fn items(self) -> &'a [Value] {
        match self {
            Self::Root(Root::Array(array)) | Self::Value(Value::Array(array)) => array.values(),
            _ => &[],
        }
    }

    /// Appends all members or items.
    fn children(self, to: &mut Vec<&'a Value>) {
        match self {
            Self::Root(Root::Object(object)) | Self::Value(Value::Object(object)) => {
                to.extend(object.iter().map(|(_, value)| value));
            }
            Self::Root(Root::Overlay(overlay)) => {
                let (base, over) = (overlay.base(), overlay.over());
                to.extend(base.iter().map(|(key, below)| over.get(key).unwrap_or(below)));
                to.extend(
                    over.iter()
                        .filter(|(key, _)| !base.contains_key(key))
                        .map(|(_, value)| value),
                );
            }
            _ => to.extend(self.items()),
        }
    }

    /// The value, shared with the data where it is below the root.
    pub(super) fn to_value(self) -> Option<Value> {
        match self {
            Self::Root(root) => root.to_value(),
            Self::Value(value) => Some(value.clone()),
        }
    }

    fn to_cow(self) -> Option<Cow<'a, Value>> {
        match self {
            Self::Root(root) => root.to_value().map(Cow::Owned),
            Self::Value(value) => Some(Cow::Borrowed(value)),
        }
    }
}

/// What singular segments lead to.
pub(super) fn walk<'a>(start: Node<'a>, segments: &[Segment]) -> Option<Node<'a>> {
    segments.iter().try_fold(start, |node, segment| {
        match segment {
            Segment::Key(key) => node.key(key),
            Segment::Index(index) => node.index(*index),
            Segment::Children(_) | Segment::Descendants(_) => None,
        }
        .map(Node::Value)
    })
}

/// All that the segments find from `start`; `root` is what `$` means in filters.
pub(super) fn select<'a>(root: Root<'a>, start: Node<'a>, segments: &[Segment]) -> Vec<Node<'a>> {
    if matches!(start, Node::Root(Root::Nothing)) {
        return Vec::new();
    }
    let mut nodes = vec![start];
    for segment in segments {
        let mut found = Vec::new();
        for node in nodes {
            match segment {
                Segment::Key(key) => found.extend(node.key(key)),
                Segment::Index(index) => found.extend(node.index(*index)),
                Segment::Children(selectors) => children(root, node, selectors, &mut found),
                Segment::Descendants(selectors) => descendants(root, node, selectors, &mut found),
            }
        }
        nodes = found.into_iter().map(Node::Value).collect();
    }
    nodes
}

fn children<'a>(root: Root<'a>, node: Node<'a>, selectors: &[Selector], found: &mut Vec<&'a Value>) {
    for selector in selectors {
        match selector {
            Selector::Key(key) => found.extend(node.key(key)),
            Selector::Index(index) => found.extend(node.index(*index)),
            Selector::All => node.children(found),
            Selector::Slice(slice) => sliced(node.items(), *slice, found),
            Selector::Filter(filter) => {
                let mut all = Vec::new();
                node.children(&mut all);
                found.extend(all.into_iter().filter(|value| holds(filter, value, root)));
            }
        }
    }
}

/// The selectors over the node and all below it, a parent before its children, children in order.
fn descendants<'a>(root: Root<'a>, node: Node<'a>, selectors: &[Selector], found: &mut Vec<&'a Value>) {
    let mut below = Vec::new();
    let mut next = Some(node);
    while let Some(node) = next {
        children(root, node, selectors, found);
        let first = below.len();
        node.children(&mut below);
        if let Some(added) = below.get_mut(first..) {
            added.reverse();
        }
        next = below.pop().map(Node::Value);
    }
}

fn sliced<'a>(items: &'a [Value], slice: Slice, found: &mut Vec<&'a Value>) {
    let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let from_start = |index: i64| {
        if index < 0 { index.saturating_add(len) } else { index }
    };
    let (first, least, most) = if slice.step < 0 {
        (len - 1, -1, len - 1)
    } else {
        (0, 0, len)
    };
    let last = if slice.step < 0 { -1 } else { len };
    let start = slice.start.map_or(first, from_start).clamp(least.min(most), most);
    let end = slice.end.map_or(last, from_start).clamp(least.min(most), most);
    let mut at = start;
    while (slice.step > 0 && at < end) || (slice.step < 0 && at > end) {
        found.extend(usize::try_from(at).ok().and_then(|at| items.get(at)));
        at = at.saturating_add(slice.step);
    }
}

/// Whether the filter holds for `current`.
fn holds<'a>(filter: &Filter, current: &'a Value, root: Root<'a>) -> bool {
    match filter {
        Filter::Or(any) => any.iter().any(|filter| holds(filter, current, root)),
        Filter::And(all) => all.iter().all(|filter| holds(filter, current, root)),
        Filter::Not(inside) => !holds(inside, current, root),
        Filter::Exists(query) => !nodes(query, current, root).is_empty(),
        Filter::Compare(left, comparison, right) => {
            let (left, right) = (value(left, current, root), value(right, current, root));
            compare(left.as_deref(), *comparison, right.as_deref())
        }
        Filter::Matches(operand, pattern) => pattern
            .as_ref()
            .is_some_and(|pattern| value(operand, current, root).is_some_and(|value| pattern.matches(&value))),
    }
}

fn start<'a>(query: &Subquery, current: &'a Value, root: Root<'a>) -> Node<'a> {
    if query.absolute {
        Node::Root(root)
    } else {
        Node::Value(current)
    }
}

fn nodes<'a>(query: &Subquery, current: &'a Value, root: Root<'a>) -> Vec<Node<'a>> {
    select(root, start(query, current, root), &query.segments)
}

/// What an operand gives; `None` is the RFC's "Nothing".
fn value<'a>(operand: &'a Operand, current: &'a Value, root: Root<'a>) -> Option<Cow<'a, Value>> {
    match operand {
        Operand::Constant(value) => Some(Cow::Borrowed(value)),
        Operand::Query(query) => walk(start(query, current, root), &query.segments)?.to_cow(),
        Operand::Length(of) => {
            let length = match value(of, current, root)?.as_ref() {
                Value::String(text) => text.chars().count(),
                Value::Array(array) => array.len(),
                Value::Object(object) => object.len(),
                _ => return None,
            };
            Some(Cow::Owned(count(length)))
        }
        Operand::Count(query) => Some(Cow::Owned(count(nodes(query, current, root).len()))),
        Operand::Value(query) => match nodes(query, current, root).as_slice() {
            [only] => only.to_cow(),
            _ => None,
        },
    }
}

fn count(count: usize) -> Value {
    Value::from(u64::try_from(count).unwrap_or(u64::MAX))
}

fn compare(left: Option<&Value>, comparison: Comparison, right: Option<&Value>) -> bool {
    let equal = || left == right;
    let ordered = |wanted: Ordering| match (left, right) {
        (Some(Value::Number(a)), Some(Value::Number(b))) => compare_numbers(a, b) == Some(wanted),
        (Some(Value::String(a)), Some(Value::String(b))) => a.as_str().cmp(b.as_str()) == wanted,
        _ => false,
    };
    match comparison {
        Comparison::Equal => equal(),
        Comparison::NotEqual => !equal(),
        Comparison::Less => ordered(Ordering::Less),
        Comparison::LessOrEqual => ordered(Ordering::Less) || equal(),
        Comparison::Greater => ordered(Ordering::Greater),
        Comparison::GreaterOrEqual => ordered(Ordering::Greater) || equal(),
    }
}
