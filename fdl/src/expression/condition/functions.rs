//! Function calls, which conditions do not have: the error and the replacement.

use crate::expression_error::ExpressionError;

/// The error for a function call. `name` stands at byte `at`; `on` is the path that it is about, if
/// that is known.
pub(super) fn no_functions(at: usize, name: &str, on: Option<&str>) -> ExpressionError {
    let path = on.unwrap_or("$.a");
    let help = match name.to_ascii_lowercase().as_str() {
        "isempty" | "is_empty" | "empty" => {
            format!("`!({path}[0] == {path}[0])` holds where a list has no item")
        }
        "size" | "length" | "len" | "count" => format!(
            "`{path}[0] == {path}[0]` holds where a list has an item, `{path}[2] == {path}[2]` where it has more than 2"
        ),
        "contains" | "includes" | "has" | "some" | "any" => contains(path),
        "exists" | "exist" | "defined" | "ispresent" | "is_present" | "isdefined" => exists(path),
        "isnull" | "is_null" => format!("write `{path} == null`"),
        "match" | "matches" | "search" | "regex" | "startswith" | "starts_with" | "endswith" | "ends_with" => matches(),
        _ => "what needs more than comparisons belongs into a task".to_owned(),
    };
    let message = format!("there are no functions in conditions, and `{name}` would be one");
    ExpressionError::new(at, name.len(), message).help(help)
}

fn contains(path: &str) -> String {
    format!("`\"b\" in {path}` holds where a list has such an item")
}

fn exists(path: &str) -> String {
    format!("`{path} == {path}` holds where there is such a value")
}

fn matches() -> String {
    "a path of `inputMappings` finds out, and a condition asks what it found: `$input.names[?match(@, \"a.*\")]`"
        .to_owned()
}

/// The first three words of a text, with only blanks between them, and where they begin.
fn first_words(text: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut rest = text;
    while words.len() < 3 {
        rest = rest.trim_start();
        let end = rest.find(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        if word.is_empty() {
            break;
        }
        words.push((text.len() - rest.len(), word));
        rest = after;
    }
    words
}

/// The error for words that other languages put after a path, such as `is not null`. They stand at
/// byte `at`, where `rest` begins with them.
pub(super) fn no_words(at: usize, rest: &str, path: &str) -> Option<ExpressionError> {
    let words = first_words(rest);
    let lower: Vec<String> = words.iter().map(|(_, word)| word.to_ascii_lowercase()).collect();
    let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
    let nothing = ["null", "nil", "none", "undefined"];
    let there = ["defined", "present"];
    let (count, help) = match lower.as_slice() {
        ["is", "not", what, ..] if nothing.contains(what) => (3, format!("write `{path} != null`")),
        ["is", "not", "empty", ..] => (3, format!("`{path}[0] == {path}[0]` holds where a list has an item")),
        ["is", "not", what, ..] if there.contains(what) => (3, format!("write `!({path} == {path})`")),
        ["is", "not", ..] => (2, "write `!=`".to_owned()),
        ["is", what, ..] if nothing.contains(what) => (2, format!("write `{path} == null`")),
        ["is", "empty", ..] => (2, format!("`!({path}[0] == {path}[0])` holds where a list has no item")),
        ["is", what, ..] if there.contains(what) => (2, exists(path)),
        ["is", ..] => (1, "write `==`".to_owned()),
        ["exists" | "exist", ..] => (1, exists(path)),
        ["contains" | "includes" | "has", ..] => (1, contains(path)),
        ["like" | "matches" | "startswith" | "endswith", ..] => (1, matches()),
        ["between", ..] => (1, format!("write `{path} >= 1 && {path} <= 9`")),
        ["not", "in", ..] => (2, format!("write `!({path} in $.list)`")),
        _ => return None,
    };
    let (begin, last) = words.get(count - 1)?;
    let written = rest.get(..begin + last.len())?;
    let message = format!("`{written}` is not known in conditions");
    Some(ExpressionError::new(at, written.len(), message).help(help))
}

/// The path in a call's parentheses, if it is the whole first argument, as conditions write it.
pub(super) fn argument(inside: &str) -> Option<String> {
    let end = inside.find([',', ')'])?;
    let path = inside.get(..end)?.trim();
    let rest = ["$input", "$local"].iter().find_map(|root| path.strip_prefix(root));
    let rest = rest.or_else(|| path.strip_prefix('$'))?;
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '[' | ']');
    (rest.starts_with(['.', '[']) && rest.chars().all(plain)).then(|| format!("${rest}"))
}

/// The path and the name of a method called on it: for `$.a.b`, `$.a` and `b`.
pub(super) fn method(path: &str) -> Option<(&str, &str)> {
    let (on, name) = path.rsplit_once('.')?;
    let plain = |letter: char| letter.is_alphanumeric() || letter == '_';
    (!name.is_empty() && name.chars().all(plain)).then_some((on, name))
}
