//! What happened in the last day, by quarters of an hour. The minutes of a quarter are added up when it is over; a copy is
//! kept in the store, so that a new process goes on where the one before stopped.

use super::{Counts, MINUTE, Tally};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use std::collections::BTreeMap;

/// The minutes of a quarter, and the quarters of a day.
pub(super) const QUARTER_MINUTES: i64 = 15;
const QUARTERS: i64 = 96;
/// How many flows a quarter has. Those beyond are only among all.
const MAX_FLOWS: usize = 256;
/// The most memory that reading a stored quarter may take.
const MAX_BYTES: usize = 1 << 20;

/// How many executions began, ended and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayCounts {
    /// Executions that began.
    pub started: u64,
    /// Executions that ended.
    pub ended: u64,
    /// Executions that ended without success, although nobody wanted that.
    pub failed: u64,
}

impl DayCounts {
    fn of(counts: &Counts) -> Self {
        Self {
            started: counts.started,
            ended: counts.ended().map(|(_, count)| count).sum(),
            failed: counts.failed(),
        }
    }

    fn add(&mut self, other: Self) {
        self.started += other.started;
        self.ended += other.ended;
        self.failed += other.failed;
    }

    fn to_value(self) -> Value {
        let counts = [self.started, self.ended, self.failed].map(Value::from);
        Value::from(counts.to_vec())
    }

    fn read(value: &Value) -> Option<Self> {
        let counts = value.as_array()?.values();
        let count = |at: usize| counts.get(at)?.as_number()?.as_u64();
        Some(Self {
            started: count(0)?,
            ended: count(1)?,
            failed: count(2)?,
        })
    }
}

/// A quarter of an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Quarter {
    all: DayCounts,
    flows: BTreeMap<Text, DayCounts>,
}

impl Quarter {
    fn add(&mut self, tally: &Tally) {
        self.all.add(DayCounts::of(&tally.counts));
        for (flow, counts) in &tally.flows {
            if self.flows.len() < MAX_FLOWS || self.flows.contains_key(flow) {
                let sum = self.flows.entry(flow.clone()).or_default();
                sum.add(DayCounts::of(&counts.counts));
            }
        }
    }

    fn to_text(&self) -> String {
        let flows = self.flows.iter();
        let flows = flows.map(|(flow, counts)| (flow.clone(), counts.to_value()));
        let mut shape = Object::new();
        shape.insert("all".into(), self.all.to_value());
        shape.insert("flows".into(), flows.collect::<Object>().into());
        Value::from(shape).to_json()
    }

    fn read(text: &str) -> Option<Self> {
        let value = Value::read_bounded(text.as_bytes(), MAX_BYTES).ok()?;
        let flows = value.get("flows")?.as_object()?.iter().take(MAX_FLOWS);
        let flows = flows.map(|(flow, counts)| Some((flow.clone(), DayCounts::read(counts)?)));
        Some(Self {
            all: DayCounts::read(value.get("all")?)?,
            flows: flows.collect::<Option<_>>()?,
        })
    }
}

/// A quarter as it is kept in the store: its name and its text; without a text it is deleted.
pub(super) type Stored = (String, Option<String>);

/// The quarters of the last day.
#[derive(Debug)]
pub(super) struct Day {
    /// What is known of each quarter besides the minutes that are not added yet.
    known: BTreeMap<i64, Quarter>,
    /// What the store has.
    stored: BTreeMap<i64, Quarter>,
    /// The first quarter whose minutes are not added yet.
    open: i64,
}

/// What happened in the last day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastDay {
    /// Since when it was counted.
    pub since: Timestamp,
    /// Each quarter of an hour with its begin, the earliest first.
    pub quarters: Vec<(Timestamp, DayCounts)>,
}

fn quarter_of(time: Timestamp) -> i64 {
    time.0.div_euclid(MINUTE * QUARTER_MINUTES)
}

fn begin_of(quarter: i64) -> Timestamp {
    Timestamp(quarter.saturating_mul(MINUTE * QUARTER_MINUTES))
}

impl Day {
    pub(super) fn new(since: Timestamp) -> Self {
        Self {
            known: BTreeMap::new(),
            stored: BTreeMap::new(),
            open: quarter_of(since),
        }
    }

    /// Takes what the store has. What can't be read counts nothing.
    pub(super) fn take_up(&mut self, stored: &[(String, String)]) {
        for (name, text) in stored {
            let Some(begin) = Timestamp::parse(name) else {
                continue;
            };
            let kept = Quarter::read(text).unwrap_or_default();
            self.known.insert(quarter_of(begin), kept.clone());
            self.stored.insert(quarter_of(begin), kept);
        }
    }

    /// Adds the minutes of the quarters that are over. `minutes` are those of a quarter.
    pub(super) fn turn(&mut self, now: Timestamp, minutes: impl Fn(i64) -> Tally) {
        let last = quarter_of(now);
        // A clock that was set far ahead leaves nothing to add in between.
        for quarter in self.open.max(last - QUARTERS)..last {
            self.known.entry(quarter).or_default().add(&minutes(quarter));
        }
        self.open = self.open.max(last);
        self.known = self.known.split_off(&(last - QUARTERS + 1));
    }

    /// The quarter, with the minutes that are not added yet.
    fn with_open(&self, quarter: i64, minutes: &impl Fn(i64) -> Tally) -> Quarter {
        let mut sum = self.known.get(&quarter).cloned().unwrap_or_default();
        if quarter >= self.open {
            sum.add(&minutes(quarter));
        }
        sum
    }

    /// The day before now, of all flows or of one.
    pub(super) fn last(
        &self,
        (since, now): (Timestamp, Timestamp),
        flow: Option<&str>,
        minutes: impl Fn(i64) -> Tally,
    ) -> LastDay {
        let last = quarter_of(now);
        let first = last - QUARTERS + 1;
        let counts = |quarter: i64| {
            let sum = self.with_open(quarter, &minutes);
            match flow {
                None => sum.all,
                Some(flow) => sum.flows.get(flow).copied().unwrap_or_default(),
            }
        };
        let known = self.known.keys().next().map(|quarter| begin_of(*quarter));
        let since = known.map_or(since, |known| known.min(since));
        LastDay {
            since: since.max(begin_of(first)),
            quarters: (first..=last)
                .map(|quarter| (begin_of(quarter), counts(quarter)))
                .collect(),
        }
    }

    /// What has to be written so that the store has what is known.
    pub(super) fn to_store(&self, now: Timestamp, minutes: impl Fn(i64) -> Tally) -> Vec<Stored> {
        let last = quarter_of(now);
        let first = last - QUARTERS + 1;
        let old = self.stored.keys().filter(|quarter| **quarter < first);
        let mut all: Vec<Stored> = old.map(|quarter| (begin_of(*quarter).to_string(), None)).collect();
        for quarter in first..=last {
            let sum = self.with_open(quarter, &minutes);
            let kept = self.stored.get(&quarter);
            if sum != Quarter::default() && kept != Some(&sum) {
                all.push((begin_of(quarter).to_string(), Some(sum.to_text())));
            }
        }
        all
    }

    /// This was written.
    pub(super) fn is_stored(&mut self, (name, text): &Stored) {
        let Some(begin) = Timestamp::parse(name) else {
            return;
        };
        match text {
            None => drop(self.stored.remove(&quarter_of(begin))),
            Some(text) => drop(
                self.stored
                    .insert(quarter_of(begin), Quarter::read(text).unwrap_or_default()),
            ),
        }
    }
}
