//! What happened in the last hour and day, counted as turns pass. Histories are not read for it. The hour of a new process
//! begins at zero; the day and the steps go on.

mod day;
mod spans;
mod steps;

pub use day::{DayCounts, LastDay};
pub use steps::StepFigures;

use super::Node;
use day::{Day, QUARTER_MINUTES, Stored};
use spans::Spans;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::{Event, EventKind, Status};
use starbridge_ports::{KeyValue, StoreError};
use starbridge_runtime::{Outgoing, Shard};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use steps::{EarlierSteps, LastSteps, OwnSteps};

/// How many minutes are kept, the one that is passing among them.
const MINUTES: i64 = 60;
const MINUTE: i64 = 60_000;
/// How many flows and how many kinds of failures a minute has. Those beyond are counted together.
const MAX_FLOWS: usize = 256;
const MAX_FAILURES: usize = 256;

/// Counts of executions and turns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Executions that began.
    pub started: u64,
    /// Turns that were appended.
    pub turns: u64,
    /// Events that were appended.
    pub events: u64,
    /// Calls that were handed to their connectors.
    pub calls: u64,
    /// Attempts of steps that failed.
    pub failed_attempts: u64,
    /// By the position of the status in [`Status::ALL`].
    ended: [u64; Status::ALL.len()],
}

impl Counts {
    /// How many executions ended, with each status with which one can end.
    pub fn ended(&self) -> impl Iterator<Item = (Status, u64)> {
        let all = Status::ALL.into_iter().zip(self.ended);
        all.filter(|(status, _)| status.is_ended())
    }

    /// How many executions ended without success. Somebody wanted those that were stopped or rolled back to end so.
    pub fn failed(&self) -> u64 {
        let failed = |status| matches!(status, Status::Failed | Status::TimedOut | Status::RollbackFailed);
        self.ended()
            .filter(|(status, _)| failed(*status))
            .map(|(_, count)| count)
            .sum()
    }

    fn add(&mut self, other: &Self) {
        self.started += other.started;
        self.turns += other.turns;
        self.events += other.events;
        self.calls += other.calls;
        self.failed_attempts += other.failed_attempts;
        for (sum, count) in self.ended.iter_mut().zip(other.ended) {
            *sum += count;
        }
    }

    fn end(&mut self, status: Status) {
        let place = Status::ALL.iter().position(|known| *known == status);
        if let Some(count) = place.and_then(|place| self.ended.get_mut(place)) {
            *count += 1;
        }
    }
}

/// What fails: a flow, a step of it, and the name of the error.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FailureKind {
    /// The name of the flow.
    pub flow: Text,
    /// The name of the step; empty if the error arose in none.
    pub step: Text,
    /// The name of the error.
    pub error: Text,
}

/// How often something failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailureCounts {
    /// Executions that ended with it.
    pub executions: u64,
    /// Attempts that failed with it.
    pub attempts: u64,
}

/// What the executions of a flow did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// How many began, and how many ended.
    pub counts: Counts,
    spans: Spans,
}

impl FlowCounts {
    /// The time within which this share of the executions that succeeded did so, at most a quarter too long; `None` if none did.
    pub fn within(&self, share: f64) -> Option<Millis> {
        self.spans.within(share)
    }
}

/// What is counted of a span of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All executions together.
    pub counts: Counts,
    /// By the name of the flow.
    pub flows: BTreeMap<Text, FlowCounts>,
    /// By what failed.
    pub failures: BTreeMap<FailureKind, FailureCounts>,
    /// Failures of kinds that there was no room for.
    pub other_failures: u64,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.counts.add(&other.counts);
        for (flow, counts) in &other.flows {
            let sum = self.flows.entry(flow.clone()).or_default();
            sum.counts.add(&counts.counts);
            sum.spans.add(&counts.spans);
        }
        for (kind, counts) in &other.failures {
            let sum = self.failures.entry(kind.clone()).or_default();
            sum.executions += counts.executions;
            sum.attempts += counts.attempts;
        }
        self.other_failures += other.other_failures;
    }

    /// The counts of a flow, if there is room for it.
    fn flow(&mut self, name: &Text) -> Option<&mut FlowCounts> {
        if !self.flows.contains_key(name) {
            if self.flows.len() >= MAX_FLOWS {
                return None;
            }
            self.flows.insert(name.clone(), FlowCounts::default());
        }
        self.flows.get_mut(name)
    }

    fn fail(&mut self, kind: FailureKind, add: impl FnOnce(&mut FailureCounts)) {
        if self.failures.len() < MAX_FAILURES || self.failures.contains_key(&kind) {
            add(self.failures.entry(kind).or_default());
        } else {
            self.other_failures += 1;
        }
    }
}

