//! How many steps a schema takes for a value. The walk follows the evaluator, takes every branch,
//! and ends with the budget, so it never costs more than it counts.

use super::outline::{Outline, Sub};
use crate::graph::{Budget, Exhausted};
use crate::value::{Text, Value};

/// The maximum depth of nested subschemas: each level takes room on the evaluator's stack.
const MAX_DEPTH: usize = 600;
/// Bytes of a value that is compared for one step.
const BYTES_PER_STEP: usize = 64;
/// Steps of the standard's own schemas for each byte of a value.
const STANDARD_STEPS_PER_BYTE: usize = 16;

/// The maximum cost of evaluating.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// The cost of deciding whether the value fits.
    pub(super) whether: usize,
    /// The cost of finding where it does not fit.
    pub(super) where_not: usize,
    /// The cost of finding which of its members and items were looked at.
    marks: usize,
}

/// The cost for a value, unless it exceeds the rest of the budget.
pub(super) fn of(outline: &Outline, value: &Value, budget: &Budget) -> Result<Cost, Exhausted> {
    let mut walk = Walk {
        subs: &outline.subs,
        left: budget.left(),
    };
    let cost = walk.ask(0, value, MAX_DEPTH)?;
    if cost.whether > budget.left() {
        return Err(Exhausted);
    }
    Ok(cost)
}

struct Walk<'o> {
    subs: &'o [Sub],
    /// Steps that may still be counted.
    left: usize,
}

impl Walk<'_> {
    fn ask(&mut self, number: usize, value: &Value, depth: usize) -> Result<Cost, Exhausted> {
        let depth = depth.checked_sub(1).ok_or(Exhausted)?;
        let subs = self.subs;
        let Some(sub) = subs.get(number) else {
            return Ok(Cost::default());
        };
        let mut cost = Cost::default();
        cost.add_own(sub.steps_for(value));
        self.left = self.left.checked_sub(cost.whether).ok_or(Exhausted)?;
        for &same in &sub.all {
            let found = self.ask(same, value, depth)?;
            cost.add(found.whether, found.where_not);
            cost.mark(found);
        }
        for &some in &sub.some {
            let found = self.ask(some, value, depth)?;
            // To explain why none fits, each subschema is asked twice.
            cost.add(found.whether, found.whether.saturating_add(found.where_not));
            cost.mark(found);
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter() {
                    self.ask_of_member(sub, name, member, depth, &mut cost)?;
                }
            }
            Value::Array(items) => {
                for (index, item) in items.values().iter().enumerate() {
                    let placed = sub.prefix.get(index).copied().or(sub.items);
                    self.ask_of_part(
                        placed.is_none(),
                        placed.into_iter().chain(sub.contains),
                        sub,
                        item,
                        depth,
                        &mut cost,
                    )?;
                }
            }
            _ => {}
        }
        if !sub.unevaluated.is_empty() {
            cost.add(cost.marks, cost.marks);
        }
        Ok(cost)
    }

    fn ask_of_member(
        &mut self,
        sub: &Sub,
        name: &Text,
        member: &Value,
        depth: usize,
        cost: &mut Cost,
    ) -> Result<(), Exhausted> {
        let own = sub.properties.get(&**name).copied();
        let mut asked = Vec::new();
        let mut surely = own.is_some();
        let mut matching = 0;
        for (expression, regex, number) in &sub.by_pattern {
            matching += expression.steps_for(name.len());
            let fits = regex.as_ref().is_none_or(|regex| regex.is_match(name));
            surely |= fits && regex.is_some();
            asked.extend(fits.then_some(*number));
        }
        if !surely {
            asked.extend(sub.additional);
        }
        self.left = self.left.checked_sub(matching).ok_or(Exhausted)?;
        cost.add_own(matching);
        if let Some(names) = sub.names {
            let found = self.ask(names, &Value::String(name.clone()), depth)?;
            cost.add(found.whether, found.where_not);
        }
        let rest = !surely && sub.additional.is_none();
        self.ask_of_part(rest, own.into_iter().chain(asked), sub, member, depth, cost)
    }

    /// Asks about a member or item; if nothing else was asked about it, also asks the subschemas
    /// for such parts.
    fn ask_of_part(
        &mut self,
        rest: bool,
        asked: impl Iterator<Item = usize>,
        sub: &Sub,
        part: &Value,
        depth: usize,
        cost: &mut Cost,
    ) -> Result<(), Exhausted> {
        for number in asked {
            let found = self.ask(number, part, depth)?;
            cost.add(found.whether, found.where_not.saturating_add(found.whether));
            if sub.contains == Some(number) {
                cost.marks = cost.marks.saturating_add(found.whether);
            }
        }
        for &number in sub.unevaluated.iter().filter(|_| rest) {
            let found = self.ask(number, part, depth)?;
            cost.add(found.whether, found.where_not.saturating_add(found.whether));
            cost.marks = cost.marks.saturating_add(found.whether);
        }
        Ok(())
    }
}

impl Cost {
    fn add(&mut self, whether: usize, where_not: usize) {
        self.whether = self.whether.saturating_add(whether);
        self.where_not = self.where_not.saturating_add(where_not);
    }

    fn add_own(&mut self, steps: usize) {
        self.add(steps, steps);
        self.marks = self.marks.saturating_add(steps);
    }

    /// The result of another subschema about the same value is computed again: whether the value
    /// fits, and what was looked at.
    fn mark(&mut self, found: Self) {
        self.marks = self.marks.saturating_add(found.whether).saturating_add(found.marks);
    }
}

impl Sub {
    /// Its own cost for a value.
    fn steps_for(&self, value: &Value) -> usize {
        let bytes = value.json_len();
        let parts = match value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        let mut steps = 1 + self.own;
        let looks_at_parts = self.additional.is_some() || !self.properties.is_empty() || !self.unevaluated.is_empty();
        if looks_at_parts || self.names.is_some() {
            steps = steps.saturating_add(parts);
        }
        if let (Some(expression), Value::String(_)) = (&self.pattern, value) {
            steps = steps.saturating_add(expression.steps_for(bytes));
        }
        steps = steps.saturating_add(self.compared.saturating_mul(1 + bytes / BYTES_PER_STEP));
        if self.unique && matches!(value, Value::Array(_)) {
            // A few items are compared with each other, many by their hash.
            steps = steps.saturating_add(bytes / 4);
        }
        if self.standard {
            steps = steps.saturating_add(STANDARD_STEPS_PER_BYTE.saturating_mul(bytes));
        }
        steps
    }
}
