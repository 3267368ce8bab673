//! `errors` of retry policies and catches.

use super::Checker;
use super::cursor::Cursor;
use super::foreign_errors;
use crate::FAULT_NAMES;
use crate::diagnostics::Code;
use crate::graph::{FaultKind, FaultNames, Matcher};
use crate::syntax::Span;
use crate::value::Text;
use std::collections::HashMap;

/// Matches every error.
pub(super) const ALL: &str = "FnF.ALL";

/// The errors that earlier policies or catches of the same step handle.
#[derive(Default)]
pub(super) struct Taken {
    /// Where `FnF.ALL` stood.
    all: Option<Span>,
    /// Where each error stood first.
    names: HashMap<Text, Span>,
}

impl Checker<'_> {
    /// The `errors` of a policy or catch, which comes after what is `taken`; `unused` is the code
    /// for an unreachable one. `fixed`: no step has the execution's own errors here.
    pub(super) fn errors(&self, owner: &Cursor<'_>, taken: &mut Taken, unused: Code, fixed: bool) -> Vec<Matcher> {
        let Some(cursor) = owner.member("errors") else {
            return Vec::new();
        };
        if !self.is_list(&cursor, "error names") {
            return Vec::new();
        }
        if cursor.node.items().is_empty() {
            let found = cursor.problem(Code::NoErrors, "`errors` is empty: it matches nothing");
            self.report(found.help(format!("name errors, or `{ALL}` for all of them")));
        }
        let mut here: Vec<(Text, Span)> = Vec::new();
        let mut first: HashMap<Text, Span> = HashMap::default();
        for item in cursor.items() {
            let Some(name) = self.filled(&item) else {
                continue;
            };
            self.check_error(&item, &name, fixed);
            if let Some(&first) = first.get(&name) {
                let found = item.problem(Code::ErrorTwice, format!("`{name}` is named twice"));
                self.report(found.label(first, "the first time"));
            } else {
                first.insert(name.clone(), item.node.span);
                here.push((name, item.node.span));
            }
        }
        self.check_all_alone(&cursor, &here);
        self.check_taken(&cursor, &here, taken, unused);
        here.into_iter().map(|(name, _)| matcher(name)).collect()
    }

    fn check_error(&self, cursor: &Cursor<'_>, name: &str, fixed: bool) {
        let kind = FAULT_NAMES.kind(name);
        if fixed
            && matches!(
                kind,
                FaultKind::ExecutionTimeout | FaultKind::Stopped | FaultKind::StartDeadline
            )
        {
            let found = cursor.problem(Code::Uncatchable, format!("no step fails with `{name}` here"));
            self.report(found.help("it ends the execution itself; only a task that calls a child flow can see it"));
            return;
        }
        if let Some(meant) = foreign_errors::meaning(name) {
            let found = cursor.problem(Code::ForeignErrorName, meant.why).help(meant.help);
            self.report(match meant.name {
                Some(name) => {
                    let span = cursor.node.span;
                    found.guess(format!("change it to `{name}`"), span, self.quoted_like(span, &name))
                }
                None => found,
            });
            return;
        }
        if !name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("FnF.")) || name == ALL {
            return;
        }
        if matches!(kind, FaultKind::Custom(_)) {
            let known: Vec<Text> = FaultNames::KINDS.iter().map(|kind| FAULT_NAMES.name(kind)).collect();
            let names = known.iter().map(Text::as_str).chain([ALL]);
            let found = cursor.problem(Code::UnknownEngineError, format!("the engine has no error `{name}`"));
            self.report(match self.near(name, known.len() + 1, || names) {
                Some(near) => self.did_you_mean(found, cursor, near),
                None => found.help("names of your own are better without `FnF.`"),
            });
        }
    }

    fn check_all_alone(&self, cursor: &Cursor<'_>, here: &[(Text, Span)]) {
        if here.len() > 1 && here.iter().any(|(name, _)| *name == ALL) {
            let message = format!("`{ALL}` matches every error, the others beside it say nothing");
            self.report(
                cursor
                    .problem(Code::AllNotAlone, message)
                    .help(format!("leave `{ALL}` alone in the list")),
            );
        }
    }

    fn check_taken(&self, cursor: &Cursor<'_>, here: &[(Text, Span)], taken: &mut Taken, unused: Code) {
        let what = if unused == Code::UnreachableCatch {
            "catch"
        } else {
            "policy"
        };
        let earlier: Vec<Option<Span>> = here
            .iter()
            .map(|(name, _)| taken.all.or_else(|| taken.names.get(name).copied()))
            .collect();
        if let Some(Some(first)) = earlier.first().copied().filter(|_| earlier.iter().all(Option::is_some)) {
            let message = format!("this {what} is never used: an earlier one matches all of its errors");
            self.report(
                cursor
                    .problem(unused, message)
                    .label(first, format!("this {what} comes first")),
            );
        }
        for (name, span) in here {
            if *name == ALL {
                taken.all.get_or_insert(*span);
            }
            taken.names.entry(name.clone()).or_insert(*span);
        }
    }
}

fn matcher(name: Text) -> Matcher {
    if name == ALL {
        Matcher::Any
    } else {
        Matcher::Named(name)
    }
}
