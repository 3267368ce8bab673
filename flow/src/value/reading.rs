//! Reads values from text, with as little memory as they need and within a limit.
//!
//! The contents of containers are gathered on two shared stacks, so each container is allocated
//! once, with its exact size. Repeated names and short strings are kept once. The memory of a value
//! is counted as it grows; the count depends on the text alone.

use super::members::LINEAR_SEARCH_MEMBERS;
use super::{Array, Number, Object, Text, Value};
use rustc_hash::FxHasher;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::hash::Hasher;

/// The memory that a value may take for each byte of its text, in bytes.
const MEMORY_PER_TEXT_BYTE: usize = 6;
/// The memory that any value may take, however short its text, in bytes.
const MIN_MEMORY_BYTES: usize = 32 * 1024 * 1024;

/// The bytes of a value inside an array, and of a member of an object; additional bytes of a member
/// in a large object, which has an index.
const VALUE_BYTES: usize = size_of::<Value>();
const MEMBER_BYTES: usize = size_of::<(Text, Value)>();
const INDEX_BYTES: usize = MEMBER_BYTES;
/// The bytes of a non-empty container without its contents, and of a string without its characters.
const CONTAINER_BYTES: usize = 56;
const TEXT_BYTES: usize = 16;
/// After this many bytes the reader asks whether there is room for more.
const ASK_EVERY_BYTES: usize = 1024 * 1024;
/// How many items of an array are gathered before they are put aside.
const CHUNK_ITEMS: usize = 8 * 1024;

/// Why a text was not read.
#[derive(Debug)]
pub enum ReadError {
    /// The value takes more memory than allowed.
    TooLarge {
        /// The allowed bytes.
        limit: usize,
    },
    /// There is not enough memory at the moment.
    NoRoom,
    /// The text is not JSON.
    Syntax(serde_json::Error),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLarge { limit } => write!(f, "read into memory it takes more than {limit} bytes"),
            Self::NoRoom => f.write_str("there is no memory for it just now"),
            Self::Syntax(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReadError {}

impl Value {
    /// The memory limit of a value whose text has this many bytes: six times as much, and at least
    /// 32 MiB.
    pub fn most_memory(text: usize) -> usize {
        text.saturating_mul(MEMORY_PER_TEXT_BYTE)
            .saturating_add(MIN_MEMORY_BYTES)
    }

    /// Reads JSON from outside. Reading stops when the value takes more than `limit` bytes of
    /// memory.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if the text is not JSON, is nested too deep or takes more memory than the limit.
    pub fn read_bounded(text: &[u8], limit: usize) -> Result<Self, ReadError> {
        Self::read_counted(text, limit, |_| true).map(|(value, _)| value)
    }

    /// Reads a value, and tells how many bytes of memory it takes. For each further MiB the reader
    /// asks whether there is room.
    ///
    /// # Errors
    ///
    /// A [`ReadError`] if the text is not JSON, is nested too deep or takes more memory than the limit.
    pub fn read_counted(
        text: &[u8],
        limit: usize,
        mut may_have: impl FnMut(usize) -> bool,
    ) -> Result<(Self, usize), ReadError> {
        let mut reading = Reading {
            limit,
            may_have: Some(&mut may_have),
            ..Reading::default()
        };
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        let read = Seed(&mut reading).deserialize(&mut deserializer);
        let read = read.and_then(|value| deserializer.end().map(|()| value));
        match (read, reading.refused) {
            (Ok(value), _) => Ok((value, reading.used)),
            (Err(_), Some(refused)) => Err(refused),
            (Err(error), None) => Err(ReadError::Syntax(error)),
        }
    }
}

/// The state of reading one value.
pub(super) struct Reading<'a> {
    values: Vec<Value>,
    members: Vec<(Text, Value)>,
    names: Known,
    texts: Known,
    used: usize,
    asked: usize,
    limit: usize,
    may_have: Option<&'a mut dyn FnMut(usize) -> bool>,
    refused: Option<ReadError>,
}

impl Default for Reading<'_> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            members: Vec::new(),
            names: Known::default(),
            texts: Known::default(),
            used: 0,
            asked: 0,
            limit: usize::MAX,
            may_have: None,
            refused: None,
        }
    }
}

