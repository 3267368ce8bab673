//! The rules of the language: from a text to a checked [`Flow`] and its diagnostics.
//!
//! One walk ([`outline`]) numbers steps and lists; then each step is read, checked and compiled in
//! one go, so that the checked and the running flow can't differ. Any error withholds the flow, so
//! readers go on with defaults after an error.

mod arms;
mod catch;
mod compile;
mod concurrency;
mod cursor;
mod data;
mod depends;
mod edges;
mod errors;
mod fields;
mod flow;
mod foreach;
mod foreign;
mod foreign_errors;
mod foreign_paths;
mod habits;
mod kind;
mod local;
mod mappings;
mod named_entries;
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
mod service_params;
mod settings;
mod step;
mod suggest;
mod task;
mod token;
mod wait;

use crate::diagnostics::{Code, Diagnostic, Severity};
use crate::graph::Flow;
use crate::limits::Limits;
use crate::syntax::{Node, Source, Span, SpanFinder, parse_within};
use data::Noted;
use outline::Outline;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use data::Samples;

/// The result of checking a source.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The flow, ready to run; `None` as soon as there is one error.
    pub flow: Option<Arc<Flow>>,
    /// Errors and warnings, in order of place.
    pub diagnostics: Vec<Diagnostic>,
}

/// The data of every rule: the text, the limits, the outline, and the list of problems.
struct Checker<'t> {
    source: &'t Source,
    limits: &'t Limits,
    outline: Outline<'t>,
    answers: Option<ResourceCheck<'t>>,
    samples: Option<&'t Samples>,
    noted: RefCell<Noted>,
    spans: SpanFinder<'t>,
    found: RefCell<Found>,
    /// The first unanswered resource of each kind, and the number of others.
    unanswered: RefCell<BTreeMap<String, (Diagnostic, usize)>>,
    /// How many words may still be compared to find suggestions.
    comparisons: Cell<usize>,
    /// Whether an earlier version accepted the definition. It did not refuse everything that is
    /// refused now.
    stored: bool,
}

/// Problems of one definition that are kept: of each severity at most [`MAX_DIAGNOSTICS`], and all of them together no more than
/// [`MAX_DIAGNOSTIC_BYTES`], because each holds the path to its place.
#[derive(Default)]
struct Found {
    kept: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
    bytes: usize,
    left_off: usize,
    /// Whether something was not checked any more.
    cut: bool,
}

/// Errors, and warnings, that are kept of one definition.
const MAX_DIAGNOSTICS: usize = 1_000;
/// Bytes of what is kept of them.
const MAX_DIAGNOSTIC_BYTES: usize = 1024 * 1024;

/// The reason why nothing answers to a resource, as it is written, where the flow will run; `None`
/// if something does.
pub type ResourceCheck<'t> = &'t dyn Fn(&str) -> Option<String>;

/// Checks a definition against all rules of the language and compiles it.
pub fn check(source: &Source, limits: &Limits) -> Checked {
    check_where(source, limits, None)
}

/// [`check`] that asks whether each resource is answered, and warns of each one that is not.
pub fn check_where(source: &Source, limits: &Limits, answers: Option<ResourceCheck<'_>>) -> Checked {
    check_knowing(source, limits, answers, None)
}

/// [`check_where`] with examples of the results of steps' resources: paths are checked against these,
/// too.
pub fn check_knowing(
    source: &Source,
    limits: &Limits,
    answers: Option<ResourceCheck<'_>>,
    samples: Option<&Samples>,
) -> Checked {
    check_as(source, limits, (answers, samples), false)
}

/// [`check`] for a definition from a store. Executions run it, so everything that an earlier version
/// accepted is accepted.
pub fn check_stored(source: &Source, limits: &Limits) -> Checked {
    check_as(source, limits, (None, None), true)
}

