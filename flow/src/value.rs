//! JSON values of flows: shared by reference count, with ordered members and known sizes.
//!
//! A clone of any size costs one reference count. Every container and string knows the length of
//! its compact JSON text and its depth, so that the limits of the language (section "limits") cost
//! nothing to check.

mod array;
mod document;
mod members;
mod number;
mod object;
mod overlay;
mod reading;
mod serial;
mod text;

pub use array::Array;
pub use document::Document;
pub use number::{compare as compare_numbers, equal as equal_numbers};
pub use object::{Object, ObjectIter};
pub use overlay::Overlay;
pub use reading::ReadError;
pub use serde_json::Number;
pub use text::Text;

/// A JSON value.
#[derive(Clone, Default)]
pub enum Value {
    /// `null`
    #[default]
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An exact integer from −2⁶³ to 2⁶⁴−1, or an IEEE double.
    Number(Number),
    /// Characters, shared by reference count.
    String(Text),
    /// Items, shared by reference count.
    Array(Array),
    /// An object; its members keep their order.
    Object(Object),
}

impl Value {
    /// `{}`: a document without members. Wherever objects are laid over each other, an absent one
    /// counts as this.
    pub fn empty_object() -> Self {
        Self::Object(Object::new())
    }

    /// Sets all members of `other` if both are objects; otherwise `other` replaces this value.
    pub fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Object(members), Self::Object(others)) => members.merge(others),
            (whole, other) => *whole = other.clone(),
        }
    }

    /// The length in bytes of this value's compact JSON text.
    pub fn json_len(&self) -> usize {
        match self {
            Self::Null => 4,
            Self::Bool(true) => 4,
            Self::Bool(false) => 5,
            Self::Number(number) => number::json_len(number),
            Self::String(text) => text.json_len(),
            Self::Array(array) => array.json_len(),
            Self::Object(object) => object.json_len(),
        }
    }

    /// The depth of nested containers: 0 for a scalar, 1 for `[]`.
    pub fn depth(&self) -> usize {
        match self {
            Self::Array(array) => array.depth(),
            Self::Object(object) => object.depth(),
            _ => 0,
        }
    }

    /// The string, if it is one.
    pub fn as_text(&self) -> Option<&Text> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The string's characters, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        self.as_text().map(Text::as_str)
    }

    /// The object, if it is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The array, if it is one.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(array) => Some(array),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Self::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The member of that name, if this is an object that has one.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// The kind of this value in JSON's words, with its article, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    /// The compact JSON text.
    pub fn to_json(&self) -> String {
        // The length is known, so the text does not take up to twice the memory by growing.
        let mut text = Vec::with_capacity(self.json_len());
        match serde_json::to_writer(&mut text, self) {
            Ok(()) => String::from_utf8(text).unwrap_or_default(),
            Err(_) => String::new(),
        }
    }

    /// The text in a template or a `cause`: a string as it is, anything else as compact JSON.
    pub fn to_plain_text(&self) -> String {
        match self {
            Self::String(text) => text.as_str().to_owned(),
            other => other.to_json(),
        }
    }
}

/// Deep equality. Numbers compare by value, regardless of their notation; members may be in any
/// order.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Number(a), Self::Number(b)) => number::equal(a, b),
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => a == b,
            _ => false,
        }
    }
}

impl std::fmt::Debug for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Number(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Number(value.into())
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

/// A number that JSON can't write (NaN, infinities) becomes `null`.
impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Number::from_f64(value).map_or(Self::Null, Self::Number)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::String(Text::from(value))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::String(Text::from(value))
    }
}

impl From<Text> for Value {
    fn from(value: Text) -> Self {
        Self::String(value)
    }
}

impl From<Object> for Value {
    fn from(value: Object) -> Self {
        Self::Object(value)
    }
}

impl FromIterator<(Text, Value)> for Value {
    fn from_iter<I: IntoIterator<Item = (Text, Value)>>(members: I) -> Self {
        Self::Object(members.into_iter().collect())
    }
}

impl From<Array> for Value {
    fn from(value: Array) -> Self {
        Self::Array(value)
    }
}

impl From<Vec<Value>> for Value {
    fn from(value: Vec<Value>) -> Self {
        Self::Array(Array::from(value))
    }
}

impl From<&serde_json::Value> for Value {
    fn from(value: &serde_json::Value) -> Self {
        serial::from_serde(value)
    }
}

impl From<&Value> for serde_json::Value {
    fn from(value: &Value) -> Self {
        serial::to_serde(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_text_takes_no_more_memory_than_its_bytes() {
        for json in [r#"{"a":[1,2.5,null],"b":"x\n\"é\u0001"}"#, "[]", "-7"] {
            let value: Value = serde_json::from_str(json).unwrap();
            let text = value.to_json();
            assert_eq!(
                (text.len(), text.capacity()),
                (value.json_len(), value.json_len()),
                "{text}"
            );
        }
    }
}
