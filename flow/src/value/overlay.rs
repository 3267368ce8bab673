//! An object laid over a document without copying either.

use super::{Document, Object, Text, Value};

/// `base` merged with `over`, where `over` wins: a step's input by default (section "data").
///
/// Neither side is copied until the whole object is needed. The merged size is tracked, so that a
/// step that touches nothing costs the same for large data as for small data.
///
/// `base` may be any JSON value. It stays as it is until a member is laid over it. Members can't be
/// laid over a value that is not an object, so they replace it.
#[derive(Clone, Default)]
pub struct Overlay {
    base: Document,
    over: Object,
    /// The JSON length of the members of `base` that `over` hides, each with its colon, and their
    /// number.
    hidden_len: usize,
    hidden: usize,
    /// Bytes that do not count towards the limit of a step's data: collections of the foreach steps around it.
    exempt: usize,
}

impl Overlay {
    /// A document with nothing over it.
    pub fn new(base: impl Into<Document>) -> Self {
        Self {
            base: base.into(),
            ..Self::default()
        }
    }

    /// The lower object; empty if `base` is not an object.
    pub fn base(&self) -> &Object {
        self.base.members()
    }

    /// The whole document, if it is no object.
    pub fn other(&self) -> Option<&Value> {
        self.base.other()
    }

    /// The upper object.
    pub fn over(&self) -> &Object {
        &self.over
    }

    /// Sets a member in the upper object.
    pub fn insert(&mut self, key: Text, value: Value) {
        if !self.over.contains_key(&key) {
            self.hide(&key);
        }
        self.over.insert(key, value);
    }

    /// Sets all members of an object in the upper object.
    pub fn merge(&mut self, other: &Object) {
        if !self.over.is_empty() {
            for (key, value) in other {
                self.insert(key.clone(), value.clone());
            }
        } else if !other.is_empty() {
            // Nothing below needs to be kept: the object itself becomes the upper one, and is
            // copied when it changes.
            for (key, _) in other {
                self.hide(key);
            }
            self.over = other.clone();
        }
    }

    /// Counts the member below that a new one in the upper object hides.
    fn hide(&mut self, key: &Text) {
        match self.base.as_object() {
            None => self.base = Document::default(),
            Some(base) => {
                if let Some(below) = base.get(key) {
                    self.hidden += 1;
                    self.hidden_len += key.json_len() + 1 + below.json_len();
                }
            }
        }
    }

    /// Lays a document over this one: members of an object are set, and any other value replaces
    /// this one.
    pub fn merge_document(&mut self, other: &Document) {
        match other.as_object() {
            Some(members) => self.merge(members),
            None => {
                *self = Self {
                    exempt: self.exempt,
                    ..Self::new(other.clone())
                }
            }
        }
    }

    /// The member of that name.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.over.get(key).or_else(|| self.base.get(key))
    }

    /// The length in bytes of the merged document's compact JSON text.
    pub fn json_len(&self) -> usize {
        if self.over.is_empty() {
            return self.base.json_len();
        }
        let base = self.base.members();
        let members = base.len() + self.over.len() - self.hidden;
        let inner = |object: &Object| object.json_len() - 1 - object.len().max(1);
        let text = inner(base) + inner(&self.over) - self.hidden_len;
        2 + text + members.saturating_sub(1)
    }

    /// The depth of the merged document, or slightly more if a deep member is hidden.
    pub fn depth(&self) -> usize {
        match self.over.is_empty() {
            true => self.base.depth(),
            false => self.base.depth().max(self.over.depth()),
        }
    }

    /// Bytes that do not count towards the limit of a step's data.
    pub fn exempt(&self) -> usize {
        self.exempt
    }

    /// Excludes `bytes` more from the limit of a step's data.
    pub fn exempt_also(&mut self, bytes: usize) {
        self.exempt += bytes;
    }

    /// Merges both into one object, so that another can be laid over it.
    #[must_use]
    pub fn flattened(&self) -> Self {
        Self {
            exempt: self.exempt,
            ..Self::new(self.merged())
        }
    }

    /// The merged document: the members of the lower one in their order, then those that only the
    /// upper one has.
    pub fn to_value(&self) -> Value {
        self.merged().into()
    }

    fn merged(&self) -> Document {
        match self.base.as_object() {
            Some(base) if !self.over.is_empty() => {
                let mut merged = base.clone();
                merged.merge(&self.over);
                merged.into()
            }
            _ => self.base.clone(),
        }
    }
}

impl std::fmt::Debug for Overlay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_value().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(json: &str) -> Object {
        serde_json::from_str::<Value>(json)
            .unwrap()
            .as_object()
            .unwrap()
            .clone()
    }

    #[test]
    fn sizes_are_those_of_the_merged_text() {
        for (base, over) in [
            ("{}", "{}"),
            ("{}", r#"{"a":1}"#),
            (r#"{"a":1}"#, "{}"),
            (r#"{"a":1,"b":"x\n"}"#, r#"{"b":[1,2.5,null],"c":true}"#),
            (r#"{"a":{"k":[]}}"#, r#"{"a":-7}"#),
        ] {
            let mut overlay = Overlay::new(object(base));
            overlay.merge(&object(over));
            overlay.merge(&object(over));
            let merged = overlay.to_value();
            assert_eq!(overlay.json_len(), merged.to_json().len(), "{base} {over}");
            assert_eq!(merged.json_len(), merged.to_json().len(), "{base} {over}");
        }
    }

    #[test]
    fn members_replace_what_is_no_object() {
        for base in ["[1,[2]]", "7", "null", r#""text""#] {
            let base: Value = serde_json::from_str(base).unwrap();
            let mut overlay = Overlay::new(base.clone());
            assert_eq!(
                (overlay.to_value(), overlay.json_len()),
                (base.clone(), base.json_len())
            );
            assert_eq!((overlay.depth(), overlay.get("a")), (base.depth(), None));
            overlay.insert("a".into(), 1_u32.into());
            assert_eq!(overlay.to_value().to_json(), r#"{"a":1}"#);
            overlay.merge_document(&base.clone().into());
            assert_eq!(overlay.to_value(), base);
        }
    }
}
