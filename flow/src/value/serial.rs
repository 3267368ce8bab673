//! Values to and from JSON text, through serde.

use super::reading::{Reading, Seed};
use super::{Array, Object, Text, Value};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(AnyText)
    }
}

struct AnyText;

impl Visitor<'_> for AnyText {
    type Value = Text;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(text.into())
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(object) => Ok(object),
            other => Err(de::Error::custom(format_args!(
                "expected an object, found {}",
                other.kind()
            ))),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(number) => number.serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Object(object) => object.serialize(serializer),
            Self::Array(array) => {
                let mut seq = serializer.serialize_seq(Some(array.len()))?;
                for value in array.values() {
                    seq.serialize_element(value)?;
                }
                seq.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Seed(&mut Reading::default()).deserialize(deserializer)
    }
}

pub(super) fn from_serde(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::Number(number) => Value::Number(number.clone()),
        serde_json::Value::String(text) => Value::from(text.as_str()),
        serde_json::Value::Array(values) => values.iter().map(from_serde).collect::<Array>().into(),
        serde_json::Value::Object(members) => members
            .iter()
            .map(|(key, value)| (Text::from(key.as_str()), from_serde(value)))
            .collect::<Object>()
            .into(),
    }
}

pub(super) fn to_serde(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => serde_json::Value::Bool(*value),
        Value::Number(number) => serde_json::Value::Number(number.clone()),
        Value::String(text) => serde_json::Value::String(text.as_str().to_owned()),
        Value::Array(array) => serde_json::Value::Array(array.values().iter().map(to_serde).collect()),
        Value::Object(object) => serde_json::Value::Object(
            object
                .iter()
                .map(|(key, value)| (key.as_str().to_owned(), to_serde(value)))
                .collect(),
        ),
    }
}
