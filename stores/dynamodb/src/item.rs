//! Items in the forms in which they are read, written and embedded in others.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Map, Value, json};
use starbridge_aws::base64;
use starbridge_flow::time::Timestamp;
use starbridge_ports::StoreError;
use std::collections::HashMap;

/// An item: its attributes by name.
pub(crate) type Item = HashMap<String, AttributeValue>;

/// A hash key and a range key.
pub(crate) type Key = (String, String);

pub(crate) fn text(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

pub(crate) fn number<N: Copy + ToString>(number: N) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

pub(crate) fn bytes(bytes: Vec<u8>) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

/// The attributes of a key.
pub(crate) fn keys(key: &Key) -> Item {
    Item::from([
        (crate::table::PK.to_owned(), text(&key.0)),
        (crate::table::SK.to_owned(), text(&key.1)),
    ])
}

pub(crate) fn key_of(item: &Item) -> Key {
    let part = |name| text_of(item, name).unwrap_or_default().to_owned();
    (part(crate::table::PK), part(crate::table::SK))
}

pub(crate) fn text_of<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name)?.as_s().ok().map(String::as_str)
}

pub(crate) fn number_of<T: std::str::FromStr>(item: &Item, name: &str) -> Option<T> {
    item.get(name)?.as_n().ok()?.parse().ok()
}

pub(crate) fn time_of(item: &Item, name: &str) -> Option<Timestamp> {
    number_of(item, name).map(Timestamp)
}

/// The error for an item that this store could not have written.
pub(crate) fn corrupt(item: &Item, what: &str) -> StoreError {
    let (pk, sk) = key_of(item);
    StoreError::Corrupt(format!("the item `{pk}` `{sk}` {what}"))
}

/// The approximate size of an item, in bytes.
pub(crate) fn size(item: &Item) -> usize {
    let of = |value: &AttributeValue| match value {
        AttributeValue::S(text) | AttributeValue::N(text) => text.len(),
        AttributeValue::B(blob) => blob.as_ref().len(),
        _ => 1,
    };
    item.iter().map(|(name, value)| name.len() + of(value)).sum()
}

/// An item as JSON, in DynamoDB's own form.
pub(crate) fn to_json(item: &Item) -> Value {
    let mut members = Map::new();
    let mut names: Vec<&String> = item.keys().collect();
    names.sort();
    for name in names {
        let value = match item.get(name) {
            Some(AttributeValue::S(text)) => json!({ "S": text }),
            Some(AttributeValue::N(number)) => json!({ "N": number }),
            Some(AttributeValue::B(blob)) => json!({ "B": base64::encode(blob.as_ref()) }),
            Some(AttributeValue::Bool(is)) => json!({ "BOOL": is }),
            _ => continue,
        };
        members.insert(name.clone(), value);
    }
    Value::Object(members)
}

/// Reads an item from JSON. Attributes that are not understood are left out.
pub(crate) fn from_json(json: &Value) -> Item {
    let members = json.as_object().into_iter().flatten();
    members
        .filter_map(|(name, value)| {
            let (kind, value) = value.as_object()?.iter().next()?;
            let value = match (kind.as_str(), value) {
                ("S", Value::String(value)) => text(value),
                ("N", Value::String(value)) => AttributeValue::N(value.clone()),
                ("B", Value::String(value)) => bytes(base64::decode(value).ok()?),
                ("BOOL", Value::Bool(is)) => AttributeValue::Bool(*is),
                _ => return None,
            };
            Some((name.clone(), value))
        })
        .collect()
}
