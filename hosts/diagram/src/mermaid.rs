//! A flow for Mermaid: a flowchart with subgraphs.

use super::icon::Icon;
use super::outline::{BEGIN, Edge, EdgeKind, End, FINISH, Node, Outline};
use super::state_colors;
use super::status::{FlowStatus, Status};
use super::text::{shorten, steady};
use starbridge_flow::graph::Flow;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Characters of how an execution ended.
const ENDING: usize = 200;

/// Draws a flow as a Mermaid flowchart; with a status, also what happened to its steps.
///
/// The same flow and coloring give the same text. Mermaid refuses more than 500 edges or 50,000 characters, unless
/// the page that shows the chart raises its `maxEdges` and `maxTextSize`.
pub fn mermaid(flow: &Flow, status: Option<&FlowStatus>) -> String {
    let outline = Outline::new(flow, status);
    let mut out = String::from("flowchart TD\n");
    if let Some(ending) = status.and_then(FlowStatus::ending) {
        let lines = [shorten(&ending, ENDING)];
        let _ = writeln!(out, "  outcome[{}]", quoted(&lines));
    }
    let mut classes: BTreeMap<Status, Vec<String>> = BTreeMap::new();
    let mut depth = 1;
    // Writing to a string can't fail.
    for node in &outline.nodes {
        let indent = "  ".repeat(depth);
        let _ = match node {
            Node::Open { id, lines, status, .. } => {
                depth += 1;
                note(&mut classes, *status, id);
                writeln!(out, "{indent}subgraph {id}[{}]\n{indent}  direction TB", quoted(lines))
            }
            Node::Close => {
                depth = depth.saturating_sub(1).max(1);
                writeln!(out, "{}end", "  ".repeat(depth))
            }
            Node::Step {
                id,
                icon,
                lines,
                status,
            } => {
                note(&mut classes, *status, id);
                let (open, close) = brackets(*icon);
                writeln!(out, "{indent}{id}{open}{}{close}", quoted(lines))
            }
            Node::Begin => writeln!(out, "{indent}{BEGIN}((\" \"))"),
            Node::Finish => writeln!(out, "{indent}{FINISH}(((\" \")))"),
        };
    }
    for edge in &outline.edges {
        line(&mut out, edge);
    }
    let taken: Vec<String> = (0..)
        .zip(&outline.edges)
        .filter(|(_, edge)| edge.taken)
        .map(|(number, _): (usize, _)| number.to_string())
        .collect();
    if !taken.is_empty() {
        let _ = writeln!(out, "  linkStyle {} stroke-width:4px", taken.join(","));
    }
    for (status, ids) in classes {
        let (fill, border) = state_colors(status);
        let class = class(status);
        let _ = writeln!(
            out,
            "  classDef {class} fill:{fill},stroke:{border},color:#1d2731,{}",
            stroke(status)
        );
        let _ = writeln!(out, "  class {} {class}", ids.join(","));
    }
    out
}

fn note(classes: &mut BTreeMap<Status, Vec<String>>, status: Option<Status>, id: &str) {
    if let Some(status) = status {
        classes.entry(status).or_default().push(id.to_owned());
    }
}

fn class(status: Status) -> String {
    format!("is-{}", status.as_str().replace(' ', "-"))
}

/// The border also shows the status, for readers who do not see the colour.
fn stroke(status: Status) -> &'static str {
    match status {
        Status::Succeeded => "stroke-width:2px",
        Status::Running | Status::Failed | Status::UndoFailed => "stroke-width:4px",
        Status::NotReached => "stroke-dasharray:1 3",
        Status::Waiting => "stroke-width:2px,stroke-dasharray:8 3",
        Status::Caught | Status::Cancelled => "stroke-width:2px,stroke-dasharray:5 3",
        Status::Undoing | Status::RolledBack => "stroke-width:2px,stroke-dasharray:2 3",
    }
}

fn brackets(icon: Icon) -> (&'static str, &'static str) {
    match icon {
        Icon::Choice => ("{", "}"),
        Icon::Succeed => ("([", "])"),
        Icon::Fail => ("{{", "}}"),
        Icon::Wait => ("(", ")"),
        _ => ("[", "]"),
    }
}

fn line(out: &mut String, edge: &Edge) {
    let end = |end: &End| end.group.clone().unwrap_or_else(|| end.id.clone());
    let arrow = if edge.kind == EdgeKind::Catch { "-.->" } else { "-->" };
    let label = if edge.label.is_empty() {
        String::new()
    } else {
        format!("|{}|", quoted(std::slice::from_ref(&edge.label)))
    };
    let _ = writeln!(out, "  {} {arrow}{label} {}", end(&edge.from), end(&edge.to));
}

/// A quoted label of lines. Text that Mermaid would read as its own syntax, Markdown, HTML or a formula becomes
/// numeric entities, which it turns into characters again.
fn quoted(lines: &[String]) -> String {
    let mut quoted = String::from("\"");
    for (number, line) in lines.iter().enumerate() {
        if number > 0 {
            quoted.push_str("<br/>");
        }
        let line: Vec<char> = steady(line).chars().collect();
        let plain = |at: Option<usize>| {
            let letter = at.and_then(|at| line.get(at));
            letter.is_some_and(char::is_ascii_alphanumeric)
        };
        for (at, &c) in line.iter().enumerate() {
            // Between letters these characters have no special meaning.
            let inside = matches!(c, '-' | '.' | '/') && plain(at.checked_sub(1)) && plain(Some(at + 1));
            if inside || c.is_ascii_alphanumeric() || c == ' ' || !c.is_ascii() {
                quoted.push(c);
            } else {
                let _ = write!(quoted, "#{};", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}
