//! Entries of a list that are written as an object by name: `{"left": {…}}` for branches, `{"$.a > 1": {…}}` for
//! choices.

use super::Checker;
use super::cursor::Cursor;
use crate::diagnostics::Code;
use crate::syntax::{Member, Node, NodeKind};

/// Entries that a fix writes at most.
const MAX_WRITTEN: usize = 100;

/// A list whose entries people write by name.
pub(super) struct NamedEntries {
    /// What the entries are called.
    pub(super) called: &'static str,
    /// The field of an entry that the key belongs into.
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
/// The choices of a choice.
pub(super) const CHOICES: NamedEntries = NamedEntries {
    called: "choices",
    key: "condition",
    fields: &["condition", "steps", "goto"],
};

impl Checker<'_> {
    /// Whether it is, instead of a list, an object of entries by name, which is reported.
    pub(super) fn is_by_name(&self, cursor: &Cursor<'_>, list: &NamedEntries) -> bool {
        let members = cursor.node.members();
        let entry = |member: &Member| {
            !list.fields.contains(&&*member.key)
                && match &member.value.kind {
                    NodeKind::Object(_) | NodeKind::Array(_) => true,
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
        let found = found.help(format!("each is an object with `{key}` and `steps`"));
        let written: Option<Vec<String>> = members.iter().map(|member| self.with_key(member, list)).collect();
        let braces = self.written(cursor.node.span).starts_with('{');
        self.report(match written.filter(|written| braces && written.len() <= MAX_WRITTEN) {
            Some(written) => {
                let list = format!("[{}]", written.join(", "));
                found.fix(format!("make it a list with `{key}`"), cursor.node.span, list)
            }
            None => found,
        });
        true
    }

    /// An entry as it should be written, with its key inside; nothing where it has such a field already.
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
            NodeKind::Object(_) if has(&member.value, "type") => {
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
