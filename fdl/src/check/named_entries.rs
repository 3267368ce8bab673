//! Entries of a list that are written as an object by name: `{"left": {…}}` for branches, `{"$.a > 1": {…}}` for
//! choices.

use super::Checker;
use super::cursor::Cursor;
use crate::diagnostics::Code;
use crate::syntax::{Member, Node, NodeKind, Span};

/// The maximum number of entries that a fix writes.
const MAX_WRITTEN: usize = 100;

/// A list whose entries people write by name.
pub(super) struct NamedEntries {
    /// What the entries are called.
    pub(super) called: &'static str,
    /// The field of an entry that takes the key.
    pub(super) key: &'static str,
    /// The fields of an entry. An object that has one of them is an entry itself.
    pub(super) fields: &'static [&'static str],
}

/// The branches of a parallel.
pub(super) const BRANCHES: NamedEntries = NamedEntries {
    called: "branches",
    key: "name",
    fields: &["name", "steps", "dependsOn"],
};
pub(super) const CHOICES: NamedEntries = NamedEntries {
    called: "choices",
    key: "condition",
    fields: &["condition", "steps", "goto"],
};

/// The steps of a list.
pub(super) const STEPS: NamedEntries = NamedEntries {
    called: "steps",
    key: "name",
    fields: &["name", "type"],
};

impl NamedEntries {
    /// Whether an entry is an object, and nothing else is written in its place.
    fn is_of_objects(&self) -> bool {
        self.called == STEPS.called
    }
}

impl Checker<'_> {
    /// Whether it is an object of entries by name instead of a list; this is reported.
    pub(super) fn is_by_name(&self, cursor: &Cursor<'_>, list: &NamedEntries) -> bool {
        let members = cursor.node.members();
        let entry = |member: &Member| {
            !list.fields.contains(&&*member.key)
                && match &member.value.kind {
                    NodeKind::Object(_) => true,
                    NodeKind::Array(_) => !list.is_of_objects(),
                    NodeKind::String(_) => list.fields.contains(&"goto"),
                    _ => false,
                }
        };
        if members.is_empty() || !members.iter().all(entry) {
            return false;
        }
        let (called, key) = (list.called, list.key);
        let message = format!("`{called}` must be a list of {called}, not an object");
        let found = cursor.problem(Code::WrongType, message);
        let other = if list.is_of_objects() { "type" } else { "steps" };
        let found = found.help(format!("each is an object with `{key}` and `{other}`"));
        let written = match self.written(cursor.node.span).starts_with('{') {
            _ if members.len() > MAX_WRITTEN => None,
            true => {
                let written: Option<Vec<String>> = members.iter().map(|member| self.with_key(member, list)).collect();
                written.map(|written| format!("[{}]", written.join(", ")))
            }
            false => self.as_lines(cursor.node, list),
        };
        self.report(match written {
            Some(written) => found.fix(format!("make it a list with `{key}`"), cursor.node.span, written),
            None => found,
        });
        true
    }

    /// The list in lines of YAML. The text between the entries stays, including comments.
    fn as_lines(&self, node: &Node, list: &NamedEntries) -> Option<String> {
        let mut lines = String::new();
        let mut done = node.span.start;
        for member in node.members() {
            let between = |start, end| self.written(Span { start, end });
            lines += between(done, member.key_span.start);
            lines += &self.as_line(member, list)?;
            done = member.value.span.end;
        }
        lines += self.written(Span {
            start: done,
            end: node.span.end,
        });
        Some(lines)
    }

    /// An entry in lines of YAML; `None` if lines would have to be moved.
    fn as_line(&self, member: &Member, list: &NamedEntries) -> Option<String> {
        let (key, value) = (self.written(member.key_span), self.written(member.value.span));
        let column = self.indent(member.key_span.start)?;
        let next = " ".repeat(column + 2);
        match &member.value.kind {
            NodeKind::String(_) => Some(format!("- {}: {key}\n{next}goto: {value}", list.key)),
            _ if value.starts_with(['{', '[']) => Some(format!("- {}", self.with_key(member, list)?)),
            _ => {
                let inside = self.indent(member.value.span.start)?.checked_sub(column)?;
                let between = self.written(Span {
                    start: member.key_span.end,
                    end: member.value.span.start,
                });
                let between = between
                    .trim_start_matches(' ')
                    .strip_prefix(':')
                    .filter(|_| inside >= 2)?;
                match &member.value.kind {
                    NodeKind::Array(_) => {
                        let head = format!("- {}: {key}\n{next}steps:", list.key);
                        Some(head + between + value)
                    }
                    NodeKind::Object(_) if has(&member.value, list.key) => None,
                    NodeKind::Object(_) if has(&member.value, "type") && !list.is_of_objects() => None,
                    _ => {
                        let blank = " ".repeat(inside - 1);
                        Some(format!("-{blank}{}: {key}{between}{value}", list.key))
                    }
                }
            }
        }
    }

    /// The number of blanks before a place, if nothing else precedes it on its line.
    fn indent(&self, at: usize) -> Option<usize> {
        let before = self.source.text().get(..at)?;
        let line = before
            .rfind('\n')
            .map_or(before, |end| before.get(end + 1..).unwrap_or_default());
        line.bytes().all(|byte| byte == b' ').then_some(line.len())
    }

    /// An entry in its correct form, with its key inside; `None` if it already has such a field.
    fn with_key(&self, member: &Member, list: &NamedEntries) -> Option<String> {
        let quote = |field: &str| match self.written(member.key_span).starts_with('"') {
            true => format!("\"{field}\""),
            false => field.to_owned(),
        };
        let begin = format!("{{{}: {}", quote(list.key), self.written(member.key_span));
        let written = self.written(member.value.span);
        match &member.value.kind {
            NodeKind::Array(_) => Some(format!("{begin}, {}: {written}}}", quote("steps"))),
            NodeKind::String(_) => Some(format!("{begin}, {}: {written}}}", quote("goto"))),
            NodeKind::Object(_) if has(&member.value, list.key) => None,
            // One step in place of the list of them.
            NodeKind::Object(_) if has(&member.value, "type") && !list.is_of_objects() => {
                Some(format!("{begin}, {}: [{written}]}}", quote("steps")))
            }
            NodeKind::Object(members) if members.is_empty() => Some(format!("{begin}}}")),
            NodeKind::Object(_) => {
                let inside = written.strip_prefix('{')?.trim_start();
                Some(format!("{begin}, {inside}"))
            }
            _ => None,
        }
    }
}

fn has(node: &Node, key: &str) -> bool {
    node.get(key).is_some()
}
