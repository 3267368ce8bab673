//! The parts of a path, for code that asks without data what a path can find.

use super::Query;
use super::segment::{Expression, Filter, Operand, Segment, Selector, Subquery};
use crate::value::Text;

/// A segment of a path, for those who look at paths without evaluating them.
#[derive(Clone, Copy, Debug)]
pub enum PathPart<'q> {
    /// The member of that name.
    Key(&'q Text),
    /// The item at that index, from the end if negative.
    Index(i64),
    /// All members or items.
    All,
    /// Some items.
    Slice,
    /// The members or items for which a filter holds.
    Filter(FilterPaths<'q>),
    /// Several of these at once, or something at any depth.
    Several,
}

/// The paths in a filter.
#[derive(Clone, Copy, Debug)]
pub struct FilterPaths<'q>(&'q Filter);

/// A path in a filter.
#[derive(Clone, Copy, Debug)]
pub struct FilterPath<'q>(&'q Subquery);

impl Query {
    /// Its parts, in order.
    pub fn parts(&self) -> impl Iterator<Item = PathPart<'_>> {
        self.segments.iter().map(part)
    }
}

impl<'q> FilterPaths<'q> {
    /// The paths whose values the filter compares or tests, in no particular order.
    pub fn all(self) -> Vec<FilterPath<'q>> {
        let mut found = Vec::new();
        let mut open = vec![self.0];
        while let Some(filter) = open.pop() {
            match filter {
                Filter::Or(parts) | Filter::And(parts) => open.extend(parts),
                Filter::Not(inside) => open.push(inside),
                Filter::Exists(query) => found.push(FilterPath(query)),
                Filter::Compare(left, _, right) => {
                    found.extend([left, right].into_iter().filter_map(|side| asked(side)));
                }
                Filter::Matches(operand, expression) => {
                    found.extend(asked(operand));
                    if let Expression::Found(from, _) = expression {
                        found.extend(asked(from));
                    }
                }
            }
        }
        found
    }
}

impl<'q> FilterPath<'q> {
    /// Whether it starts from the root (`$`) and not from the current member or item (`@`).
    pub fn is_absolute(self) -> bool {
        self.0.absolute
    }

    /// Its parts, in order.
    pub fn parts(self) -> impl Iterator<Item = PathPart<'q>> {
        self.0.segments.iter().map(part)
    }
}

fn part(segment: &Segment) -> PathPart<'_> {
    match segment {
        Segment::Key(key) => PathPart::Key(key),
        Segment::Index(index) => PathPart::Index(*index),
        Segment::Descendants(_) => PathPart::Several,
        Segment::Children(selectors) => match selectors.as_slice() {
            [Selector::Key(key)] => PathPart::Key(key),
            [Selector::Index(index)] => PathPart::Index(*index),
            [Selector::All] => PathPart::All,
            [Selector::Slice(_)] => PathPart::Slice,
            [Selector::Filter(filter)] => PathPart::Filter(FilterPaths(filter)),
            _ => PathPart::Several,
        },
    }
}

/// The path in an operand, through the functions around it.
fn asked(operand: &Operand) -> Option<FilterPath<'_>> {
    let mut operand = operand;
    loop {
        match operand {
            Operand::Constant(_) => return None,
            Operand::Length(inside) => operand = inside,
            Operand::Query(query) | Operand::Count(query) | Operand::Value(query) => return Some(FilterPath(query)),
        }
    }
}