impl Reading<'_> {
    fn count<E: de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        self.used += bytes;
        if self.used > self.limit {
            self.refused = Some(ReadError::TooLarge { limit: self.limit });
            return Err(E::custom("the value takes too much memory"));
        }
        if self.used - self.asked >= ASK_EVERY_BYTES {
            self.asked = self.used;
            self.ask(self.used)?;
        }
        Ok(())
    }

    fn ask<E: de::Error>(&mut self, bytes: usize) -> Result<(), E> {
        if self.may_have.as_mut().is_some_and(|may_have| !may_have(bytes)) {
            self.refused = Some(ReadError::NoRoom);
            return Err(E::custom("there is no memory for the value"));
        }
        Ok(())
    }

    fn text<E: de::Error>(&mut self, text: &str, name: bool) -> Result<Text, E> {
        let known = if name { &mut self.names } else { &mut self.texts };
        let (text, new) = known.text(text);
        if new {
            self.count(TEXT_BYTES + text.len().next_multiple_of(8))?;
        }
        Ok(text)
    }
}

/// The strings read before: a table that keeps the last string for each hash.
#[derive(Default)]
struct Known {
    seen: usize,
    texts: Vec<Option<Text>>,
}

/// The places for known strings, the bytes that these may have, and how many must come before the
/// table is worth its cost.
const KNOWN_STRINGS: usize = 256;
const KNOWN_STRING_BYTES: usize = 32;
const STRINGS_BEFORE_CACHE: usize = 16;

impl Known {
    /// The text, and whether it is new.
    fn text(&mut self, text: &str) -> (Text, bool) {
        if text.len() > KNOWN_STRING_BYTES {
            return (Text::from(text), true);
        }
        self.seen = self.seen.saturating_add(1);
        if self.seen <= STRINGS_BEFORE_CACHE {
            return (Text::from(text), true);
        }
        if self.texts.is_empty() {
            self.texts.resize(KNOWN_STRINGS, None);
        }
        let mut hasher = FxHasher::default();
        hasher.write(text.as_bytes());
        let place = hasher.finish() as usize % KNOWN_STRINGS;
        let Some(kept) = self.texts.get_mut(place) else {
            return (Text::from(text), true);
        };
        match kept {
            Some(known) if known.as_str() == text => (known.clone(), false),
            _ => {
                let new = Text::from(text);
                *kept = Some(new.clone());
                (new, true)
            }
        }
    }
}

/// Reads a value.
pub(super) struct Seed<'r, 'a>(pub(super) &'r mut Reading<'a>);

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        self.0.text(value, false).map(Value::String)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let reading = self.0;
        let first = reading.values.len();
        let mut aside: Vec<Vec<Value>> = Vec::new();
        let mut own = CONTAINER_BYTES;
        while let Some(value) = seq.next_element_seed(Seed(reading))? {
            reading.count(VALUE_BYTES + std::mem::take(&mut own))?;
            reading.values.push(value);
            if reading.values.len() - first == CHUNK_ITEMS {
                aside.push(reading.values.drain(first..).collect());
            }
        }
        if aside.is_empty() {
            return Ok(Value::Array(reading.values.drain(first..).collect()));
        }
        let items = aside.len() * CHUNK_ITEMS + reading.values.len() - first;
        // While they move, they are in memory twice.
        reading.ask(reading.used + items * VALUE_BYTES)?;
        let mut all = Vec::with_capacity(items);
        let rest = reading.values.drain(first..);
        aside.into_iter().for_each(|chunk| all.extend(chunk));
        all.extend(rest);
        Ok(Value::Array(Array::from(all)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let reading = self.0;
        let first = reading.members.len();
        let mut own = CONTAINER_BYTES;
        while let Some(name) = map.next_key_seed(Name(reading))? {
            let value = map.next_value_seed(Seed(reading))?;
            let index = if reading.members.len() - first >= LINEAR_SEARCH_MEMBERS {
                INDEX_BYTES
            } else {
                0
            };
            reading.count(MEMBER_BYTES + index + std::mem::take(&mut own))?;
            reading.members.push((name, value));
        }
        let members = reading.members.drain(first..);
        Ok(Value::Object(members.collect::<Object>()))
    }
}

