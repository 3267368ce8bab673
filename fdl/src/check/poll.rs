//! `poll`: calling again until a condition holds.

use super::Checker;
use super::cursor::Cursor;
use super::fields;
use super::paths::helped;
use super::resource::Reach;
use crate::diagnostics::Code;
use crate::expression::Condition;
use crate::graph::{Call, Guard, Pattern, Poll};
use crate::path::Query;
use crate::time::Millis;
use std::sync::Arc;

impl Checker<'_> {
    /// A task's `poll`.
    pub(super) fn poll(&self, cursor: &Cursor<'_>, call: Option<&Call>) -> Option<Poll> {
        if !self.check_fields(cursor, &fields::POLL, &[]) {
            return None;
        }
        if call.is_some_and(|call| call.pattern == Pattern::WaitForCallback) {
            let message = "a task that waits for a callback is not polled";
            let found = cursor.problem_of_key(Code::PollWithCallback, message);
            self.report(found.help("its answer comes by the callback: leave out one of the two"));
        }
        if cursor.node.get("until").is_none() && call.is_some_and(|call| !Reach::of(&call.resource).may_be(Reach::Http))
        {
            let message = "the first answer ends this poll: it has no `until`";
            let found = cursor.problem_of_key(Code::PollWithoutEnd, message);
            self.report(found.help("only HTTP functions can say themselves that they are not done, with status 202"));
        }
        let condition = |field: &str| {
            let field = cursor.member(field)?;
            let text = self.text(&field)?;
            self.condition(&field, &text)
                .map(|condition| condition as Arc<dyn Guard>)
        };
        let (interval, max_interval) = self.intervals(
            &|field| cursor.member(field),
            Millis::from_secs(5),
            Millis::from_secs(60),
        );
        let multiplier = cursor.member("multiplier").and_then(|field| self.multiplier(&field));
        let max_attempts = cursor
            .member("maxAttempts")
            .and_then(|field| self.whole(&field, 1..=u64::MAX));
        Some(Poll {
            until: condition("until"),
            fail_when: condition("failWhen"),
            interval,
            max_interval,
            multiplier: multiplier.unwrap_or(1.5),
            max_attempts,
        })
    }

    /// A condition over the value at `$`.
    pub(super) fn condition(&self, cursor: &Cursor<'_>, text: &str) -> Option<Arc<Condition>> {
        match Condition::parse(text) {
            Ok(condition) => {
                let condition = Arc::new(condition);
                let mut noted = self.noted.borrow_mut();
                noted.conditions.insert(cursor.node.span.start, condition.clone());
                Some(condition)
            }
            Err(error) => {
                let found = self.inside(cursor, Code::BadCondition, error.offset, error.len, error.message);
                self.report(helped(found, error.help));
                None
            }
        }
    }

    /// Warns of a condition that tests for an empty list by its `length`, unless `there` says that
    /// a path leads to a member of that name. Returns the places of the paths it warned of.
    pub(super) fn lengths(
        &self,
        cursor: &Cursor<'_>,
        condition: &Condition,
        there: &dyn Fn(&Query) -> bool,
    ) -> Vec<usize> {
        let text = condition.text();
        let Some(at) = length_compared(text) else {
            return Vec::new();
        };
        let end = at + ".length".len();
        let asked = condition.paths().into_iter().find(|(place, _)| {
            let (offset, len) = condition.place(*place);
            offset + len == end
        });
        let Some((place, query)) = asked.filter(|(_, query)| !there(query)) else {
            return Vec::new();
        };
        let message = "a list has no `length`".to_owned();
        let found = self.inside(cursor, Code::NoLength, at, ".length".len(), message);
        let path = query.text().strip_suffix(".length").unwrap_or("$");
        self.report(found.help(format!("`{path}[0] == {path}[0]` holds where the list has an item")));
        vec![place]
    }

    /// `intervalSeconds` and `maxIntervalSeconds`, as far as `member` gives them, with defaults.
    pub(super) fn intervals<'c>(
        &self,
        member: &dyn Fn(&str) -> Option<Cursor<'c>>,
        interval: Millis,
        most: Millis,
    ) -> (Millis, Millis) {
        let given = member("intervalSeconds").and_then(|field| self.pause(&field));
        let bound = member("maxIntervalSeconds").and_then(|field| self.pause(&field));
        let (interval, most) = (given.unwrap_or(interval), bound.unwrap_or(most));
        let written = member("intervalSeconds").or_else(|| member("maxIntervalSeconds"));
        if let Some(field) = written.filter(|_| interval > most) {
            let message = format!("the pause of {interval} is cut to the maximum of {most}");
            let found = field.problem(Code::IntervalOverMax, message);
            self.report(found.help("make `maxIntervalSeconds` at least as long as `intervalSeconds`"));
        }
        (interval, most)
    }

    /// The growth factor of a pause: any number from 0.
    pub(super) fn multiplier(&self, cursor: &Cursor<'_>) -> Option<f64> {
        self.number(cursor, 0.0..=f64::MAX)
    }
}

/// Where `.length` is compared with 0 or 1.
fn length_compared(text: &str) -> Option<usize> {
    let compared = |(at, word): (usize, &str)| {
        let member = text
            .get(..at)?
            .ends_with(|last: char| last.is_alphanumeric() || matches!(last, '_' | ']'));
        let rest = text.get(at + word.len()..)?.trim_start();
        let operand = ["==", "!=", ">=", "<=", ">", "<"]
            .iter()
            .find_map(|sign| rest.strip_prefix(sign))?;
        let number = operand.trim_start();
        let end = number.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let number = number.get(..end.unwrap_or(number.len()))?;
        (member && matches!(number, "0" | "1")).then_some(at)
    };
    text.match_indices(".length").find_map(compared)
}
