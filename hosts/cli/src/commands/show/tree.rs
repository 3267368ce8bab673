//! An execution and its descendants, as a tree.

use crate::client::Client;
use crate::exit::Exit;
use crate::output::finish;
use crate::table::{NOTHING, table, time, took};
use crate::views::{self, error_of, plain, text, waiting};
use starbridge_flow::value::{Object, Value};
use std::collections::{BTreeMap, BTreeSet};

const PAGE_EXECUTIONS: &str = "1000";
/// How many executions of a family are read, the newest first.
const MAX_READ: usize = 10_000;
/// How many rows are shown.
const MAX_ROWS: usize = 500;
/// How many levels are shown below the execution.
const MAX_DEPTH: usize = 20;
const HEADS: [&str; 5] = ["EXECUTION", "STATUS", "STARTED", "TOOK", "WHY"];

/// Shows the tree below the named execution.
pub(super) fn show(client: &Client, meant: &str) -> Result<(), Exit> {
    let output = client.output();
    let execution = views::execution(client, meant)?.object();
    let id = plain(&execution, "id");
    let root = text(&execution, "root").map_or_else(|| id.clone(), str::to_owned);
    let (members, all) = read(client, &root)?;
    let tree = Tree::new(execution, members, id == root, all);
    let rows = tree.rows(&id);
    if output.json() {
        return finish(output, &tree.json(&rows).to_json(), Ok(()));
    }
    let cells: Vec<Vec<String>> = rows.shown.iter().map(|row| tree.cells(row)).collect();
    output.print(&table(&HEADS, &cells))?;
    if rows.more {
        let bounds = format!("{MAX_ROWS} executions and {MAX_DEPTH} levels are shown");
        output.note(&format!(
            "there are more: {bounds}; `starbridge list --root {root}` lists all"
        ));
    }
    if !all {
        output.note(&format!(
            "only the newest {MAX_READ} executions of the family were read"
        ));
    }
    Ok(())
}

/// The executions of a family, the newest first, and whether these are all.
fn read(client: &Client, root: &str) -> Result<(Vec<Object>, bool), Exit> {
    let mut members: Vec<Object> = Vec::new();
    let first = vec![("root", root.to_owned()), ("limit", PAGE_EXECUTIONS.to_owned())];
    let mut query = first.clone();
    while members.len() < MAX_READ {
        let (items, next) = client.get(&["executions"], &query)?.page();
        members.extend(items);
        match next {
            Some(next) => {
                query.clone_from(&first);
                query.push(("cursor", next));
            }
            None => return Ok((members, true)),
        }
    }
    Ok((members, false))
}

/// Executions of a family by their ids and parents.
struct Tree {
    executions: BTreeMap<String, Object>,
    /// The children of each execution, in the order of their starts.
    children: BTreeMap<String, Vec<String>>,
    /// Whether the whole family was read.
    all: bool,
}

/// A row: an execution and the drawing before it.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    id: String,
    depth: usize,
    lines: String,
}

/// The rows of a tree, and whether some were left out.
#[derive(Debug, Default)]
struct Rows {
    shown: Vec<Row>,
    more: bool,
}

impl Tree {
    /// `newest_first`: the family without `top`. If `top` is the root, executions whose parent is
    /// gone are shown below the id of that parent.
    fn new(top: Object, newest_first: Vec<Object>, is_root: bool, all: bool) -> Self {
        let top_id = plain(&top, "id");
        let mut children: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut executions: BTreeMap<String, Object> = BTreeMap::new();
        for execution in newest_first.into_iter().rev() {
            let id = plain(&execution, "id");
            if let Some(parent) = execution.get("parent").and_then(Value::as_object) {
                children.entry(plain(parent, "execution")).or_default().push(id.clone());
            }
            executions.insert(id, execution);
        }
        executions.insert(top_id.clone(), top);
        if is_root {
            let known = |parent: &&String| !executions.contains_key(parent.as_str());
            let gone: Vec<String> = children.keys().filter(known).cloned().collect();
            children.entry(top_id).or_default().extend(gone);
        }
        Self {
            executions,
            children,
            all,
        }
    }

    /// The rows from this execution down, each before its children.
    fn rows(&self, top: &str) -> Rows {
        let mut rows = Rows::default();
        // The server's data is not trusted to be a tree.
        let mut seen = BTreeSet::new();
        let mut left = vec![(top.to_owned(), 0, String::new(), String::new())];
        while let Some((id, depth, lines, below)) = left.pop() {
            if rows.shown.len() >= MAX_ROWS {
                rows.more = true;
                break;
            }
            if !seen.insert(id.clone()) {
                continue;
            }
            let children = self.children.get(&id).map_or(&[][..], Vec::as_slice);
            rows.shown.push(Row { id, depth, lines });
            if depth >= MAX_DEPTH {
                rows.more |= !children.is_empty();
                continue;
            }
            for (place, child) in children.iter().rev().enumerate() {
                let (corner, beside) = if place == 0 {
                    ("└─ ", "   ")
                } else {
                    ("├─ ", "│  ")
                };
                left.push((
                    child.clone(),
                    depth + 1,
                    format!("{below}{corner}"),
                    format!("{below}{beside}"),
                ));
            }
        }
        rows
    }

