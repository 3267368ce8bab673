//! Reading bodies and queries of requests.

use crate::problem::{Answer, Problem, quoted};
use starbridge_flow::diagnostics::nearest;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use std::collections::BTreeMap;

/// The members of a body, readable by name.
#[derive(Debug)]
pub struct Body {
    members: Object,
    known: &'static [&'static str],
}

impl Body {
    /// Reads an object. Unknown members are refused.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if it is something else.
    pub fn of(members: Object, known: &'static [&'static str]) -> Answer<Self> {
        for (key, _) in &members {
            if !known.contains(&key.as_str()) {
                let hint = nearest(key, known.iter().copied()).map_or_else(
                    || format!("known are {}", known.join(", ")),
                    |meant| format!("did you mean `{meant}`?"),
                );
                return Err(Problem::bad(format!("there is no member {} here: {hint}", quoted(key))));
            }
        }
        Ok(Self { members, known })
    }

    /// The object that was sent. It has no members but known ones.
    pub fn members(&self) -> &Object {
        &self.members
    }

    /// A member.
    pub fn get(&self, key: &str) -> Option<&Value> {
        debug_assert!(self.known.contains(&key));
        self.members.get(key).filter(|value| **value != Value::Null)
    }

    /// A member that must be a string.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if it is something else.
    pub fn text(&self, key: &str) -> Answer<Option<Text>> {
        self.typed(key, "a string", |value| value.as_text().cloned())
    }

    /// A member that must be an object.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if it is something else.
    pub fn object(&self, key: &str) -> Answer<Option<Object>> {
        self.typed(key, "an object", |value| value.as_object().cloned())
    }

    /// A member that must be a whole number.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if it is something else.
    pub fn number(&self, key: &str) -> Answer<Option<u64>> {
        self.typed(key, "a whole number from 0", |value| value.as_number()?.as_u64())
    }

    /// A member that must be true or false.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if it is something else.
    pub fn flag(&self, key: &str) -> Answer<Option<bool>> {
        self.typed(key, "true or false", |value| match value {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        })
    }

    /// A member that must be an object of strings.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if it is something else.
    pub fn texts(&self, key: &str) -> Answer<Option<Object>> {
        self.typed(key, "an object of strings", |value| {
            let object = value.as_object()?;
            let all = object.iter().all(|(_, value)| value.as_str().is_some());
            all.then(|| object.clone())
        })
    }

    fn typed<T>(&self, key: &str, wanted: &str, read: impl Fn(&Value) -> Option<T>) -> Answer<Option<T>> {
        match self.get(key) {
            None => Ok(None),
            Some(value) => match read(value) {
                Some(read) => Ok(Some(read)),
                None => {
                    let given = value.as_number().map(|number| quoted(&number.to_string()));
                    let given = given.unwrap_or_else(|| value.kind().to_owned());
                    Err(Problem::bad(format!("`{key}` must be {wanted}, not {given}")))
                }
            },
        }
    }
}

/// The parameters of a query.
pub struct Query {
    parameters: BTreeMap<String, Vec<String>>,
}

impl Query {
    /// Reads parameters. Unknown ones are refused.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if it is something else.
    pub fn of(given: Vec<(String, String)>, known: &[&str]) -> Answer<Self> {
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (key, value) in given {
            if !known.contains(&key.as_str()) {
                return Err(Problem::bad(format!(
                    "there is no parameter {} here: known are {}",
                    quoted(&key),
                    known.join(", ")
                )));
            }
            parameters.entry(key).or_default().push(value);
        }
        Ok(Self { parameters })
    }

    /// All values of a parameter. One value may contain several, separated by commas.
    pub fn all(&self, key: &str) -> Vec<&str> {
        let given = self.parameters.get(key).into_iter().flatten();
        given
            .flat_map(|value| value.split(','))
            .filter(|value| !value.is_empty())
            .collect()
    }

    /// All values of a parameter, unchanged.
    pub fn each(&self, key: &str) -> impl Iterator<Item = &str> {
        let given = self.parameters.get(key).into_iter().flatten();
        given.map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        let given = self.parameters.get(key)?.last()?;
        (!given.is_empty()).then_some(given.as_str())
    }

    /// A parameter that is `true` or `false`; `false` if it is not given.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if it is something else.
    pub fn flag(&self, key: &str) -> Answer<bool> {
        match self.get(key) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(Problem::bad(format!(
                "`{key}` must be `true` or `false`, not {}",
                quoted(other)
            ))),
        }
    }

    /// Whether a parameter is given without a value.
    pub fn is_empty(&self, key: &str) -> bool {
        let given = self.parameters.get(key).and_then(|values| values.last());
        given.is_some_and(String::is_empty)
    }

    /// A parameter that must be a whole number within bounds.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if it is something else.
    pub fn number(&self, key: &str, usual: u64, least: u64, most: u64) -> Answer<u64> {
        let Some(given) = self.get(key) else {
            return Ok(usual);
        };
        let read = given.parse().ok().filter(|number| (least..=most).contains(number));
        read.ok_or_else(|| {
            Problem::bad(format!(
                "`{key}` must be a whole number from {least} to {most}, not {}",
                quoted(given)
            ))
        })
    }

    /// A parameter that must be a time.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if it is something else.
    pub fn time(&self, key: &str) -> Answer<Option<Timestamp>> {
        let Some(given) = self.get(key) else {
            return Ok(None);
        };
        let read = Timestamp::parse(given);
        read.map(Some)
            .ok_or_else(|| Problem::bad(format!("`{key}` must be an RFC 3339 time, not {}", quoted(given))))
    }
}
