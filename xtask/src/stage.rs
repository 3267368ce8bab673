//! Stages: one after the other or side by side, each with a name, a time and an outcome.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How a stage ended.
#[derive(Debug)]
pub enum Outcome {
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

/// A stage that ran in a process of its own.
#[derive(Debug)]
pub struct Ended {
    outcome: Outcome,
    tally: Tally,
    output: String,
}

impl Ended {
    /// Reads how a stage ended from what a process printed that ran only this stage: its output, then its row, and at last the
    /// number of its tests. `status`: an error says how the process ended.
    pub fn of(name: &str, status: Result<(), String>, log: &Path) -> Self {
        let printed = match std::fs::read(log) {
            Ok(printed) => String::from_utf8_lossy(&printed).into_owned(),
            Err(error) => format!("{}: {error}", log.display()),
        };
        Self::read(name, status, &printed)
    }

    fn read(name: &str, status: Result<(), String>, printed: &str) -> Self {
        let lines: Vec<&str> = printed.lines().collect();
        let row = lines.iter().position(|line| outcome_in(name, line).is_some());
        let outcome = match (row.and_then(|row| outcome_in(name, lines[row])), status) {
            (Some(outcome), _) => outcome,
            (None, Ok(())) => Outcome::Failed("it ended without an outcome".to_owned()),
            (None, Err(problem)) => Outcome::Failed(problem),
        };
        let mut tally = Tally::default();
        if row.is_some() {
            tally.see(lines.last().copied().unwrap_or_default());
        }
        Self {
            outcome,
            tally,
            output: lines[..row.unwrap_or(lines.len())].join("\n").trim().to_owned(),
        }
    }
}

/// The outcome in the row of a stage.
fn outcome_in(name: &str, line: &str) -> Option<Outcome> {
    let rest = line.strip_prefix(name)?.strip_prefix(' ')?.trim_start();
    let (seconds, word) = rest.split_once(" s  ")?;
    seconds.parse::<f64>().ok()?;
    match word.split_once(": ") {
        Some(("FAILED", why)) => Some(Outcome::Failed(why.to_owned())),
        Some(("skipped", why)) => Some(Outcome::Skipped(why.to_owned())),
        _ => (word == "passed").then_some(Outcome::Passed),
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

    /// Runs these stages in their order, so many at once; `work` runs one and keeps its output, which is shown when it has ended.
    /// After a failed one no other begins, unless it keeps going.
    pub fn side_by_side(
        &mut self,
        at_once: usize,
        names: &[&'static str],
        work: impl Fn(&'static str) -> Ended + Sync,
    ) {
        let waiting = Mutex::new((self, names.iter()));
        let lock = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let next = || {
            let (run, names) = &mut *lock();
            let may_begin = run.keep_going || !run.failed();
            let name = names.next().filter(|_| may_begin)?;
            println!("== {name} begins");
            Some(*name)
        };
        std::thread::scope(|scope| {
            for _ in 0..at_once {
                scope.spawn(|| {
                    while let Some(name) = next() {
                        let begun = Instant::now();
                        let ended = work(name);
                        lock().0.take(name, begun.elapsed(), ended);
                    }
                });
            }
        });
    }

    /// Shows and keeps a stage that ran beside others.
    fn take(&mut self, name: &'static str, took: Duration, ended: Ended) {
        println!("\n{}\n{}\n", ended.output, summary(name, took, &ended.outcome));
        self.tally.passed += ended.tally.passed;
        self.tally.failed += ended.tally.failed;
        if matches!(ended.outcome, Outcome::Failed(_)) && ended.tally.failed == 0 {
            self.tally.failed += 1;
        }
        self.stages.push((name, took, ended.outcome));
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
    fn a_process_that_runs_one_stage_tells_how_it_ended() {
        let printed = |row: &str, sum: &str| {
            format!("\n== kills\nkills: seed 7\nkills of 3\n{row}\n\n{row}\ntotal 1.0 s\n{sum}\n")
        };
        let read = |status, printed: &str| {
            let ended = Ended::read("kills", status, printed);
            (format!("{:?}", ended.outcome), ended.tally, ended.output)
        };
        let sum = |passed, failed| Tally { passed, failed };
        let output = || "== kills\nkills: seed 7\nkills of 3".to_owned();
        assert_eq!(
            read(
                Ok(()),
                &printed(&row("kills", Duration::from_secs(66), "passed"), "4 passed, 0 failed")
            ),
            ("Passed".to_owned(), sum(4, 0), output())
        );
        assert_eq!(
            read(
                Ok(()),
                &printed("kills  0.1 s  skipped: no disk", "0 passed, 0 failed, skipped: kills")
            ),
            ("Skipped(\"no disk\")".to_owned(), sum(0, 0), output())
        );
        assert_eq!(
            read(
                Err("exit status: 1".to_owned()),
                &printed("kills  0.1 s  FAILED: exit status: 101", "2 passed, 1 failed")
            ),
            ("Failed(\"exit status: 101\")".to_owned(), sum(2, 1), output())
        );
        assert_eq!(
            read(Err("signal: 9".to_owned()), "== kills\nkills: 3 passed, 0 failed\n"),
            (
                "Failed(\"signal: 9\")".to_owned(),
                sum(0, 0),
                "== kills\nkills: 3 passed, 0 failed".to_owned()
            )
        );
    }

    #[test]
    fn stages_side_by_side_run_once_each_and_none_begins_after_a_failure() {
        let names = ["a", "b", "c", "d"];
        let work = |name: &'static str| {
            let row = row(
                name,
                Duration::ZERO,
                if name == "b" { "FAILED: broken" } else { "passed" },
            );
            Ended::read(name, Ok(()), &format!("{row}\n2 passed, 0 failed"))
        };
        for (keep_going, at_once, expected) in [(true, 3, vec!["a", "b", "c", "d"]), (false, 1, vec!["a", "b"])] {
            let mut run = Run::new(keep_going, &[]);
            run.side_by_side(at_once, &names, work);
            let mut begun: Vec<_> = run.stages.iter().map(|(name, ..)| *name).collect();
            begun.sort_unstable();
            assert_eq!(begun, expected);
            assert_eq!(run.tally.passed, 2 * expected.len() as u64);
            assert_eq!(run.tally.failed, 1);
            assert!(!run.finish());
        }
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
