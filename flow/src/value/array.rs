//! Shared arrays.

use super::Value;
use std::sync::Arc;

/// An array of values; a clone costs one reference count.
#[derive(Clone)]
pub struct Array(Option<Arc<Items>>);

struct Items {
    values: Vec<Value>,
    json_len: usize,
    depth: usize,
}

impl Array {
    /// The number of items.
    pub fn len(&self) -> usize {
        self.values().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The items.
    pub fn values(&self) -> &[Value] {
        self.0.as_ref().map_or(&[], |items| &items.values)
    }

    /// The item at an index from 0, or from the end if negative (−1 is the last).
    pub fn at(&self, index: i64) -> Option<&Value> {
        let len = i64::try_from(self.len()).ok()?;
        let index = if index < 0 { index.checked_add(len)? } else { index };
        self.values().get(usize::try_from(index).ok()?)
    }

    /// The length in bytes of the compact JSON text.
    pub fn json_len(&self) -> usize {
        self.0.as_ref().map_or(2, |items| items.json_len)
    }

    /// The depth of nested containers: 1, or more if items are containers.
    pub fn depth(&self) -> usize {
        self.0.as_ref().map_or(1, |items| items.depth)
    }

    /// Whether both are the same array in memory.
    pub fn same(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl From<Vec<Value>> for Array {
    fn from(values: Vec<Value>) -> Self {
        if values.is_empty() {
            return Self(None);
        }
        let commas = values.len().saturating_sub(1);
        let json_len = 2 + commas + values.iter().map(Value::json_len).sum::<usize>();
        let depth = 1 + values.iter().map(Value::depth).max().unwrap_or(0);
        Self(Some(Arc::new(Items {
            values,
            json_len,
            depth,
        })))
    }
}

impl FromIterator<Value> for Array {
    fn from_iter<I: IntoIterator<Item = Value>>(values: I) -> Self {
        Self::from(values.into_iter().collect::<Vec<_>>())
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Self) -> bool {
        self.same(other) || self.values() == other.values()
    }
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.values()).finish()
    }
}
