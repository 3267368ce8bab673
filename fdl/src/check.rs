//! The rules of the language: a text to a checked [`Flow`] and everything that is wrong with it.
//!
//! One walk ([`outline`]) numbers steps and lists; then each step is read, checked and compiled in one go, so that what
//! is checked and what runs can never differ. Any error withholds the flow, so readers go on with defaults after one.

mod arms;
mod catch;
mod compile;
mod depends;
mod edges;
mod errors;
mod fields;
mod flow;
mod foreach;
mod kind;
mod local;
mod mappings;
mod names;
mod outline;
mod parallel;
mod paths;
mod poll;
mod read;
mod resource;
mod retry;
mod rollback;
mod schema;
mod spot;
mod step;
mod suggest;
mod task;
mod wait;

use crate::diagnostics::{Code, Diagnostic, Severity};
use crate::graph::Flow;
use crate::limits::Limits;
use crate::syntax::{Node, Source, Span, parse_within};
use outline::Outline;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What checking makes of a source.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The flow, ready to run; `None` as soon as there is one error.
    pub flow: Option<Arc<Flow>>,
    /// Errors and warnings, in order of place.
    pub diagnostics: Vec<Diagnostic>,
}

/// What every rule needs: the text, the limits, the outline, and where to put what it finds.
struct Checker<'t> {
    source: &'t Source,
    limits: &'t Limits,
    outline: Outline<'t>,
    answers: Option<Answers<'t>>,
    found: RefCell<Vec<Diagnostic>>,
    /// Words that may still be compared to find what was meant.
    comparisons: Cell<usize>,
}

/// Says of a resource, as it is written, why nothing answers to it where the flow is to run.
pub type Answers<'t> = &'t dyn Fn(&str) -> Option<String>;

/// Checks a definition against all rules of the language and compiles it.
pub fn check(source: &Source, limits: &Limits) -> Checked {
    check_where(source, limits, None)
}

/// The same where it is known which resources are answered: those that are not are warned of.
pub fn check_where(source: &Source, limits: &Limits, answers: Option<Answers<'_>>) -> Checked {
    let parsed = parse_within(source, limits.definition_bytes);
    let mut diagnostics = parsed.diagnostics;
    let parts = parsed.root.as_ref().and_then(|root| {
        let checker = Checker {
            answers,
            ..Checker::new(source, limits, root)
        };
        let parts = flow::read(&checker);
        let incomplete = diagnostics.iter().any(|found| breaks_the_tree(found.code));
        diagnostics.extend(
            checker
                .found
                .into_inner()
                .into_iter()
                .filter(|found| !(incomplete && follows_from_a_broken_tree(found.code))),
        );
        parts
    });
    diagnostics.sort_by_key(|found| (found.span.start, found.code));
    let sound = diagnostics.iter().all(|found| found.severity == Severity::Warning);
    let flow = parts
        .filter(|_| sound)
        .and_then(|parts| Flow::new(parts).ok())
        .map(Arc::new);
    Checked { flow, diagnostics }
}

/// Whether the tree may lack something that stands in the text.
fn breaks_the_tree(code: Code) -> bool {
    matches!(
        code,
        Code::Syntax | Code::Yaml | Code::NestedTooDeep | Code::YamlAlias | Code::YamlKey | Code::Encoding
    )
}

fn follows_from_a_broken_tree(code: Code) -> bool {
    matches!(
        code,
        Code::MissingField
            | Code::NoneOfFields
            | Code::NoSteps
            | Code::NoBranches
            | Code::NoSource
            | Code::NoResource
            | Code::UnknownTarget
            | Code::UnknownDependency
            | Code::DataTooDeep
    )
}

impl<'t> Checker<'t> {
    fn new(source: &'t Source, limits: &'t Limits, root: &'t Node) -> Self {
        Self {
            source,
            limits,
            outline: Outline::of(root, limits.nesting),
            answers: None,
            found: RefCell::default(),
            comparisons: Cell::new(suggest::COMPARISONS),
        }
    }

    /// Takes note of a problem.
    fn report(&self, found: Diagnostic) {
        self.found.borrow_mut().push(found);
    }

    /// Whether anything but warnings was found.
    fn has_errors(&self) -> bool {
        let found = self.found.borrow();
        found.iter().any(|found| found.severity == Severity::Error)
    }

    /// The text of a key or string as it would be written in place of what stands at `span`: in the same quotes.
    fn quoted_like(&self, span: Span, text: &str) -> String {
        match self
            .source
            .text()
            .get(span.start..span.end)
            .and_then(|old| old.chars().next())
        {
            Some(quote @ ('"' | '\'')) => format!("{quote}{text}{quote}"),
            _ => text.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