    fn cells(&self, row: &Row) -> Vec<String> {
        let Some(execution) = self.executions.get(&row.id) else {
            let why = if self.all { "deleted" } else { "not read" };
            return vec![format!("{}{} ({why})", row.lines, row.id)];
        };
        let (started, ended) = (text(execution, "startedTime"), text(execution, "endedTime"));
        let name = format!("{}/{}", plain(execution, "flow"), plain(execution, "name"));
        vec![
            format!("{}{name}", row.lines),
            plain(execution, "status"),
            time(started),
            took(started, ended).unwrap_or_else(|| NOTHING.to_owned()),
            error_of(execution).or_else(|| waiting(execution)).unwrap_or_default(),
        ]
    }

    /// `{"items": [{"depth": …, …}], "more": …}`, each item an execution without its data.
    fn json(&self, rows: &Rows) -> Value {
        let item = |row: &Row| {
            let mut item = Object::new();
            item.insert("depth".into(), (row.depth as u64).into());
            match self.executions.get(&row.id) {
                Some(execution) => {
                    let members = execution
                        .iter()
                        .filter(|(key, _)| !matches!(key.as_str(), "input" | "output"));
                    for (key, value) in members {
                        item.insert(key.clone(), value.clone());
                    }
                }
                None => {
                    item.insert("id".into(), row.id.as_str().into());
                    item.insert("deleted".into(), self.all.into());
                }
            }
            Value::from(item)
        };
        let items: Vec<Value> = rows.shown.iter().map(item).collect();
        let more = rows.more || !self.all;
        let page: Object = [("items".into(), items.into()), ("more".into(), more.into())]
            .into_iter()
            .collect();
        page.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(id: &str, parent: Option<&str>) -> Object {
        let parent = parent.map(|parent| format!(r#", "parent": {{"execution": "{parent}", "event": 3}}"#));
        let parent = parent.unwrap_or_default();
        serde_json::from_str(&format!(r#"{{"id": "{id}"{parent}}}"#)).unwrap()
    }

    /// The drawn tree below `a`, for children with their parents in the order of their starts.
    fn drawn(members: &[(&str, &str)]) -> (Vec<String>, bool) {
        let members = members.iter().rev().map(|(id, parent)| execution(id, Some(parent)));
        let tree = Tree::new(execution("a", None), members.collect(), true, true);
        let rows = tree.rows("a");
        let lines = rows.shown.iter().map(|row| format!("{}{}", row.lines, row.id));
        (lines.collect(), rows.more)
    }

    #[test]
    fn tree_is_drawn_in_the_order_of_starts() {
        let (lines, more) = drawn(&[("b", "a"), ("c", "a"), ("d", "b"), ("e", "b")]);
        assert_eq!(lines, ["a", "├─ b", "│  ├─ d", "│  └─ e", "└─ c"]);
        assert!(!more);
    }

    #[test]
    fn children_of_a_deleted_execution_stand_below_its_id() {
        let (lines, _) = drawn(&[("b", "a"), ("d", "gone")]);
        assert_eq!(lines, ["a", "├─ b", "└─ gone", "   └─ d"]);
    }

    #[test]
    fn tree_is_bounded_in_depth_and_number() {
        let ids: Vec<String> = (0..=MAX_DEPTH + 1).map(|number| format!("n{number}")).collect();
        let mut chain = vec![("n0", "a")];
        chain.extend(ids.windows(2).map(|pair| (pair[1].as_str(), pair[0].as_str())));
        let (lines, more) = drawn(&chain);
        assert_eq!((lines.len(), more), (MAX_DEPTH + 1, true));
        let ids: Vec<String> = (0..MAX_ROWS).map(|number| format!("n{number:03}")).collect();
        let many: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "a")).collect();
        let (lines, more) = drawn(&many);
        assert_eq!((lines.len(), more), (MAX_ROWS, true));
        assert!(!drawn(&many[1..]).1);
    }

    #[test]
    fn tree_that_is_none_ends() {
        let (lines, _) = drawn(&[("b", "c"), ("c", "b"), ("d", "a")]);
        assert_eq!(lines, ["a", "└─ d"]);
    }
}
