//! Shared text that knows its length in JSON.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// An immutable string; a clone costs one reference count.
#[derive(Clone)]
pub struct Text {
    text: Arc<str>,
    json_len: u32,
    /// Leaves room for the tag of other kinds of values, so that a value is no larger than a text.
    _kind: Kind,
}

#[derive(Clone, Copy)]
#[repr(u8)]
enum Kind {
    Text,
}

impl Text {
    /// The characters.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A text without characters that JSON escapes.
    pub(crate) fn plain(text: &str) -> Self {
        let json_len = u32::try_from(text.len() + 2).unwrap_or(u32::MAX);
        let text = Self {
            text: Arc::from(text),
            json_len,
            _kind: Kind::Text,
        };
        debug_assert_eq!(text.json_len(), escaped_len(&text.text));
        text
    }

    /// The length of this string's JSON text in bytes, including quotes and escapes.
    pub fn json_len(&self) -> usize {
        self.json_len as usize
    }
}

/// Bytes a string takes in compact JSON: `"`, `\` and the five short escapes take two, other controls six.
fn escaped_len(text: &str) -> usize {
    let extra: usize = text
        .bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | 0x08 | 0x09 | 0x0A | 0x0C | 0x0D => 1,
            0x00..=0x1F => 5,
            _ => 0,
        })
        .sum();
    text.len() + extra + 2
}

impl From<Arc<str>> for Text {
    fn from(text: Arc<str>) -> Self {
        let json_len = u32::try_from(escaped_len(&text)).unwrap_or(u32::MAX);
        Self {
            text,
            json_len,
            _kind: Kind::Text,
        }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::from(Arc::from(text))
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::from(Arc::from(text))
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::from("")
    }
}

impl std::ops::Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.text, &other.text) || self.text == other.text
    }
}

impl Eq for Text {}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        &*self.text == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        &*self.text == *other
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&*self.text, f)
    }
}

impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}
