//! `serviceParams`: values with paths into the mapped input inside (section "tasks").

use crate::expression_error::ExpressionError;
use crate::graph::{Budget, Fault, Parameters, Pointer, Root, SecretReference};
use crate::path::Query;
use crate::value::{Text, Value};
use std::cell::OnceCell;

/// The maximum depth of nested containers. Values that are deeper than data may be are refused
/// before they are walked.
const MAX_DEPTH: usize = 128;

/// Compiled `serviceParams`.
#[derive(Clone, Debug)]
pub struct Params {
    param: Param,
    secrets: Box<[SecretReference]>,
}

/// The prefix of a string in a definition that stands for a secret.
const SECRET: &str = "secret://";

/// A value, or the way to make it.
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

/// An error in a path in `serviceParams`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// JSON pointer of the string, from the `serviceParams` value.
    pub pointer: String,
    /// What is wrong with the path.
    pub error: ExpressionError,
}

/// The mapped input, turned into a value at most once.
struct Input<'a> {
    root: Root<'a>,
    budget: &'a Budget,
    whole: OnceCell<Option<Value>>,
}

impl Params {
    /// Compiles a value: strings in it that are `$`, or start with `$.` or `$[`, become paths.
    /// Returns all wrong paths on failure.
    ///
    /// # Errors
    ///
    /// Every wrong path in the value, with its place.
    pub fn compile(value: &Value) -> Result<Self, Vec<ParamError>> {
        if value.depth() > MAX_DEPTH {
            let message = format!("nested deeper than the {MAX_DEPTH} levels allowed");
            return Err(vec![ParamError {
                pointer: String::new(),
                error: ExpressionError::new(0, 0, message),
            }]);
        }
        let mut errors = Vec::new();
        let param = compile(value, &mut String::new(), &mut errors);
        let mut secrets = Vec::new();
        find_secrets(value, &mut Vec::new(), &mut secrets);
        if errors.is_empty() {
            Ok(Self {
                param,
                secrets: secrets.into(),
            })
        } else {
            Err(errors)
        }
    }
}

impl Parameters for Params {
    /// The value with each path replaced by its result in `input`. If a path finds nothing, a
    /// member is left out, and an item or the whole value becomes `null`.
    fn resolve(&self, input: Root<'_>, budget: &Budget) -> Result<Value, Fault> {
        let input = Input {
            root: input,
            budget,
            whole: OnceCell::new(),
        };
        let resolved = resolve(&self.param, &input)?.unwrap_or_default();
        budget.check_made(resolved.json_len())?;
        Ok(resolved)
    }

    fn secrets(&self) -> &[SecretReference] {
        &self.secrets
    }

    fn carries(&self, place: &Pointer) -> Vec<Pointer> {
        let mut carried = Vec::new();
        find_carried(&self.param, place, &mut Vec::new(), &mut carried);
        carried
    }
}

/// `keys` lead to the value's own place; they are restored afterwards.
fn find_secrets(value: &Value, keys: &mut Vec<Text>, found: &mut Vec<SecretReference>) {
    let mut below = |key: Text, value: &Value| {
        keys.push(key);
        find_secrets(value, keys, found);
        keys.pop();
    };
    match value {
        Value::String(text) => {
            if let Some(name) = text.strip_prefix(SECRET) {
                found.push(SecretReference {
                    at: Pointer::of(keys.iter().cloned()),
                    name: Text::from(name),
                });
            }
        }
        Value::Array(array) => {
            let items = array.values().iter().enumerate();
            items.for_each(|(index, item)| below(Text::from(index.to_string()), item));
        }
        Value::Object(object) => object.iter().for_each(|(key, member)| below(key.clone(), member)),
        _ => {}
    }
}

/// Adds to `found` what the parameter at `keys` carries of the data at `place`.
fn find_carried(param: &Param, place: &Pointer, keys: &mut Vec<Text>, found: &mut Vec<Pointer>) {
    let here = |rest: Pointer, keys: &[Text]| Pointer::of(keys.iter().cloned()).join(&rest);
    match param {
        Param::Constant(_) => {}
        Param::Whole => found.push(here(place.clone(), keys)),
        Param::Query(query) => {
            let rest = query.pointer().and_then(|read| place.strip_prefix(&read));
            found.extend(rest.map(|rest| here(rest, keys)));
        }
        Param::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                keys.push(Text::from(index.to_string()));
                find_carried(item, place, keys, found);
                keys.pop();
            }
        }
        Param::Object(members) => {
            for (key, member) in members {
                keys.push(key.clone());
                find_carried(member, place, keys, found);
                keys.pop();
            }
        }
    }
}

/// `pointer` is the value's own; it is restored afterwards.
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

fn resolve(param: &Param, input: &Input<'_>) -> Result<Option<Value>, Fault> {
    Ok(Some(match param {
        Param::Constant(value) => value.clone(),
        Param::Whole => return Ok(input.whole.get_or_init(|| input.root.to_value()).clone()),
        Param::Query(query) => {
            let found = query.find(input.root, input.budget);
            return input.budget.within(query.text(), found);
        }
        Param::Array(items) => {
            let item = |item| Ok(resolve(item, input)?.unwrap_or_default());
            Value::Array(items.iter().map(item).collect::<Result<_, Fault>>()?)
        }
        Param::Object(members) => {
            let member = |(key, member): &(Text, Param)| Ok(resolve(member, input)?.map(|value| (key.clone(), value)));
            let members: Result<_, Fault> = members.iter().filter_map(|each| member(each).transpose()).collect();
            Value::Object(members?)
        }
    }))
}

#[cfg(test)]
#[path = "params/tests.rs"]
mod tests;
