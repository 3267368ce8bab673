//! What the JSONPath engine needs to walk our values.

use super::{Array, Object, Text, Value};
use jsonpath_rust::query::queryable::Queryable;

impl Queryable for Value {
    fn get(&self, key: &str) -> Option<&Self> {
        self.as_object().and_then(|object| object.get(key))
    }

    fn as_array(&self) -> Option<&Vec<Self>> {
        Value::as_array(self).map(Array::vec)
    }

    fn as_object(&self) -> Option<Vec<(&str, &Self)>> {
        Value::as_object(self)
            .map(|object: &Object| object.iter().map(|(key, value)| (Text::as_str(key), value)).collect())
    }

    fn as_str(&self) -> Option<&str> {
        Value::as_str(self)
    }

    fn as_i64(&self) -> Option<i64> {
        self.as_number().and_then(serde_json::Number::as_i64)
    }

    fn as_f64(&self) -> Option<f64> {
        self.as_number().and_then(serde_json::Number::as_f64)
    }

    fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    fn null() -> Self {
        Value::Null
    }
}
