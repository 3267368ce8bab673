//! The definition itself: its fields, then all of its steps.

use super::Checker;
use super::compile::Header;
use super::fields;
use super::local::MappingContext;
use super::outline::number;
use super::paths::looked_up;
use super::spot::Cursor;
use crate::diagnostics::Code;
use crate::expression::Path;
use crate::graph::{ConcurrencyKey, FlowParts, Source, StepId};
use crate::limits::EXECUTION_SECONDS;
use crate::path::Query;
use crate::syntax::NodeKind;

/// Reads a whole definition. The parts are complete if nothing but warnings was reported.
pub(super) fn read(checker: &Checker<'_>) -> Option<FlowParts> {
    let root = Cursor::root(checker.outline.root);
    if !checker.shaped(&root, &fields::FLOW, &[]) {
        return None;
    }
    let header = checker.header(&root);
    checker.check_top_list(&root);
    checker.check_outline();
    let count = number(checker.outline.steps.len());
    // All are read before any `None` can end it, so that every problem is found.
    let steps: Vec<_> = (0..count)
        .take_while(|_| !checker.is_hopeless())
        .map(|id| checker.step(StepId(id)))
        .collect();
    if !checker.is_hopeless() {
        checker.check_edges();
    }
    // What has errors is not compiled: nothing bounds the depth of what must not be there.
    if checker.has_errors() {
        return None;
    }
    let steps = steps.into_iter().collect::<Option<Vec<_>>>()?;
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
        let schema = |field: &str| root.member(field).and_then(|field| self.schema(&field));
        Header {
            name,
            enter: self.mappings(root, "inputMappings", MappingContext::FlowInput),
            leave: self.mappings(root, "outputMappings", MappingContext::FlowOutput),
            timeout: timeout.unwrap_or(EXECUTION_SECONDS * 1000),
            input_schema: schema("inputSchema"),
            output_schema: schema("outputSchema"),
            concurrency: self.concurrency_keys(root),
        }
    }

    fn check_version(&self, root: &Cursor<'_>) {
        if let Some(field) = root.member("version")
            && let Some(version) = self.text(&field)
            && !matches!(&*version, "v1" | "v1beta1")
        {
            let found = field.problem(Code::UnknownVersion, format!("there is no version `{version}`"));
            self.report(found.help("write `v1`").fix(
                "change it to `v1`",
                field.node.span,
                self.quoted_like(field.node.span, "v1"),
            ));
        }
        if let Some(field) = root.member("type")
            && let Some(kind) = self.text(&field)
            && kind != "flow"
        {
            let found = field.problem(
                Code::NotAFlow,
                format!("a definition has the type `flow`, not `{kind}`"),
            );
            self.report(found.help("write `flow`").fix(
                "change it to `flow`",
                field.node.span,
                self.quoted_like(field.node.span, "flow"),
            ));
        }
    }

    fn concurrency_keys(&self, root: &Cursor<'_>) -> Vec<ConcurrencyKey> {
        let Some(spot) = root.member("concurrency") else {
            return Vec::new();
        };
        if !self.is_list(&spot, "limits, each with `key` and `limit`") {
            return Vec::new();
        }
        spot.items()
            .filter_map(|item| {
                if !self.shaped(&item, &fields::CONCURRENCY, &[]) {
                    return None;
                }
                let limit = item.member("limit").and_then(|field| self.whole(&field, 1..=u64::MAX));
                let key = item.member("key").and_then(|field| self.concurrency_key(&field));
                Some(ConcurrencyKey {
                    key: key?,
                    limit: limit?,
                })
            })
            .collect()
    }

    /// A constant, or a path on the execution's input: `$input.a` or `$.a`.
    fn concurrency_key(&self, spot: &Cursor<'_>) -> Option<Source> {
        let text = match &spot.node.kind {
            NodeKind::String(_) => self.filled(spot)?,
            NodeKind::Number(_) | NodeKind::Bool(_) => {
                return Some(Source::Constant(spot.node.to_value()));
            }
            _ => {
                self.wrong_type(spot, "a string, or a path");
                return None;
            }
        };
        if let Some(rest) = text.strip_prefix("$input").filter(|_| Path::is_path(&text)) {
            self.path(spot, &text)?;
            return Query::parse(&format!("${rest}")).ok().map(looked_up);
        }
        if Path::is_path(&text) {
            let message = format!("`key` must be a constant or a path on the input, not `{text}`");
            let found = spot.problem(Code::PathExpected, message);
            self.report(found.help("nothing has run yet: only `$input`, the execution's input, can be seen here"));
            return None;
        }
        if text.starts_with('$') {
            return self.query(spot, &text).map(looked_up);
        }
        Some(Source::Constant(spot.node.to_value()))
    }
}
