//! Whole definitions in other languages: one sentence reports them.

use super::cursor::Cursor;
use crate::diagnostics::{Code, Diagnostic};
use crate::syntax::Node;

/// The message for a definition in another language.
pub(super) fn recognised(root: &Cursor<'_>) -> Option<Diagnostic> {
    let node = root.node;
    if node.get("steps").is_some() {
        return None;
    }
    let (language, key, help) = language_of(node)?;
    let member = root.member(key)?;
    let found = member.problem_of_key(Code::ForeignLanguage, format!("this is {language}, not a flow"));
    Some(found.help(help))
}

/// The language, the key that identifies it, and the equivalent in FDL.
fn language_of(root: &Node) -> Option<(&'static str, &'static str, &'static str)> {
    let word = |key: &str| root.get(key).and_then(Node::as_str);
    let here = "a flow has `version`, `type` and `steps`, which run in the order they stand";
    if word("Type") == Some("StateMachine") || (root.get("SpecVersion").is_some() && root.get("States").is_some()) {
        let key = if root.get("SpecVersion").is_some() {
            "SpecVersion"
        } else {
            "Type"
        };
        let help =
            "version 1 of CloudFlow (`version: v1`, `steps`) runs as it is; of version 2 each state is a step here";
        return Some(("version 2 of CloudFlow", key, help));
    }
    if root.get("States").is_some() && root.get("StartAt").is_some() {
        let help = "each state is a step with a `name`; steps run in the order they stand, and a `goto` of a `choice` or \
            `catch` jumps";
        return Some(("the Amazon States Language", "States", help));
    }
    let named = |task: &Node| task.get("taskReferenceName").is_some();
    if root.get("tasks").is_some_and(|tasks| tasks.items().iter().any(named)) {
        let help = "each task is a step with a `name` and a `resourceArn`; `switch` is `choice`, `fork` is `parallel`";
        return Some(("a workflow of Conductor", "tasks", help));
    }
    let dsl = root.get("document").and_then(|document| document.get("dsl")).is_some();
    if dsl && root.get("do").is_some() {
        return Some(("the Serverless Workflow DSL", "document", here));
    }
    if root.get("specVersion").is_some() && root.get("states").is_some() {
        return Some(("the Serverless Workflow DSL", "states", here));
    }
    None
}
