//! The fields of each object of a definition.

use super::Checker;
use super::cursor::Cursor;
use super::habits::Habit;
use super::kind::Kind;
use super::read::in_words;
use crate::diagnostics::{Code, Diagnostic, Nearest};

/// The fields of one kind of object.
pub(super) struct Shape {
    /// What it is, with its article.
    what: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

macro_rules! shape {
    ($name:ident, $what:literal, [$($required:literal),*], [$($optional:literal),*]) => {
        pub(super) static $name: Shape = Shape {
            what: $what,
            required: &[$($required),*],
            optional: &[$($optional),*],
        };
    };
    // A step, with the fields that every step has.
    (step $name:ident, $what:literal, [$($required:literal),*], [$($optional:literal),*]) => {
        shape!($name, $what, ["type", "name" $(, $required)*],
            ["description", "inputMappings", "outputMappings", "end" $(, $optional)*]);
    };
    // A step that may fail, with the fields that handle its failures.
    (fallible $name:ident, $what:literal, [$($required:literal),*], [$($optional:literal),*]) => {
        shape!(step $name, $what, [$($required),*],
            ["retry", "catch", "errorMappings", "timeoutSeconds" $(, $optional)*]);
    };
}

shape!(
    FLOW,
    "a flow",
    ["version", "type", "steps"],
    [
        "$schema",
        "name",
        "description",
        "inputMappings",
        "outputMappings",
        "timeoutSeconds",
        "onTimeout",
        "inputSchema",
        "outputSchema",
        "concurrency"
    ]
);
shape!(fallible TASK, "a `task` step", [], ["resourceArn", "resource", "action", "pattern", "serviceParams",
    "heartbeatSeconds", "waitSeconds", "totalTimeoutSeconds", "poll", "rollback", "priority"]);
shape!(step PASS, "a `pass` step", [], []);
shape!(step WAIT, "a `wait` step", [], ["duration", "timestamp"]);
shape!(fallible CHOICE, "a `choice` step", ["choices"], ["default"]);
shape!(fallible PARALLEL, "a `parallel` step", ["branches"], ["waitFor", "concurrency"]);
shape!(fallible FOREACH, "a `foreach` step", ["iterationMapping", "steps"], ["concurrency", "tolerance"]);
shape!(step SUCCEED, "a `succeed` step", [], []);
shape!(step FAIL, "a `fail` step", [], ["error", "cause"]);
shape!(ARM, "an entry of `choices`", ["condition"], ["steps", "goto"]);
shape!(DEFAULT, "the `default` of a choice", [], ["steps", "goto"]);
shape!(BRANCH, "a branch", ["steps"], ["name", "dependsOn"]);
shape!(ITERATION, "an iteration mapping", ["collection", "item"], ["index"]);
shape!(TOLERANCE, "a tolerance", [], ["count", "percent"]);
shape!(MAPPING, "a mapping", ["target"], ["source", "template", "required"]);
shape!(
    RETRY,
    "a retry policy",
    ["errors"],
    [
        "intervalSeconds",
        "maxIntervalSeconds",
        "maxAttempts",
        "multiplier",
        "jitter",
        "backoff",
        "values"
    ]
);
shape!(CATCH, "a catch", ["errors"], ["goto", "manual"]);
shape!(
    POLL,
    "a poll",
    [],
    [
        "until",
        "failWhen",
        "intervalSeconds",
        "maxIntervalSeconds",
        "multiplier",
        "maxAttempts"
    ]
);
shape!(
    ROLLBACK,
    "a rollback",
    [],
    [
        "resourceArn",
        "resource",
        "action",
        "pattern",
        "serviceParams",
        "inputMappings",
        "timeoutSeconds",
        "heartbeatSeconds",
        "waitSeconds",
        "poll",
        "priority",
        "retry",
        "child"
    ]
);
shape!(CONCURRENCY, "a concurrency limit", ["key", "limit"], ["pool"]);

/// All shapes, to find out where else a field is allowed.
static SHAPES: [&Shape; 20] = [
    &FLOW,
    &TASK,
    &PASS,
    &WAIT,
    &CHOICE,
    &PARALLEL,
    &FOREACH,
    &SUCCEED,
    &FAIL,
    &ARM,
    &DEFAULT,
    &BRANCH,
    &ITERATION,
    &TOLERANCE,
    &MAPPING,
    &RETRY,
    &CATCH,
    &POLL,
    &ROLLBACK,
    &CONCURRENCY,
];

/// The shape of a step.
pub(super) fn of_step(kind: Kind) -> &'static Shape {
    match kind {
        Kind::Task => &TASK,
        Kind::Pass => &PASS,
        Kind::Wait => &WAIT,
        Kind::Choice => &CHOICE,
        Kind::Parallel => &PARALLEL,
        Kind::Foreach => &FOREACH,
        Kind::Succeed => &SUCCEED,
        Kind::Fail => &FAIL,
    }
}

/// Whether a `task` step may have that field.
pub(super) fn is_of_task(field: &str) -> bool {
    TASK.has(field)
}

impl Shape {
    /// Whether objects of this shape may have that field.
    pub(super) fn has(&self, field: &str) -> bool {
        self.fields().any(|known| known == field)
    }

    fn fields(&self) -> impl Iterator<Item = &'static str> {
        self.required.iter().chain(self.optional).copied()
    }
}

