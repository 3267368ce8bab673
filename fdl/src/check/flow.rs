//! The definition itself: its fields, then all of its steps.

use super::Checker;
use super::compile::Header;
use super::cursor::Cursor;
use super::fields;
use super::foreign;
use super::local::MappingContext;
use super::outline::number;
use crate::diagnostics::Code;
use crate::graph::{FlowParts, OnTimeout, StepId};
use crate::limits::EXECUTION_TIMEOUT;
use crate::syntax::{Format, NodeKind};

/// Reads a whole definition. The parts are complete if nothing but warnings was reported.
pub(super) fn read(checker: &Checker<'_>) -> Option<FlowParts> {
    let root = Cursor::root(checker.outline.root);
    if let Some(found) = foreign::recognised(&root) {
        checker.report(found);
        return None;
    }
    if !checker.check_fields(&root, &fields::FLOW, &[]) {
        return None;
    }
    let header = checker.header(&root);
    checker.check_top_list(&root);
    checker.check_outline();
    let count = number(checker.outline.steps.len());
    // All steps are read before any `None` ends the function, so that every problem is found.
    let steps: Vec<_> = (0..count)
        .take_while(|_| !checker.is_hopeless())
        .map(|id| checker.step(StepId(id)))
        .collect();
    checker.report_unanswered();
    if !checker.is_hopeless() {
        checker.check_edges();
    }
    // A definition with errors is not compiled: nothing bounds the depth of forbidden parts.
    if checker.has_errors() {
        return None;
    }
    let steps = steps.into_iter().collect::<Option<Vec<_>>>()?;
    checker.check_data_fits(&steps);
    Some(checker.parts(header, steps))
}

impl Checker<'_> {
    fn header(&self, root: &Cursor<'_>) -> Header {
        self.check_version(root);
        for field in ["$schema", "description"].iter().filter_map(|field| root.member(field)) {
            self.text(&field);
        }
        let name = root.member("name").and_then(|field| self.text(&field));
        let timeout = root.member("timeoutSeconds").and_then(|field| self.timeout(&field));
        let on_timeout = root.member("onTimeout").and_then(|field| self.word(&field, &["drain"]));
        let schema = |field: &str| root.member(field).and_then(|field| self.schema(&field));
        Header {
            name,
            enter: self.mappings(root, "inputMappings", MappingContext::FlowInput),
            leave: self.mappings(root, "outputMappings", MappingContext::FlowOutput),
            timeout: timeout.unwrap_or(EXECUTION_TIMEOUT),
            on_timeout: on_timeout.map_or(OnTimeout::Cancel, |_| OnTimeout::Drain),
            input_schema: schema("inputSchema"),
            output_schema: schema("outputSchema"),
            concurrency: self.concurrency_keys(root),
        }
    }

    fn check_version(&self, root: &Cursor<'_>) {
        if let Some(field) = root.member("version") {
            self.check_word(&field, Code::UnknownVersion, &["v1", "v1beta1"], "there is no version");
        }
        if let Some(field) = root.member("type") {
            let message = "a definition has the type `flow`, not";
            self.check_word(&field, Code::NotAFlow, &["flow"], message);
        }
    }

    /// Whether a field has one of its allowed words. The first word is offered in place of any
    /// other value that is not misspelt.
    fn check_word(&self, field: &Cursor<'_>, code: Code, words: &[&str], message: &str) {
        let span = field.node.span;
        let (written, quoted) = match &field.node.kind {
            NodeKind::String(word) if words.contains(&word.as_str()) => return,
            NodeKind::String(word) => (word.as_str(), true),
            NodeKind::Number(_) => (self.written(span), false),
            _ => {
                self.text(field);
                return;
            }
        };
        let near = self.near_word(written, words).map(|near| near.word);
        let Some(word) = near.or(words.first().copied()) else {
            return;
        };
        let replacement = match self.source.format() {
            Format::Json if !quoted => format!("\"{word}\""),
            _ => self.quoted_like(span, word),
        };
        let found = field.problem(code, format!("{message} `{written}`"));
        // Another version may belong to something else.
        let plain = written.trim().to_lowercase();
        let sure = plain == word || (word == "v1" && ["1", "1.0", "v1.0"].contains(&plain.as_str()));
        let title = format!("change it to `{word}`");
        let found = found.help(format!("write `{replacement}`"));
        self.report(found.fixed_by(title, span, replacement, sure));
    }
}
