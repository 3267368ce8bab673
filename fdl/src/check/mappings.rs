//! Mappings: targets, each with a source or a template (section "data").

use super::Checker;
use super::fields;
use super::local::MappingContext;
use super::paths::helped;
use super::spot::Cursor;
use crate::diagnostics::Code;
use crate::expression::{Mapping, MappingSource, Mappings, Path, Template};
use crate::graph::{FaultKind, Program};
use crate::syntax::{Node, NodeKind, Span};
use crate::value::Text;
use rustc_hash::FxHashMap;
use std::sync::Arc;

impl Checker<'_> {
    /// The mappings in a member of `owner`; `None` where it has none, which is not the same as an empty list.
    pub(super) fn mappings(&self, owner: &Cursor<'_>, field: &str, whose: MappingContext) -> Option<Arc<dyn Program>> {
        let spot = owner.member(field)?;
        if !self.is_list(&spot, "mappings") {
            return None;
        }
        let mut targets = FxHashMap::default();
        let mut list = Vec::with_capacity(spot.node.items().len());
        for item in spot.items().take_while(|_| !self.is_hopeless()) {
            list.extend(self.mapping(&item, whose, &mut targets));
        }
        let fault = if whose.is_output() {
            FaultKind::Output
        } else {
            FaultKind::Input
        };
        Some(Arc::new(Mappings { list, fault }))
    }

    fn mapping(
        &self,
        spot: &Cursor<'_>,
        whose: MappingContext,
        targets: &mut FxHashMap<Text, Span>,
    ) -> Option<Mapping> {
        if !self.shaped(spot, &fields::MAPPING, &[]) {
            return None;
        }
        let target = spot.member("target").and_then(|target| self.target(&target, targets));
        let required = spot.member("required").and_then(|required| self.flag(&required));
        let source = match self.one_of(spot, &["source", "template"], false) {
            None => {
                let found = spot.problem_of_whole(Code::NoSource, "the mapping has no `source`");
                self.report(found.help("give it a `source` (a path or a constant) or a `template`"));
                return None;
            }
            Some(("template", template)) => MappingSource::Template(self.template(&template, whose)?),
            Some((_, source)) => self.source(&source, whose)?,
        };
        Some(Mapping {
            target: target?,
            source,
            required: required.unwrap_or(false),
        })
    }

    fn target(&self, spot: &Cursor<'_>, targets: &mut FxHashMap<Text, Span>) -> Option<Text> {
        let target = self.filled(spot)?;
        if let Some(first) = targets.insert(target.clone(), spot.node.span) {
            self.report(
                spot.problem(Code::DuplicateTarget, format!("`{target}` is a target twice"))
                    .label(first, "the first time"),
            );
            targets.insert(target.clone(), first);
        }
        if target.starts_with("$.") || target.starts_with("$[") || Path::is_path(&target) {
            let message = format!("`{target}` becomes a key as it stands, a target is no path");
            self.report(spot.problem(Code::TargetIsPath, message).help("name a top-level key"));
        }
        Some(target)
    }

    fn source(&self, spot: &Cursor<'_>, whose: MappingContext) -> Option<MappingSource> {
        match spot.str() {
            Some(text) if Path::is_path(text) => {
                self.check_local(spot, text, 0, whose);
                self.path(spot, text).map(MappingSource::Path)
            }
            _ => {
                self.check_data(spot)?;
                self.check_constants(spot);
                Some(MappingSource::Constant(spot.node.to_value()))
            }
        }
    }

    fn template(&self, spot: &Cursor<'_>, whose: MappingContext) -> Option<Template> {
        let text = self.text(spot)?;
        match Template::parse(&text) {
            Ok(template) => {
                for (offset, path) in template.paths() {
                    self.check_local(spot, path.text(), offset, whose);
                    self.check_context(spot, path.text(), offset);
                }
                if template.paths().next().is_none() {
                    let found = spot.problem(Code::PlainTemplate, "the template has no part in `{$…}`");
                    self.report(found.help("write `{$input.a}` for a value, or use `source` for a constant"));
                }
                Some(template)
            }
            Err(error) => {
                let found = self.inside(spot, Code::BadTemplate, error.offset, error.len, error.message);
                self.report(helped(found, error.help));
                None
            }
        }
    }

    /// Warns of strings in a constant that look like paths or secrets: they are not resolved. The depth was checked.
    fn check_constants(&self, spot: &Cursor<'_>) {
        match &spot.node.kind {
            _ if !self.has_room_for_warnings() => {}
            NodeKind::String(text) if text.starts_with("secret://") => self.report(
                spot.problem(Code::SecretNotResolved, format!("`{text}` is not resolved here"))
                    .help("secrets are resolved in `serviceParams` only"),
            ),
            NodeKind::String(text) => self.check_constant(
                spot,
                text,
                "nothing inside a constant is expanded: give it a mapping of its own",
            ),
            NodeKind::Array(_) => spot.items().for_each(|item| self.check_constants(&item)),
            NodeKind::Object(_) => spot.members().for_each(|(_, member)| self.check_constants(&member)),
            _ => {}
        }
    }

    /// Whether data is not nested deeper than allowed.
    pub(super) fn check_data(&self, spot: &Cursor<'_>) -> Option<()> {
        let most = self.limits.data_depth;
        if fits(spot.node, most) {
            return Some(());
        }
        let message = format!("{} is nested too deep: the limit is {most}", spot.called());
        self.report(spot.problem_of_key(Code::DataTooDeep, message));
        None
    }
}

/// Whether at most `most` containers stand inside each other; looks no deeper than that.
fn fits(node: &Node, most: usize) -> bool {
    match &node.kind {
        NodeKind::Array(items) => most > 0 && items.iter().all(|item| fits(item, most - 1)),
        NodeKind::Object(members) => most > 0 && members.iter().all(|member| fits(&member.value, most - 1)),
        _ => true,
    }
}
