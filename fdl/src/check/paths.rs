//! Paths in their places: the roots they must start from, and what they can find there.

use super::Checker;
use super::cursor::Cursor;
use super::foreign_paths;
use crate::diagnostics::{Code, Diagnostic};
use crate::expression::Path;
use crate::graph::{CONTEXT_MEMBERS, Source};
use crate::path::Query;
use crate::syntax::NodeKind;
use std::sync::Arc;

/// The starts of a path of a mapping.
const ROOTS: [&str; 3] = ["$input", "$local", "$context"];

impl Checker<'_> {
    /// A diagnostic about a part of the string at `cursor`.
    pub(super) fn inside(
        &self,
        cursor: &Cursor<'_>,
        code: Code,
        offset: usize,
        len: usize,
        message: String,
    ) -> Diagnostic {
        let span = self.spans.in_string(cursor.node.span, offset, len);
        Diagnostic::new(code, span, cursor.pointer(), message)
    }

    /// A path after `$input`, `$local` or `$context`.
    pub(super) fn path(&self, cursor: &Cursor<'_>, text: &str) -> Option<Path> {
        self.check_context(cursor, text, 0);
        match Path::parse(text) {
            Ok(path) => Some(path),
            Err(error) => {
                let found = self.inside(cursor, Code::BadPath, error.offset, error.len, error.message);
                self.report(helped(found, error.help));
                None
            }
        }
    }

    /// A path that starts at `$`, into the step's own input.
    pub(super) fn query(&self, cursor: &Cursor<'_>, text: &str) -> Option<Query> {
        if !text.starts_with('$') || Path::is_path(text) {
            let message = format!("{} must be a path that starts at `$`, not `{text}`", cursor.called());
            let found = cursor.problem(Code::PathExpected, message);
            let found = match text.strip_prefix("$input") {
                Some(rest) => found.help("`$` is the step's own input here").fix(
                    "start at `$`",
                    cursor.node.span,
                    self.quoted_like(cursor.node.span, &format!("${rest}")),
                ),
                None if text.starts_with('$') => {
                    found.help("only the step's own input can be seen here; bring it there with `inputMappings`")
                }
                None => found.help("`$` is the step's own input, `$.a` its member `a`"),
            };
            self.report(found);
            return None;
        }
        match Query::parse(text) {
            Ok(query) => Some(query),
            Err(error) => {
                let found = self.inside(cursor, Code::BadPath, error.offset, error.len, error.message);
                self.report(helped(found, error.help));
                None
            }
        }
    }

    /// Warns of a member that `$context` does not have. `offset` is the position of `path` in the
    /// string at `cursor`.
    pub(super) fn check_context(&self, cursor: &Cursor<'_>, path: &str, offset: usize) {
        let Some(member) = path.strip_prefix("$context").and_then(first_name) else {
            return;
        };
        if CONTEXT_MEMBERS.contains(&member) {
            return;
        }
        if self.leaves_off(Code::UnknownContext) {
            return;
        }
        let message = format!("`$context` has no member `{member}`");
        let found = self.inside(cursor, Code::UnknownContext, offset, path.len(), message);
        self.report(match self.near_word(member, &CONTEXT_MEMBERS) {
            Some(near) => found.help(format!("did you mean `$context.{}`?", near.word)),
            None => found.help(format!("its members are {}", super::read::in_words(&CONTEXT_MEMBERS))),
        });
    }

    /// Warns of a constant that looks like a path. `known` is the help for a form that is a path in
    /// other languages.
    pub(super) fn check_constant(&self, cursor: &Cursor<'_>, text: &str, known: &str) {
        if let Some(path) = braced(text) {
            let found = cursor.problem(Code::LooksLikePath, taken_as_it_stands(text));
            let help = format!("a path stands without braces: `{path}`");
            self.report(self.meant_as(found.help(help), cursor, &path));
            return;
        }
        if self.check_foreign(cursor, text) {
            return;
        }
        let mut after = text.chars();
        let dollar = after.next() == Some('$');
        if !dollar
            || !after
                .next()
                .is_some_and(|next| next.is_alphabetic() || matches!(next, '.' | '['))
        {
            return self.check_parts(cursor, text);
        }
        let found = cursor.problem(Code::LooksLikePath, taken_as_it_stands(text));
        let root = text.split(['.', '[']).next().unwrap_or("");
        let rest = text.get(root.len()..).unwrap_or("");
        self.report(match self.near_word(root, &ROOTS) {
            _ if Path::is_path(text) => found.help(known),
            _ if root == "$" => {
                let help = format!("a path here starts with its root: `$input{rest}` or `$local{rest}`");
                self.meant_as(found.help(help), cursor, &format!("$input{rest}"))
            }
            Some(near) => {
                let help = format!("did you mean `{}`?", near.word);
                self.meant_as(found.help(help), cursor, &format!("{}{rest}", near.word))
            }
            None => found.help("a path starts with `$input`, `$local` or `$context`"),
        });
    }

    /// Warns of a constant that is a path in another language, or lacks its `$`. Whether it is one.
    fn check_foreign(&self, cursor: &Cursor<'_>, text: &str) -> bool {
        // Inside a list or an object `input.a` may be anything; as a source it is hardly a text.
        let bare = || foreign_paths::without_dollar(text).filter(|_| cursor.name() == Some("source"));
        let found = || cursor.problem(Code::LooksLikePath, taken_as_it_stands(text));
        if let Some(meant) = foreign_paths::meaning(text) {
            let found = found().help(meant.help);
            self.report(match meant.path {
                Some(path) => self.meant_as(found, cursor, &path),
                None => found,
            });
        } else if let Some(path) = bare() {
            let help = format!("a path starts with `$`: did you mean `{path}`?");
            self.report(self.meant_as(found().help(help), cursor, &path));
        } else {
            return false;
        }
        true
    }

    /// Warns of texts in `serviceParams` that are paths elsewhere: only `$`, `$.a` and `$[0]` are paths here. The depth
    /// was checked.
    pub(super) fn check_param_texts(&self, cursor: &Cursor<'_>) {
        match &cursor.node.kind {
            _ if !self.has_room_for_warnings() => {}
            NodeKind::String(text) => self.check_param_text(cursor, text),
            NodeKind::Array(_) => cursor.items().for_each(|item| self.check_param_texts(&item)),
            NodeKind::Object(_) => cursor.members().for_each(|(_, member)| self.check_param_texts(&member)),
            _ => {}
        }
    }

    fn check_param_text(&self, cursor: &Cursor<'_>, text: &str) {
        let found = || cursor.problem(Code::LooksLikePath, taken_as_it_stands(text));
        let path = match Path::is_path(text) {
            true => Some(text.to_owned()),
            false => braced(text).or_else(|| foreign_paths::meaning(text)?.path),
        };
        let Some(path) = path else {
            if let Some(meant) = foreign_paths::meaning(text) {
                self.report(found().help(meant.help));
            }
            return;
        };
        let Some(rest) = path.strip_prefix("$input") else {
            let help =
                "only the step's own input can be seen here: bring it there with `inputMappings`, then write `$.NAME`";
            self.report(found().help(help));
            return;
        };
        let (own, span) = (format!("${rest}"), cursor.node.span);
        let found = found().help(format!("`$` is the step's own input here: `{own}`"));
        let quoted = self.written(span).starts_with(['"', '\'']) && !own.contains(['"', '\'', '\\']);
        self.report(match quoted && Query::parse(&own).is_ok() {
            true => found.guess(format!("change it to `{own}`"), span, self.quoted_like(span, &own)),
            false => found,
        });
    }

    /// Warns of a constant whose parts look like placeholders.
    fn check_parts(&self, cursor: &Cursor<'_>, text: &str) {
        let Some(at) = part(text) else { return };
        let whole = cursor.name() == Some("source");
        if self.leaves_off(Code::LooksLikePath) {
            return;
        }
        let found = cursor.problem(
            Code::LooksLikePath,
            format!("`{text}` is taken as it stands, nothing in it is filled in"),
        );
        let found = found.help(match cursor.name() {
            Some("error" | "cause") => "make the text with a `template` in a step before, and name it by its path",
            _ => "a text with parts is a `template`, and its parts are written `{$input.a}`",
        });
        let key = cursor.key_span();
        let written = self.written(key);
        // Everything else in the text must be valid in a template.
        let braces = text.get(at..).is_some_and(|part| part.starts_with("{$"));
        let ready = whole && braces && text.matches('{').count() == text.matches("{$").count() && !text.contains("${");
        self.report(match ready && written.contains("source") {
            true => found.guess("make it a `template`", key, written.replace("source", "template")),
            false => found,
        });
    }

    /// Offers a path in place of the constant at `cursor`, if the constant is one by itself.
    fn meant_as(&self, found: Diagnostic, cursor: &Cursor<'_>, path: &str) -> Diagnostic {
        let whole = matches!(cursor.name(), Some("source" | "error" | "cause"));
        let quoted = self.written(cursor.node.span).starts_with(['"', '\'']);
        if !whole || !(quoted || Path::parse(path).is_ok()) || path.contains(['"', '\'', '\\']) {
            return found;
        }
        let span = cursor.node.span;
        found.guess(format!("change it to `{path}`"), span, self.quoted_like(span, path))
    }
}

