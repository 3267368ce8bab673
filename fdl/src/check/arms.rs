//! `choice` steps.

use super::Checker;
use super::cursor::Cursor;
use super::fields;
use super::named_entries::{CHOICES, STEPS};
use super::outline::{Slot, entries, steps_in};
use crate::diagnostics::Code;
use crate::graph::{Arm, Choice, Guard, ListId, StepId, StepKind};
use crate::syntax::{Format, NodeKind, Span};
use crate::value::Text;
use std::collections::HashMap;
use std::sync::Arc;

impl Checker<'_> {
    /// A choice's own fields.
    pub(super) fn choice(&self, cursor: &Cursor<'_>, id: StepId, list: ListId) -> Option<StepKind> {
        let default = cursor
            .member("default")
            .filter(|default| {
                !self.is_default_in_short(default, list) && self.check_fields(default, &fields::DEFAULT, &[])
            })
            .map(|default| self.arm(&default, id, Slot::Default, list));
        let choices = cursor.member("choices")?;
        if self.is_by_name(&choices, &CHOICES) || !self.is_listed(&choices, "choices") {
            return None;
        }
        let count = entries(choices.node).len();
        if count == 0 {
            let found = choices.problem(Code::NoBranches, "`choices` is empty");
            self.report(found.help("a choice needs at least one `{condition, steps or goto}`"));
        }
        let mut seen = HashMap::default();
        let mut arms = Vec::with_capacity(count);
        for (index, item) in choices.entries().enumerate() {
            if self.is_hopeless() {
                break;
            }
            if !self.check_fields(&item, &fields::ARM, &[]) {
                continue;
            }
            let mut arm = self.arm(&item, id, Slot::Arm(index), list);
            if let Some(condition) = item.member("condition") {
                let last = index + 1 == count && default.is_none();
                self.arm_condition(&condition, &mut arm, &mut seen, last);
            }
            arms.push(arm);
        }
        Some(StepKind::Choice(Choice { arms, default }))
    }

    /// Whether a default is the name of a step or a list of steps instead of an object; this is
    /// reported.
    fn is_default_in_short(&self, cursor: &Cursor<'_>, list: ListId) -> bool {
        let (field, sure) = match &cursor.node.kind {
            NodeKind::String(_) => ("goto", self.goto(cursor, list).is_some()),
            NodeKind::Array(_) => ("steps", true),
            _ => return false,
        };
        self.in_short(cursor, field, sure);
        true
    }

    /// Reports a value that is given in place of an object with that field.
    pub(super) fn in_short(&self, cursor: &Cursor<'_>, field: &str, sure: bool) {
        let message = format!("{} must be an object, not {}", cursor.called(), cursor.node.kind_name());
        let found = cursor.problem(Code::WrongType, message);
        let written = self.written(cursor.node.span);
        let key = match self.source.format() {
            Format::Json => format!("{{\"{field}\": "),
            Format::Yaml => format!("{{{field}: "),
        };
        let in_brackets = written.starts_with(['[', '{', '"', '\'']) || !written.contains(['\n', ',', ':', ' ']);
        let found = found.help(format!("write an object with `{field}`"));
        self.report(match in_brackets {
            true => found.fixed_by(
                format!("make it an object with `{field}`"),
                cursor.node.span,
                format!("{key}{written}}}"),
                sure,
            ),
            false => found,
        });
    }

    fn arm(&self, cursor: &Cursor<'_>, id: StepId, slot: Slot, list: ListId) -> Arm {
        Arm {
            condition: None,
            text: Text::default(),
            list: self.steps(cursor, id, slot),
            goto: cursor.member("goto").and_then(|target| self.goto(&target, list)),
        }
    }

    fn arm_condition(&self, cursor: &Cursor<'_>, arm: &mut Arm, seen: &mut HashMap<Text, Span>, last: bool) {
        let Some(text) = self.text(cursor) else { return };
        let Some(condition) = self.condition(cursor, &text) else {
            return;
        };
        arm.condition = Some(condition as Arc<dyn Guard>);
        arm.text = text.clone();
        let plain = Text::from(text.trim());
        if plain == "true" && !last {
            let found = cursor.problem(
                Code::AlwaysTrue,
                "this always holds: what comes after it is never chosen",
            );
            self.report(found.help("move it to the end, or make it the `default`"));
        }
        if plain == "false" {
            let found = cursor.problem(Code::AlwaysFalse, "this never holds: its steps never run");
            self.report(found.help("write a condition over the step's own input, such as `$.a == 1`"));
        }
        if let Some(&first) = seen.get(&plain) {
            let found = cursor.problem(
                Code::RepeatedCondition,
                "an earlier choice has the same condition and wins",
            );
            self.report(found.label(first, "the first one is here"));
        } else {
            seen.insert(plain, cursor.node.span);
        }
    }

    /// The list under `steps`, if there is one.
    pub(super) fn steps(&self, owner: &Cursor<'_>, id: StepId, slot: Slot) -> Option<ListId> {
        let cursor = owner.member("steps")?;
        if self.is_by_name(&cursor, &STEPS) {
            return None;
        }
        if !self.is_list(&cursor, "steps") && steps_in(cursor.node).is_none() {
            return None;
        }
        if entries(cursor.node).is_empty() {
            let found = cursor.problem(Code::NoSteps, "`steps` is empty");
            self.report(found.help("put at least one step in; a `pass` step does nothing"));
        }
        self.outline.entry(id)?.list_in(slot)
    }
}
