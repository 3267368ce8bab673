//! The building blocks of schemas.

use serde_json::{Map, Value, json};

/// An object with these members. Those with a `!` are required.
pub(super) fn shape(members: &[(&str, Value)]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, schema) in members {
        let plain = name.trim_end_matches('!');
        if plain != *name {
            required.push(plain);
        }
        properties.insert(plain.to_owned(), schema.clone());
    }
    json!({"type": "object", "properties": properties, "required": required})
}

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

pub(super) fn number() -> Value {
    json!({"type": "integer", "minimum": 0})
}

pub(super) fn flag() -> Value {
    json!({"type": "boolean"})
}

pub(super) fn object() -> Value {
    json!({"type": "object"})
}

pub(super) fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

pub(super) fn list(items: Value) -> Value {
    let mut schema = json!({"type": "array"});
    schema["items"] = items;
    schema
}

pub(super) fn labels() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

/// This schema, or null.
pub(super) fn or_null(mut schema: Value) -> Value {
    let one = schema["type"].take();
    schema["type"] = json!([one, "null"]);
    schema
}

/// A page of a list; `next` is null on the last one.
pub(super) fn page(items: Value, next: Value) -> Value {
    shape(&[("items!", list(items)), ("next!", or_null(next))])
}

/// A list without pages.
pub(super) fn whole(items: Value) -> Value {
    shape(&[("items!", list(items)), ("next!", json!({"type": "null"}))])
}
