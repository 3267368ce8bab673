//! The members of an object: a few in a list, many with an index.

use super::{Text, Value};
use indexmap::IndexMap;
use std::hash::RandomState;

/// Up to this many members are searched linearly: most objects are that small, and an index costs
/// more than it saves. An execution in the API has nine to fifteen.
pub(super) const LINEAR_SEARCH_MEMBERS: usize = 16;

/// The process has its own seed: names come from outside, and no one may choose many with the same
/// hash.
type Indexed = IndexMap<Text, Value, RandomState>;

/// Members in order, each name once.
#[derive(Clone)]
pub(super) enum Members {
    Few(Vec<(Text, Value)>),
    Many(Box<Indexed>),
    /// A value that is not an object, in place of members: this is a document.
    Whole(Box<Value>),
}

/// The members in order.
pub(super) enum Iter<'a> {
    Few(std::slice::Iter<'a, (Text, Value)>),
    Many(indexmap::map::Iter<'a, Text, Value>),
}

impl Members {
    /// No members yet, with room for this many.
    pub(super) fn with_capacity(members: usize) -> Self {
        if members <= LINEAR_SEARCH_MEMBERS {
            Self::Few(Vec::with_capacity(members))
        } else {
            let indexed = Indexed::with_capacity_and_hasher(members, Default::default());
            Self::Many(Box::new(indexed))
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few(members) => members.len(),
            Self::Many(members) => members.len(),
            Self::Whole(_) => 0,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Few(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            Self::Many(members) => members.get(key),
            Self::Whole(_) => None,
        }
    }

    pub(super) fn at(&self, index: usize) -> Option<(&Text, &Value)> {
        match self {
            Self::Few(members) => members.get(index).map(|(name, value)| (name, value)),
            Self::Many(members) => members.get_index(index),
            Self::Whole(_) => None,
        }
    }

    /// Sets a member: in its place if it exists, otherwise at the end. Returns the replaced value.
    pub(super) fn insert(&mut self, key: Text, value: Value) -> Option<Value> {
        match self {
            Self::Few(members) => {
                if let Some((_, old)) = members.iter_mut().find(|(name, _)| *name == key) {
                    return Some(std::mem::replace(old, value));
                }
                if members.len() < LINEAR_SEARCH_MEMBERS {
                    members.push((key, value));
                    return None;
                }
                let mut many: Indexed = members.drain(..).collect();
                many.insert(key, value);
                *self = Self::Many(Box::new(many));
                None
            }
            Self::Many(members) => members.insert(key, value),
            Self::Whole(_) => {
                *self = Self::Few(vec![(key, value)]);
                None
            }
        }
    }

    pub(super) fn iter(&self) -> Iter<'_> {
        match self {
            Self::Few(members) => Iter::Few(members.iter()),
            Self::Many(members) => Iter::Many(members.iter()),
            Self::Whole(_) => Iter::Few([].iter()),
        }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Text, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Few(members) => members.next().map(|(name, value)| (name, value)),
            Self::Many(members) => members.next(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_and_many_are_alike() {
        let name = |n: usize| Text::from(format!("k{n}"));
        for (room, count) in [
            (0, 3),
            (0, LINEAR_SEARCH_MEMBERS),
            (0, LINEAR_SEARCH_MEMBERS + 1),
            (LINEAR_SEARCH_MEMBERS + 1, 4),
            (0, 100),
        ] {
            let mut members = Members::with_capacity(room);
            for n in 0..count {
                assert_eq!(members.insert(name(n), Value::from(n as u64)), None);
                assert!(members.insert(name(n / 2), Value::from("again")).is_some());
            }
            assert_eq!(members.len(), count);
            let names: Vec<&Text> = members.iter().map(|(name, _)| name).collect();
            assert_eq!(
                names,
                (0..count).map(name).collect::<Vec<_>>().iter().collect::<Vec<_>>()
            );
            assert_eq!(members.get("k0"), Some(&Value::from("again")));
            assert_eq!((members.get("k"), members.at(count)), (None, None));
            let last = Value::from((count - 1) as u64);
            assert_eq!(members.at(count - 1), Some((&name(count - 1), &last)));
        }
    }
}
