//! Data that does not fit: compares what is known of a flow's data before it runs with what its
//! paths and conditions ask.
//!
//! Each list is walked once, in the order of its steps, with the shapes of the data that earlier
//! steps left. Data that may come from a later step by a backward `goto` is doubted. A shape always
//! allows everything that can be there when the flow runs, so what it rules out never happens. Only
//! warnings about misspelt names are guesses.

mod compare;
mod constant;
mod find;
mod lists;
mod made;
mod schema;
mod shape;
mod similar;
mod steps;
mod warn;

use super::Checker;
use super::cursor::Cursor;
use crate::expression::{Condition, Mappings};
use crate::graph::{ListId, Step};
use crate::value::Value;
use find::Data;
use rustc_hash::FxHashMap;
use shape::{Kinds, Members, Others, Shape};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Example results of steps' resources, by the name of the step.
pub type Samples = BTreeMap<String, Vec<Value>>;

/// How much of one definition is looked at, in members of objects. The rest of a longer definition
/// is not checked against its data.
const MAX_WORK: usize = 1_000_000;

/// The parsed strings of the definition, by the position where they begin, so that nothing is
/// parsed twice.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub(super) mappings: FxHashMap<usize, Arc<Mappings>>,
    pub(super) conditions: FxHashMap<usize, Arc<Condition>>,
}

/// The walk over one definition.
struct DataCheck<'c, 't> {
    checker: &'c Checker<'t>,
    noted: &'c Noted,
    steps: &'c [Step],
    samples: Option<&'c Samples>,
    context: Data,
    left: Cell<usize>,
}

/// What the paths of a place start from.
#[derive(Clone, Copy)]
struct Roots<'a> {
    input: &'a Data,
    local: &'a Data,
}

impl Checker<'_> {
    /// Warns of data that does not fit, in a definition without errors. Returns how much was looked
    /// at.
    pub(super) fn check_data_fits(&self, steps: &[Step]) -> usize {
        let noted = self.noted.take();
        let check = DataCheck {
            checker: self,
            noted: &noted,
            steps,
            samples: self.samples,
            context: Data::Value(context()),
            left: Cell::new(MAX_WORK),
        };
        check.flow();
        MAX_WORK - check.left.get()
    }
}

impl DataCheck<'_, '_> {
    fn flow(&self) {
        let root = Cursor::root(self.checker.outline.root);
        let shape = root
            .member("inputSchema")
            .map_or_else(Shape::default, |schema| schema::shape_of(schema.node));
        let given = Data::Value(shape);
        let nothing = Data::Value(Shape::default());
        let roots = Roots {
            input: &given,
            local: &nothing,
        };
        let input = match self.mapped(&root, "inputMappings", roots, false) {
            Some(members) => Data::Value(members),
            None => given.clone(),
        };
        let left = self.list(ListId(0), &input);
        if let Some(local) = left {
            let local = Data::Value(Shape::object(local, None));
            let roots = Roots {
                input: &input,
                local: &local,
            };
            self.mapped(&root, "outputMappings", roots, false);
        }
    }

    /// Counts work. Returns whether any is left.
    fn works(&self, members: usize) -> bool {
        let left = self.left.get().saturating_sub(members + 1);
        self.left.set(left);
        left > 0
    }
}

/// The shape of `$context`. More members may be added below its members.
fn context() -> Shape {
    let text = || Shape::kinds(Kinds::STRING, None);
    let number = || Shape::kinds(Kinds::NUMBER, None);
    let object = |named: Vec<(&str, Shape)>| {
        let mut members = Members::none();
        for (name, shape) in named {
            members.set(name.into(), shape, false, None);
        }
        members.others = Others::Unnamed;
        Shape::object(Rc::new(members), None)
    };
    let execution = vec![
        ("id", text()),
        ("name", text()),
        ("startedTime", text()),
        ("labels", Shape::default()),
        ("events", number()),
    ];
    let step = vec![
        ("name", text()),
        ("eventId", number()),
        ("visit", number()),
        ("attempt", number()),
    ];
    let mut members = Members::none();
    for (name, shape) in [
        ("flow", object(vec![("name", text()), ("version", Shape::default())])),
        ("execution", object(execution)),
        ("step", object(step)),
        ("task", object(vec![("token", text())])),
        ("poll", object(vec![("count", number())])),
        ("foreach", object(vec![("index", number())])),
        ("error", Shape::default()),
        ("cause", Shape::default()),
        ("retry", object(vec![("value", Shape::default())])),
    ] {
        members.set(name.into(), shape, false, None);
    }
    // Unknown members are reported where paths are read.
    members.quiet = true;
    Shape::object(Rc::new(members), None)
}

#[cfg(test)]
mod tests;
