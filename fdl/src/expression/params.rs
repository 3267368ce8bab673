//! `serviceParams`: values with paths into the mapped input inside (section "tasks").

use super::{PathError, Query};
use crate::graph::Root;
use crate::value::{Text, Value};
use std::cell::OnceCell;

/// Containers inside each other; what lies deeper than data may is refused before it is walked.
const DEPTH: usize = 128;

/// Compiled `serviceParams`.
#[derive(Clone, Debug)]
pub struct Params {
    param: Param,
}

/// A value, or what makes it.
#[derive(Clone, Debug)]
enum Param {
    /// A value in which there is no path.
    Constant(Value),
    /// `$`: the whole mapped input.
    Whole,
    /// A path into the mapped input.
    Query(Query),
    Array(Vec<Param>),
    Object(Vec<(Text, Param)>),
}

/// A path in `serviceParams` that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// JSON pointer of the string, from the `serviceParams` value.
    pub pointer: String,
    /// What is wrong with it.
    pub error: PathError,
}

/// The mapped input, made a value once at most.
struct Input<'a> {
    root: Root<'a>,
    whole: OnceCell<Option<Value>>,
}

impl Params {
    /// Compiles a value: strings in it that are `$`, or start with `$.` or `$[`, become paths. Fails with every path
    /// that is wrong.
    pub fn compile(value: &Value) -> Result<Self, Vec<ParamError>> {
        if value.depth() > DEPTH {
            let message = format!("nested deeper than the {DEPTH} levels allowed");
            return Err(vec![ParamError {
                pointer: String::new(),
                error: PathError::new(0, 0, message),
            }]);
        }
        let mut errors = Vec::new();
        let param = compile(value, &mut String::new(), &mut errors);
        if errors.is_empty() {
            Ok(Self { param })
        } else {
            Err(errors)
        }
    }

    /// The value with its paths replaced by what they find in `input`. A member whose path finds nothing is left out, an
    /// item and a whole become `null`.
    pub fn resolve(&self, input: Root<'_>) -> Value {
        let input = Input {
            root: input,
            whole: OnceCell::new(),
        };
        resolve(&self.param, &input).unwrap_or_default()
    }
}

/// `pointer` is the value's own; it is the same again afterwards.
fn compile(value: &Value, pointer: &mut String, errors: &mut Vec<ParamError>) -> Param {
    let constant = || Param::Constant(value.clone());
    match value {
        Value::String(text) => match text.as_bytes() {
            b"$" => Param::Whole,
            [b'$', b'.' | b'[', ..] => Query::parse(text).map_or_else(
                |error| {
                    errors.push(ParamError {
                        pointer: pointer.clone(),
                        error,
                    });
                    constant()
                },
                Param::Query,
            ),
            _ => constant(),
        },
        Value::Array(array) => {
            let below = |(index, item): (usize, &Value)| compile_below(item, &index.to_string(), pointer, errors);
            let items: Vec<Param> = array.values().iter().enumerate().map(below).collect();
            if items.iter().all(Param::is_constant) {
                constant()
            } else {
                Param::Array(items)
            }
        }
        Value::Object(object) => {
            let below = |(key, member): (&Text, &Value)| {
                let name = key.replace('~', "~0").replace('/', "~1");
                (key.clone(), compile_below(member, &name, pointer, errors))
            };
            let members: Vec<(Text, Param)> = object.iter().map(below).collect();
            if members.iter().all(|(_, member)| member.is_constant()) {
                constant()
            } else {
                Param::Object(members)
            }
        }
        _ => constant(),
    }
}

fn compile_below(value: &Value, name: &str, pointer: &mut String, errors: &mut Vec<ParamError>) -> Param {
    let len = pointer.len();
    pointer.push('/');
    pointer.push_str(name);
    let param = compile(value, pointer, errors);
    pointer.truncate(len);
    param
}

impl Param {
    fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_))
    }
}

fn resolve(param: &Param, input: &Input<'_>) -> Option<Value> {
    Some(match param {
        Param::Constant(value) => value.clone(),
        Param::Whole => return input.whole.get_or_init(|| input.root.to_value()).clone(),
        Param::Query(query) => return query.find(input.root),
        Param::Array(items) => {
            let item = |item| resolve(item, input).unwrap_or_default();
            Value::Array(items.iter().map(item).collect())
        }
        Param::Object(members) => {
            let member = |(key, member): &(Text, Param)| Some((key.clone(), resolve(member, input)?));
            Value::Object(members.iter().filter_map(member).collect())
        }
    })
}

#[cfg(test)]
#[path = "params/tests.rs"]
mod tests;
