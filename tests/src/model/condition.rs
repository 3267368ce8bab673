//! Conditions: read and asked in one go.

use super::data;
use serde_json::Value;
use std::cmp::Ordering;

/// Whether a condition holds for this data.
pub fn holds(condition: &str, data: &Value) -> bool {
    let mut reader = Reader {
        rest: condition.trim(),
        data,
    };
    let result = reader.either() == Operand::Found(Value::Bool(true));
    assert!(reader.rest.is_empty(), "no condition: {condition}");
    result
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Found(Value),
    Missing,
}

struct Reader<'a> {
    rest: &'a str,
    data: &'a Value,
}

fn truth(value: bool) -> Operand {
    Operand::Found(Value::Bool(value))
}

fn is_true(operand: &Operand) -> bool {
    *operand == truth(true)
}

impl Reader<'_> {
    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn either(&mut self) -> Operand {
        let mut left = self.both();
        while self.take("||") {
            let right = self.both();
            left = truth(is_true(&left) || is_true(&right));
        }
        left
    }

    fn both(&mut self) -> Operand {
        let mut left = self.comparison();
        while self.take("&&") {
            let right = self.comparison();
            left = truth(is_true(&left) && is_true(&right));
        }
        left
    }

    fn comparison(&mut self) -> Operand {
        let left = self.unary();
        for operator in ["==", "!=", "<=", ">=", "<", ">", "in "] {
            if self.take(operator) {
                let right = self.unary();
                let (Operand::Found(left), Operand::Found(right)) = (left, right) else {
                    return truth(false);
                };
                return truth(compared(operator, &left, &right));
            }
        }
        left
    }

    fn unary(&mut self) -> Operand {
        if self.take("!") {
            let operand = self.unary();
            return truth(!is_true(&operand));
        }
        if self.take("(") {
            let inside = self.either();
            assert!(self.take(")"), "`)` is missing before {}", self.rest);
            return inside;
        }
        if self.take("$") {
            return self.path();
        }
        self.literal()
    }

    /// A path's own text: up to what can't be in one.
    fn path(&mut self) -> Operand {
        let mut bracket = false;
        let end = self.rest.find(|c: char| {
            bracket = (bracket || c == '[') && c != ']';
            !(bracket || c.is_alphanumeric() || ['.', '_', '[', ']'].contains(&c))
        });
        let (path, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.trim_start();
        data::find(self.data, path).map_or(Operand::Missing, Operand::Found)
    }

    fn literal(&mut self) -> Operand {
        if let Some(quote) = self.rest.chars().next().filter(|c| ['"', '\''].contains(c)) {
            let (text, rest) = self.rest[1..].split_once(quote).unwrap_or_default();
            self.rest = rest.trim_start();
            return Operand::Found(Value::from(text));
        }
        let end = self
            .rest
            .find(|c: char| !(c.is_alphanumeric() || ['-', '.'].contains(&c)));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.trim_start();
        Operand::Found(serde_json::from_str(word).unwrap_or_else(|_| panic!("no literal: {word}")))
    }
}

fn compared(operator: &str, left: &Value, right: &Value) -> bool {
    match operator {
        "==" => equal(left, right),
        "!=" => !equal(left, right),
        "in " => match right {
            Value::Array(items) => items.iter().any(|item| equal(item, left)),
            Value::Object(members) => left.as_str().is_some_and(|key| members.contains_key(key)),
            _ => false,
        },
        _ => order(left, right).is_some_and(|order| match operator {
            "<" => order == Ordering::Less,
            ">" => order == Ordering::Greater,
            "<=" => order != Ordering::Greater,
            _ => order != Ordering::Less,
        }),
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64()?.partial_cmp(&right.as_f64()?),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

/// Deep equality; numbers by what they are worth.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, value)| right.get(key).is_some_and(|right| equal(value, right)))
        }
        _ => left == right,
    }
}
