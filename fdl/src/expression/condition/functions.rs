//! Calls of functions, which conditions do not have: what is written in their place.

use super::ConditionError;

/// The error for a call of a function. `name` stands at byte `at`; `on` is the path that it is about, if that is known.
pub(super) fn no_functions(at: usize, name: &str, on: Option<&str>) -> ConditionError {
    let path = on.unwrap_or("$.a");
    let help = match name.to_ascii_lowercase().as_str() {
        "isempty" | "is_empty" | "empty" => {
            format!("`!({path}[0] == {path}[0])` holds where a list has no item")
        }
        "size" | "length" | "len" | "count" => format!(
            "`{path}[0] == {path}[0]` holds where a list has an item, `{path}[2] == {path}[2]` where it has more than 2"
        ),
        "contains" | "includes" | "has" | "some" | "any" => {
            format!("`\"b\" in {path}` holds where a list has such an item")
        }
        "exists" | "exist" | "defined" | "ispresent" | "is_present" | "isdefined" => {
            format!("`{path} == {path}` holds where there is such a value")
        }
        "isnull" | "is_null" => format!("write `{path} == null`"),
        "match" | "matches" | "search" | "regex" | "startswith" | "starts_with" | "endswith" | "ends_with" => {
            "a path of `inputMappings` finds out, and a condition asks what it found: `$input.names[?match(@, \"a.*\")]`"
                .to_owned()
        }
        _ => "what needs more than comparisons belongs into a task".to_owned(),
    };
    let message = format!("there are no functions in conditions, and `{name}` would be one");
    ConditionError::new(at, name.len(), message).help(help)
}

/// The path in a call's parentheses, where it is the whole of the first argument: as conditions write it.
pub(super) fn argument(inside: &str) -> Option<String> {
    let end = inside.find([',', ')'])?;
    let path = inside.get(..end)?.trim();
    let rest = ["$input", "$local"].iter().find_map(|root| path.strip_prefix(root));
    let rest = rest.or_else(|| path.strip_prefix('$'))?;
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '[' | ']');
    (rest.starts_with(['.', '[']) && rest.chars().all(plain)).then(|| format!("${rest}"))
}

/// The path and the name of a method that is called on it: of `$.a.b` they are `$.a` and `b`.
pub(super) fn method(path: &str) -> Option<(&str, &str)> {
    let (on, name) = path.rsplit_once('.')?;
    let plain = |letter: char| letter.is_alphanumeric() || letter == '_';
    (!name.is_empty() && name.chars().all(plain)).then_some((on, name))
}
