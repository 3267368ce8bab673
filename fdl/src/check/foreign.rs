//! Whole definitions in other languages: one sentence reports them.

use super::cursor::Cursor;
use crate::diagnostics::{Code, Diagnostic};
use crate::syntax::{Node, NodeKind, Source, Span};

/// The message for a definition in another language.
pub(super) fn recognised(root: &Cursor<'_>) -> Option<Diagnostic> {
    let node = root.node;
    if let NodeKind::Array(items) = &node.kind {
        return list_of(root, items);
    }
    if node.get("steps").is_some() {
        return None;
    }
    let (language, key, help) = language_of(node)?;
    let member = root.member(key)?;
    let found = member.problem_of_key(Code::ForeignLanguage, format!("this is {language}, not a flow"));
    Some(found.help(help))
}

/// Fields of a table of tasks that say which others come before.
const EARLIER: [&str; 7] = [
    "depends_on",
    "dependsOn",
    "dependencies",
    "depends",
    "needs",
    "after",
    "upstream",
];
/// Fields of a table of tasks that say what is done.
const DONE: [&str; 7] = ["task", "command", "cmd", "action", "url", "handler", "function"];

/// The message for a list that is a table of tasks, or the steps of a flow.
fn list_of(root: &Cursor<'_>, items: &[Node]) -> Option<Diagnostic> {
    let has = |fields: &[&str]| {
        let each = |item: &Node| fields.iter().any(|field| item.get(field).is_some());
        !items.is_empty() && items.iter().all(each)
    };
    if has(&["type"]) && has(&["name"]) {
        let found = head(root, "this is a list of steps, not a flow");
        return Some(found.help("a flow is an object with `version`, `type` and, below `steps`, this list"));
    }
    let found = head(root, "this is a table of tasks, not a flow");
    if has(&EARLIER) {
        return Some(found.help(
            "each task is a step with `name`, `type` and `resourceArn`, in the order they run; in a `parallel` step a branch has `dependsOn`",
        ));
    }
    has(&DONE).then(|| {
        found.help(
            "each task is a step with `name`, `type` and `resourceArn`; they run in the order they stand below `steps`",
        )
    })
}

/// A diagnostic at the beginning of the definition.
fn head(root: &Cursor<'_>, message: &str) -> Diagnostic {
    let mut found = root.problem(Code::ForeignLanguage, message);
    found.span.end = found.span.start + 1;
    found
}

/// The message for a table in a text file, by the file's name.
pub(super) fn table(source: &Source) -> Option<Diagnostic> {
    let name = source.name().to_lowercase();
    let is_table = [".csv", ".tsv"].iter().any(|end| name.ends_with(end));
    let first = source.text().lines().next().unwrap_or_default().len();
    is_table.then(|| {
        let span = Span { start: 0, end: first };
        let found = Diagnostic::new(Code::ForeignLanguage, span, "", "this is a table, not a flow");
        found.help("a flow is JSON or YAML, and each task a step in it; a table of data is the input: a `foreach` runs its steps for each row")
    })
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
