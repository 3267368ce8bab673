//! Evaluates a query by reference, in the order of RFC 9535.
//!
//! Every value that is looked at costs a step of the budget, and only final results are kept. Each
//! value passes through all segments before its next sibling, so there are no lists of intermediate
//! results.

use super::segment::{Segment, Selector, Slice, singular};
use crate::graph::{Budget, Exhausted, Root};
use crate::value::Value;
use std::borrow::Cow;

/// A place in the data: the root, which may not be a value in itself, or a value below it.
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

    /// Passes all members or items to `to` until it has enough.
    fn children<E>(self, mut to: impl FnMut(&'a Value) -> Result<(), E>) -> Result<(), E> {
        match self {
            Self::Root(Root::Object(object)) | Self::Value(Value::Object(object)) => {
                object.iter().try_for_each(|(_, value)| to(value))
            }
            Self::Root(Root::Overlay(overlay)) => {
                let (base, over) = (overlay.base(), overlay.over());
                base.iter()
                    .try_for_each(|(key, below)| to(over.get(key).unwrap_or(below)))?;
                over.iter()
                    .filter(|(key, _)| !base.contains_key(key))
                    .try_for_each(|(_, value)| to(value))
            }
            _ => self.items().iter().try_for_each(to),
        }
    }

    /// The value, which is shared with the data if it is below the root.
    pub(super) fn to_value(self) -> Option<Value> {
        match self {
            Self::Root(root) => root.to_value(),
            Self::Value(value) => Some(value.clone()),
        }
    }

    pub(super) fn to_cow(self, budget: &Budget) -> Result<Option<Cow<'a, Value>>, Exhausted> {
        match self {
            Self::Root(root) => {
                budget.keep(root.copied())?;
                Ok(root.to_value().map(Cow::Owned))
            }
            Self::Value(value) => Ok(Some(Cow::Borrowed(value))),
        }
    }
}

/// The target of singular segments.
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

/// Why a search stops early.
#[derive(Clone, Copy)]
pub(super) enum Halt {
    /// Enough was found.
    Enough,
    /// No steps are left.
    Exhausted,
}

impl From<Exhausted> for Halt {
    fn from(_: Exhausted) -> Self {
        Self::Exhausted
    }
}

/// Searching one root.
pub(super) struct Search<'a, 'q> {
    pub(super) root: Root<'a>,
    pub(super) budget: &'q Budget,
    pub(super) patterns: super::pattern::Built,
}

/// A value that still has segments to pass.
struct Open<'a> {
    value: &'a Value,
    /// The next segment.
    segment: usize,
}

/// One search for one list of segments.
struct Way<'a, 's, 'q, F> {
    search: &'s Search<'a, 'q>,
    segments: &'q [Segment],
    /// All segments from here on are singular.
    tail: usize,
    /// The open values; the last is the next.
    open: Vec<Open<'a>>,
    found: F,
}

impl<'a, 'q> Search<'a, 'q> {
    pub(super) fn new(root: Root<'a>, budget: &'q Budget) -> Self {
        Self {
            root,
            budget,
            patterns: super::pattern::Built::default(),
        }
    }

