//! Shapes from values: constants, whose shape is exact, and examples, which only show what other
//! values look like.

use super::shape::{Items, Kinds, Known, Members, Others, Shape};
use crate::syntax::Span;
use crate::value::Value;
use std::rc::Rc;

/// Containers inside each other that are looked into.
const MAX_DEPTH: usize = 8;

/// The shape of a constant that stands at `said`.
pub(super) fn shape_of(value: &Value, said: Span) -> Shape {
    shape(value, Some(said), true, MAX_DEPTH)
}

/// The shape of values like this example.
pub(super) fn shape_of_sample(value: &Value) -> Shape {
    shape(value, None, false, MAX_DEPTH)
}

// `depth` bounds the recursion.
fn shape(value: &Value, said: Option<Span>, exact: bool, depth: usize) -> Shape {
    match value {
        Value::Array(_) | Value::Object(_) if depth == 0 => Shape::default(),
        // An example of null says nothing about other possible values.
        Value::Null if !exact => Shape::default(),
        Value::Array(array) => {
            let items = array.values().iter().map(|item| shape(item, said, exact, depth - 1));
            let any = items.reduce(|any, item| any.or(&item));
            Shape::list(Items::All(any.unwrap_or_default()), said)
        }
        Value::Object(object) => {
            let mut members = Members::none();
            for (key, member) in object.iter() {
                members.set(key.clone(), shape(member, said, exact, depth - 1), exact, said);
            }
            if !exact {
                members.others = Others::Unnamed;
            }
            Shape::object(Rc::new(members), said)
        }
        scalar => {
            let mut known = Known::new(Kinds::of(scalar), said);
            known.values = exact.then(|| [scalar.clone()].into());
            Shape::of(known)
        }
    }
}
