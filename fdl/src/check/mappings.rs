//! Mappings: targets, each with a source or a template (section "data").

use super::Checker;
use super::cursor::Cursor;
use super::fields;
use super::habits::has_otherwise;
use super::local::MappingContext;
use super::paths::helped;
use crate::diagnostics::Code;
use crate::expression::{Mapping, MappingSource, Mappings, Path, PathRoot, Template};
use crate::graph::{FaultKind, Program};
use crate::syntax::{Format, Member, Node, NodeKind, Span};
use crate::value::Text;
use std::collections::HashMap;
use std::sync::Arc;

/// The maximum number of mappings that a fix writes.
const MOST_WRITTEN: usize = 100;

impl Checker<'_> {
    /// The mappings in a member of `owner`; `None` where it has none, which is not the same as an empty list.
    pub(super) fn mappings(&self, owner: &Cursor<'_>, field: &str, whose: MappingContext) -> Option<Arc<dyn Program>> {
        let cursor = owner.member(field)?;
        if self.is_map_of_sources(&cursor, whose) || !self.is_listed(&cursor, "mappings") {
            return None;
        }
        let mut targets = HashMap::default();
        let mut list = Vec::with_capacity(cursor.node.items().len());
        for item in cursor.entries().take_while(|_| !self.is_hopeless()) {
            list.extend(self.mapping(&item, whose, &mut targets));
        }
        let fault = if whose.is_output() {
            FaultKind::Output
        } else {
            FaultKind::Input
        };
        let mappings = Arc::new(Mappings { list, fault });
        let mut noted = self.noted.borrow_mut();
        noted.mappings.insert(cursor.node.span.start, mappings.clone());
        Some(mappings)
    }

    /// Whether it is an object of targets with their sources instead of a list; this is reported.
    fn is_map_of_sources(&self, cursor: &Cursor<'_>, whose: MappingContext) -> bool {
        let object = matches!(cursor.node.kind, NodeKind::Object(_));
        if !object
            || ["target", "source", "template"]
                .iter()
                .any(|field| cursor.node.get(field).is_some())
        {
            return false;
        }
        let message = format!("{} must be a list of mappings, not an object", cursor.called());
        let found = cursor.problem(Code::WrongType, message);
        let found = found
            .help("each is an object with `target` and `source`: `[{\"target\": \"a\", \"source\": \"$input.a\"}]`");
        let json = self.source.format() == Format::Json;
        let mapping = |member: &Member| {
            let (key, value) = (self.written(member.key_span), self.written(member.value.span));
            format!("{{\"target\": {key}, \"source\": {value}}}")
        };
        let mappings: Vec<String> = cursor.node.members().iter().map(mapping).collect();
        self.report(match json && mappings.len() < MOST_WRITTEN {
            true => {
                let list = format!("[{}]", mappings.join(", "));
                found.fix("make it a list of mappings", cursor.node.span, list)
            }
            false => found,
        });
        for (_, member) in cursor.members() {
            self.source(&member, whose);
        }
        true
    }

    fn mapping(
        &self,
        cursor: &Cursor<'_>,
        whose: MappingContext,
        targets: &mut HashMap<Text, Span>,
    ) -> Option<Mapping> {
        if !self.check_fields(cursor, &fields::MAPPING, &[]) {
            return None;
        }
        let target = cursor.member("target").and_then(|target| self.target(&target, targets));
        let required = cursor.member("required").and_then(|required| self.flag(&required));
        let source = match self.one_of(cursor, &["source", "template"], false) {
            None if has_otherwise(cursor.node, "source") => return None,
            None => {
                let found = cursor.problem_of_whole(Code::NoSource, "the mapping has no `source`");
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

    fn target(&self, cursor: &Cursor<'_>, targets: &mut HashMap<Text, Span>) -> Option<Text> {
        let target = self.filled(cursor)?;
        if let Some(first) = targets.insert(target.clone(), cursor.node.span) {
            self.report(
                cursor
                    .problem(Code::DuplicateTarget, format!("`{target}` is a target twice"))
                    .label(first, "the first time"),
            );
            targets.insert(target.clone(), first);
        }
        if let Some(key) = target.strip_suffix(".$").filter(|key| !key.is_empty()) {
            let message = format!("`{target}` becomes a key as it stands");
            let found = cursor.problem(Code::TargetIsPath, message);
            let help = format!("a path needs no `.$` in the name of its target: write `{key}`");
            let span = cursor.node.span;
            self.report(
                found
                    .help(help)
                    .guess(format!("change it to `{key}`"), span, self.quoted_like(span, key)),
            );
        } else if target.starts_with("$.") || target.starts_with("$[") || Path::is_path(&target) {
            let message = format!("`{target}` becomes a key as it stands, a target is no path");
            self.report(cursor.problem(Code::TargetIsPath, message).help("name a top-level key"));
        }
        Some(target)
    }

    fn source(&self, cursor: &Cursor<'_>, whose: MappingContext) -> Option<MappingSource> {
        match cursor.str() {
            Some(text) if Path::is_path(text) => {
                self.check_local(cursor, text, 0, whose);
                self.path(cursor, text).map(MappingSource::Path)
            }
            _ => {
                self.check_data(cursor)?;
                self.check_constants(cursor);
                Some(MappingSource::Constant(cursor.node.to_value()))
            }
        }
    }

    fn template(&self, cursor: &Cursor<'_>, whose: MappingContext) -> Option<Template> {
        let text = self.text(cursor)?;
        match Template::parse(&text) {
            Ok(template) => {
                for (offset, path) in template.paths() {
                    self.check_local(cursor, path.text(), offset, whose);
                    self.check_context(cursor, path.text(), offset);
                }
                if template.paths().next().is_none() {
                    let found = cursor.problem(Code::PlainTemplate, "the template has no part in `{$…}`");
                    self.report(found.help("write `{$input.a}` for a value, or use `source` for a constant"));
                }
                self.check_template_text(cursor, &text);
                Some(template)
            }
            Err(error) => {
                let found = self.inside(cursor, Code::BadTemplate, error.offset, error.len, error.message);
                self.report(helped(found, error.help));
                None
            }
        }
    }

    /// Warns of braces in a template that look like a part but are text.
    fn check_template_text(&self, cursor: &Cursor<'_>, text: &str) {
        for (at, _) in text.match_indices('{') {
            let Some(rest) = text.get(at + 1..) else { continue };
            let end = rest.find('}').map_or(rest.len(), |end| end + 1);
            let whole = rest.get(..end).unwrap_or(rest);
            let dollar = text.get(..at).is_some_and(|before| before.ends_with('$'));
            let (at, message, help) = if PathRoot::of(rest).is_some() {
                if !dollar {
                    continue;
                }
                (
                    at - 1,
                    "the `$` before `{` is text, and stays".to_owned(),
                    "a part is `{$input.a}`",
                )
            } else if rest.starts_with("$.") || rest.starts_with("$[") {
                (
                    at,
                    format!("`{{{whole}` is text, and stays"),
                    "a path in a template starts with `$input`, `$local` or `$context`",
                )
            } else if ["input.", "local.", "context."]
                .iter()
                .any(|root| rest.starts_with(root))
            {
                (
                    at,
                    format!("`{{{whole}` is text, and stays"),
                    "a part begins with `{$`: `{$input.a}`",
                )
            } else {
                continue;
            };
            if self.leaves_off(Code::LooksLikePath) {
                return;
            }
            self.report(self.inside(cursor, Code::LooksLikePath, at, 1, message).help(help));
        }
    }

    /// Warns of strings in a constant that look like paths or secrets: they are not resolved. The depth was checked.
    fn check_constants(&self, cursor: &Cursor<'_>) {
        match &cursor.node.kind {
            _ if !self.has_room_for_warnings() => {}
            NodeKind::String(text) if text.starts_with("secret://") => self.report(
                cursor
                    .problem(Code::SecretNotResolved, format!("`{text}` is not resolved here"))
                    .help("secrets are resolved in `serviceParams` only"),
            ),
            NodeKind::String(text) => self.check_constant(
                cursor,
                text,
                "nothing inside a constant is expanded: give it a mapping of its own",
            ),
            NodeKind::Array(_) => cursor.items().for_each(|item| self.check_constants(&item)),
            NodeKind::Object(_) => cursor.members().for_each(|(_, member)| self.check_constants(&member)),
            _ => {}
        }
    }

    /// Whether data is not nested deeper than allowed.
    pub(super) fn check_data(&self, cursor: &Cursor<'_>) -> Option<()> {
        let most = self.limits.data_depth;
        if fits(cursor.node, most) {
            return Some(());
        }
        let message = format!("{} is nested too deep: the limit is {most}", cursor.called());
        self.report(cursor.problem_of_key(Code::DataTooDeep, message));
        None
    }
}

/// Whether at most `most` containers are nested. Looks no deeper than that.
fn fits(node: &Node, most: usize) -> bool {
    match &node.kind {
        NodeKind::Array(items) => most > 0 && items.iter().all(|item| fits(item, most - 1)),
        NodeKind::Object(members) => most > 0 && members.iter().all(|member| fits(&member.value, most - 1)),
        _ => true,
    }
}