/// The minutes of one owner. A place belongs to the minutes that have the same rest.
#[derive(Debug, Default)]
struct Ring {
    places: Vec<(i64, Tally)>,
    /// The minute of the turn that was seen last.
    minute: i64,
    steps: OwnSteps,
}

impl Ring {
    fn now(&mut self) -> Option<&mut Tally> {
        let minute = self.minute;
        if self.places.is_empty() {
            self.places.resize_with(MINUTES as usize, Default::default);
        }
        let (of, tally) = self.places.get_mut(minute.rem_euclid(MINUTES) as usize)?;
        if *of != minute {
            (*of, *tally) = (minute, Tally::default());
        }
        Some(tally)
    }

    fn see(&mut self, shard: &Shard, outgoing: &Outgoing) {
        match outgoing {
            Outgoing::Turn { execution, events } => {
                if let Some(first) = events.first() {
                    self.minute = first.time.0.div_euclid(MINUTE);
                }
                if let Some(tally) = self.now() {
                    tally.counts.turns += 1;
                    tally.counts.events += events.len() as u64;
                    for event in events {
                        see_event(tally, shard, execution, event);
                    }
                }
                self.steps.see(shard, execution, events);
            }
            Outgoing::Send { .. } => {
                if let Some(tally) = self.now() {
                    tally.counts.calls += 1;
                }
            }
            Outgoing::Ended { execution, status } => {
                if let Some(tally) = self.now() {
                    see_end(tally, shard, execution, *status);
                }
            }
            _ => {}
        }
    }
}

fn see_event(tally: &mut Tally, shard: &Shard, execution: &Text, event: &Event) {
    match &event.detail {
        EventKind::ExecutionStarted(start) => {
            tally.counts.started += 1;
            if let Some(flow) = tally.flow(&start.flow) {
                flow.counts.started += 1;
            }
        }
        EventKind::StepFailed { failure, .. } => {
            tally.counts.failed_attempts += 1;
            let step = event.step.zip(shard.flow(execution));
            let step = step.and_then(|(step, flow)| flow.step(step));
            let started = shard.state(execution).and_then(|state| state.started());
            let kind = FailureKind {
                flow: started.map(|started| started.flow.clone()).unwrap_or_default(),
                step: step.map(|step| step.name.clone()).unwrap_or_default(),
                error: failure.error.clone(),
            };
            tally.fail(kind, |counts| counts.attempts += 1);
        }
        _ => {}
    }
}

fn see_end(tally: &mut Tally, shard: &Shard, execution: &Text, status: Status) {
    tally.counts.end(status);
    let state = shard.state(execution);
    let Some((state, started)) = state.and_then(|state| Some((state, state.started()?))) else {
        return;
    };
    if let Some(flow) = tally.flow(&started.flow) {
        flow.counts.end(status);
        if let (Status::Succeeded, Some(begun)) = (status, shard.begun_at(execution)) {
            flow.spans.see(state.last_time().since(begun));
        }
    }
    // Most executions succeed, and their records need not be made for this.
    if status == Status::Succeeded {
        return;
    }
    let record = shard.record(execution).unwrap_or_default();
    if let Some(failure) = record.failure {
        let kind = FailureKind {
            flow: record.flow,
            step: failure.step,
            error: failure.error,
        };
        tally.fail(kind, |counts| counts.executions += 1);
    }
}

/// The counts of one owner, to which only it adds: its lock is free, except while somebody reads a minute.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnStats(Arc<Mutex<Ring>>);

impl OwnStats {
    pub(super) fn see(&self, shard: &Shard, outgoing: &Outgoing) {
        if matches!(
            outgoing,
            Outgoing::Turn { .. } | Outgoing::Send { .. } | Outgoing::Ended { .. }
        ) {
            self.lock().see(shard, outgoing);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was counted in a minute, added to this.
    fn add_to(&self, minute: i64, sum: &mut Tally) {
        let ring = self.lock();
        let kept = ring.places.get(minute.rem_euclid(MINUTES) as usize);
        if let Some((_, tally)) = kept.filter(|(of, _)| *of == minute) {
            sum.add(tally);
        }
    }
}

/// What all owners count.
#[derive(Clone, Debug)]
pub struct Stats {
    since: Timestamp,
    owners: Arc<Mutex<Vec<OwnStats>>>,
    day: Arc<Mutex<Day>>,
    earlier: Arc<Mutex<EarlierSteps>>,
}

/// The kinds under which a store has the quarters of the last day, and the steps of each flow.
const STORED: &str = "stats";
const STORED_STEPS: &str = "step-stats";
/// A process that ends by itself writes once more; of one that does not, so much is not counted.
const BETWEEN_WRITES: Duration = Duration::from_secs(60);

/// What happened in the last hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastHour {
    /// Since when it was counted: the hour's first minute, or the start of the process.
    pub since: Timestamp,
    /// Each minute with its begin, the earliest first.
    pub minutes: Vec<(Timestamp, Counts)>,
    /// All of them together.
    pub sum: Tally,
}

impl Stats {
    pub(super) fn new(since: Timestamp) -> Self {
        Self {
            since,
            owners: Arc::default(),
            day: Arc::new(Mutex::new(Day::new(since))),
            earlier: Arc::default(),
        }
    }

