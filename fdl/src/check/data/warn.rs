//! Warnings about paths that find nothing, and about values whose type is useless in their place.

use super::DataCheck;
use super::find::{Data, Holder, Miss, Why};
use super::shape::{Items, Kinds, Others, Shape};
use super::similar::{likely, surely};
use crate::check::cursor::Cursor;
use crate::diagnostics::{Code, Diagnostic};
use crate::path::{PathPart, Query};
use crate::syntax::Span;
use crate::value::Value;

/// The maximum depth of nested objects that are searched for a name.
const MAX_SEARCHED: usize = 4;
/// The maximum number of names that a help text lists.
const MOST_NAMES: usize = 6;

/// The path that was meant.
struct Meant {
    written: String,
    name: String,
    said: Option<Span>,
}

impl DataCheck<'_, '_> {
    /// Warns of a part of a path that finds nothing, if the known shape is certain enough. `query`
    /// stands at an offset in the string at `cursor`, `data` is its root, and `other` is another
    /// root that may have been meant.
    pub(super) fn warn_of_miss(
        &self,
        cursor: &Cursor<'_>,
        (offset, query): (usize, &Query),
        miss: &Miss,
        data: &Data,
        other: Option<(&str, &Data)>,
    ) {
        let path = query.text();
        let (why, help, label) = match &miss.why {
            Why::NotAnObject { key, kinds } => {
                let why = format!("`{key}` is asked of {}", kinds.in_words());
                let list = *kinds == Kinds::ARRAY;
                (
                    why,
                    list.then(|| "write `[0]` for one item or `[*]` for all".to_owned()),
                    None,
                )
            }
            Why::NotAList { kinds } => (format!("an item is asked of {}", kinds.in_words()), None, None),
            Why::NoItem { index, count } => {
                let items = if *count == 1 { "item" } else { "items" };
                (format!("there is no item {index} among {count} {items}"), None, None)
            }
            Why::NoMember { key, next, holder } => {
                // Searching for the intended name is expensive if there are many members.
                if !self.checker.has_room_for_warnings() || !self.works(holder.len()) {
                    return;
                }
                let meant = self.meant((key, next.as_deref()), query, holder, data, other);
                if meant.is_none() && holder.others != Others::None {
                    return;
                }
                let why = match holder.others {
                    Others::None => format!("there is no `{key}`"),
                    _ => format!("no `{key}` is named"),
                };
                let help = meant.as_ref().map(|meant| format!("did you mean `{}`?", meant.written));
                let label = meant.and_then(|meant| Some((meant.said?, format!("`{}` is named here", meant.name))));
                (why, help.or_else(|| Some(names_of(holder))), label)
            }
        };
        if self.checker.leaves_off(Code::FindsNothing) {
            return;
        }
        let message = format!("`{path}` finds nothing: {why}");
        let found = self
            .checker
            .inside(cursor, Code::FindsNothing, offset, path.len(), message);
        let said = miss.said.map(|said| (said, "what is there is said here".to_owned()));
        self.checker.report(with(found, label.or(said), help));
    }

    /// The intended path instead of a missing member, of which the path may ask another member.
    fn meant(
        &self,
        (key, next): (&str, Option<&str>),
        query: &Query,
        holder: &Holder,
        data: &Data,
        other: Option<(&str, &Data)>,
    ) -> Option<Meant> {
        let near = match holder.others {
            Others::Any => surely(key, holder.names()).or_else(|| {
                // A typing mistake, if the next member exists in the similar one.
                let near = likely(key, holder.names())?;
                let shape = holder.member(near)?.shape;
                shape.known()?.members.get(next?).map(|_| near)
            }),
            _ => likely(key, holder.names()),
        };
        if let Some((near, member)) = near.and_then(|near| Some((near, holder.member(near)?))) {
            return Some(Meant {
                written: near.to_owned(),
                name: near.to_owned(),
                said: member.said,
            });
        }
        let first = query
            .parts()
            .next()
            .is_some_and(|part| matches!(part, PathPart::Key(name) if *name == *key));
        if holder.others == Others::Any {
            return None;
        }
        let inside = || {
            let (way, said) = way_below(holder, key).filter(|_| first)?;
            Some((format!("{}.{way}", root_of(query.text())), said))
        };
        let above = || {
            data.named(key)
                .filter(|_| !first)
                .map(|said| (format!("{}.{key}", root_of(query.text())), said))
        };
        let beside = || {
            let (root, data) = other.filter(|_| first)?;
            Some((format!("{root}.{key}"), data.named(key)?))
        };
        let named = |name: &str, (written, said): (String, Option<Span>)| Meant {
            written,
            name: name.to_owned(),
            said,
        };
        let meant = beside().or_else(inside).or_else(above).map(|way| named(key, way));
        meant.or_else(|| {
            let deeper = || way_below(holder, key).map(|way| named(key, way));
            // The name between the two is a level too many.
            let higher = || {
                let (next, member) = next.and_then(|next| Some((next, holder.member(next)?)))?;
                Some(named(next, (next.to_owned(), member.said)))
            };
            deeper().or_else(higher)
        })
    }

