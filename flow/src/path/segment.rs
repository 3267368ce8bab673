//! A parsed query: RFC 9535's segments, selectors and filters.

use super::pattern::Pattern;
use crate::value::{Text, Value};

/// One step of a query.
#[derive(Clone, Debug)]
pub(super) enum Segment {
    /// The member of that name: the common case of [`Segment::Children`].
    Key(Text),
    /// The item at that index, from the end when negative.
    Index(i64),
    /// The results of the selectors, one after the other, in each node.
    Children(Vec<Selector>),
    /// The results of the selectors in each node and in all nodes below it; a node comes before those below it.
    Descendants(Vec<Selector>),
}

/// A selection from a node.
#[derive(Clone, Debug)]
pub(super) enum Selector {
    /// The member of that name.
    Key(Text),
    /// The item at that index.
    Index(i64),
    /// All members or items.
    All,
    /// Some items.
    Slice(Slice),
    /// The members or items for which the filter holds.
    Filter(Filter),
}

/// `start:end:step`
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    pub(super) start: Option<i64>,
    pub(super) end: Option<i64>,
    pub(super) step: i64,
}

/// A condition on a member or item.
#[derive(Clone, Debug)]
pub(super) enum Filter {
    /// `||`
    Or(Vec<Filter>),
    /// `&&`
    And(Vec<Filter>),
    /// `!`
    Not(Box<Filter>),
    /// Whether a query finds anything.
    Exists(Subquery),
    /// A comparison.
    Compare(Box<Operand>, Comparison, Box<Operand>),
    /// `match` or `search`.
    Matches(Box<Operand>, Expression),
}

/// The regular expression of `match` or `search`.
#[derive(Clone, Debug)]
pub(super) enum Expression {
    /// It is written in the query.
    Written(Box<Pattern>),
    /// The value of an operand; the flag says whether it is for whole strings. A value that is not
    /// a string or not a regular expression never fits.
    Found(Box<Operand>, bool),
    /// The literal in its place is not a string, so it never fits.
    None,
}

/// A query inside a filter.
#[derive(Clone, Debug)]
pub(super) struct Subquery {
    /// From the root (`$`), not from the current member or item (`@`).
    pub(super) absolute: bool,
    pub(super) segments: Vec<Segment>,
}

/// A side of a comparison, or an argument of a function.
#[derive(Clone, Debug)]
pub(super) enum Operand {
    /// A literal.
    Constant(Value),
    /// The result of a singular query.
    Query(Subquery),
    /// `length()`
    Length(Box<Operand>),
    /// `count()`
    Count(Subquery),
    /// `value()`
    Value(Subquery),
}

/// How two operands compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Whether the form of the segments allows at most one node.
pub(super) fn singular(segments: &[Segment]) -> bool {
    segments
        .iter()
        .all(|segment| matches!(segment, Segment::Key(_) | Segment::Index(_)))
}