fn check_as(
    source: &Source,
    limits: &Limits,
    (answers, samples): (Option<ResourceCheck<'_>>, Option<&Samples>),
    stored: bool,
) -> Checked {
    if let Some(found) = foreign::table(source).filter(|_| !stored) {
        return Checked {
            flow: None,
            diagnostics: vec![found],
        };
    }
    let parsed = parse_within(source, limits.definition_bytes);
    let in_our_codes = parsed.diagnostics.into_iter().map(|found| {
        let code = Code::from(found.code);
        found.with_code(code)
    });
    let mut diagnostics: Vec<Diagnostic> = in_our_codes.collect();
    let mut left_off = None;
    let parts = parsed.root.as_ref().and_then(|root| {
        let checker = Checker {
            answers,
            samples,
            stored,
            ..Checker::new(source, limits, root)
        };
        let parts = flow::read(&checker);
        let incomplete = diagnostics.iter().any(|found| breaks_the_tree(found.code));
        let found = checker.found.into_inner();
        left_off = found.more();
        diagnostics.extend(
            found
                .kept
                .into_iter()
                .filter(|found| !(incomplete && follows_from_a_broken_tree(found.code))),
        );
        parts
    });
    diagnostics.sort_by_key(|found| (found.span.start, found.code));
    if let (Some(last), Some(more)) = (diagnostics.last_mut(), left_off) {
        last.help = Some(more);
    }
    let sound = diagnostics.iter().all(|found| found.severity == Severity::Warning);
    let flow = parts
        .filter(|_| sound)
        .and_then(|parts| Flow::new(parts).ok())
        .map(Arc::new);
    Checked { flow, diagnostics }
}

/// Whether the tree may lack something that the text has.
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

impl Found {
    /// A message about problems that are not kept; `None` if there are none.
    fn more(&self) -> Option<String> {
        match (self.left_off, self.cut) {
            (0, false) => None,
            (0, true) => Some("there are too many problems to show them all; mend these first".to_owned()),
            (count, false) => Some(format!(
                "there are too many problems to show them all, {count} more; mend these first"
            )),
            (count, true) => Some(format!(
                "there are too many problems to show them all, at least {count} more; mend these first"
            )),
        }
    }

    fn has_room(&self, severity: Severity) -> bool {
        match severity {
            // The first error is always kept, because it withholds the flow.
            Severity::Error => self.errors == 0 || (self.errors < MAX_DIAGNOSTICS && self.bytes < MAX_DIAGNOSTIC_BYTES),
            Severity::Warning => self.warnings < MAX_DIAGNOSTICS && self.bytes < MAX_DIAGNOSTIC_BYTES,
        }
    }
}

impl<'t> Checker<'t> {
    fn new(source: &'t Source, limits: &'t Limits, root: &'t Node) -> Self {
        Self {
            source,
            limits,
            outline: Outline::of(root, limits.nesting),
            answers: None,
            samples: None,
            noted: RefCell::default(),
            spans: SpanFinder::new(source),
            found: RefCell::default(),
            unanswered: RefCell::default(),
            comparisons: Cell::new(suggest::MAX_COMPARISONS),
            stored: false,
        }
    }

    /// Adds a problem.
    fn report(&self, found: Diagnostic) {
        let mut all = self.found.borrow_mut();
        let kept = all.has_room(found.severity);
        match found.severity {
            Severity::Error => all.errors += 1,
            Severity::Warning => all.warnings += 1,
        }
        if kept {
            let found = found.quoting_shortly();
            all.bytes += found.message.len() + found.pointer.len();
            all.kept.push(found);
        } else {
            all.left_off += 1;
        }
    }

    /// Whether there is no room for a problem. The problem is then only counted, and need not be
    /// made.
    fn leaves_off(&self, code: Code) -> bool {
        let mut all = self.found.borrow_mut();
        let left_off = !all.has_room(code.severity());
        if left_off {
            all.left_off += 1;
        }
        left_off
    }

    /// Whether there are too many errors to read on. A text with only warnings is read to its end.
    fn is_hopeless(&self) -> bool {
        let mut found = self.found.borrow_mut();
        let hopeless = found.errors > 0 && !found.has_room(Severity::Error);
        found.cut |= hopeless;
        hopeless
    }

    /// Whether another warning would be kept.
    fn has_room_for_warnings(&self) -> bool {
        let mut found = self.found.borrow_mut();
        let room = found.has_room(Severity::Warning);
        found.cut |= !room;
        room
    }

    /// Whether anything but warnings was found.
    fn has_errors(&self) -> bool {
        self.found.borrow().errors > 0
    }

    /// The text of a key or string as a replacement for the text at `span`: in the same quotes.
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
