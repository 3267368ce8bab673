//! `inputSchema` and `outputSchema`: JSON Schemas that need nothing from elsewhere.

use super::Checker;
use super::cursor::Cursor;
use crate::diagnostics::Code;
use crate::graph::{Schema, SchemaError};
use crate::syntax::{Node, NodeKind};
use std::collections::HashSet;

/// The address of the standard's own schemas; these are built in.
const STANDARD: &str = "://json-schema.org/";
/// The maximum length of a message about a schema; the reason may quote the whole schema.
const REASON_CHARS: usize = 300;

impl Checker<'_> {
    /// A schema, compiled.
    pub(super) fn schema(&self, cursor: &Cursor<'_>) -> Option<Schema> {
        if !matches!(cursor.node.kind, NodeKind::Object(_) | NodeKind::Bool(_)) {
            self.wrong_type(cursor, "an object or a boolean");
            return None;
        }
        self.check_data(cursor)?;
        match Schema::new(&cursor.node.to_value(), self.limits) {
            Ok(schema) => Some(schema),
            Err(SchemaError::TooCostly(why)) => {
                let found = cursor.problem_of_key(Code::SchemaTooCostly, format!("{} {why}", cursor.called()));
                self.report(
                    found.help("ask less about one value: fewer references and alternatives inside each other"),
                );
                None
            }
            Err(SchemaError::Wrong(error)) => {
                let mut ids = HashSet::default();
                collect(cursor.node, "$id", &mut ids);
                if self.remote_references(cursor, &ids) == 0 {
                    let reason: String = error.chars().take(REASON_CHARS).collect();
                    let message = format!("{} is not a JSON Schema: {reason}", cursor.called());
                    self.report(cursor.problem_of_key(Code::BadSchema, message));
                }
                None
            }
        }
    }

    /// Reports references to other documents, with their number. The depth was checked.
    fn remote_references(&self, cursor: &Cursor<'_>, ids: &HashSet<&str>) -> usize {
        let mut count = 0;
        for item in cursor.items() {
            count += self.remote_references(&item, ids);
        }
        for (key, member) in cursor.members() {
            match member.str().filter(|_| key == "$ref" || key == "$dynamicRef") {
                Some(reference) if is_remote(reference, ids) => {
                    let message = format!("`{reference}` is another document, which is never fetched");
                    let found = member.problem(Code::RemoteSchema, message);
                    self.report(found.help("copy it into `$defs` and refer to it with `#/$defs/…`"));
                    count += 1;
                }
                _ => count += self.remote_references(&member, ids),
            }
        }
        count
    }
}

fn is_remote(reference: &str, ids: &HashSet<&str>) -> bool {
    let document = reference.split('#').next().unwrap_or("");
    !document.is_empty() && !document.contains(STANDARD) && !ids.contains(&document)
}

/// All strings under a key, at any depth.
fn collect<'n>(node: &'n Node, key: &str, into: &mut HashSet<&'n str>) {
    for item in node.items() {
        collect(item, key, into);
    }
    for member in node.members() {
        match member.value.as_str() {
            Some(text) if member.key == *key => {
                into.insert(text);
            }
            _ => collect(&member.value, key, into),
        }
    }
}