    /// All results of the segments from the root. The segments are not singular.
    pub(super) fn all(&self, segments: &'q [Segment]) -> Result<Vec<&'a Value>, Exhausted> {
        let mut all = Vec::new();
        self.each(Node::Root(self.root), segments, |node| {
            self.budget.keep(1)?;
            if let Node::Value(value) = node {
                all.push(value);
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Passes all results of the segments from `start` to `found` until it has enough.
    pub(super) fn each(
        &self,
        start: Node<'a>,
        segments: &'q [Segment],
        mut found: impl FnMut(Node<'a>) -> Result<(), Halt>,
    ) -> Result<(), Exhausted> {
        if matches!(start, Node::Root(Root::Nothing)) {
            return Ok(());
        }
        let ended = if singular(segments) {
            let taken = self.budget.take(segments.len()).map_err(Halt::from);
            taken.and_then(|()| walk(start, segments).map_or(Ok(()), found))
        } else {
            let last = segments.iter().rposition(|each| !singular(std::slice::from_ref(each)));
            let mut way = Way {
                search: self,
                segments,
                tail: last.map_or(0, |last| last + 1),
                open: Vec::new(),
                found: |value| found(Node::Value(value)),
            };
            way.walk(start)
        };
        match ended {
            Err(Halt::Exhausted) => Err(Exhausted),
            Ok(()) | Err(Halt::Enough) => Ok(()),
        }
    }
}

impl<'a, 'q, F: FnMut(&'a Value) -> Result<(), Halt>> Way<'a, '_, 'q, F> {
    fn walk(&mut self, start: Node<'a>) -> Result<(), Halt> {
        self.step(start, 0)?;
        while let Some(Open { value, segment }) = self.open.pop() {
            self.step(Node::Value(value), segment)?;
        }
        Ok(())
    }

    /// Takes a node through the next segment, and leaves the results open.
    fn step(&mut self, node: Node<'a>, segment: usize) -> Result<(), Halt> {
        let first = self.open.len();
        match self.segments.get(segment) {
            Some(Segment::Key(key)) => {
                self.search.budget.take(1)?;
                node.key(key).map_or(Ok(()), |value| self.reach(value, segment + 1))?;
            }
            Some(Segment::Index(index)) => {
                self.search.budget.take(1)?;
                node.index(*index)
                    .map_or(Ok(()), |value| self.reach(value, segment + 1))?;
            }
            Some(Segment::Children(selectors)) => self.select(node, selectors, segment + 1)?,
            Some(Segment::Descendants(selectors)) => {
                self.select(node, selectors, segment + 1)?;
                node.children(|value| {
                    self.search.budget.take(1)?;
                    self.open.push(Open { value, segment });
                    Ok::<(), Halt>(())
                })?;
            }
            None => {}
        }
        if let Some(added) = self.open.get_mut(first..) {
            added.reverse();
        }
        Ok(())
    }

    /// A value has passed all segments before this one.
    fn reach(&mut self, value: &'a Value, segment: usize) -> Result<(), Halt> {
        if segment < self.tail {
            self.open.push(Open { value, segment });
            return Ok(());
        }
        let rest = self.segments.get(segment..).unwrap_or_default();
        self.search.budget.take(rest.len())?;
        match walk(Node::Value(value), rest) {
            Some(Node::Value(value)) => (self.found)(value),
            _ => Ok(()),
        }
    }

    fn select(&mut self, node: Node<'a>, selectors: &'q [Selector], next: usize) -> Result<(), Halt> {
        for selector in selectors {
            self.search.budget.take(1)?;
            match selector {
                Selector::Key(key) => node.key(key).map_or(Ok(()), |value| self.reach(value, next))?,
                Selector::Index(index) => node.index(*index).map_or(Ok(()), |value| self.reach(value, next))?,
                Selector::All => node.children(|value| {
                    self.search.budget.take(1)?;
                    self.reach(value, next)
                })?,
                Selector::Slice(slice) => sliced(node.items(), *slice, |value| {
                    self.search.budget.take(1)?;
                    self.reach(value, next)
                })?,
                Selector::Filter(filter) => node.children(|value| {
                    if self.search.holds(filter, value)? {
                        self.reach(value, next)?;
                    }
                    Ok::<(), Halt>(())
                })?,
            }
        }
        Ok(())
    }
}

fn sliced<'a>(items: &'a [Value], slice: Slice, mut to: impl FnMut(&'a Value) -> Result<(), Halt>) -> Result<(), Halt> {
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
        if let Some(value) = usize::try_from(at).ok().and_then(|at| items.get(at)) {
            to(value)?;
        }
        at = at.saturating_add(slice.step);
    }
    Ok(())
}
