//! Writing a document that may be missing. Checkpoints have always had the document itself if it is an object, and
//! `null` if there is none. A document that is no object stands in an array of one, so that `null` is not mistaken for
//! a missing one.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use starbridge_flow::value::{Document, Value};
use std::borrow::{Borrow, Cow};

pub(super) fn serialize<S: Serializer>(
    document: &impl Borrow<Option<Value>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match document.borrow() {
        Some(object @ Value::Object(_)) => object.serialize(serializer),
        Some(other) => [other].serialize(serializer),
        None => serializer.serialize_none(),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    match Value::deserialize(deserializer)? {
        Value::Null => Ok(None),
        Value::Array(alone) => match alone.values() {
            [document] => Ok(Some(document.clone())),
            _ => Err(D::Error::custom(
                "a document that is no object stands alone in its array",
            )),
        },
        object => Ok(Some(object)),
    }
}

pub(super) fn owned<'de, 'a, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'a, Option<Value>>, D::Error> {
    deserialize(deserializer).map(Cow::Owned)
}

/// Writes and reads documents as states hold them.
pub(super) mod held {
    use super::{Deserializer, Document, Serializer, Value};

    pub(in crate::state) fn serialize<S: Serializer>(
        document: &Option<Document>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        super::serialize(&document.as_ref().map(Document::to_value), serializer)
    }

    pub(in crate::state) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Document>, D::Error> {
        let document: Option<Value> = super::deserialize(deserializer)?;
        Ok(document.map(Document::from))
    }
}
