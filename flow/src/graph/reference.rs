//! References: values that a definition puts into a call and that are known only when the call
//! leaves (section "tasks").
//!
//! A reference is not a value. It is a place that the front end takes from the definition's own
//! text, and it is carried beside the data. A string in data stays a string, even if it looks like
//! a reference.

use crate::value::{Array, Object, Text, Value};
use serde::{Deserialize, Serialize};

/// A place inside a value, in the form of a JSON pointer (RFC 6901). Empty: the value itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Pointer {
    keys: Vec<Text>,
}

/// A secret that the definition names in `serviceParams`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretReference {
    /// Its place in them.
    pub at: Pointer,
    /// The secret's name.
    pub name: Text,
}

/// What a program may pass on to its result.
#[derive(Clone, Copy, Debug)]
pub enum Carried<'a> {
    /// The token of the task whose input it makes.
    Token,
    /// The value at this place of its input.
    Input(&'a Pointer),
}

/// An error: the text is not a JSON pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPointer;

impl std::fmt::Display for NoPointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON pointer is empty or begins with `/`")
    }
}

impl std::error::Error for NoPointer {}

impl Pointer {
    /// The place under these keys, from outside in.
    pub fn of<T: Into<Text>>(keys: impl IntoIterator<Item = T>) -> Self {
        Self {
            keys: keys.into_iter().map(Into::into).collect(),
        }
    }

    /// Reads the text of a JSON pointer.
    ///
    /// # Errors
    ///
    /// [`NoPointer`] if the text is not a JSON pointer.
    pub fn parse(text: &str) -> Result<Self, NoPointer> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let keys = text.strip_prefix('/').ok_or(NoPointer)?.split('/');
        Ok(Self::of(keys.map(|key| key.replace("~1", "/").replace("~0", "~"))))
    }

    /// Its first key; `None` if it is empty.
    pub fn first(&self) -> Option<&Text> {
        self.keys.first()
    }

    /// The place `below`, relative to this place.
    #[must_use]
    pub fn join(&self, below: &Self) -> Self {
        Self::of(self.keys.iter().chain(&below.keys).cloned())
    }

    /// The rest of it after `outer`; `None` if it does not begin with `outer`.
    pub fn strip_prefix(&self, outer: &Self) -> Option<Self> {
        let rest = self.keys.strip_prefix(outer.keys.as_slice())?;
        Some(Self { keys: rest.to_vec() })
    }

    /// The value at this place.
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.keys.iter().try_fold(value, |value, key| match value {
            Value::Object(object) => object.get(key),
            Value::Array(array) => array.at(index(key)?),
            _ => None,
        })
    }

    /// The value with another value in this place; `None` if there is no such place.
    pub fn replaced(&self, value: &Value, with: Value) -> Option<Value> {
        replaced(&self.keys, value, with)
    }
}

/// Recursion ends with the keys: a pointer is no longer than the definition's data may be deep.
fn replaced(keys: &[Text], value: &Value, with: Value) -> Option<Value> {
    let Some((key, below)) = keys.split_first() else {
        return Some(with);
    };
    match value {
        Value::Object(object) => {
            let member = replaced(below, object.get(key)?, with)?;
            let mut object: Object = object.clone();
            object.insert(key.clone(), member);
            Some(object.into())
        }
        Value::Array(array) => {
            let position = index(key)?;
            let item = replaced(below, array.at(position)?, with)?;
            let mut items = array.values().to_vec();
            *items.get_mut(usize::try_from(position).ok()?)? = item;
            Some(Array::from(items).into())
        }
        _ => None,
    }
}

/// The array index that a key of a pointer means: digits without a leading zero.
fn index(key: &str) -> Option<i64> {
    let plain = key.bytes().all(|byte| byte.is_ascii_digit()) && (key == "0" || !key.starts_with('0'));
    plain.then(|| key.parse().ok()).flatten()
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.keys
            .iter()
            .try_for_each(|key| write!(f, "/{}", key.replace('~', "~0").replace('/', "~1")))
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.to_string()
    }
}

impl TryFrom<String> for Pointer {
    type Error = NoPointer;

    fn try_from(text: String) -> Result<Self, NoPointer> {
        Self::parse(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(json: &str) -> Value {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn pointers_are_read_as_they_are_written() {
        for text in ["", "/a", "/a~1b/~0/0", "/"] {
            assert_eq!(Pointer::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Pointer::parse("a"), Err(NoPointer));
    }

    #[test]
    fn only_the_place_itself_is_replaced() {
        let data = value(r#"{"a":[{"b":"x"},"x"],"b":"x","01":["x"]}"#);
        let at = Pointer::parse("/a/0/b").unwrap();
        let with = at.replaced(&data, "y".into()).unwrap();
        assert_eq!(with, value(r#"{"a":[{"b":"y"},"x"],"b":"x","01":["x"]}"#));
        for missing in ["/a/2", "/a/00", "/a/-1", "/c", "/b/x", "/a/0/b/c"] {
            let at = Pointer::parse(missing).unwrap();
            assert_eq!(at.find(&data), None, "{missing}");
            assert_eq!(at.replaced(&data, Value::Null), None, "{missing}");
        }
    }

    #[test]
    fn what_stands_below_is_found_by_the_rest() {
        let outer = Pointer::of(["a", "b"]);
        let inner = Pointer::of(["a", "b", "c"]);
        assert_eq!(inner.strip_prefix(&outer), Some(Pointer::of(["c"])));
        assert_eq!(outer.strip_prefix(&inner), None);
        assert_eq!(outer.join(&Pointer::of(["c"])), inner);
    }
}
