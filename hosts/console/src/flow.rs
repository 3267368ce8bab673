//! One flow: what it is, its versions, and a form that starts it.

use crate::diff::{Change, Line, compared, hunks};
use crate::escape::{editable, visible_json};
use crate::frame::Frame;
use crate::plain::{done, written};
use crate::read::{count, duration, is_set, items, number, path_part, pretty, text};
use crate::zone::Reader;
use askama::Template;
use starbridge_flow::time::Millis;
use starbridge_flow::value::Value;

/// So many bytes of a definition are shown.
const SHOWN_BYTES: usize = 64 * 1024;
/// An input that has more bytes is not put into the form.
const INPUT_BYTES: usize = 256 * 1024;

/// How a field of a form becomes a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A text as it is.
    Text,
    /// Any number of JSON.
    Number,
    /// A number without a fraction.
    Whole,
    /// Yes, or no.
    Flag,
    /// One of these texts.
    OneOf(Vec<String>),
    /// Whatever parses as JSON.
    Json,
}

/// A field of the form that is made of an `inputSchema`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormField {
    /// The member of the input.
    pub name: String,
    /// What it takes.
    pub kind: FieldKind,
    /// Whether the schema demands it.
    pub required: bool,
    /// What the schema says about it.
    pub about: String,
}

/// The fields for the members that an `inputSchema` names.
pub fn form_fields(definition: &Value) -> Vec<FormField> {
    let schema = definition.get("inputSchema");
    let properties = schema.and_then(|schema| schema.get("properties")?.as_object());
    let required = schema.map_or(&[][..], |schema| items(schema, "required"));
    let field = |(name, property): (&starbridge_flow::value::Text, &Value)| FormField {
        name: name.to_string(),
        kind: kind(property),
        required: required.iter().any(|wanted| wanted.as_str() == Some(name.as_str())),
        about: text(property, "description").to_owned(),
    };
    properties.into_iter().flatten().map(field).collect()
}

fn kind(property: &Value) -> FieldKind {
    let words = property.get("enum").and_then(Value::as_array);
    let words = words.and_then(|words| {
        let all = words.values().iter().map(|word| word.as_str().map(str::to_owned));
        all.collect::<Option<Vec<String>>>()
    });
    match (words, text(property, "type")) {
        (Some(words), _) => FieldKind::OneOf(words),
        (None, "string") => FieldKind::Text,
        (None, "number") => FieldKind::Number,
        (None, "integer") => FieldKind::Whole,
        (None, "boolean") => FieldKind::Flag,
        (None, _) => FieldKind::Json,
    }
}

/// A field as it is shown.
struct Shown {
    name: String,
    about: String,
    required: bool,
    /// `text`, `number`, `whole`, `flag`, `json`, or `one` of the words.
    kind: &'static str,
    value: String,
    words: Vec<(String, bool)>,
}

impl Shown {
    /// A field with the value it has in an input, if there is one to begin with.
    fn of(field: FormField, like: &Value) -> Self {
        let before = like.get(&field.name);
        let value = match before {
            None => String::new(),
            Some(Value::String(text)) if field.kind != FieldKind::Json => text.to_string(),
            Some(value) => visible_json(&value.to_json()),
        };
        let (kind, words) = match field.kind {
            FieldKind::Text => ("text", Vec::new()),
            FieldKind::Number => ("number", Vec::new()),
            FieldKind::Whole => ("whole", Vec::new()),
            FieldKind::Flag => ("flag", Vec::new()),
            FieldKind::Json => ("json", Vec::new()),
            FieldKind::OneOf(words) => (
                "one",
                words.into_iter().map(|word| (word.clone(), word == value)).collect(),
            ),
        };
        Self {
            name: field.name,
            about: field.about,
            required: field.required,
            kind,
            value,
            words,
        }
    }
}

#[derive(Template)]
#[template(path = "flow.html")]
struct Flow<'a> {
    f: &'a Frame,
    t: Reader,
    name: &'a str,
    name_part: String,
    version: u64,
    paused: bool,
    created: String,
    hash: &'a str,
    max_running: String,
    /// The limit that is set; empty where none is.
    limit: String,
    lacks: Option<String>,
    fields: Vec<Shown>,
    raw: String,
    versions: Vec<(u64, String)>,
    figures: Vec<StepFigures>,
    graph: &'a str,
    definition: String,
    said: Option<&'static str>,
    may_not_put: Option<String>,
    /// What only those do who may put a version.
    settable: [&'static str; 3],
    text: String,
    compared: Option<(u64, Vec<Line>)>,
}

/// What the page of a flow is made of: what the API answers, and the picture.
#[derive(Clone, Copy, Debug)]
pub struct FlowPageParts<'a> {
    /// The version that is shown, with its text.
    pub flow: &'a Value,
    /// As `GET /v1/flows/{name}/versions` has them.
    pub versions: &'a Value,
    /// The version that it is compared with; null where there is none.
    pub other: &'a Value,
    /// The picture as SVG.
    pub graph: &'a str,
    /// What was counted of it and of its steps.
    pub stats: &'a Value,
    /// The input that the form begins with; null where there is none.
    pub like: &'a Value,
    /// The action that was just done, in one word.
    pub done: &'a str,
}

struct StepFigures {
    name: String,
    href: String,
    attempts: String,
    failed: u64,
    median: String,
    p95: String,
    since: String,
}

