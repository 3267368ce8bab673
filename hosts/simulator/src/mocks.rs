//! The answers of resources in a simulation.

use super::case::Mock;
use starbridge_machine::CallToSend;
use std::collections::BTreeMap;

/// Answers by step, and how many were given.
#[derive(Clone, Debug, Default)]
pub struct Mocks {
    answers: BTreeMap<String, Vec<Mock>>,
    /// How many answers were given, by key and iteration numbers: each iteration has its own count.
    given: BTreeMap<(String, Vec<u32>), usize>,
}

impl Mocks {
    /// The answers by `step`, `child/step` or `step.rollback`.
    pub fn new(answers: BTreeMap<String, Vec<Mock>>) -> Self {
        Self {
            answers,
            given: BTreeMap::new(),
        }
    }

    /// The key of a call's answers, if there are any: that of its iteration goes before that of all. `child` is the child
    /// flow that the call belongs to.
    pub fn key(&self, child: Option<&str>, call: &CallToSend) -> Option<String> {
        let suffix = if call.rollback { ".rollback" } else { "" };
        let plain = format!("{}{suffix}", call.step);
        let of_iteration = |key: String| {
            let numbers: Vec<String> = call.iterations.iter().map(u32::to_string).collect();
            let one = (!numbers.is_empty()).then(|| format!("{key}[{}]", numbers.join(",")));
            one.into_iter().chain([key])
        };
        child
            .map(|child| format!("{child}/{plain}"))
            .into_iter()
            .chain([plain])
            .flat_map(of_iteration)
            .find(|key| self.answers.contains_key(key))
    }

    /// The next answer under a key. The last one repeats.
    pub fn next(&mut self, key: &str, iterations: &[u32]) -> Option<Mock> {
        let answers = self.answers.get(key)?;
        let given = self.given.entry((key.to_owned(), iterations.to_vec())).or_insert(0);
        let answer = answers.get(*given).or(answers.last()).cloned();
        *given += 1;
        answer
    }
}
