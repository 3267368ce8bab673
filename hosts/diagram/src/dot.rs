//! A flow for Graphviz: composites are clusters, lists run downwards.

use super::icon::Icon;
use super::outline::{BEGIN, Edge, EdgeKind, FINISH, Node, Outline};
use super::state_colors;
use super::status::{FlowStatus, Status};
use super::text::{shorten, steady};
use starbridge_flow::graph::Flow;
use std::fmt::Write;

/// Characters of how an execution ended.
const ENDING: usize = 200;

/// Draws a flow in the language of Graphviz; with a status, also what happened to its steps.
///
/// The same flow and coloring give the same text.
pub fn dot(flow: &Flow, status: Option<&FlowStatus>) -> String {
    let outline = Outline::new(flow, status);
    let mut out = String::from(
        "digraph flow {\n  compound=true; rankdir=TB; newrank=true; nodesep=0.35; ranksep=0.4;\n  \
         fontname=\"Helvetica,Arial,sans-serif\"; labelloc=t; labeljust=l;\n  \
         node [shape=box, style=\"rounded,filled\", fillcolor=\"#ffffff\", color=\"#5f6f7e\", fontname=\"Helvetica,Arial,sans-serif\", fontsize=11];\n  \
         edge [color=\"#44525f\", fontname=\"Helvetica,Arial,sans-serif\", fontsize=10];\n",
    );
    let _ = writeln!(out, "  label={};", quoted(&title(&outline, status)));
    // Writing to a string can't fail.
    let mut depth = 1;
    for node in &outline.nodes {
        let indent = "  ".repeat(depth);
        match node {
            Node::Open {
                id,
                lines,
                status,
                lane,
            } => {
                let border = if *lane { "rounded,dashed" } else { "rounded" };
                let color = status.map_or("#9aa8b5", |status| state_colors(status).1);
                let _ = writeln!(
                    out,
                    "{indent}subgraph cluster_{id} {{\n{indent}  label={}; style=\"{border}\"; color=\"{color}\"; fontsize=11;",
                    quoted(&lines.join("\n"))
                );
                depth += 1;
            }
            Node::Close => {
                depth = depth.saturating_sub(1).max(1);
                let _ = writeln!(out, "{}}}", "  ".repeat(depth));
            }
            Node::Step {
                id,
                icon,
                lines,
                status,
            } => {
                let _ = writeln!(
                    out,
                    "{indent}{id} [label={}{}];",
                    quoted(&lines.join("\n")),
                    look(*icon, *status)
                );
            }
            Node::Begin => {
                let _ = writeln!(
                    out,
                    "{indent}{BEGIN} [label=\"\", shape=circle, width=0.18, fillcolor=\"#34414d\"];"
                );
            }
            Node::Finish => {
                let _ = writeln!(
                    out,
                    "{indent}{FINISH} [label=\"\", shape=doublecircle, width=0.14, fillcolor=\"#34414d\"];"
                );
            }
        }
    }
    for edge in &outline.edges {
        line(&mut out, edge);
    }
    out.push_str("}\n");
    out
}

fn line(out: &mut String, edge: &Edge) {
    let mut attributes = Vec::new();
    if let Some(cluster) = &edge.from.group {
        attributes.push(format!("ltail=cluster_{cluster}"));
    }
    if let Some(cluster) = &edge.to.group {
        attributes.push(format!("lhead=cluster_{cluster}"));
    }
    if !edge.label.is_empty() {
        attributes.push(format!("label={}", quoted(&edge.label)));
    }
    match edge.kind {
        EdgeKind::Next => {}
        EdgeKind::Goto => attributes.push("color=\"#1f5fa8\"".to_owned()),
        EdgeKind::Catch => attributes.push("style=dashed, color=\"#a8341f\"".to_owned()),
        EdgeKind::Depends => attributes.push("color=\"#6a4fa3\"".to_owned()),
    }
    if edge.back {
        // Edges that lead back must not influence the vertical order.
        attributes.push("constraint=false".to_owned());
    }
    if edge.taken {
        attributes.push("penwidth=3".to_owned());
    }
    let (from, to) = (&edge.from.id, &edge.to.id);
    let _ = match attributes.as_slice() {
        [] => writeln!(out, "  {from} -> {to};"),
        attributes => writeln!(out, "  {from} -> {to} [{}];", attributes.join(", ")),
    };
}

/// The flow's name and how the execution ended.
fn title(outline: &Outline, status: Option<&FlowStatus>) -> String {
    let ending = status.and_then(FlowStatus::ending);
    let ending = ending.map(|ending| shorten(&ending, ENDING));
    let lines: Vec<String> = [outline.title.clone()].into_iter().chain(ending).collect();
    lines.join("\n")
}

fn look(icon: Icon, status: Option<Status>) -> String {
    let shape = match icon {
        Icon::Choice => ", shape=diamond, style=filled",
        Icon::Succeed => ", shape=oval, style=filled",
        Icon::Fail => ", shape=octagon, style=filled",
        _ => "",
    };
    let state = status.map_or_else(String::new, |status| {
        let (fill, color) = state_colors(status);
        format!(
            ", fillcolor=\"{fill}\", color=\"{color}\"{}",
            border(status, shape.is_empty())
        )
    });
    format!("{shape}{state}")
}

/// The border also shows the status, for readers who do not see the colour.
fn border(status: Status, rounded: bool) -> String {
    let round = if rounded { "rounded," } else { "" };
    match status {
        Status::Succeeded => String::new(),
        Status::Running | Status::Failed | Status::UndoFailed => ", penwidth=3".to_owned(),
        Status::NotReached => format!(", style=\"{round}filled,dotted\""),
        _ => format!(", style=\"{round}filled,dashed\""),
    }
}

/// A quoted string of the language. Line breaks are kept.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in steady(text).chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            // The language replaces entities in labels.
            '&' => quoted.push_str("&amp;"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
