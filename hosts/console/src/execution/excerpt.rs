//! The lines of a definition in which a step stands.

use starbridge_flow::syntax::{Member, Node, NodeKind, Source, parse};

/// So many lines are shown, and so many characters of each.
const LINES: usize = 80;
const LETTERS: usize = 400;

/// Where a step stands in the text of its flow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Its lines with their numbers: the first of them, where there are many.
    pub(super) lines: Vec<(usize, String)>,
}

/// The lines of a step; nothing where the text does not have it.
pub(super) fn excerpt(text: &str, step: &str) -> Option<Excerpt> {
    let source = Source::new("", text);
    let root = parse(&source).root?;
    let found = inside(&root, step)?;
    let written = source.text().get(found.span.start..found.span.end)?.trim_end();
    let end = found.span.start + written.len();
    let from = source.line_column(found.span.start).line;
    let to = source.line_column(end.saturating_sub(1)).line;
    let lines = (1..).zip(text.lines()).skip(from - 1).take((to + 1 - from).min(LINES));
    let cut = |line: &str| match line.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    };
    let lines = match from == to {
        // Of a text in one line, the step alone is shown.
        true => vec![(from, cut(written))],
        false => lines.map(|(number, line)| (number, cut(line))).collect(),
    };
    Some(Excerpt { from, to, lines })
}

/// The step of this name among the steps of a flow, of a composite or of its branches. Names are unique in a definition.
fn inside<'a>(node: &'a Node, step: &str) -> Option<&'a Node> {
    match &node.kind {
        NodeKind::Array(items) => items.iter().find_map(|item| match has(item, step) {
            true => Some(item),
            false => inside(item, step),
        }),
        NodeKind::Object(members) => {
            let mut within = members.iter().filter(is_of_steps);
            within.find_map(|member| inside(&member.value, step))
        }
        _ => None,
    }
}

fn is_of_steps(member: &&Member) -> bool {
    matches!(member.key.as_str(), "steps" | "branches")
}

fn has(node: &Node, step: &str) -> bool {
    let NodeKind::Object(members) = &node.kind else {
        return false;
    };
    let text = |key: &str| {
        let member = members.iter().find(|member| member.key.as_str() == key)?;
        match &member.value.kind {
            NodeKind::String(text) => Some(text.as_str()),
            _ => None,
        }
    };
    text("name") == Some(step) && text("type").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_is_found_by_its_name_at_any_depth() {
        let json = "{\"type\": \"flow\", \"name\": \"pay\", \"steps\": [\n  {\"type\": \"pass\", \"name\": \"first\",\n   \"output\": \
                    {\"type\": \"x\", \"name\": \"pay\"}},\n  {\"type\": \"parallel\", \"name\": \"both\", \"branches\": [{\"steps\": \
                    [\n    {\"type\": \"task\",\n     \"name\": \"pay\"}\n  ]}]}\n]}\n";
        let found = excerpt(json, "pay").unwrap();
        assert_eq!((found.from, found.to, found.lines.len()), (5, 6, 2));
        assert_eq!(found.lines[1], (6, "     \"name\": \"pay\"}".to_owned()));
        assert_eq!(excerpt(json, "first").map(|found| (found.from, found.to)), Some((2, 3)));
        assert_eq!(excerpt(json, "none"), None);
        let yaml =
            "type: flow\nsteps:\n  - type: pass\n    name: a\n  - type: task\n    name: b\n    retry: []\n\n# end\n";
        let found = excerpt(yaml, "a").unwrap();
        assert_eq!((found.from, found.to), (3, 4));
        assert_eq!(excerpt(yaml, "b").map(|found| (found.from, found.to)), Some((5, 7)));
    }

    #[test]
    fn text_in_one_line_shows_the_step_alone_and_rubbish_nothing() {
        let line = "{\"steps\": [{\"type\": \"pass\", \"name\": \"a\"}, {\"type\": \"pass\", \"name\": \"b\"}]}";
        let found = excerpt(line, "b").unwrap();
        assert_eq!(found.lines, [(1, "{\"type\": \"pass\", \"name\": \"b\"}".to_owned())]);
        for text in ["", "{", "[[[", "steps: {name: a}"] {
            assert_eq!(excerpt(text, "a"), None, "{text}");
        }
        let many = format!(
            "{{\"steps\": [{{\"type\": \"pass\",\n{}\"name\": \"a\"}}]}}",
            "\"x\": 1,\n".repeat(500)
        );
        assert_eq!(excerpt(&many, "a").map(|found| found.lines.len()), Some(LINES));
    }
}
