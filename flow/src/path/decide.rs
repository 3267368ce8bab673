//! Whether a filter holds, and the values of its operands.

use super::evaluate::{Halt, Node, Search, walk};
use super::segment::{Comparison, Expression, Filter, Operand, Subquery};
use crate::graph::Exhausted;
use crate::value::{Value, compare_numbers};
use std::borrow::Cow;
use std::cmp::Ordering;

type Found<'a> = Option<Cow<'a, Value>>;

impl<'a, 'q: 'a> Search<'a, 'q> {
    /// Whether the filter holds for `current`.
    pub(super) fn holds(&self, filter: &'q Filter, current: &'a Value) -> Result<bool, Exhausted> {
        self.budget.take(1)?;
        match filter {
            Filter::Or(any) => {
                for filter in any {
                    if self.holds(filter, current)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Filter::And(all) => {
                for filter in all {
                    if !self.holds(filter, current)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Filter::Not(inside) => Ok(!self.holds(inside, current)?),
            Filter::Exists(query) => {
                let mut found = false;
                self.nodes(query, current, |_| {
                    found = true;
                    Err(Halt::Enough)
                })?;
                Ok(found)
            }
            Filter::Compare(left, comparison, right) => {
                let (left, right) = (self.value(left, current)?, self.value(right, current)?);
                if let (Some(left), Some(right)) = (&left, &right) {
                    self.budget.compare(left, right)?;
                }
                Ok(compare(left.as_deref(), *comparison, right.as_deref()))
            }
            Filter::Matches(operand, expression) => {
                let value = self.value(operand, current)?;
                match value.as_deref().and_then(Value::as_str) {
                    Some(text) => self.matches(expression, text, current),
                    None => Ok(false),
                }
            }
        }
    }

    fn matches(&self, expression: &'q Expression, text: &str, current: &'a Value) -> Result<bool, Exhausted> {
        match expression {
            Expression::Written(pattern) => self.patterns.matches(pattern, text, self.budget),
            Expression::Found(operand, whole) => {
                let found = self.value(operand, current)?;
                match found.as_deref().and_then(Value::as_str) {
                    Some(pattern) => self.patterns.matches_found(pattern, *whole, text, self.budget),
                    None => Ok(false),
                }
            }
            Expression::None => Ok(false),
        }
    }

    fn start(&self, query: &Subquery, current: &'a Value) -> Node<'a> {
        if query.absolute {
            Node::Root(self.root)
        } else {
            Node::Value(current)
        }
    }

    fn nodes(
        &self,
        query: &'q Subquery,
        current: &'a Value,
        found: impl FnMut(Node<'a>) -> Result<(), Halt>,
    ) -> Result<(), Exhausted> {
        self.each(self.start(query, current), &query.segments, found)
    }

    /// The value of an operand; `None` is the RFC's "Nothing".
    fn value(&self, operand: &'q Operand, current: &'a Value) -> Result<Found<'a>, Exhausted> {
        match operand {
            Operand::Constant(value) => Ok(Some(Cow::Borrowed(value))),
            Operand::Query(query) => {
                self.budget.take(query.segments.len())?;
                match walk(self.start(query, current), &query.segments) {
                    Some(node) => node.to_cow(self.budget),
                    None => Ok(None),
                }
            }
            Operand::Length(of) => self.length(of, current),
            Operand::Count(query) => {
                let mut all = 0;
                self.nodes(query, current, |_| {
                    all += 1;
                    Ok(())
                })?;
                Ok(Some(Cow::Owned(count(all))))
            }
            Operand::Value(query) => {
                let (mut first, mut more) = (None, false);
                self.nodes(query, current, |node| {
                    more = first.is_some();
                    first.get_or_insert(node);
                    if more { Err(Halt::Enough) } else { Ok(()) }
                })?;
                match first.filter(|_| !more) {
                    Some(only) => only.to_cow(self.budget),
                    None => Ok(None),
                }
            }
        }
    }

    fn length(&self, of: &'q Operand, current: &'a Value) -> Result<Found<'a>, Exhausted> {
        let length = match self.value(of, current)?.as_deref() {
            Some(Value::String(text)) => {
                self.budget.read(text.len())?;
                text.chars().count()
            }
            Some(Value::Array(array)) => array.len(),
            Some(Value::Object(object)) => object.len(),
            _ => return Ok(None),
        };
        Ok(Some(Cow::Owned(count(length))))
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
