//! Texts that are paths in other languages. In a mapping they are constants.

/// What a text from another language means here.
pub(super) struct Meant {
    /// What to write.
    pub(super) help: String,
    /// The path to write in its place, if there is one.
    pub(super) path: Option<String>,
}

/// Paths of the context object of the Amazon States Language after `$$.`, in lower case, and what has the same value
/// here.
const CONTEXT: [(&str, &str); 9] = [
    ("execution.id", "$context.execution.id"),
    ("execution.name", "$context.execution.name"),
    ("execution.starttime", "$context.execution.startedTime"),
    ("statemachine.name", "$context.flow.name"),
    ("state.name", "$context.step.name"),
    ("state.retrycount", "$context.step.attempt"),
    ("task.token", "$context.task.token"),
    ("map.item.index", "$context.foreach.index"),
    ("execution.input", "$input"),
];
/// Variables of Conductor, and the paths that are meant.
const WORKFLOW: [(&str, &str); 3] = [
    ("workflow.workflowId", "$context.execution.id"),
    ("workflow.correlationId", "$context.execution.name"),
    ("workflow.workflowType", "$context.flow.name"),
];
/// The last names of texts such as `input.csv`, which are files.
const FILES: [&str; 16] = [
    "csv", "gz", "html", "jpeg", "jpg", "json", "jsonl", "log", "md", "parquet", "pdf", "png", "txt", "xml", "yaml",
    "zip",
];

/// What a text means if another language has such paths; `None` for any other text.
pub(super) fn meaning(text: &str) -> Option<Meant> {
    let text = text.trim();
    if let Some(inner) = within(text, "${", "}") {
        return of_conductor(inner.trim());
    }
    if let Some(inner) = within(text, "{%", "%}") {
        return Some(of_jsonata(inner.trim()));
    }
    if let Some(rest) = text.strip_prefix("$$.") {
        return Some(of_context(rest));
    }
    (text.starts_with("States.") && text.contains('(') && text.ends_with(')')).then(|| Meant {
        help: "there are no functions here: a `template` makes a text of parts, a task computes".to_owned(),
        path: None,
    })
}

/// The path that a text without its `$` means: `input.a`.
pub(super) fn without_dollar(text: &str) -> Option<String> {
    let (root, rest) = text.split_once('.')?;
    let is_name = |name: &str| {
        let plain = |letter: char| letter.is_alphanumeric() || letter == '_';
        name.starts_with(|letter: char| letter.is_alphabetic() || letter == '_') && name.chars().all(plain)
    };
    let is_file = rest.rsplit('.').next().is_some_and(|last| FILES.contains(&last));
    let is_path = matches!(root, "input" | "local" | "context") && rest.split('.').all(is_name);
    (is_path && !is_file).then(|| format!("${text}"))
}

fn within<'t>(text: &'t str, open: &str, close: &str) -> Option<&'t str> {
    text.strip_prefix(open)?.strip_suffix(close)
}

/// Variables of Conductor: `workflow.input.a`, `a_ref.output.b`.
fn of_conductor(inner: &str) -> Option<Meant> {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '[' | ']');
    if !inner.chars().all(plain) {
        return None;
    }
    let one = |path: String| Meant {
        help: format!("a path stands without braces: `{path}`"),
        path: Some(path),
    };
    if let Some((_, path)) = WORKFLOW.iter().find(|(word, _)| *word == inner) {
        return Some(one((*path).to_owned()));
    }
    let (task, rest) = inner.split_once('.')?;
    let part = |name: &str| {
        let rest = rest.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
    };
    if let Some(rest) = part("input").filter(|_| task == "workflow") {
        return Some(one(format!("$input{rest}")));
    }
    let left = part("output").or_else(|| part("input"))?;
    Some(Meant {
        help: format!(
            "what earlier steps left is read without their names: `$local{left}` in `inputMappings` of a step, `$input{left}` in its `outputMappings`"
        ),
        path: None,
    })
}

/// Expressions in JSONata: `$states.input.a`.
fn of_jsonata(inner: &str) -> Meant {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '[' | ']');
    let rest = inner
        .strip_prefix("$states.input")
        .filter(|rest| rest.chars().all(plain));
    match rest {
        Some(rest) => Meant {
            help: format!("a path stands without braces: `$input{rest}`"),
            path: Some(format!("$input{rest}")),
        },
        None => Meant {
            help: "there are no expressions here: a `source` is a path, a `template` makes a text of parts, a task computes"
                .to_owned(),
            path: None,
        },
    }
}

/// The context object of the Amazon States Language.
fn of_context(rest: &str) -> Meant {
    let word = rest.to_ascii_lowercase();
    if word.starts_with("map.item.value") {
        return Meant {
            help: "the item of an iteration is in the input, under the name that `item` of `iterationMapping` gives it"
                .to_owned(),
            path: None,
        };
    }
    let known = CONTEXT.iter().find_map(|(known, path)| {
        let after = word.strip_prefix(known)?;
        let below = *path == "$input" && after.starts_with(['.', '[']);
        (after.is_empty() || below).then(|| format!("{path}{}", rest.get(known.len()..).unwrap_or_default()))
    });
    match known {
        Some(path) => Meant {
            help: format!("did you mean `{path}`?"),
            path: Some(path),
        },
        None => Meant {
            help: "what is known of the execution stands in `$context`, such as `$context.execution.id`".to_owned(),
            path: None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_other_languages_have_a_meaning() {
        for (text, path) in [
            ("${workflow.input.x}", Some("$input.x")),
            ("${workflow.workflowId}", Some("$context.execution.id")),
            ("${a_ref.output.z}", None),
            ("$$.Execution.Id", Some("$context.execution.id")),
            ("$$.Execution.Input.a", Some("$input.a")),
            ("$$.Map.Item.Value.id", None),
            ("$$.Execution.RoleArn", None),
            ("{% $states.input.a %}", Some("$input.a")),
            ("{% $sum($states.input.a) %}", None),
            ("States.Format('{}', $.a)", None),
        ] {
            let found = meaning(text).map(|meant| meant.path);
            assert_eq!(found, Some(path.map(str::to_owned)), "{text}");
        }
        assert_eq!(without_dollar("input.s"), Some("$input.s".to_owned()));
        assert_eq!(without_dollar("local.a.b"), Some("$local.a.b".to_owned()));
    }

    #[test]
    fn other_texts_have_none() {
        for text in [
            "${HOME}",
            "${user.name}",
            "$5",
            "States.Timeout",
            "$$",
            "{%",
            "${a.b.output}",
            "input",
        ] {
            assert!(meaning(text).is_none(), "{text}");
        }
        for text in ["input.csv", "input.", "input.a b", "output.a", "input", "input.2"] {
            assert!(without_dollar(text).is_none(), "{text}");
        }
    }
}