    /// Warns where a value is of none of the types that its place needs.
    pub(super) fn warn_of_kind(&self, cursor: &Cursor<'_>, shape: &Shape, kinds: Kinds, needed: &str) {
        self.warn_of_value(cursor, shape, kinds, |_| true, needed);
    }

    /// Warns if a value is of no use by its kind, or because `fits` holds for none of its possible values.
    pub(super) fn warn_of_value(
        &self,
        cursor: &Cursor<'_>,
        shape: &Shape,
        kinds: Kinds,
        fits: impl Fn(&Value) -> bool,
        needed: &str,
    ) {
        let Some(known) = shape.certain() else { return };
        let listed = known.values.as_deref().filter(|_| kinds.only_scalars());
        let possible = known.kinds.meets(kinds) && listed.is_none_or(|values| values.iter().any(fits));
        if possible || self.checker.leaves_off(Code::UnfitData) {
            return;
        }
        let path = cursor.str().unwrap_or_default();
        let what = match listed.and_then(|values| values.first()) {
            Some(value) if known.kinds.meets(kinds) => format!("`{}`", value.to_json()),
            _ => known.kinds.in_words(),
        };
        let found = cursor.problem(Code::UnfitData, format!("`{path}` is {what}, and {needed}"));
        let help = inside_list(known, kinds);
        let help = help.map(|way| format!("did you mean `{path}.{way}`?"));
        self.checker.report(with(
            found,
            known.said.map(|said| (said, "it is said here".to_owned())),
            help,
        ));
    }
}

/// The only member of an object that is a list, where a list is needed.
fn inside_list(known: &super::shape::Known, kinds: Kinds) -> Option<String> {
    if kinds != Kinds::ARRAY || known.kinds != Kinds::OBJECT {
        return None;
    }
    let list = |shape: &Shape| shape.certain().is_some_and(|known| known.kinds == Kinds::ARRAY);
    let mut lists = known.members.iter().filter(|(_, member)| list(&member.shape));
    let only = lists.next()?;
    lists.next().is_none().then(|| only.0.as_str().to_owned())
}

/// Adds a label and help where there are any.
pub(super) fn with(found: Diagnostic, label: Option<(Span, String)>, help: Option<String>) -> Diagnostic {
    let found = super::super::paths::helped(found, help);
    match label {
        Some((span, message)) if span != found.span => found.label(span, message),
        _ => found,
    }
}

/// The path to a member of that name inside the members of an object, and where the member is
/// named.
fn way_below(holder: &Holder, key: &str) -> Option<(String, Option<Span>)> {
    let names = holder.names();
    let found = names.filter_map(|name| Some((name, below(&holder.member(name)?.shape, key, MAX_SEARCHED)?)));
    let (name, (way, said)) = found.min_by_key(|(name, _)| *name)?;
    Some((format!("{name}{way}"), said))
}

/// The path to a member of that name inside a value, and where the member is named.
// `depth` bounds the recursion.
fn below(shape: &Shape, key: &str, depth: usize) -> Option<(String, Option<Span>)> {
    let known = shape.known()?;
    if let Some(member) = known.members.get(key) {
        return Some((format!(".{key}"), member.said));
    }
    let depth = depth.checked_sub(1)?;
    if let Items::All(item) = &known.items
        && item.known().is_some()
    {
        return below(item, key, depth).map(|(way, said)| (format!("[0]{way}"), said));
    }
    let names = known.members.names();
    let found = names.filter_map(|name| Some((name, below(&known.members.get(name)?.shape, key, depth)?)));
    let (name, (way, said)) = found.min_by_key(|(name, _)| *name)?;
    Some((format!(".{name}{way}"), said))
}

fn root_of(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or("$")
}

/// The existing members, for people.
fn names_of(holder: &Holder) -> String {
    let mut names: Vec<&str> = holder.names().collect();
    names.sort_unstable();
    names.dedup();
    let count = names.len();
    names.truncate(MOST_NAMES);
    match (names.as_slice(), count) {
        ([], _) => "nothing is there".to_owned(),
        (names, count) if count > names.len() => {
            format!("there are {} and {} more", quoted(names), count - names.len())
        }
        ([only], _) => format!("there is only `{only}`"),
        (names, _) => format!("there are only {}", super::super::read::in_words(names)),
    }
}

fn quoted(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