/// Reads the name of a member.
struct Name<'r, 'a>(&'r mut Reading<'a>);

impl<'de> DeserializeSeed<'de> for Name<'_, '_> {
    type Value = Text;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_, '_> {
    type Value = Text;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Text, E> {
        self.0.text(name, true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, limit: usize) -> Result<Value, ReadError> {
        Value::read_bounded(text.as_bytes(), limit)
    }

    #[test]
    fn what_is_read_is_what_is_written() {
        let many: Vec<String> = (0..30)
            .map(|n| format!("\"k{n}\":{{\"\":[{n},\"v\",\"v\"]}}"))
            .collect();
        let long = format!("[{}]", vec!["{\"a\":\"b\"}"; CHUNK_ITEMS * 2 + 3].join(","));
        for text in ["null", "[]", "{}", r#"{"a":1,"b":[true,null,-1.5,"x\n"]}"#, &long] {
            assert_eq!(read(text, usize::MAX).unwrap().to_json(), text);
        }
        let text = format!("{{{}}}", many.join(","));
        assert_eq!(read(&text, usize::MAX).unwrap().to_json(), text);
        // A repeated name keeps its place and has its last value.
        let again = read(r#"{"a":1,"b":2,"a":3}"#, usize::MAX).unwrap();
        assert_eq!(again.to_json(), r#"{"a":3,"b":2}"#);
    }

    #[test]
    fn what_is_no_json_says_where() {
        for text in ["", "{", "[1,]", "{} x", "1e999", "{1:2}"] {
            let read = read(text, usize::MAX);
            let serde = serde_json::from_str::<serde_json::Value>(text).unwrap_err();
            assert!(
                matches!(&read, Err(ReadError::Syntax(error)) if error.line() == serde.line()),
                "{text}: {read:?}"
            );
        }
    }

    #[test]
    fn names_and_short_strings_are_kept_once() {
        let text = format!("[{}]", vec!["{\"name\":\"value\"}"; 100].join(","));
        let value = read(&text, usize::MAX).unwrap();
        let last = |index: i64| {
            value
                .as_array()
                .unwrap()
                .at(index)
                .unwrap()
                .as_object()
                .unwrap()
                .at(0)
                .unwrap()
        };
        let ((name, text), (other, same)) = (last(-1), last(-2));
        assert!(std::ptr::eq(name.as_str(), other.as_str()));
        assert!(std::ptr::eq(text.as_str().unwrap(), same.as_str().unwrap()));
    }

    #[test]
    fn a_value_takes_no_more_than_it_may() {
        for (item, each) in [
            ("0", VALUE_BYTES),
            ("[]", VALUE_BYTES),
            ("[0]", 2 * VALUE_BYTES + CONTAINER_BYTES),
            ("{\"\":0}", VALUE_BYTES + CONTAINER_BYTES + MEMBER_BYTES),
        ] {
            let text = format!("[{}]", vec![item; 100_000].join(","));
            let (_, used) = Value::read_counted(text.as_bytes(), usize::MAX, |_| true).unwrap();
            assert!(
                (each * 100_000..each * 100_000 + 4_096).contains(&used),
                "{item}: {used}"
            );
            assert!(read(&text, used).is_ok());
            let refused = read(&text, used - 1);
            assert!(matches!(refused, Err(ReadError::TooLarge { limit }) if limit == used - 1));
        }
    }

    #[test]
    fn it_is_asked_on_the_way_whether_there_is_room() {
        let text = format!("[{}]", vec!["0"; 200_000].join(","));
        let mut asked = Vec::new();
        let read = Value::read_counted(text.as_bytes(), usize::MAX, |bytes| {
            asked.push(bytes);
            asked.len() < 3
        });
        assert!(matches!(read, Err(ReadError::NoRoom)));
        assert!(
            asked.len() == 3 && asked.windows(2).all(|pair| pair[1] - pair[0] >= ASK_EVERY_BYTES),
            "{asked:?}"
        );
    }

    #[test]
    fn values_are_small() {
        assert_eq!(
            (
                size_of::<Value>(),
                size_of::<Text>(),
                size_of::<Array>(),
                size_of::<Object>()
            ),
            (24, 24, 8, 8)
        );
    }
}