    /// The counts of a further owner.
    pub(super) fn owner(&self) -> OwnStats {
        let own = OwnStats::default();
        self.owners().push(own.clone());
        own
    }

    fn owners(&self) -> MutexGuard<'_, Vec<OwnStats>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When the process began to count.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// The sum of all owners in a quarter of an hour.
    fn quarter(&self, quarter: i64) -> Tally {
        let owners = self.owners().clone();
        let mut sum = Tally::default();
        for minute in quarter.saturating_mul(QUARTER_MINUTES)..quarter.saturating_add(1).saturating_mul(QUARTER_MINUTES)
        {
            for owner in &owners {
                owner.add_to(minute, &mut sum);
            }
        }
        sum
    }

    fn day(&self, now: Timestamp) -> MutexGuard<'_, Day> {
        let mut day = self.day.lock().unwrap_or_else(PoisonError::into_inner);
        day.turn(now, |quarter| self.quarter(quarter));
        day
    }

    /// What happened in the day before now: to all flows, or to one.
    pub fn last_day(&self, now: Timestamp, flow: Option<&str>) -> LastDay {
        self.day(now)
            .last((self.since, now), flow, |quarter| self.quarter(quarter))
    }

    fn earlier(&self) -> MutexGuard<'_, EarlierSteps> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of the attempts of a flow's steps, or of all flows'.
    fn attempts(&self, flow: Option<&str>) -> LastSteps {
        let mut sum = LastSteps::default();
        self.earlier().add_to(flow, &mut sum);
        for owner in self.owners().clone() {
            owner.lock().steps.add_to(flow, &mut sum);
        }
        sum
    }

    /// How the latest attempts of each step of a flow ended within the day before now.
    pub fn steps(&self, now: Timestamp, flow: &str) -> BTreeMap<Text, StepFigures> {
        self.attempts(Some(flow)).figures(now, flow)
    }

    /// Takes up the day that a store has.
    pub(super) fn take_up(&self, store: &(impl KeyValue + ?Sized)) -> Result<(), StoreError> {
        let stored = store.list_values(STORED)?;
        self.day.lock().unwrap_or_else(PoisonError::into_inner).take_up(&stored);
        self.earlier().take_up(&store.list_values(STORED_STEPS)?);
        Ok(())
    }

    /// Writes what a store does not have of the day.
    pub(super) fn keep(&self, store: &(impl KeyValue + ?Sized), now: Timestamp) -> Result<(), StoreError> {
        let wanted = self.day(now).to_store(now, |quarter| self.quarter(quarter));
        for one in wanted {
            write(store, STORED, &one)?;
            self.day(now).is_stored(&one);
        }
        let attempts = self.attempts(None);
        let wanted = self.earlier().to_store(attempts, now);
        for one in wanted {
            write(store, STORED_STEPS, &one)?;
            self.earlier().is_stored(&one);
        }
        Ok(())
    }

    /// What happened in the hour before now.
    pub fn last_hour(&self, now: Timestamp) -> LastHour {
        let owners = self.owners().clone();
        let last = now.0.div_euclid(MINUTE);
        let begin = |minute: i64| Timestamp(minute.saturating_mul(MINUTE));
        let mut hour = LastHour {
            since: self.since.max(begin(last - MINUTES + 1)),
            minutes: Vec::with_capacity(MINUTES as usize),
            sum: Tally::default(),
        };
        for minute in last - MINUTES + 1..=last {
            let mut tally = Tally::default();
            for owner in &owners {
                owner.add_to(minute, &mut tally);
            }
            hour.sum.add(&tally);
            hour.minutes.push((begin(minute), tally.counts));
        }
        hour
    }
}

/// Writes a text, or deletes it.
fn write(store: &(impl KeyValue + ?Sized), kind: &str, (name, text): &Stored) -> Result<(), StoreError> {
    match text {
        Some(text) => store.put_value(kind, name, text, None),
        None => store.delete_value(kind, name, None).map(drop),
    }
}

