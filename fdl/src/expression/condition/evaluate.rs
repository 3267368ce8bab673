//! Whether a condition holds. Two-valued: what is missing or cannot be compared does not hold.

use super::lexer::Comparison;
use super::parser::Expression;
use crate::graph::Root;
use crate::value::{Value, compare_numbers};
use std::borrow::Cow;
use std::cmp::Ordering;

pub(super) fn holds(expression: &Expression, data: Root<'_>) -> bool {
    match expression {
        Expression::Constant(value) => *value == Value::Bool(true),
        Expression::Path(path) => matches!(path.find_below(data), Some(Value::Bool(true))),
        Expression::Not(inside) => !holds(inside, data),
        Expression::All(all) => all.iter().all(|part| holds(part, data)),
        Expression::Any(any) => any.iter().any(|part| holds(part, data)),
        Expression::Compare(left, Comparison::In, right) => is_in(left, right, data),
        Expression::Compare(left, comparison, right) => match (operand(left, data), operand(right, data)) {
            (Some(left), Some(right)) => compare(&left, *comparison, &right),
            _ => false,
        },
    }
}

/// The value of what stands beside a comparison; nothing where a path finds nothing.
fn operand<'a>(expression: &'a Expression, data: Root<'a>) -> Option<Cow<'a, Value>> {
    match expression {
        Expression::Constant(value) => Some(Cow::Borrowed(value)),
        Expression::Path(path) if path.is_whole() => data.to_value().map(Cow::Owned),
        Expression::Path(path) => path.find_below(data).map(Cow::Borrowed),
        boolean => Some(Cow::Owned(Value::Bool(holds(boolean, data)))),
    }
}

fn is_in(left: &Expression, right: &Expression, data: Root<'_>) -> bool {
    let Some(left) = operand(left, data) else {
        return false;
    };
    if let Expression::Path(path) = right
        && path.is_whole()
    {
        return match data {
            Root::Array(array) => array.values().contains(&left),
            _ => left.as_str().is_some_and(|key| data.member(key).is_some()),
        };
    }
    match operand(right, data).as_deref() {
        Some(Value::Array(array)) => array.values().contains(&left),
        Some(Value::Object(object)) => left.as_str().is_some_and(|key| object.contains_key(key)),
        _ => false,
    }
}

fn compare(left: &Value, comparison: Comparison, right: &Value) -> bool {
    let order = || match (left, right) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
        // UTF-8 keeps the order of code points.
        (Value::String(a), Value::String(b)) => Some(a.as_str().cmp(b.as_str())),
        _ => None,
    };
    match comparison {
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
        Comparison::Less => order() == Some(Ordering::Less),
        Comparison::LessOrEqual => order().is_some_and(Ordering::is_le),
        Comparison::Greater => order() == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
        // Asked of expressions, not of values.
        Comparison::In => false,
    }
}