fn taken_as_it_stands(text: &str) -> String {
    format!("`{text}` is taken as it stands, it is no path here")
}

/// The path of a text such as `${input.a}` or `{{ $local.b }}`, as other languages write it.
fn braced(text: &str) -> Option<String> {
    let inner = [("${", "}"), ("{{", "}}"), ("#{", "}"), ("{", "}")]
        .into_iter()
        .find_map(|(open, close)| text.trim().strip_prefix(open)?.strip_suffix(close))?;
    let inner = inner.trim().trim_start_matches('$');
    let root = inner.split(['.', '[']).next().unwrap_or("");
    let plain = !inner.contains(['{', '}', '"', '\'', ':', ',']);
    (plain && matches!(root, "input" | "local" | "context")).then(|| format!("${inner}"))
}

/// Where a text has a part that looks like a path in braces.
fn part(text: &str) -> Option<usize> {
    let roots = ["input", "local", "context", "workflow.input"];
    let is_part = |(at, _): &(usize, &str)| {
        let inside = text
            .get(at + 1..)
            .unwrap_or_default()
            .trim_start_matches(['{', ' ', '$']);
        let dollar = text.get(at + 1..).is_some_and(|inside| inside.starts_with('$'));
        let rest = roots.iter().find_map(|root| inside.strip_prefix(root));
        rest.is_some_and(|rest| {
            rest.contains('}') && (rest.starts_with(['.', '[']) || (dollar && rest.starts_with('}')))
        })
    };
    text.match_indices('{').find(is_part).map(|(at, _)| at)
}

/// The result of a path in the step's own input.
pub(super) fn looked_up(query: Query) -> Source {
    Source::Lookup(Arc::new(query))
}

/// Adds help if there is any.
pub(super) fn helped(found: Diagnostic, help: Option<String>) -> Diagnostic {
    match help {
        Some(help) => found.help(help),
        None => found,
    }
}

/// The name a path goes to first, after its root: of `.a.b`, `['a']` or `["a"]` it is `a`.
pub(super) fn first_name(rest: &str) -> Option<&str> {
    if let Some(name) = rest.strip_prefix('.') {
        let end = name.find(['.', '[']).unwrap_or(name.len());
        return name.get(..end).filter(|name| !name.is_empty() && *name != "*");
    }
    let inner = rest.strip_prefix('[')?;
    let quote = inner.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    inner.get(1..)?.split(quote).next()
}
