//! Reports that the server does not have yet.

use starbridge_flow::value::{Object, Value};
use starbridge_ports::{Backoff, Failures};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The pauses after failures.
const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(30));
/// The maximum number of reports in one request, and of their bytes: a server accepts a megabyte
/// and one whole output.
const BATCH: usize = 1_000;
const BATCH_BYTES: usize = 1 << 20;

/// When a failed action may be tried again.
#[derive(Debug)]
pub struct NextTry {
    failures: Failures,
    until: Option<Instant>,
}

impl Default for NextTry {
    fn default() -> Self {
        Self {
            failures: BACKOFF.failures(),
            until: None,
        }
    }
}

impl NextTry {
    /// Records a failure.
    pub fn failed(&mut self, now: Instant) {
        self.until = Some(now + self.failures.next_pause());
    }

    /// Records a success.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// When it may be tried again.
    pub fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Whether it may be tried now.
    pub fn is_over(&self, now: Instant) -> bool {
        self.until.is_none_or(|until| until <= now)
    }
}

/// A report on its way.
#[derive(Clone, Debug)]
pub struct UnsentReport {
    /// The task's token.
    pub token: String,
    /// The task's label for people.
    pub label: String,
    /// The content of the report.
    pub body: Object,
    /// Whether it was sent before without a known result.
    pub again: bool,
}

/// Reports that wait to be sent.
#[derive(Debug)]
pub struct UnsentReports {
    waiting: VecDeque<UnsentReport>,
    /// The bytes that may go together.
    together: usize,
    /// When the next may be sent.
    pub next_try: NextTry,
}

impl Default for UnsentReports {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            together: BATCH_BYTES,
            next_try: NextTry::default(),
        }
    }
}

impl UnsentReports {
    /// Adds a report to send.
    pub fn put(&mut self, report: UnsentReport) {
        self.waiting.push_back(report);
    }

    /// Puts reports back to send them again, before all others.
    pub fn put_back(&mut self, reports: Vec<UnsentReport>) {
        for mut report in reports.into_iter().rev() {
            report.again = true;
            self.waiting.push_front(report);
        }
    }

    /// The server takes no batch of that size: from now on each goes by itself.
    pub fn send_singly(&mut self) {
        self.together = 0;
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes the reports that go together now.
    pub fn batch(&mut self, now: Instant) -> Vec<UnsentReport> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < BATCH && self.next_try.is_over(now) {
            let Some(report) = self.waiting.front() else { break };
            bytes += Value::from(report.body.clone()).to_json().len();
            if bytes > self.together && !batch.is_empty() {
                break;
            }
            batch.extend(self.waiting.pop_front());
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(token: &str, bytes: usize) -> UnsentReport {
        UnsentReport {
            token: token.to_owned(),
            label: String::new(),
            body: [("cause".into(), "x".repeat(bytes).into())].into_iter().collect(),
            again: false,
        }
    }

    fn tokens(reports: &[UnsentReport]) -> Vec<&str> {
        reports.iter().map(|report| &*report.token).collect()
    }

    #[test]
    fn pauses_double_up_to_half_a_minute() {
        let now = Instant::now();
        let mut next_try = NextTry::default();
        let pauses = [1, 2, 4, 8, 16, 30, 30].map(|_| {
            next_try.failed(now);
            next_try.until().unwrap().duration_since(now).as_secs()
        });
        assert_eq!(pauses, [1, 2, 4, 8, 16, 30, 30]);
        assert!(!next_try.is_over(now) && next_try.is_over(now + BACKOFF.longest));
        next_try.reset();
        assert!(next_try.is_over(now));
    }

    #[test]
    fn what_goes_together_has_a_bound() {
        let now = Instant::now();
        let mut outbox = UnsentReports::default();
        for token in ["a", "b", "c"] {
            outbox.put(report(token, 500_000));
        }
        outbox.put(report("d", 3_000_000));
        let first = outbox.batch(now);
        assert_eq!(tokens(&first), ["a", "b"]);
        assert_eq!(tokens(&outbox.batch(now)), ["c"]);
        assert_eq!(tokens(&outbox.batch(now)), ["d"], "one alone goes however large it is");
        outbox.put_back(first);
        outbox.send_singly();
        let again = outbox.batch(now);
        assert_eq!((tokens(&again), again[0].again), (vec!["a"], true));
        outbox.next_try.failed(now);
        assert!(outbox.batch(now).is_empty());
        assert_eq!(outbox.len(), 1);
    }
}
