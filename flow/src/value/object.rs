//! Shared objects whose members keep their order.

use super::members::{Iter, Members};
use super::{Text, Value};
use std::sync::Arc;

/// An object; a clone costs one reference count, and a change copies the members only while they are shared.
#[derive(Clone, Default)]
pub struct Object(Option<Arc<Inner>>);

#[derive(Clone)]
struct Inner {
    members: Members,
    /// Length of all members as JSON, each with its colon, without commas and braces.
    members_len: usize,
    depth: usize,
}

/// The members of an object, in order.
pub struct ObjectIter<'a>(Option<Iter<'a>>);

impl Object {
    /// `{}`
    pub fn new() -> Self {
        Self(None)
    }

    /// `{}` with a static lifetime.
    pub(super) fn empty() -> &'static Self {
        static EMPTY: Object = Object(None);
        &EMPTY
    }

    /// A document that is not an object. Only [`super::Document`] may make or see it.
    pub(super) fn standing_for(value: Value) -> Self {
        // INVARIANT: `json_len` and `depth` are those of the value, although there are no members.
        Self(Some(Arc::new(Inner {
            members_len: value.json_len() - 1,
            depth: value.depth(),
            members: Members::Whole(Box::new(value)),
        })))
    }

    /// The document that is not an object and is stored here instead of members.
    #[inline]
    pub(super) fn stands_for(&self) -> Option<&Value> {
        match &self.0.as_ref()?.members {
            Members::Whole(value) => Some(value),
            _ => None,
        }
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |inner| inner.members.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The member of that name.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.as_ref()?.members.get(key)
    }

    /// The `index`-th member, from 0.
    pub fn at(&self, index: usize) -> Option<(&Text, &Value)> {
        self.0.as_ref()?.members.at(index)
    }

    /// Whether there is a member of that name.
    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets a member: in its place if it exists, otherwise at the end. Returns the replaced value.
    pub fn insert(&mut self, key: Text, value: Value) -> Option<Value> {
        let inner = Arc::make_mut(self.0.get_or_insert_with(|| {
            Arc::new(Inner {
                members: Members::with_capacity(0),
                members_len: 0,
                depth: 1,
            })
        }));
        inner.insert(key, value)
    }

    /// Sets all members of another object; its values win.
    pub fn merge(&mut self, other: &Self) {
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        if let Some(inner) = &mut self.0 {
            Arc::make_mut(inner).extend(other.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
    }

    /// The members in order.
    pub fn iter(&self) -> ObjectIter<'_> {
        ObjectIter(self.0.as_ref().map(|inner| inner.members.iter()))
    }

    /// The length in bytes of the compact JSON text.
    pub fn json_len(&self) -> usize {
        match &self.0 {
            None => 2,
            Some(inner) => 1 + inner.members_len + inner.members.len(),
        }
    }

    /// The depth of nested containers: 1, or more if members are containers.
    pub fn depth(&self) -> usize {
        self.0.as_ref().map_or(1, |inner| inner.depth)
    }

    /// Whether both are the same object in memory.
    pub fn same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Inner {
    fn insert(&mut self, key: Text, value: Value) -> Option<Value> {
        let (old, deepest_went) = self.put(key, value);
        if deepest_went {
            self.measure_depth();
        }
        old
    }

    /// Sets many members. The depth is measured once, not each time a deep member is replaced,
    /// because the sender of the members could replace one again and again.
    fn extend(&mut self, members: impl Iterator<Item = (Text, Value)>) {
        let mut deepest_went = false;
        for (key, value) in members {
            deepest_went |= self.put(key, value).1;
        }
        if deepest_went {
            self.measure_depth();
        }
    }

    fn measure_depth(&mut self) {
        self.depth = 1 + self.members.iter().map(|(_, value)| value.depth()).max().unwrap_or(0);
    }

    /// Sets a member. Returns the replaced value, and whether that may have been the deepest:
    /// `depth` may then be too great.
    fn put(&mut self, key: Text, value: Value) -> (Option<Value>, bool) {
        let value_depth = 1 + value.depth();
        let value_len = value.json_len();
        let key_len = key.json_len() + 1;
        let old = self.members.insert(key, value);
        match &old {
            None => self.members_len += key_len + value_len,
            Some(old) => self.members_len = self.members_len + value_len - old.json_len(),
        }
        if value_depth >= self.depth {
            self.depth = value_depth;
            return (old, false);
        }
        let deepest_went = old.as_ref().is_some_and(|old| 1 + old.depth() == self.depth);
        (old, deepest_went)
    }
}

impl<'a> Iterator for ObjectIter<'a> {
    type Item = (&'a Text, &'a Value);
    fn next(&mut self) -> Option<Self::Item> {
        self.0.as_mut()?.next()
    }
}

impl<'a> IntoIterator for &'a Object {
    type Item = (&'a Text, &'a Value);
    type IntoIter = ObjectIter<'a>;
    fn into_iter(self) -> ObjectIter<'a> {
        self.iter()
    }
}

impl FromIterator<(Text, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (Text, Value)>>(members: I) -> Self {
        let members = members.into_iter();
        let mut inner = Inner {
            members: Members::with_capacity(members.size_hint().0),
            members_len: 0,
            depth: 1,
        };
        inner.extend(members);
        Self((inner.members.len() > 0).then(|| Arc::new(inner)))
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
            || (self.len() == other.len()
                && self
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|there| there == value)))
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&serde_json::to_string(self).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_and_length_are_those_of_the_members_that_are_left() {
        let nested = |depth: usize| {
            (1..depth).fold(Value::from(1u64), |value, _| {
                Value::Array([value].into_iter().collect())
            })
        };
        // Names and depths that repeat in many orders, with more members than are searched
        // linearly.
        for names in [1, 3, 8, 9, 20] {
            let mut put_one_by_one = Object::new();
            let mut sent = Vec::new();
            for number in 0..60_usize {
                let name = Text::from(format!("k{}", number * 7 % names));
                let value = nested(1 + number * 5 % 4);
                put_one_by_one.insert(name.clone(), value.clone());
                sent.push((name, value));
                let at_once: Object = sent.iter().cloned().collect();
                let (first, rest) = sent.split_at(number / 2);
                let mut merged: Object = first.iter().cloned().collect();
                merged.merge(&rest.iter().cloned().collect());
                let deepest = at_once.iter().map(|(_, value)| value.depth()).max().unwrap();
                for object in [&put_one_by_one, &at_once, &merged] {
                    assert_eq!(object.depth(), 1 + deepest);
                    assert_eq!(object.json_len(), serde_json::to_string(object).unwrap().len());
                }
                assert_eq!(put_one_by_one, at_once);
                assert_eq!(merged, at_once);
            }
        }
    }
}
