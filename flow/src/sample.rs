//! The data of the tests here.

use crate::graph::{Budget, Context, Root, Scope};
use crate::limits::Limits;
use crate::time::Timestamp;
use crate::value::{Object, Value};

/// The data on which paths are tested.
pub(crate) const DATA: &str = r#"{
    "a": {"b": {"c": 1}, "d e": "x", "": 0, "ключ": "k", "'": "quote", "\"": "double", "é😀": 7, "null": null},
    "list": [10, 20, [30, 31], {"k": 40}],
    "books": [
        {"title": "S", "price": 8.95, "tags": ["r"]},
        {"title": "W", "price": 12.99, "isbn": "0-1"},
        {"title": "M", "price": 8.99, "isbn": "0-2", "tags": []},
        {"title": "L", "price": 22, "tags": ["r", "f"]}
    ],
    "big": [9007199254740993, 9007199254740992, 18446744073709551615],
    "n": 9
}"#;

/// A value from its JSON text.
pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(crate) fn object(text: &str) -> Object {
    json(text).as_object().unwrap().clone()
}

pub(crate) struct SampleContext(pub(crate) Object);

impl Context for SampleContext {
    fn member(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }

    fn names(&self) -> Vec<&'static str> {
        vec!["flow", "execution", "step", "error"]
    }
}

pub(crate) fn context() -> SampleContext {
    SampleContext(object(
        r#"{"flow": {"name": "order"}, "execution": {"id": "e1", "events": [{"id": 1}, {"id": 2}]}, "step": {"visit": 2}}"#,
    ))
}

/// The usual budget for small data.
pub(crate) fn budget() -> Budget {
    Budget::new(&Limits::default(), 0)
}

pub(crate) fn scope<'a>(input: Root<'a>, local: Root<'a>, context: &'a SampleContext) -> Scope<'a> {
    Scope {
        input,
        variables: local,
        context,
        now: Timestamp(0),
        seed: 0,
        // Scopes of tests live to their end.
        budget: Box::leak(Box::new(budget())),
    }
}

/// Repeatable pseudorandom numbers.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    pub(crate) fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Runs a closure with as little stack as a small thread has.
pub(crate) fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 * 1024).spawn(run).unwrap();
    thread.join().unwrap();
}
