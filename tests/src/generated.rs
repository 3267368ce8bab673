//! Files that are made from the code.

use crate::data;
use starbridge_fdl::diagnostics::Code;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;

/// Each generated file: its path from the root, and its text.
pub fn files() -> Vec<(String, String)> {
    let openapi = serde_json::to_string_pretty(&starbridge_server::openapi()).unwrap_or_default();
    vec![
        ("docs/diagnostics/README.md".to_owned(), index_of_diagnostics()),
        ("docs/order.svg".to_owned(), picture("examples/order/flow.json")),
        ("schemas/openapi.json".to_owned(), openapi + "\n"),
    ]
}

/// The picture of a flow, as `starbridge graph` prints it; empty where there is no such flow.
fn picture(path: &str) -> String {
    let text = std::fs::read_to_string(data::root().join(path)).unwrap_or_default();
    let checked = starbridge_fdl::check(&Source::new(path, text), &Limits::default());
    let drawn = checked.flow.map(|flow| starbridge_diagram::svg(&flow, None));
    drawn.map_or_else(String::new, |drawn| drawn.trim_end().to_owned() + "\n")
}

/// The meaning of the first two digits of a code.
const GROUPS: [(&str, &str); 8] = [
    ("FDL00", "The text"),
    ("FDL01", "Fields and types"),
    ("FDL02", "Names and edges"),
    ("FDL03", "Data"),
    ("FDL04", "Conditions"),
    ("FDL05", "Tasks and errors"),
    ("FDL06", "Limits"),
    ("FDL07", "Resources"),
];

fn index_of_diagnostics() -> String {
    let mut text = "# Diagnostics\n\n\
        What `starbridge validate` finds, a page each. An error keeps a flow from running, a warning does not.\n\
        `starbridge explain CODE` shows a page. (This index is written by `cargo xtask generate`.)\n"
        .to_owned();
    for (prefix, title) in GROUPS {
        text += &format!("\n## {title}\n\n| code | | what |\n|---|---|---|\n");
        for code in Code::ALL.iter().filter(|code| code.as_str().starts_with(prefix)) {
            text += &format!(
                "| [{code}]({code}.md) | {} | {} |\n",
                code.severity().as_str(),
                code.title()
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_index() {
        let index = index_of_diagnostics();
        for code in Code::ALL {
            assert!(index.contains(&format!("]({code}.md)")), "{code} is in no group");
        }
    }
}
