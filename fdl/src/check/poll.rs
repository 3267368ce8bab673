//! `poll`: calling again until something holds.

use super::Checker;
use super::fields;
use super::paths::helped;
use super::resource::Reach;
use super::spot::Cursor;
use crate::diagnostics::Code;
use crate::expression::Condition;
use crate::graph::{Call, Guard, Pattern, Poll};
use std::sync::Arc;

impl Checker<'_> {
    /// A task's `poll`.
    pub(super) fn poll(&self, spot: &Cursor<'_>, call: Option<&Call>) -> Option<Poll> {
        if !self.shaped(spot, &fields::POLL, &[]) {
            return None;
        }
        if call.is_some_and(|call| call.pattern == Pattern::WaitForCallback) {
            let message = "a task that waits for a callback is not polled";
            let found = spot.problem_of_key(Code::PollWithCallback, message);
            self.report(found.help("its answer comes by the callback: leave out one of the two"));
        }
        if spot.node.get("until").is_none() && call.is_some_and(|call| !Reach::of(&call.resource).may_be(Reach::Http)) {
            let message = "the first answer ends this poll: it has no `until`";
            let found = spot.problem_of_key(Code::PollWithoutEnd, message);
            self.report(found.help("only HTTP functions can say themselves that they are not done, with status 202"));
        }
        let condition = |field: &str| {
            let field = spot.member(field)?;
            let text = self.text(&field)?;
            self.condition(&field, &text)
                .map(|condition| Arc::new(condition) as Arc<dyn Guard>)
        };
        let (interval, max_interval) = self.intervals(spot, 5_000, 60_000);
        let multiplier = spot.member("multiplier").and_then(|field| self.multiplier(&field));
        let max_attempts = spot
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
    pub(super) fn condition(&self, spot: &Cursor<'_>, text: &str) -> Option<Condition> {
        match Condition::parse(text) {
            Ok(condition) => Some(condition),
            Err(error) => {
                let found = self.inside(spot, Code::BadCondition, error.offset, error.len, error.message);
                self.report(helped(found, error.help));
                None
            }
        }
    }

    /// `intervalSeconds` and `maxIntervalSeconds` in milliseconds, with defaults.
    pub(super) fn intervals(&self, spot: &Cursor<'_>, interval: u64, most: u64) -> (u64, u64) {
        let given = spot.member("intervalSeconds").and_then(|field| self.pause(&field));
        let bound = spot.member("maxIntervalSeconds").and_then(|field| self.pause(&field));
        let (interval, most) = (given.unwrap_or(interval), bound.unwrap_or(most));
        let written = spot
            .member("intervalSeconds")
            .or_else(|| spot.member("maxIntervalSeconds"));
        if let Some(field) = written.filter(|_| interval > most) {
            let message = format!(
                "the pause of {} s is cut to the maximum of {} s",
                seconds(interval),
                seconds(most)
            );
            let found = field.problem(Code::IntervalOverMax, message);
            self.report(found.help("make `maxIntervalSeconds` at least as long as `intervalSeconds`"));
        }
        (interval, most)
    }

    /// What a pause grows by: any number from 0.
    pub(super) fn multiplier(&self, spot: &Cursor<'_>) -> Option<f64> {
        self.number(spot, 0.0..=f64::MAX)
    }
}

fn seconds(millis: u64) -> f64 {
    millis as f64 / 1000.0
}
