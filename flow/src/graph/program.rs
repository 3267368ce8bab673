//! Programs: the parts of a step that compute, behind traits so that a second front end can bring its own.

use crate::graph::{Budget, Carried, Fault, Pointer, SecretReference};
use crate::time::Timestamp;
use crate::value::{Array, Document, Object, Overlay, Text, Value};
use std::fmt::Debug;

/// A value a program may look into.
#[derive(Clone, Copy, Debug)]
pub enum Root<'a> {
    /// Nothing: no path finds anything in it.
    Nothing,
    /// Keys lead into it.
    Object(&'a Object),
    /// An object laid over another. `From` makes the root of an overlay that may have nothing on top.
    Overlay(&'a Overlay),
    /// Indices lead into it.
    Array(&'a Array),
    /// A text, number, boolean or null.
    Scalar(&'a Value),
}

impl<'a> From<&'a Value> for Root<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Object(object) => Self::Object(object),
            Value::Array(array) => Self::Array(array),
            scalar => Self::Scalar(scalar),
        }
    }
}

impl<'a> From<&'a Document> for Root<'a> {
    fn from(document: &'a Document) -> Self {
        match document.other() {
            Some(other) => other.into(),
            None => Self::Object(document.members()),
        }
    }
}

impl<'a> From<&'a Overlay> for Root<'a> {
    fn from(overlay: &'a Overlay) -> Self {
        match overlay.other() {
            Some(other) => other.into(),
            None if overlay.over().is_empty() => Self::Object(overlay.base()),
            None => Self::Overlay(overlay),
        }
    }
}

impl<'a> Root<'a> {
    /// The member of that name; `None` if there is none.
    pub fn member(self, key: &str) -> Option<&'a Value> {
        match self {
            Self::Object(object) => object.get(key),
            Self::Overlay(overlay) => overlay.get(key),
            Self::Nothing | Self::Array(_) | Self::Scalar(_) => None,
        }
    }

    /// The item at an index, from the end when negative.
    pub fn item(self, index: i64) -> Option<&'a Value> {
        match self {
            Self::Array(array) => array.at(index),
            _ => None,
        }
    }

    /// The length in bytes of its compact JSON text.
    pub fn json_len(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Object(object) => object.json_len(),
            Self::Overlay(overlay) => overlay.json_len(),
            Self::Array(array) => array.json_len(),
            Self::Scalar(value) => value.json_len(),
        }
    }

    /// How many members a conversion to a value copies.
    pub fn copied(self) -> usize {
        match self {
            Self::Overlay(overlay) if !overlay.over().is_empty() => overlay.base().len() + overlay.over().len(),
            _ => 0,
        }
    }

    /// The whole as a value; `None` if there is nothing.
    pub fn to_value(self) -> Option<Value> {
        match self {
            Self::Nothing => None,
            Self::Object(object) => Some(object.clone().into()),
            Self::Overlay(overlay) => Some(overlay.to_value()),
            Self::Array(array) => Some(array.clone().into()),
            Self::Scalar(value) => Some(value.clone()),
        }
    }
}

/// The names that a [`Context`] may have, in their order.
pub const CONTEXT_MEMBERS: [&str; 9] = [
    "flow",
    "execution",
    "step",
    "task",
    "poll",
    "foreach",
    "error",
    "cause",
    "retry",
];

/// The `$context` of a program. Asked member by member, because most programs ask for none.
pub trait Context {
    /// The object or value under one of [`CONTEXT_MEMBERS`]; `None` if it has none.
    fn member(&self, name: &str) -> Option<Value>;
    /// The names that `member` knows here, in order.
    fn names(&self) -> Vec<&'static str>;
}

/// The data of a program. Otherwise it is pure: the same scope gives the same result.
pub struct Scope<'a> {
    /// The input in question: a parent's, or the step's own (see the rules of each place).
    pub input: Root<'a>,
    /// The variables in question; FDL's `$local`.
    pub variables: Root<'a>,
    /// What the execution says of itself.
    pub context: &'a dyn Context,
    /// The time of the turn.
    pub now: Timestamp,
    /// The execution's random seed.
    pub seed: u64,
    /// The budget of the run.
    pub budget: &'a Budget,
}

/// The result of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The document. A front end whose documents are objects makes objects.
    pub value: Value,
    /// Targets left out because their source found nothing.
    pub missing: Vec<Text>,
}

/// An empty object, and nothing left out.
impl Default for Output {
    fn default() -> Self {
        Self {
            value: Value::empty_object(),
            missing: Vec::new(),
        }
    }
}

/// Makes a document: a step's input, its output, or the local after an error.
pub trait Program: Debug + Send + Sync {
    /// Runs it. A fault fails the step.
    ///
    /// # Errors
    ///
    /// The fault that the step fails with.
    fn run(&self, scope: &Scope<'_>) -> Result<Output, Fault>;

    /// Whether running it may fail. A program that can't fail is not run before its result is
    /// needed.
    fn may_fail(&self) -> bool {
        true
    }

    /// The places in its result where this value stands unchanged for any data. A program that
    /// can't tell returns none; a reference in its input is then data.
    fn carries(&self, _what: Carried<'_>) -> Vec<Pointer> {
        Vec::new()
    }
}

/// Finds one value: a collection, the end of a wait, the name of an error.
pub trait Lookup: Debug + Send + Sync {
    /// The value that it finds in this data; `None` if it finds nothing.
    ///
    /// # Errors
    ///
    /// The fault of a search that takes too many steps.
    fn find(&self, data: Root<'_>, budget: &Budget) -> Result<Option<Value>, Fault>;

    /// Its text in the definition, for messages and pictures.
    fn text(&self) -> &Text;
}

/// Fills in the name of a resource that depends on a call's input.
pub trait ResourceTemplate: Debug + Send + Sync {
    /// The resource for this input.
    ///
    /// # Errors
    ///
    /// The fault that the call fails with, before it is made.
    fn fill(&self, input: Root<'_>, budget: &Budget) -> Result<Text, Fault>;
}

/// Makes the parameters of a call.
pub trait Parameters: Debug + Send + Sync {
    /// The parameters for this input.
    ///
    /// # Errors
    ///
    /// The fault that the step fails with.
    fn resolve(&self, input: Root<'_>, budget: &Budget) -> Result<Value, Fault>;

    /// The secrets that the definition names in the parameters, each with its place.
    fn secrets(&self) -> &[SecretReference];

    /// The places in its result where the value at `place` of the input stands unchanged for any
    /// data.
    fn carries(&self, place: &Pointer) -> Vec<Pointer>;
}

/// A condition: of a choice's arm or of a poll.
pub trait Guard: Debug + Send + Sync {
    /// Whether it holds for this data. A comparison of values that can't be compared does not hold.
    /// It fails only if it takes too many steps.
    ///
    /// # Errors
    ///
    /// The fault that the step fails with.
    fn holds(&self, data: Root<'_>, budget: &Budget) -> Result<bool, Fault>;
}
