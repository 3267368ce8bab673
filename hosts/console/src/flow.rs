//! One flow: what it is, its versions, and a form that starts it.

use crate::escape::visible_json;
use crate::frame::Frame;
use crate::plain::written;
use crate::read::{count, is_set, items, moment, number, path_part, pretty, text};
use crate::texts::Texts;
use askama::Template;
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
    /// A number.
    Number,
    /// Yes, or no.
    Flag,
    /// One of these texts.
    OneOf(Vec<String>),
    /// JSON.
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
        (None, "number" | "integer") => FieldKind::Number,
        (None, "boolean") => FieldKind::Flag,
        (None, _) => FieldKind::Json,
    }
}

/// A field as it is shown.
struct Shown {
    name: String,
    about: String,
    required: bool,
    /// `text`, `number`, `flag`, `json`, or `one` of the words.
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
    t: &'static Texts,
    name: &'a str,
    name_part: String,
    version: u64,
    paused: bool,
    created: String,
    hash: &'a str,
    max_running: String,
    lacks: Option<String>,
    fields: Vec<Shown>,
    raw: String,
    versions: Vec<(u64, String)>,
    graph: &'a str,
    definition: String,
}

/// The page of a flow. `like`: the input that the form begins with; null where there is none.
pub fn flow(frame: &Frame, flow: &Value, versions: &Value, graph: &str, like: &Value) -> String {
    let t = frame.t();
    let definition = flow.get("definition").unwrap_or(&Value::Null);
    let like = if like.json_len() > INPUT_BYTES {
        &Value::Null
    } else {
        like
    };
    let versions = items(versions, "items").iter().map(|version| {
        let number = number(version, "version").unwrap_or_default();
        (number, moment(version, "createdTime"))
    });
    written(&Flow {
        f: frame,
        t,
        name: text(flow, "name"),
        name_part: path_part(text(flow, "name")),
        version: number(flow, "version").unwrap_or_default(),
        paused: is_set(flow, "paused"),
        created: moment(flow, "createdTime"),
        hash: text(flow, "hash"),
        max_running: match number(flow, "maxRunning") {
            Some(_) => count(flow, "maxRunning"),
            None => t.no_limit.to_owned(),
        },
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
        graph,
        definition: pretty(definition, SHOWN_BYTES),
    })
}