impl Node {
    /// Writes what the store does not have of the last day's counts. A node that is there for a time has none.
    pub(super) async fn keep_stats(&self) -> Result<(), StoreError> {
        if !self.has_admission() {
            return Ok(());
        }
        let (stats, store, now) = (self.stats.clone(), self.store.clone(), self.now());
        let kept = tokio::task::spawn_blocking(move || stats.keep(store.as_ref(), now)).await;
        kept.unwrap_or_else(|_| Err(StoreError::Unavailable("counts could not be kept".to_owned())))
    }

    /// Writes the counts of the last day, forever, each minute.
    pub async fn keep_stats_periodically(self: Arc<Self>) {
        loop {
            tokio::time::sleep(BETWEEN_WRITES).await;
            if let Err(error) = self.keep_stats().await {
                tracing::warn!(%error, "the counts of the last day can't be kept");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_minute(own: &OwnStats, minute: i64, started: u64) {
        let mut ring = own.lock();
        ring.minute = minute;
        ring.now().unwrap().counts.started += started;
    }

    #[test]
    fn last_hour_has_sixty_minutes_of_all_owners() {
        let stats = Stats::new(Timestamp(0));
        let owners = [stats.owner(), stats.owner()];
        for minute in 100..200 {
            at_minute(&owners[0], minute, 1);
        }
        at_minute(&owners[1], 199, 5);
        let hour = stats.last_hour(Timestamp(199 * MINUTE + 30_000));
        assert_eq!(hour.since, Timestamp(140 * MINUTE));
        assert_eq!(hour.minutes.len(), 60);
        assert_eq!(hour.minutes.last().map(|(_, counts)| counts.started), Some(6));
        assert_eq!(hour.sum.counts.started, 65);
        let later = stats.last_hour(Timestamp(250 * MINUTE));
        assert_eq!(later.sum.counts.started, 9 + 5, "minutes 191 to 199 are left");
        let much_later = stats.last_hour(Timestamp(10_000 * MINUTE));
        assert_eq!(much_later.sum, Tally::default());
    }

    #[test]
    fn day_goes_on_in_the_next_process() {
        const QUARTER: i64 = 15 * MINUTE;
        let store = starbridge_memory::MemoryStore::default();
        let stats = Stats::new(Timestamp(100 * QUARTER));
        let own = stats.owner();
        for minute in [1_500, 1_514, 1_515] {
            at_minute(&own, minute, 2);
        }
        let now = Timestamp(101 * QUARTER + 1);
        let counted = |stats: &Stats, now| -> Vec<(i64, u64)> {
            let day = stats.last_day(now, None);
            assert_eq!(day.quarters.len(), 96);
            let begun = day.quarters.into_iter().filter(|(_, counts)| counts.started > 0);
            begun
                .map(|(begin, counts)| (begin.0 / QUARTER, counts.started))
                .collect()
        };
        assert_eq!(counted(&stats, now), [(100, 4), (101, 2)]);
        stats.keep(&store, now).unwrap();
        assert_eq!(store.list_values(STORED).unwrap().len(), 2);
        let next = Stats::new(now);
        next.take_up(&store).unwrap();
        at_minute(&next.owner(), 1_516, 5);
        assert_eq!(counted(&next, now), [(100, 4), (101, 7)]);
        assert_eq!(next.last_day(now, None).since, Timestamp(100 * QUARTER));
        // What is older than a day is neither told nor kept.
        let later = Timestamp((100 + 96) * QUARTER);
        assert_eq!(counted(&next, later), [(101, 7)]);
        next.keep(&store, later).unwrap();
        assert_eq!(store.list_values(STORED).unwrap().len(), 1);
        assert_eq!(counted(&next, Timestamp(500 * QUARTER)), []);
    }

    #[test]
    fn clock_that_is_set_back_counts_on() {
        let stats = Stats::new(Timestamp(500 * MINUTE));
        let own = stats.owner();
        at_minute(&own, 510, 3);
        at_minute(&own, 100, 1);
        let hour = stats.last_hour(Timestamp(100 * MINUTE));
        assert_eq!(hour.sum.counts.started, 1);
    }

    #[test]
    fn flows_and_failures_are_bounded_and_none_is_lost() {
        let mut tally = Tally::default();
        for number in 0..1_000 {
            let error = Text::from(format!("E{number}"));
            let kind = FailureKind {
                error,
                ..FailureKind::default()
            };
            tally.fail(kind, |counts| counts.executions += 1);
            tally.flow(&Text::from(format!("f{number}")));
        }
        assert_eq!((tally.failures.len(), tally.flows.len()), (MAX_FAILURES, MAX_FLOWS));
        let kept: u64 = tally.failures.values().map(|counts| counts.executions).sum();
        assert_eq!(kept + tally.other_failures, 1_000);
    }
}
