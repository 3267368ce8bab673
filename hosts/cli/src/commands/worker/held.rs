//! The tasks that are ours, and for how long.
//!
//! A lease counts from the time of our last successful request for it. The server counts from a
//! later time, so a task is given up here before another worker gets it.

use super::task::Task;
use starbridge_ports::LogTail;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// Heartbeats go out after this part of a lease; those that are due after this part go with them.
const HEARTBEAT_PART: u32 = 3;
const HEARTBEAT_BATCH_PART: u32 = 6;
/// The number of tokens in one request.
const BATCH: usize = 1_000;

/// The stage of a task.
#[derive(Debug)]
pub enum Stage {
    /// Its lease may have run out on the way here; a heartbeat will find out.
    Unsure,
    /// Its program runs.
    Runs(AbortHandle),
    /// Its program has ended, and the server does not know it yet.
    Ended,
}

/// A task of ours.
#[derive(Debug)]
pub struct Entry {
    pub task: Task,
    /// How far it has come.
    pub stage: Stage,
    /// What its program has printed on stderr so far.
    pub log: LogTail,
    /// When its program began.
    pub begun: Instant,
    /// The time of the last successful request for the lease.
    renewed: Instant,
    deadline: Option<Instant>,
}

/// Why a task is no longer ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// No heartbeat got through for a whole lease.
    Lease,
    /// It took longer than allowed.
    Deadline,
}

/// The tasks that are ours.
#[derive(Debug, Default)]
pub struct HeldTasks {
    tasks: HashMap<String, Entry>,
}

impl HeldTasks {
    /// Takes a task that was requested at one time and received at another. Returns whether it is
    /// certainly ours.
    pub fn take(&mut self, task: Task, asked: Instant, now: Instant) -> bool {
        let sure = now < asked + task.lease;
        let entry = Entry {
            stage: Stage::Unsure,
            log: LogTail::default(),
            begun: now,
            renewed: asked,
            deadline: task.timeout.map(|timeout| now + timeout),
            task,
        };
        self.tasks.insert(entry.task.token.clone(), entry);
        sure
    }

    /// A task.
    pub fn get(&mut self, token: &str) -> Option<&mut Entry> {
        self.tasks.get_mut(token)
    }

    /// Removes a task that is no longer ours.
    pub fn remove(&mut self, token: &str) -> Option<Entry> {
        self.tasks.remove(token)
    }

    /// Whether there are no tasks.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// How many tasks have not ended yet.
    pub fn unfinished(&self) -> usize {
        let ended = |entry: &&Entry| matches!(entry.stage, Stage::Ended);
        self.tasks.len() - self.tasks.values().filter(ended).count()
    }

    /// All tasks that have not ended yet.
    pub fn take_unfinished(&mut self) -> Vec<Entry> {
        let unfinished = self.tasks.extract_if(|_, entry| !matches!(entry.stage, Stage::Ended));
        unfinished.map(|(_, entry)| entry).collect()
    }

    /// All tasks that have ended and are not reported.
    pub fn take_ended(&mut self) -> Vec<Entry> {
        let ended = self.tasks.extract_if(|_, entry| matches!(entry.stage, Stage::Ended));
        ended.map(|(_, entry)| entry).collect()
    }

    /// The tasks to send heartbeats for, if any is due.
    pub fn due(&self, now: Instant) -> Vec<String> {
        if !self.tasks.values().any(|entry| entry.heartbeat_at() <= now) {
            return Vec::new();
        }
        let along =
            |entry: &&Entry| entry.renewed + entry.task.lease / HEARTBEAT_BATCH_PART <= now || entry.is_unsure();
        let along = self.tasks.values().filter(along).map(|entry| entry.task.token.clone());
        along.take(BATCH).collect()
    }

    /// Records that a heartbeat sent at this time got through. Returns the task if this is its
    /// first confirmed heartbeat.
    pub fn renew(&mut self, token: &str, sent: Instant) -> Option<&mut Entry> {
        let entry = self.tasks.get_mut(token)?;
        entry.renewed = entry.renewed.max(sent);
        entry.is_unsure().then_some(entry)
    }

    /// Takes the tasks that are no longer ours. Ended tasks stay, because their reports will tell.
    pub fn over(&mut self, now: Instant) -> Vec<(Entry, Over)> {
        let over = self
            .tasks
            .extract_if(|_, entry| entry.ends().is_some_and(|(end, _)| end <= now));
        over.filter_map(|(_, entry)| {
            let (_, over) = entry.ends()?;
            Some((entry, over))
        })
        .collect()
    }

