//! Evaluates a condition. There are two results: a missing value, or one that can't be compared,
//! counts as false.

use super::lexer::Comparison;
use super::parser::Expression;
use crate::graph::{Budget, Exhausted, Root};
use crate::value::Value;
use std::borrow::Cow;

pub(super) fn holds(expression: &Expression, data: Root<'_>, budget: &Budget) -> Result<bool, Exhausted> {
    Ok(match expression {
        Expression::Constant(value) => *value == Value::Bool(true),
        Expression::Path(path) => matches!(path.find_below(data), Some(Value::Bool(true))),
        Expression::Not(inside) => !holds(inside, data, budget)?,
        Expression::All(all) => {
            for part in all {
                if !holds(part, data, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        Expression::Any(any) => {
            for part in any {
                if holds(part, data, budget)? {
                    return Ok(true);
                }
            }
            false
        }
        Expression::Compare(left, Comparison::In, right) => return is_in(left, right, data, budget),
        Expression::Compare(left, comparison, right) => {
            match (operand(left, data, budget)?, operand(right, data, budget)?) {
                (Some(left), Some(right)) => {
                    budget.compare(&left, &right)?;
                    comparison.holds(&left, &right)
                }
                _ => false,
            }
        }
    })
}

/// The value of a side of a comparison; `None` if a path finds nothing.
fn operand<'a>(
    expression: &'a Expression,
    data: Root<'a>,
    budget: &Budget,
) -> Result<Option<Cow<'a, Value>>, Exhausted> {
    Ok(match expression {
        Expression::Constant(value) => Some(Cow::Borrowed(value)),
        Expression::Path(path) if path.is_whole() => {
            budget.keep(data.copied())?;
            data.to_value().map(Cow::Owned)
        }
        Expression::Path(path) => path.find_below(data).map(Cow::Borrowed),
        boolean => Some(Cow::Owned(Value::Bool(holds(boolean, data, budget)?))),
    })
}

fn is_in(left: &Expression, right: &Expression, data: Root<'_>, budget: &Budget) -> Result<bool, Exhausted> {
    let Some(left) = operand(left, data, budget)? else {
        return Ok(false);
    };
    let among = |items: &[Value], json_len: usize| {
        budget.compare_each(&left, items, json_len)?;
        Ok(items.contains(&left))
    };
    if let Expression::Path(path) = right
        && path.is_whole()
    {
        return match data {
            Root::Array(array) => among(array.values(), array.json_len()),
            _ => Ok(left.as_str().is_some_and(|key| data.member(key).is_some())),
        };
    }
    match operand(right, data, budget)?.as_deref() {
        Some(Value::Array(array)) => among(array.values(), array.json_len()),
        Some(Value::Object(object)) => Ok(left.as_str().is_some_and(|key| object.contains_key(key))),
        _ => Ok(false),
    }
}
