//! `retry` policies.

use super::Checker;
use super::errors::Taken;
use super::fields;
use super::spot::Cursor;
use crate::diagnostics::Code;
use crate::expression::{Path, ValueAt};
use crate::graph::{Backoff, Retry, Values};
use crate::syntax::{NodeKind, Span};
use std::sync::Arc;

/// Whose policies they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policies {
    /// A task's that calls a child flow, or may.
    ChildTask,
    /// Another step's.
    Step,
    /// A rollback's.
    Rollback,
}

impl Checker<'_> {
    /// The retry policies of a step or rollback.
    pub(super) fn retry(&self, owner: &Cursor<'_>, whose: Policies) -> Vec<Retry> {
        let Some(spot) = owner.member("retry") else {
            return Vec::new();
        };
        if !self.is_listed(&spot, "retry policies") {
            return Vec::new();
        }
        let mut taken = Taken::default();
        let mut values = None;
        spot.entries()
            .take_while(|_| !self.is_hopeless())
            .filter_map(|item| self.policy(&item, whose, &mut taken, &mut values))
            .collect()
    }

    fn policy(
        &self,
        spot: &Cursor<'_>,
        whose: Policies,
        taken: &mut Taken,
        values: &mut Option<Span>,
    ) -> Option<Retry> {
        if !self.shaped(spot, &fields::RETRY, &[]) {
            return None;
        }
        let errors = self.errors(spot, taken, Code::UnreachablePolicy, whose == Policies::Step);
        let backoff = spot.member("backoff").and_then(|field| self.backoff(&field));
        self.check_ignored(spot, backoff.unwrap_or(Backoff::Exponential));
        let (interval, max_interval) = self.intervals(spot, 1_000, 86_400_000);
        let max_attempts = spot
            .member("maxAttempts")
            .and_then(|field| self.whole(&field, 0..=u64::MAX));
        let multiplier = spot.member("multiplier").and_then(|field| self.multiplier(&field));
        let jitter = spot.member("jitter").and_then(|field| self.number(&field, 0.0..=1.0));
        let tried = spot.member("values").and_then(|field| self.values(&field, values));
        // With values, each is tried once: their number is the bound where none is given.
        let bound = if tried.is_some() { u64::MAX } else { 3 };
        Some(Retry {
            errors,
            interval,
            max_interval,
            max_attempts: max_attempts.unwrap_or(bound),
            multiplier: multiplier.unwrap_or(2.0),
            jitter: jitter.unwrap_or(0.0),
            backoff: backoff.unwrap_or(Backoff::Exponential),
            values: tried,
        })
    }

    fn backoff(&self, spot: &Cursor<'_>) -> Option<Backoff> {
        match &*self.word(spot, &["exponential", "fixed", "polynomial"])? {
            "fixed" => Some(Backoff::Fixed),
            "polynomial" => Some(Backoff::Polynomial),
            _ => Some(Backoff::Exponential),
        }
    }

    /// Fields which this backoff does not use.
    fn check_ignored(&self, spot: &Cursor<'_>, backoff: Backoff) {
        let (word, ignored): (_, &[&str]) = match backoff {
            Backoff::Exponential => return,
            Backoff::Fixed => ("fixed", &["multiplier"]),
            Backoff::Polynomial => ("polynomial", &["multiplier", "intervalSeconds"]),
        };
        for field in ignored.iter().filter_map(|field| spot.member(field)) {
            let message = format!("{} has no effect with `backoff: {word}`", field.called());
            self.report(field.problem_of_key(Code::BackoffIgnored, message).help("leave it out"));
        }
    }

    fn values(&self, spot: &Cursor<'_>, earlier: &mut Option<Span>) -> Option<Values> {
        if let Some(first) = *earlier {
            let found = spot.problem_of_key(Code::ValuesTwice, "another policy of this step has `values`, too");
            self.report(
                found
                    .label(first, "it is here")
                    .help("only one policy of a step can have them"),
            );
        }
        earlier.get_or_insert(spot.key_span());
        match &spot.node.kind {
            NodeKind::Array(items) if items.is_empty() => {
                let found = spot.problem(Code::NoValues, "`values` is empty: there is nothing to try");
                self.report(found.help("leave it out, or give at least one value"));
                None
            }
            NodeKind::Array(items) => {
                self.check_data(spot)?;
                Some(Values::List(items.iter().map(crate::syntax::Node::to_value).collect()))
            }
            NodeKind::String(text) if Path::is_path(text) => {
                let program = self.path(spot, text).map(ValueAt)?;
                Some(Values::Program(Arc::new(program)))
            }
            _ => {
                self.wrong_type(spot, "a list of values, or a path");
                None
            }
        }
    }
}
