//! Mappings: targets and their sources (section "data").

use super::path::{Path, PathRoot};
use super::template::Template;
use crate::graph::{Carried, Fault, FaultKind, Output, Pointer, Program, Scope};
use crate::value::{Object, Text, Value};

/// An entry of `inputMapping` or `outputMapping`.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The top-level key it sets.
    pub target: Text,
    /// Where the value comes from.
    pub source: MappingSource,
    /// Whether a missing value is a fault.
    pub required: bool,
}

/// The source of a mapping's value.
#[derive(Clone, Debug)]
pub enum MappingSource {
    /// A constant from the text. Nothing inside it is expanded.
    Constant(Value),
    /// From the data.
    Path(Path),
    /// A text filled in from the data.
    Template(Template),
}

/// A list of mappings: the program that makes a step's input or output, or the local after an
/// error.
#[derive(Clone, Debug)]
pub struct Mappings {
    /// The mappings in order.
    pub list: Vec<Mapping>,
    /// The fault when a required target has no value.
    pub fault: FaultKind,
}

impl MappingSource {
    fn value(&self, scope: &Scope<'_>) -> Result<Option<Value>, Fault> {
        match self {
            Self::Constant(value) => Ok(Some(value.clone())),
            Self::Path(path) => scope.budget.within(path.text(), path.find(scope)),
            Self::Template(template) => Ok(template.render(scope)?.map(Value::from)),
        }
    }

    /// The reason for a missing value, for a fault's cause.
    fn nothing(&self, scope: &Scope<'_>) -> String {
        let first_missing = |template: &Template| {
            let mut paths = template.paths().map(|(_, path)| path);
            paths
                .find(|path| !matches!(path.find(scope), Ok(Some(_))))
                .map(|path| path.text().clone())
        };
        match self {
            Self::Constant(_) => "there is no value".to_owned(),
            Self::Path(path) => format!("`{}` finds nothing", path.text()),
            Self::Template(template) => match first_missing(template) {
                Some(path) => format!("`{path}` in its template finds nothing"),
                None => "its template finds nothing".to_owned(),
            },
        }
    }
}

impl Program for Mappings {
    fn run(&self, scope: &Scope<'_>) -> Result<Output, Fault> {
        let (mut made, mut missing) = (Object::new(), Vec::new());
        for mapping in &self.list {
            match mapping.source.value(scope)? {
                Some(value) => {
                    made.insert(mapping.target.clone(), value);
                }
                None if mapping.required => {
                    let why = mapping.source.nothing(scope);
                    let cause = format!("the required target `{}` has no value: {why}", mapping.target);
                    return Err(Fault::new(self.fault.clone(), cause));
                }
                None => missing.push(mapping.target.clone()),
            }
        }
        scope.budget.check_made(made.json_len())?;
        Ok(Output {
            value: made.into(),
            missing,
        })
    }

    fn carries(&self, what: Carried<'_>) -> Vec<Pointer> {
        let token = Pointer::of(["task", "token"]);
        let (root, place) = match what {
            Carried::Token => (PathRoot::Context, &token),
            Carried::Input(place) => (PathRoot::Input, place),
        };
        let carried = |mapping: &Mapping| {
            let MappingSource::Path(path) = &mapping.source else {
                return None;
            };
            let read = path.query().pointer().filter(|_| path.root() == root)?;
            Some(Pointer::of([mapping.target.clone()]).join(&place.strip_prefix(&read)?))
        };
        self.list.iter().filter_map(carried).collect()
    }
}

#[cfg(test)]
#[path = "mapping/tests.rs"]
mod tests;