    /// When the next task stops being ours.
    pub fn next_end(&self) -> Option<Instant> {
        self.tasks.values().filter_map(|entry| Some(entry.ends()?.0)).min()
    }

    /// When the next heartbeat is due.
    pub fn next_heartbeat(&self) -> Option<Instant> {
        self.tasks.values().map(Entry::heartbeat_at).min()
    }

    /// The shortest lease of all.
    pub fn shortest(&self) -> Option<Duration> {
        self.tasks.values().map(|entry| entry.task.lease).min()
    }
}

impl Entry {
    fn is_unsure(&self) -> bool {
        matches!(self.stage, Stage::Unsure)
    }

    fn heartbeat_at(&self) -> Instant {
        match self.stage {
            Stage::Unsure => self.renewed,
            _ => self.renewed + self.task.lease / HEARTBEAT_PART,
        }
    }

    fn ends(&self) -> Option<(Instant, Over)> {
        let lease = match self.stage {
            // No program runs that would have to end.
            Stage::Unsure => self.begun + self.task.lease,
            Stage::Runs(_) => self.renewed + self.task.lease,
            Stage::Ended => return None,
        };
        let deadline = self.deadline.map(|deadline| (deadline, Over::Deadline));
        [Some((lease, Over::Lease)), deadline]
            .into_iter()
            .flatten()
            .min_by_key(|(end, _)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_flow::value::Object;

    const SECOND: Duration = Duration::from_secs(1);

    fn task(token: &str, more: &str) -> Task {
        let told = format!(r#"{{"token": "{token}", "leaseSeconds": 6{more}}}"#);
        let told: Object = serde_json::from_str(&told).unwrap();
        Task::read(&told, &["true".to_owned()]).unwrap()
    }

    /// A table with one task whose program runs.
    fn running(more: &str, now: Instant) -> HeldTasks {
        let mut held = HeldTasks::default();
        assert!(held.take(task("t", more), now, now));
        let runs = tokio::task::spawn(std::future::pending::<()>()).abort_handle();
        held.get("t").unwrap().stage = Stage::Runs(runs);
        held
    }

    #[tokio::test]
    async fn heartbeats_go_out_at_a_third_of_the_lease_and_take_others_along() {
        let now = Instant::now();
        let mut held = running("", now);
        assert!(held.due(now + SECOND * 19 / 10).is_empty());
        assert_eq!(held.due(now + SECOND * 2), ["t"]);
        held.take(task("u", ""), now + SECOND, now + SECOND);
        held.get("u").unwrap().stage = Stage::Ended;
        assert_eq!(held.due(now + SECOND * 2).len(), 2);
        held.renew("t", now + SECOND * 2);
        held.renew("u", now + SECOND * 2);
        assert_eq!(held.next_heartbeat(), Some(now + SECOND * 4));
    }

    #[tokio::test]
    async fn a_lease_counts_from_when_it_was_asked_for() {
        let now = Instant::now();
        let mut held = running("", now);
        held.renew("t", now + SECOND * 2);
        assert_eq!(held.next_end(), Some(now + SECOND * 8));
        assert!(held.over(now + SECOND * 7).is_empty());
        let over = held.over(now + SECOND * 8);
        assert!(matches!(over.as_slice(), [(_, Over::Lease)]));
        assert!(held.is_empty());
    }

    #[tokio::test]
    async fn one_that_came_late_waits_for_a_heartbeat() {
        let now = Instant::now();
        let mut held = HeldTasks::default();
        assert!(!held.take(task("t", ""), now, now + SECOND * 6));
        assert_eq!(held.due(now + SECOND * 6), ["t"]);
        assert!(held.over(now + SECOND * 11).is_empty());
        assert!(held.renew("t", now + SECOND * 6).is_some());
        let runs = tokio::task::spawn(std::future::pending::<()>()).abort_handle();
        held.get("t").unwrap().stage = Stage::Runs(runs);
        assert!(held.renew("t", now + SECOND * 7).is_none());
        assert_eq!(held.next_end(), Some(now + SECOND * 13));
    }

    #[tokio::test]
    async fn time_is_over_even_under_a_lease_but_not_for_what_has_ended() {
        let now = Instant::now();
        let mut held = running(r#", "timeoutSeconds": 3"#, now);
        held.renew("t", now + SECOND * 2);
        assert!(matches!(held.over(now + SECOND * 3).as_slice(), [(_, Over::Deadline)]));
        let mut held = running(r#", "timeoutSeconds": 3"#, now);
        held.get("t").unwrap().stage = Stage::Ended;
        assert!(held.over(now + SECOND * 100).is_empty());
        assert_eq!((held.unfinished(), held.is_empty()), (0, false));
    }
}
