//! An object laid over another without copying either.

use super::{Object, Text, Value};

/// `base` merged with `over`, `over` wins: what a step sees as input by default (section "data").
///
/// Neither side is copied until somebody asks for the whole object, and the merged size is kept along, so that a step
/// which touches nothing costs the same beside large data as beside small.
#[derive(Clone, Default)]
pub struct Overlay {
    base: Object,
    over: Object,
    /// JSON length of the members of `base` which `over` hides, each with its colon, and how many they are.
    hidden_len: usize,
    hidden: usize,
    /// Bytes that do not count towards the limit of a step's data: collections of the foreach steps around it.
    exempt: usize,
}

impl Overlay {
    /// An object with nothing over it.
    pub fn new(base: Object) -> Self {
        Self {
            base,
            ..Self::default()
        }
    }

    /// The lower object.
    pub fn base(&self) -> &Object {
        &self.base
    }

    /// The upper object.
    pub fn over(&self) -> &Object {
        &self.over
    }

    /// Sets a member in the upper object.
    pub fn insert(&mut self, key: Text, value: Value) {
        if !self.base.is_empty()
            && !self.over.contains_key(&key)
            && let Some(below) = self.base.get(&key)
        {
            self.hidden += 1;
            self.hidden_len += key.json_len() + 1 + below.json_len();
        }
        self.over.insert(key, value);
    }

    /// Sets all members of an object in the upper object.
    pub fn merge(&mut self, other: &Object) {
        for (key, value) in other {
            self.insert(key.clone(), value.clone());
        }
    }

    /// The member of that name.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.over.get(key).or_else(|| self.base.get(key))
    }

    /// The length in bytes of the merged object's compact JSON text.
    pub fn json_len(&self) -> usize {
        let members = self.base.len() + self.over.len() - self.hidden;
        let inner = |object: &Object| object.json_len() - 1 - object.len().max(1);
        let text = inner(&self.base) + inner(&self.over) - self.hidden_len;
        2 + text + members.saturating_sub(1)
    }

    /// The depth of the merged object, or one that is a little too large where a deep member is hidden.
    pub fn depth(&self) -> usize {
        self.base.depth().max(self.over.depth())
    }

    /// Bytes that do not count towards the limit of a step's data.
    pub fn exempt(&self) -> usize {
        self.exempt
    }

    /// Takes `bytes` more out of what counts towards the limit of a step's data.
    pub fn exempt_also(&mut self, bytes: usize) {
        self.exempt += bytes;
    }

    /// The same with both merged into one object, so that it can be laid over again.
    #[must_use]
    pub fn flattened(&self) -> Self {
        Self {
            exempt: self.exempt,
            ..Self::new(self.to_object())
        }
    }

    /// The merged object: members of the lower one in their order, then what only the upper one has.
    pub fn to_object(&self) -> Object {
        if self.over.is_empty() {
            return self.base.clone();
        }
        let mut merged = self.base.clone();
        merged.merge(&self.over);
        merged
    }
}

impl std::fmt::Debug for Overlay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_object().fmt(f)
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
            let merged = Value::from(overlay.to_object());
            assert_eq!(overlay.json_len(), merged.to_json().len(), "{base} {over}");
            assert_eq!(merged.json_len(), merged.to_json().len(), "{base} {over}");
        }
    }
}
