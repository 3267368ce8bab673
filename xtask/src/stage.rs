//! Stages: one after the other, each with a name, a time and an outcome.

use std::time::{Duration, Instant};

/// How a stage ended.
#[derive(Debug)]
pub enum Outcome {
    /// It passed.
    Passed,
    /// A check failed, for this reason.
    Failed(String),
    /// It could not be run here, and need not be, for this reason.
    Skipped(String),
}

impl From<Result<(), String>> for Outcome {
    fn from(result: Result<(), String>) -> Self {
        match result {
            Ok(()) => Self::Passed,
            Err(problem) => Self::Failed(problem),
        }
    }
}

/// Tests that passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many passed.
    pub passed: u64,
    /// How many failed.
    pub failed: u64,
}

impl Tally {
    /// Reads a line of a test program. Its summary is `test result: ok. 3 passed; 0 failed; …`, or
    /// `3 passed, 0 failed`.
    pub fn see(&mut self, line: &str) {
        let line = match line.split_once("test result: ") {
            Some((_, rest)) => rest.split_once(". ").map_or(rest, |(_, counts)| counts),
            None => line,
        };
        let mut counts = line.split([';', ',']).map(str::trim);
        let passed = counts
            .next()
            .and_then(|count| count.strip_suffix(" passed")?.parse::<u64>().ok());
        let failed = counts
            .next()
            .and_then(|count| count.strip_suffix(" failed")?.parse::<u64>().ok());
        if let Some((passed, failed)) = passed.zip(failed) {
            self.passed += passed;
            self.failed += failed;
        }
    }
}

/// Stages that were run.
#[derive(Debug)]
pub struct Run {
    keep_going: bool,
    only: Vec<String>,
    begun: Instant,
    stages: Vec<(&'static str, Duration, Outcome)>,
    tally: Tally,
}

impl Run {
    /// No stages yet. With `keep_going`, the next stages run even after a failed one. With names in
    /// `only`, no other stages run.
    pub fn new(keep_going: bool, only: &[&str]) -> Self {
        Self {
            keep_going,
            only: only.iter().map(|&name| name.to_owned()).collect(),
            begun: Instant::now(),
            stages: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// Runs a stage, unless one before it failed.
    pub fn stage(&mut self, name: &'static str, work: impl FnOnce(&mut Tally) -> Outcome) {
        let is_wanted = self.only.is_empty() || self.only.iter().any(|wanted| wanted == name);
        if !is_wanted || self.failed() && !self.keep_going {
            return;
        }
        println!("\n== {name}");
        let begun = Instant::now();
        let before = self.tally.failed;
        let outcome = work(&mut self.tally);
        if matches!(outcome, Outcome::Failed(_)) && self.tally.failed == before {
            self.tally.failed += 1;
        }
        let took = begun.elapsed();
        println!("{}", summary(name, took, &outcome));
        self.stages.push((name, took, outcome));
    }

    /// Whether a stage failed.
    pub fn failed(&self) -> bool {
        self.stages
            .iter()
            .any(|(_, _, outcome)| matches!(outcome, Outcome::Failed(_)))
    }

    /// The tests of all stages; a stage that failed without one counts as one.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The names of stages that were skipped.
    pub fn skipped(&self) -> Vec<&'static str> {
        let stages = self.stages.iter();
        stages
            .filter(|(_, _, outcome)| matches!(outcome, Outcome::Skipped(_)))
            .map(|(name, _, _)| *name)
            .collect()
    }

    /// Prints all outcomes with the total time. Returns whether all stages passed.
    pub fn finish(&self) -> bool {
        if self.stages.is_empty() {
            println!("no stage is called `{}`", self.only.join("` or `"));
            return false;
        }
        println!();
        for (name, took, outcome) in &self.stages {
            println!("{}", summary(name, *took, outcome));
        }
        println!("{}", row("total", self.begun.elapsed(), ""));
        !self.failed()
    }
}

fn summary(name: &str, took: Duration, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Passed => row(name, took, "passed"),
        Outcome::Failed(why) => row(name, took, &format!("FAILED: {why}")),
        Outcome::Skipped(why) => row(name, took, &format!("skipped: {why}")),
    }
}

fn row(name: &str, took: Duration, word: &str) -> String {
    format!("{name:<14} {:>8.1} s  {word}", took.as_secs_f64())
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_test_programs_are_counted_and_nothing_else() {
        let mut tally = Tally::default();
        for line in [
            "test result: ok. 12 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.02s",
            "1400 passed, 2 failed",
            "test result: FAILED. 0 passed; 3 failed; 0 ignored",
            "all passed, none failed",
            "3 passed",
            "",
        ] {
            tally.see(line);
        }
        assert_eq!(
            tally,
            Tally {
                passed: 1412,
                failed: 6
            }
        );
    }

    #[test]
    fn a_stage_that_fails_stops_the_run_unless_it_keeps_going() {
        for (keep_going, expected) in [(false, 2), (true, 3)] {
            let mut run = Run::new(keep_going, &[]);
            run.stage("a", |_| Outcome::Skipped("not here".to_owned()));
            run.stage("b", |_| Outcome::Failed("broken".to_owned()));
            run.stage("c", |tally| {
                tally.see("1 passed, 0 failed");
                Outcome::Passed
            });
            assert_eq!(run.stages.len(), expected);
            assert_eq!(run.tally.failed, 1);
            assert!(!run.finish());
        }
    }
}
