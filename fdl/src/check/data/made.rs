//! The results of mappings, and what their paths can find.

use super::find::{Data, Found, find};
use super::shape::{Kinds, Members, Shape};
use super::{DataCheck, Roots, constant};
use crate::check::cursor::Cursor;
use crate::expression::{MappingSource, Path, PathRoot};
use crate::path::{PathPart, Query};
use std::rc::Rc;

impl DataCheck<'_, '_> {
    /// The result of the mappings in a member of `owner`; `None` if it has none. `told`: paths to a
    /// member of `$local` were already reported.
    pub(super) fn mapped(&self, owner: &Cursor<'_>, field: &str, roots: Roots<'_>, told: bool) -> Option<Shape> {
        let cursor = owner.member(field)?;
        let mappings = self.mappings_at(cursor.node)?;
        let mut members = Members::none();
        for (mapping, item) in mappings.list.iter().zip(cursor.entries()) {
            let said = item.node.get("target").map(|target| target.span);
            let (shape, sure) = match &mapping.source {
                MappingSource::Constant(value) => {
                    let span = item.node.get("source").map_or(item.node.span, |source| source.span);
                    (constant::shape_of(value, span), true)
                }
                MappingSource::Path(path) => {
                    let found = item
                        .member("source")
                        .map(|cursor| self.found(&cursor, 0, path, roots, told));
                    let found = found.unwrap_or_default();
                    (found.shape, found.sure)
                }
                MappingSource::Template(template) => {
                    let cursor = item.member("template");
                    let mut sure = true;
                    for (offset, path) in template.paths() {
                        let found = cursor.map(|cursor| self.found(&cursor, offset, path, roots, told));
                        sure &= found.is_some_and(|found| found.sure);
                    }
                    (Shape::kinds(Kinds::STRING, cursor.map(|cursor| cursor.node.span)), sure)
                }
            };
            members.set(mapping.target.clone(), shape, sure || mapping.required, said);
        }
        Some(Shape::object(Rc::new(members), Some(cursor.key_span())))
    }

    /// The result of a path in a mapping; `offset` is its position in the string at `cursor`.
    pub(super) fn found(&self, cursor: &Cursor<'_>, offset: usize, path: &Path, roots: Roots<'_>, told: bool) -> Found {
        let (data, other) = match path.root() {
            PathRoot::Input => (roots.input, Some(("$local", roots.local))),
            PathRoot::Local => (roots.local, Some(("$input", roots.input))),
            PathRoot::Context => (&self.context, None),
        };
        let begins_with_key = matches!(path.query().parts().next(), Some(PathPart::Key(_)));
        if told && path.root() == PathRoot::Local && begins_with_key {
            return Found::default();
        }
        self.looked_up(cursor, offset, path.query(), data, other)
    }

    /// The result of a path in `data`, with warnings for its misses. `other` is another root that
    /// may have been meant.
    pub(super) fn looked_up(
        &self,
        cursor: &Cursor<'_>,
        offset: usize,
        query: &Query,
        data: &Data,
        other: Option<(&str, &Data)>,
    ) -> Found {
        let mut misses = Vec::new();
        // All of it is then looked through or copied.
        let whole = !matches!(query.parts().next(), Some(PathPart::Key(_)));
        if whole && !self.works(data.len()) {
            return Found::default();
        }
        let found = find(query.parts(), data, &mut misses);
        for miss in &misses {
            self.warn_of_miss(cursor, (offset, query), miss, data, other);
        }
        found
    }

    /// The result of the path in the string at `cursor`, which starts at `$` or at `prefix`; `None`
    /// if there is none.
    pub(super) fn looked_up_at(&self, cursor: &Cursor<'_>, prefix: &str, data: &Data) -> Option<Found> {
        let text = cursor.str()?;
        let rest = text.strip_prefix(prefix)?;
        if !(rest.is_empty() || rest.starts_with(['.', '['])) {
            return None;
        }
        let query = Query::after_root(text, prefix.len()).ok()?;
        Some(self.looked_up(cursor, 0, &query, data, None))
    }
}
