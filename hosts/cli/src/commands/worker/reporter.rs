//! The messages of a worker: about each task only if requested, about lost tasks always.

use super::task::TaskResult;
use crate::client::Problem;
use crate::output::Output;
use starbridge_node::escaping::escaped;
use std::time::Duration;

/// Characters of a cause in a line.
const CAUSE_CHARS: usize = 200;

/// The reporter of a worker.
pub struct Reporter {
    output: Output,
    verbose: bool,
    server: String,
    /// Whether the server answered the last request.
    there: bool,
}

impl Reporter {
    /// A reporter; with `verbose` it prints every task's start and end.
    pub fn new(output: Output, verbose: bool, server: &str) -> Self {
        Self {
            output,
            verbose,
            server: server.to_owned(),
            there: true,
        }
    }

    /// Prints a message once.
    pub fn note(&self, line: &str) {
        self.output.note(&escaped(line));
    }

    /// A program began.
    pub fn started(&self, label: &str) {
        if self.verbose {
            self.note(&format!("{label}: started"));
        }
    }

    /// A program ended.
    pub fn ended(&self, label: &str, result: &TaskResult, took: Duration) {
        if !self.verbose {
            return;
        }
        let took = format!("in {:.1} s", took.as_secs_f64());
        match result {
            TaskResult::Done(_) => self.note(&format!("{label}: done {took}")),
            TaskResult::Failed { error, cause } => {
                let cause: String = cause.chars().take(CAUSE_CHARS).collect();
                let cause = cause.replace(['\n', '\r'], " ");
                self.note(&format!("{label}: failed {took}: {error}: {cause}"));
            }
        }
    }

    /// The server could not be reached, or can't answer now.
    pub fn away(&mut self, why: &str) {
        if std::mem::replace(&mut self.there, false) {
            self.note(&format!("{}: {why}; trying again", self.server));
        }
    }

    /// The server answered.
    pub fn there(&mut self) {
        if !std::mem::replace(&mut self.there, true) {
            self.note(&format!("{} is there again", self.server));
        }
    }
}

/// A problem in a few words.
pub fn words(problem: &Problem) -> String {
    match problem.detail() {
        Some(detail) => format!("{} ({detail})", problem.status),
        None => format!("it answers with status {}", problem.status),
    }
}