impl Checker<'_> {
    /// Whether it is an object. Reports forbidden and missing fields. `told` are fields for which
    /// the caller has a better message.
    pub(super) fn check_fields(&self, cursor: &Cursor<'_>, shape: &Shape, told: &[&str]) -> bool {
        if !self.is_object(cursor) {
            return false;
        }
        // Looked up once: an object may have very many members.
        let there: Vec<&str> = cursor
            .members()
            .map(|(name, _)| name)
            .filter(|name| shape.has(name))
            .collect();
        // A misspelt field is not reported as missing, too.
        let mut misspelt = Vec::new();
        let mut listed = false;
        for (name, member) in cursor.members() {
            if self.is_hopeless() {
                break;
            }
            if !shape.has(name) && !told.contains(&name) {
                misspelt.extend(self.unknown_field(&member, cursor, shape, &there, &mut listed));
            }
        }
        for &field in shape.required {
            if !there.contains(&field) && !misspelt.contains(&field) {
                let message = format!("{} needs `{field}`", shape.what);
                if std::ptr::eq(shape, &FLOW) {
                    self.missing_at_top(cursor, field, message);
                    continue;
                }
                let found = cursor.problem_of_whole(Code::MissingField, message);
                self.report(match example_of(field) {
                    Some(help) => found.help(help),
                    None => found,
                });
            }
        }
        true
    }

    /// Reports it and suggests a field. Existing fields get `listed` once for an object.
    fn unknown_field(
        &self,
        member: &Cursor<'_>,
        owner: &Cursor<'_>,
        shape: &Shape,
        there: &[&str],
        listed: &mut bool,
    ) -> Option<&'static str> {
        let name = member.name()?;
        let message = format!("{} has no field `{name}`", shape.what);
        let found = member.problem_of_key(Code::UnknownField, message);
        let found = if SHAPES.iter().any(|other| other.has(name)) {
            let message = format!("`{name}` is not allowed on {}", shape.what);
            member.problem_of_key(Code::MisplacedField, message)
        } else {
            found
        };
        // A field that already exists was not meant.
        let open = || shape.fields().filter(|field| !there.contains(field));
        if found.code == Code::UnknownField
            && let Some(field) = open().find(|field| field.eq_ignore_ascii_case(name))
        {
            self.report(self.rename(
                member,
                found,
                Nearest {
                    word: field,
                    alone: true,
                },
            ));
            return Some(field);
        }
        match self.habit(member, owner, |field| shape.has(field), &found) {
            Habit::None => {}
            Habit::Done => return None,
            Habit::Named(field) => return Some(field),
        }
        if found.code == Code::MisplacedField {
            let places: Vec<&str> = SHAPES
                .iter()
                .filter(|other| other.has(name))
                .map(|other| other.what)
                .collect();
            self.report(found.help(format!("it belongs on {}", in_order(&places))));
            return None;
        }
        let near = self.near(name, shape.fields().count(), open);
        self.report(match near {
            Some(near) => self.rename(member, found, near),
            None if std::mem::replace(listed, true) => found,
            None => {
                let fields: Vec<&str> = shape.fields().filter(|field| *field != "$schema").collect();
                found.help(format!("its fields are {}", in_words(&fields)))
            }
        });
        near.map(|near| near.word)
    }

    fn rename(&self, member: &Cursor<'_>, found: Diagnostic, near: Nearest<'_>) -> Diagnostic {
        let key = member.key_span();
        found.help(format!("did you mean `{}`?", near.word)).fixed_by(
            format!("rename it to `{}`", near.word),
            key,
            self.quoted_like(key, near.word),
            near.alone,
        )
    }

    /// Which of several fields that exclude each other is there. More than one, or (where `needed`) none, is reported.
    pub(super) fn one_of<'b>(
        &self,
        cursor: &'b Cursor<'_>,
        fields: &[&'static str],
        needed: bool,
    ) -> Option<(&'static str, Cursor<'b>)> {
        let mut there = fields
            .iter()
            .filter_map(|&field| cursor.member(field).map(|member| (field, member)));
        let first = there.next();
        match &first {
            Some((name, member)) => {
                for (other, second) in there {
                    self.report(
                        second
                            .problem_of_key(Code::ExcludingFields, format!("`{other}` can't stand beside `{name}`"))
                            .label(member.key_span(), format!("`{name}` is here"))
                            .help("keep one of them"),
                    );
                }
            }
            None if needed => {
                let message = format!("one of {} is needed here", in_words(fields).replace(" and ", " or "));
                self.report(cursor.problem_of_whole(Code::NoneOfFields, message));
            }
            None => {}
        }
        first
    }
}

/// How a field looks that is easily forgotten.
fn example_of(field: &str) -> Option<&'static str> {
    match field {
        "errors" => Some("name the errors, or all of them: `\"errors\": [\"FnF.ALL\"]`"),
        "item" => Some("the steps see the item of an iteration under this name: `\"item\": \"item\"`"),
        "collection" => Some("it is the list, a path into the step's own input: `\"collection\": \"$.items\"`"),
        "iterationMapping" => {
            Some("write `{\"collection\": \"$.items\", \"item\": \"item\"}` with the path of the list")
        }
        _ => None,
    }
}

fn in_order(places: &[&str]) -> String {
    match places.split_last() {
        None => String::new(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}
