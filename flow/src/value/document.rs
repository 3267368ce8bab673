//! A document: any JSON value, as small as an object.

use super::{Object, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A document: any JSON value, nearly always an object.
///
/// A state holds documents in each list and visit, and copies and drops them with each step. So a document takes no more
/// room than an object, a third of what a [`Value`] takes: a value that is not an object is stored
/// behind the same pointer, in place of the members.
#[derive(Clone, Default)]
pub struct Document(
    // INVARIANT: if it stands for another value, it is never handed out as an object.
    Object,
);

impl Document {
    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self.0.stands_for() {
            None => Some(&self.0),
            Some(_) => None,
        }
    }

    /// The document, if it is no object.
    pub fn other(&self) -> Option<&Value> {
        self.0.stands_for()
    }

    /// The object; an empty one if the document is not an object.
    pub fn members(&self) -> &Object {
        self.as_object().unwrap_or(Object::empty())
    }

    /// The member of that name, if this is an object that has one.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Sets all members of `other` if both are objects; otherwise `other` replaces this document.
    pub fn merge(&mut self, other: &Self) {
        match (self.other(), other.other()) {
            (None, None) => self.0.merge(&other.0),
            _ => *self = other.clone(),
        }
    }

    /// The length in bytes of the compact JSON text.
    pub fn json_len(&self) -> usize {
        self.0.json_len()
    }

    /// The depth of nested containers.
    pub fn depth(&self) -> usize {
        self.0.depth()
    }

    /// The document as a value.
    pub fn to_value(&self) -> Value {
        match self.other() {
            None => Value::Object(self.0.clone()),
            Some(other) => other.clone(),
        }
    }
}

impl From<Object> for Document {
    fn from(object: Object) -> Self {
        Self(object)
    }
}

impl From<Value> for Document {
    fn from(value: Value) -> Self {
        match value {
            Value::Object(object) => Self(object),
            other => Self(Object::standing_for(other)),
        }
    }
}

impl From<Document> for Value {
    fn from(document: Document) -> Self {
        match document.other() {
            None => Self::Object(document.0),
            Some(other) => other.clone(),
        }
    }
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.other() {
            None => self.0.serialize(serializer),
            Some(other) => other.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl std::fmt::Debug for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_value().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn any_value_comes_back_as_it_was() {
        for json in ["{}", r#"{"a":[1]}"#, "[1,[2]]", "[]", "7", "null", "true", r#""text""#] {
            let value = value(json);
            let document = Document::from(value.clone());
            assert_eq!(document.to_value(), value, "{json}");
            assert_eq!(Value::from(document.clone()), value, "{json}");
            assert_eq!(serde_json::to_string(&document).unwrap(), json);
            let read: Document = serde_json::from_str(json).unwrap();
            assert_eq!(read.to_value(), value, "{json}");
            assert_eq!(
                (document.json_len(), document.depth()),
                (value.json_len(), value.depth()),
                "{json}"
            );
            assert_eq!(document.as_object(), value.as_object(), "{json}");
            assert_eq!(document.other().is_some(), value.as_object().is_none(), "{json}");
            assert_eq!(document.get("a"), value.get("a"), "{json}");
            assert_eq!(
                document.members().len(),
                value.as_object().map_or(0, Object::len),
                "{json}"
            );
        }
    }

    #[test]
    fn merging_is_that_of_values() {
        const ALL: [&str; 6] = ["{}", r#"{"a":1,"b":2}"#, r#"{"b":3,"c":4}"#, "[1]", "null", "7"];
        for below in ALL {
            for above in ALL {
                let (mut expected, above) = (value(below), value(above));
                let mut document = Document::from(expected.clone());
                document.merge(&above.clone().into());
                expected.merge(&above);
                assert_eq!(document.to_value(), expected, "{below} {above}");
            }
        }
    }

    #[test]
    fn document_takes_no_more_room_than_an_object() {
        let sizes = [size_of::<Document>(), size_of::<Option<Document>>()];
        assert_eq!(sizes, [size_of::<Object>(), size_of::<Option<Object>>()]);
    }
}
