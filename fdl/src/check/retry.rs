//! `retry` policies.

use super::Checker;
use super::cursor::Cursor;
use super::errors::Taken;
use super::fields;
use crate::diagnostics::Code;
use crate::expression::{Path, ValueAt};
use crate::graph::{BackoffKind, Retry, Values};
use crate::syntax::{NodeKind, Span};
use crate::time::Millis;
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
        let Some(cursor) = owner.member("retry") else {
            return Vec::new();
        };
        if !self.is_listed(&cursor, "retry policies") {
            return Vec::new();
        }
        let mut taken = Taken::default();
        let mut values = None;
        cursor
            .entries()
            .take_while(|_| !self.is_hopeless())
            .filter_map(|item| self.policy(&item, whose, &mut taken, &mut values))
            .collect()
    }

    fn policy(
        &self,
        cursor: &Cursor<'_>,
        whose: Policies,
        taken: &mut Taken,
        values: &mut Option<Span>,
    ) -> Option<Retry> {
        if !self.check_fields(cursor, &fields::RETRY, &[]) {
            return None;
        }
        let errors = self.errors(cursor, taken, Code::UnreachablePolicy, whose == Policies::Step);
        let backoff = cursor.member("backoff").and_then(|field| self.backoff(&field));
        self.check_ignored(cursor, backoff.unwrap_or(BackoffKind::Exponential));
        // A rollback is not a step that is entered, so its numbers are fixed.
        let member = |field: &str| match whose {
            Policies::Rollback => cursor.member(field),
            Policies::ChildTask | Policies::Step => self.fixed(cursor, field),
        };
        let (interval, max_interval) = self.intervals(&member, Millis::from_secs(1), Millis::from_days(1));
        let max_attempts = member("maxAttempts").and_then(|field| self.whole(&field, 0..=u64::MAX));
        let multiplier = member("multiplier").and_then(|field| self.multiplier(&field));
        let jitter = member("jitter").and_then(|field| self.number(&field, 0.0..=1.0));
        let tried = cursor.member("values").and_then(|field| self.values(&field, values));
        // With values, each is tried once. Their number is the bound if none is given.
        let bound = if tried.is_some() { u64::MAX } else { 3 };
        Some(Retry {
            errors,
            interval,
            max_interval,
            max_attempts: max_attempts.unwrap_or(bound),
            multiplier: multiplier.unwrap_or(2.0),
            jitter: jitter.unwrap_or(0.0),
            backoff: backoff.unwrap_or(BackoffKind::Exponential),
            values: tried,
        })
    }

    fn backoff(&self, cursor: &Cursor<'_>) -> Option<BackoffKind> {
        match &*self.word(cursor, &["exponential", "fixed", "polynomial"])? {
            "fixed" => Some(BackoffKind::Fixed),
            "polynomial" => Some(BackoffKind::Polynomial),
            _ => Some(BackoffKind::Exponential),
        }
    }

    /// Fields that this backoff does not use.
    fn check_ignored(&self, cursor: &Cursor<'_>, backoff: BackoffKind) {
        let (word, ignored): (_, &[&str]) = match backoff {
            BackoffKind::Exponential => return,
            BackoffKind::Fixed => ("fixed", &["multiplier"]),
            BackoffKind::Polynomial => ("polynomial", &["multiplier", "intervalSeconds"]),
        };
        for field in ignored.iter().filter_map(|field| cursor.member(field)) {
            let message = format!("{} has no effect with `backoff: {word}`", field.called());
            self.report(field.problem_of_key(Code::BackoffIgnored, message).help("leave it out"));
        }
    }

    fn values(&self, cursor: &Cursor<'_>, earlier: &mut Option<Span>) -> Option<Values> {
        if let Some(first) = *earlier {
            let found = cursor.problem_of_key(Code::ValuesTwice, "another policy of this step has `values`, too");
            self.report(
                found
                    .label(first, "it is here")
                    .help("only one policy of a step can have them"),
            );
        }
        earlier.get_or_insert(cursor.key_span());
        match &cursor.node.kind {
            NodeKind::Array(items) if items.is_empty() => {
                let found = cursor.problem(Code::NoValues, "`values` is empty: there is nothing to try");
                self.report(found.help("leave it out, or give at least one value"));
                None
            }
            NodeKind::Array(items) => {
                self.check_data(cursor)?;
                Some(Values::List(items.iter().map(crate::syntax::Node::to_value).collect()))
            }
            NodeKind::String(text) if Path::is_path(text) => {
                let program = self.path(cursor, text).map(ValueAt)?;
                Some(Values::Program(Arc::new(program)))
            }
            _ => {
                self.wrong_type(cursor, "a list of values, or a path");
                None
            }
        }
    }
}