/// The figures of each step, in the order of the definition.
fn figures(stats: &Value, definition: &Value, flow: &str, t: Reader) -> Vec<StepFigures> {
    let mut order = Vec::new();
    names(definition, &mut order);
    let place = |step: &str| order.iter().position(|name| *name == step).unwrap_or(order.len());
    let mut steps: Vec<&Value> = items(stats, "steps").iter().collect();
    steps.sort_by_key(|step| place(text(step, "step")));
    let shown = steps.into_iter().map(|step| {
        let span = |key| number(step, key).map_or_else(|| "–".to_owned(), |span| duration(Millis(span)));
        let name = text(step, "step");
        StepFigures {
            name: name.to_owned(),
            href: format!("/executions?flow={}&step={}", path_part(flow), path_part(name)),
            attempts: count(step, "attempts"),
            failed: number(step, "failed").unwrap_or_default(),
            median: span("medianMs"),
            p95: span("p95Ms"),
            since: t.moment(step, "since"),
        }
    });
    shown.collect()
}

/// The names that a definition has, in its order. It is as deep as a definition may be.
fn names<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::Object(object) => {
            into.extend(object.get("name").and_then(Value::as_str));
            object.iter().for_each(|(_, value)| names(value, into));
        }
        Value::Array(array) => array.values().iter().for_each(|value| names(value, into)),
        _ => {}
    }
}

/// What differs from one text to another: the lines around it, or a word where they can't be compared.
fn differences(before: &str, after: &str, t: Reader) -> Vec<Line> {
    let lines = compared(before, after);
    match before != after && !lines.iter().any(|(change, _)| change.differs()) {
        // Only the end of the last line differs, or too much does.
        true => vec![(Change::Left, t.not_compared.to_owned())],
        false => hunks(lines),
    }
}

/// The page of a flow.
pub fn flow(frame: &Frame, parts: &FlowPageParts<'_>) -> String {
    let t = frame.t();
    let FlowPageParts {
        flow, versions, like, ..
    } = *parts;
    let definition = flow.get("definition").unwrap_or(&Value::Null);
    let like = if like.json_len() > INPUT_BYTES {
        &Value::Null
    } else {
        like
    };
    let versions = items(versions, "items").iter().map(|version| {
        let number = number(version, "version").unwrap_or_default();
        (number, t.moment(version, "createdTime"))
    });
    written(&Flow {
        f: frame,
        t,
        name: text(flow, "name"),
        name_part: path_part(text(flow, "name")),
        version: number(flow, "version").unwrap_or_default(),
        paused: is_set(flow, "paused"),
        created: t.moment(flow, "createdTime"),
        hash: text(flow, "hash"),
        max_running: match number(flow, "maxRunning") {
            Some(_) => count(flow, "maxRunning"),
            None => t.no_limit.to_owned(),
        },
        limit: number(flow, "maxRunning").map_or_else(String::new, |limit| limit.to_string()),
        lacks: frame.lacks("start"),
        fields: form_fields(definition)
            .into_iter()
            .map(|field| Shown::of(field, like))
            .collect(),
        raw: match like {
            Value::Null => "{}".to_owned(),
            like => visible_json(&pretty(like, 8 * INPUT_BYTES)),
        },
        versions: versions.collect(),
        figures: figures(parts.stats, definition, text(flow, "name"), t),
        graph: parts.graph,
        definition: pretty(definition, SHOWN_BYTES),
        said: done(frame, parts.done),
        may_not_put: frame.lacks("admin"),
        settable: [t.pause, t.at_once, t.hide],
        text: editable(text(flow, "text")).unwrap_or_default(),
        compared: number(parts.other, "version").map(|other| {
            let lines = differences(text(parts.other, "text"), text(flow, "text"), t);
            (other, lines)
        }),
    })
}

/// What the page of a definition that is checked is made of.
#[derive(Clone, Copy, Debug)]
pub struct CheckParts<'a> {
    /// The name of the flow.
    pub name: &'a str,
    /// The definition as it was given.
    pub text: &'a str,
    /// That of the latest version; empty where there is none.
    pub before: &'a str,
    /// What the API says of it; null if it can't be put.
    pub checked: &'a Value,
    /// Errors and warnings, each with its place in the text.
    pub diagnostics: &'a Value,
}

struct Diagnosed {
    class: &'static str,
    code: String,
    message: String,
    place: String,
    help: String,
}

#[derive(Template)]
#[template(path = "flow_check.html")]
struct Check<'a> {
    f: &'a Frame,
    t: Reader,
    name: &'a str,
    name_part: String,
    text: String,
    fits: bool,
    same: bool,
    found: Vec<Diagnosed>,
    lines: Vec<Line>,
}

/// A definition that was checked: what is wrong with it, what differs from the latest version, and the form that puts it.
pub fn flow_check(frame: &Frame, parts: &CheckParts<'_>) -> String {
    let t = frame.t();
    let listed = parts.diagnostics.as_array().map_or(&[][..], |found| found.values());
    let diagnosed = |found: &Value| Diagnosed {
        class: match text(found, "severity") {
            "error" => "",
            _ => "note",
        },
        code: text(found, "code").to_owned(),
        message: text(found, "message").to_owned(),
        place: match (number(found, "line"), number(found, "column")) {
            (Some(line), Some(column)) => format!("{line}:{column}"),
            _ => String::new(),
        },
        help: text(found, "help").to_owned(),
    };
    written(&Check {
        f: frame,
        t,
        name: parts.name,
        name_part: path_part(parts.name),
        text: editable(parts.text).unwrap_or_default(),
        fits: parts.checked.as_object().is_some(),
        same: is_set(parts.checked, "same"),
        found: listed.iter().map(diagnosed).collect(),
        lines: differences(parts.before, parts.text, t),
    })
}
