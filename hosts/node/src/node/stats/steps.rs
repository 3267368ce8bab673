//! How the attempts of each step ended lately, and how long they took: the latest 1,000 of a step, of the last day at most.
//! Counted as turns pass; a copy is kept in the store, so that a new process goes on where the one before stopped.

use super::MINUTE;
use super::day::{QUARTER_MINUTES, Stored};
use super::spans::Spans;
use starbridge_flow::graph::{Flow, StepId};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{Child, Event, EventKind};
use starbridge_runtime::Shard;
use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZero;
use std::sync::Arc;

/// How many attempts of a step are kept.
const ATTEMPTS: usize = 1_000;
/// How many steps are kept. Those beyond are not counted.
const MAX_STEPS: usize = 1_000;
/// How many attempts that have not ended a generation knows. Of one that was forgotten only the end is counted.
const MAX_OPEN: usize = 1 << 16;
/// How many definitions are known by their address.
const DEFINITIONS: usize = 16;
/// The most memory that reading the stored steps of a flow may take.
const MAX_BYTES: usize = 1 << 24;
const DAY: i64 = 24 * 60 * MINUTE;
const QUARTER: i64 = MINUTE * QUARTER_MINUTES;

/// An attempt that ended: when, and in the lowest byte how. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ended(u64);

impl Ended {
    /// How an attempt with an error ended.
    const FAILED: u8 = 255;
    /// It succeeded; nobody saw it begin. What is less is the place of its length among spans.
    const UNTIMED: u8 = 254;

    fn new(time: Timestamp, how: u8) -> Self {
        Self(u64::try_from(time.0).unwrap_or_default() << 8 | u64::from(how))
    }

    fn how(self) -> u8 {
        self.0.to_le_bytes()[0]
    }

    fn time(self) -> Timestamp {
        Timestamp(i64::try_from(self.0 >> 8).unwrap_or_default())
    }
}

/// The attempts of each step of a flow, the earliest first.
type Steps = BTreeMap<Text, VecDeque<Ended>>;

/// Percentiles and failures of the latest attempts of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepFigures {
    /// None of them ended before this.
    pub since: Timestamp,
    /// How many attempts ended, the latest 1,000 at most.
    pub attempts: u64,
    /// How many of them failed.
    pub failed: u64,
    spans: Spans,
}

impl StepFigures {
    /// The time within which this share of the attempts that succeeded did so, at most a quarter too long; `None` if none did.
    pub fn within(&self, share: f64) -> Option<Millis> {
        self.spans.within(share)
    }

    fn of(attempts: &[Ended]) -> Self {
        let mut figures = Self {
            since: attempts.first().map(|first| first.time()).unwrap_or_default(),
            attempts: attempts.len() as u64,
            ..Self::default()
        };
        for ended in attempts {
            match ended.how() {
                Ended::FAILED => figures.failed += 1,
                Ended::UNTIMED => {}
                place => figures.spans.see(Spans::longest(place.into())),
            }
        }
        figures
    }
}

/// A number for a child of a composite, which is of one kind for all its children.
fn number(child: Child) -> Option<u32> {
    match child {
        Child::Branch(number) | Child::Iteration(number) => Some(number),
        Child::Arm(number) => number,
    }
}

/// A hash of the place of an event in its execution, whose own hash is given.
fn place(execution: &DefaultHasher, event: &Event) -> u64 {
    let mut hash = execution.clone();
    event.step.map(|step| step.0).hash(&mut hash);
    for item in event.path.items() {
        (item.step.0, number(item.child)).hash(&mut hash);
    }
    hash.finish()
}

/// The attempts of a step of a flow, the earliest first.
#[derive(Debug)]
struct Counted {
    flow: Text,
    step: Text,
    attempts: VecDeque<Ended>,
}

impl Counted {
    fn add(&mut self, ended: Ended) {
        if self.attempts.len() >= ATTEMPTS {
            self.attempts.pop_front();
        }
        self.attempts.push_back(ended);
    }
}

/// Where the attempts of a definition's steps are counted, by their numbers; none if that was not looked up yet.
#[derive(Debug)]
struct Places {
    definition: Arc<Flow>,
    flow: Text,
    places: Vec<Option<NonZero<u32>>>,
}

/// What one owner counts.
#[derive(Debug, Default)]
pub(super) struct OwnSteps {
    /// When the attempts began that have not ended, by a hash of their place: those of this generation, and of the one before.
    open: [HashMap<u64, Timestamp>; 2],
    counted: Vec<Counted>,
    /// The number of each, from 1, by the names of flow and step.
    numbers: BTreeMap<Text, BTreeMap<Text, NonZero<u32>>>,
    /// The definitions that were seen lately. A look at names costs more than all else here.
    lately: VecDeque<Places>,
}

impl OwnSteps {
    pub(super) fn see(&mut self, shard: &Shard, execution: &Text, events: &[Event]) {
        let hash = OnceCell::new();
        let hash = || {
            hash.get_or_init(|| {
                let mut hash = DefaultHasher::new();
                execution.hash(&mut hash);
                hash
            })
        };
        let places = OnceCell::new();
        // Most steps end in the turn in which they began, right after.
        let mut latest: Option<&Event> = None;
        for event in events {
            let Some(step) = event.step.filter(|_| !event.rollback) else {
                continue;
            };
            let failed = match &event.detail {
                EventKind::StepStarted { .. } => {
                    if let Some(before) = latest.replace(event) {
                        self.begin(place(hash(), before), before.time);
                    }
                    continue;
                }
                EventKind::StepSucceeded { .. } => false,
                EventKind::StepFailed { .. } => true,
                _ => continue,
            };
            let is_it = |begun: &mut &Event| begun.step == event.step && begun.path == event.path;
            let began = match latest.take_if(is_it) {
                Some(begun) => Some(begun.time),
                None => self.take(place(hash(), event)),
            };
            let how = match began {
                _ if failed => Ended::FAILED,
                None => Ended::UNTIMED,
                Some(began) => u8::try_from(Spans::place(event.time.since(began))).unwrap_or(Ended::UNTIMED),
            };
            if let Some(place) = *places.get_or_init(|| self.places_of(shard, execution)) {
                self.end_at(place, step, Ended::new(event.time, how));
            }
        }
        if let Some(begun) = latest {
            self.begin(place(hash(), begun), begun.time);
        }
    }

    fn begin(&mut self, place: u64, time: Timestamp) {
        if self.open[0].len() >= MAX_OPEN {
            self.open.swap(0, 1);
            self.open[0].clear();
        }
        self.open[0].insert(place, time);
    }

    fn take(&mut self, place: u64) -> Option<Timestamp> {
        let [new, old] = &mut self.open;
        new.remove(&place).or_else(|| old.remove(&place))
    }

    /// The position of an execution's definition among those that were seen lately.
    fn places_of(&mut self, shard: &Shard, execution: &Text) -> Option<usize> {
        let started = shard.state(execution)?.started()?;
        let definition = shard.flow(execution)?;
        let is_it = |seen: &Places| Arc::ptr_eq(&seen.definition, definition) && seen.flow == started.flow;
        if let Some(place) = self.lately.iter().position(is_it) {
            return Some(place);
        }
        self.lately.truncate(DEFINITIONS - 1);
        self.lately.push_front(Places {
            definition: definition.clone(),
            flow: started.flow.clone(),
            places: Vec::new(),
        });
        Some(0)
    }

    fn end_at(&mut self, place: usize, step: StepId, ended: Ended) {
        let Some(seen) = self.lately.get_mut(place) else {
            return;
        };
        let index = step.0 as usize;
        if let Some(&Some(number)) = seen.places.get(index) {
            self.add(number, ended);
        } else if let Some(known) = seen.definition.step(step) {
            let (flow, name) = (seen.flow.clone(), known.name.clone());
            let number = self.end(&flow, &name, ended);
            if let Some(seen) = self.lately.get_mut(place) {
                seen.places.resize(seen.places.len().max(index + 1), None);
                seen.places[index] = number;
            }
        }
    }

    fn add(&mut self, number: NonZero<u32>, ended: Ended) {
        if let Some(counted) = self.counted.get_mut(number.get() as usize - 1) {
            counted.add(ended);
        }
    }

    /// Counts an attempt. Returns the number of its step; `None` if there is no room for it.
    fn end(&mut self, flow: &Text, step: &Text, ended: Ended) -> Option<NonZero<u32>> {
        let known = self.numbers.get(flow).and_then(|steps| steps.get(step));
        let number = match known {
            Some(number) => *number,
            None if self.counted.len() >= MAX_STEPS => return None,
            None => {
                let (flow, step) = (flow.clone(), step.clone());
                let number = NonZero::new(u32::try_from(self.counted.len() + 1).ok()?)?;
                self.numbers
                    .entry(flow.clone())
                    .or_default()
                    .insert(step.clone(), number);
                let attempts = VecDeque::new();
                self.counted.push(Counted { flow, step, attempts });
                number
            }
        };
        self.add(number, ended);
        Some(number)
    }

    /// Adds the attempts of a flow, or of all flows.
    pub(super) fn add_to(&self, flow: Option<&str>, sum: &mut LastSteps) {
        for Counted {
            flow: name,
            step,
            attempts,
        } in &self.counted
        {
            if flow.is_none_or(|flow| flow == name.as_str()) {
                sum.add(name, step, attempts);
            }
        }
    }
}

/// What all owners counted, and what was kept of earlier processes.
#[derive(Debug, Default)]
pub(super) struct LastSteps(BTreeMap<Text, BTreeMap<Text, Vec<Ended>>>);

impl LastSteps {
    fn add(&mut self, flow: &Text, step: &Text, attempts: &VecDeque<Ended>) {
        let sum = self.0.entry(flow.clone()).or_default();
        sum.entry(step.clone()).or_default().extend(attempts);
    }

    /// The latest of each step within a day before now.
    fn cut(&mut self, now: Timestamp) {
        let day_ago = Ended::new(Timestamp(now.0.saturating_sub(DAY)), 0);
        for steps in self.0.values_mut() {
            for attempts in steps.values_mut() {
                attempts.sort_unstable();
                let old = attempts.partition_point(|ended| *ended < day_ago);
                attempts.drain(..old.max(attempts.len().saturating_sub(ATTEMPTS)));
            }
            steps.retain(|_, attempts| !attempts.is_empty());
        }
    }

    /// The figures of a flow's steps, by their names.
    pub(super) fn figures(mut self, now: Timestamp, flow: &str) -> BTreeMap<Text, StepFigures> {
        self.cut(now);
        let steps = self.0.remove(flow).unwrap_or_default().into_iter();
        steps
            .map(|(step, attempts)| (step, StepFigures::of(&attempts)))
            .collect()
    }
}

/// What was kept of earlier processes, and what the store has.
#[derive(Debug, Default)]
pub(super) struct EarlierSteps {
    kept: BTreeMap<Text, Steps>,
    /// A hash of the text that the store has of each flow.
    stored: BTreeMap<Text, u64>,
}

fn hash_of(text: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    text.hash(&mut hash);
    hash.finish()
}

impl EarlierSteps {
    /// Takes what the store has. What can't be read counts nothing.
    pub(super) fn take_up(&mut self, stored: &[(String, String)]) {
        let mut steps = 0;
        for (flow, text) in stored {
            self.stored.insert(flow.as_str().into(), hash_of(text));
            let kept = read(text).unwrap_or_default();
            steps += kept.len();
            if steps <= MAX_STEPS {
                self.kept.insert(flow.as_str().into(), kept);
            }
        }
    }

    /// Adds the attempts of a flow, or of all flows.
    pub(super) fn add_to(&self, flow: Option<&str>, sum: &mut LastSteps) {
        for (name, steps) in &self.kept {
            if flow.is_none_or(|flow| flow == name.as_str()) {
                steps.iter().for_each(|(step, attempts)| sum.add(name, step, attempts));
            }
        }
    }

    /// What has to be written so that the store has these.
    pub(super) fn to_store(&self, mut all: LastSteps, now: Timestamp) -> Vec<Stored> {
        all.cut(now);
        all.0.retain(|_, steps| !steps.is_empty());
        let gone = self.stored.keys().filter(|flow| !all.0.contains_key(*flow));
        let mut wanted: Vec<Stored> = gone.map(|flow| (flow.to_string(), None)).collect();
        for (flow, steps) in &all.0 {
            let text = written(steps);
            if self.stored.get(flow) != Some(&hash_of(&text)) {
                wanted.push((flow.to_string(), Some(text)));
            }
        }
        wanted
    }

    /// This was written.
    pub(super) fn is_stored(&mut self, (flow, text): &Stored) {
        match text {
            None => drop(self.stored.remove(flow.as_str())),
            Some(text) => drop(self.stored.insert(flow.as_str().into(), hash_of(text))),
        }
    }
}

/// The attempts of each step by quarters of an hour: two digits for each.
fn written(steps: &BTreeMap<Text, Vec<Ended>>) -> String {
    let quarters = |attempts: &Vec<Ended>| {
        let mut quarters: Vec<(i64, String)> = Vec::new();
        for ended in attempts {
            let quarter = ended.time().0.div_euclid(QUARTER);
            if quarters.last().is_none_or(|(last, _)| *last != quarter) {
                quarters.push((quarter, String::new()));
            }
            if let Some((_, digits)) = quarters.last_mut() {
                let _ = write!(digits, "{:02x}", ended.how());
            }
        }
        let quarters = quarters.into_iter().map(|(quarter, digits)| {
            let begin = Timestamp(quarter.saturating_mul(QUARTER)).to_string();
            (Text::from(begin), Value::from(Text::from(digits)))
        });
        Value::from(quarters.collect::<Object>())
    };
    let steps = steps.iter().map(|(step, attempts)| (step.clone(), quarters(attempts)));
    Value::from(steps.collect::<Object>()).to_json()
}

fn read(text: &str) -> Option<Steps> {
    let value = Value::read_bounded(text.as_bytes(), MAX_BYTES).ok()?;
    let mut steps = Steps::new();
    for (step, quarters) in value.as_object()? {
        let mut attempts = VecDeque::new();
        for (begin, digits) in quarters.as_object()? {
            let begin = Timestamp::parse(begin)?;
            let digits = digits.as_str()?;
            for at in (0..digits.len()).step_by(2) {
                let how = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
                attempts.push_back(Ended::new(begin, how));
            }
        }
        attempts.truncate(ATTEMPTS);
        steps.insert(step.clone(), attempts);
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 60 * MINUTE;

    fn begun_and_ended(own: &mut OwnSteps, step: &str, begin: i64, end: i64) {
        own.begin(7, Timestamp(begin));
        let began = own.take(7).unwrap();
        let how = u8::try_from(Spans::place(Timestamp(end).since(began))).unwrap();
        own.end(&"order".into(), &step.into(), Ended::new(Timestamp(end), how));
    }

    fn all(owners: &[&OwnSteps], earlier: &EarlierSteps) -> LastSteps {
        let mut sum = LastSteps::default();
        earlier.add_to(None, &mut sum);
        owners.iter().for_each(|own| own.add_to(None, &mut sum));
        sum
    }

    #[test]
    fn figures_are_those_of_the_latest_thousand_of_all_owners() {
        let (mut one, mut other) = (OwnSteps::default(), OwnSteps::default());
        for at in 0..800 {
            begun_and_ended(&mut one, "ship", at * 1_000, at * 1_000 + 100);
            other.end(
                &"order".into(),
                &"ship".into(),
                Ended::new(Timestamp(at * 1_000), Ended::FAILED),
            );
        }
        let figures = all(&[&one, &other], &EarlierSteps::default()).figures(Timestamp(HOUR), "order");
        let ship = &figures["ship"];
        assert_eq!(
            (ship.attempts, ship.failed, ship.since),
            (1_000, 500, Timestamp(300_000))
        );
        let within = ship.within(0.5).unwrap().0;
        assert!((100..=125).contains(&within), "{within}");
        assert!(
            all(&[&one], &EarlierSteps::default())
                .figures(Timestamp(HOUR), "other")
                .is_empty()
        );
        assert!(
            all(&[&one], &EarlierSteps::default())
                .figures(Timestamp(25 * HOUR), "order")
                .is_empty()
        );
    }

    #[test]
    fn begins_that_are_forgotten_leave_their_ends_untimed() {
        let mut own = OwnSteps::default();
        for place in 0..3 * MAX_OPEN as u64 {
            own.begin(place, Timestamp(0));
        }
        assert_eq!(
            (own.take(0), own.take(3 * MAX_OPEN as u64 - 1)),
            (None, Some(Timestamp(0)))
        );
        assert!(own.open.iter().map(HashMap::len).sum::<usize>() <= 2 * MAX_OPEN);
        own.end(
            &"order".into(),
            &"ship".into(),
            Ended::new(Timestamp(0), Ended::UNTIMED),
        );
        let ship = StepFigures::of(&all(&[&own], &EarlierSteps::default()).0["order"]["ship"]);
        assert_eq!((ship.attempts, ship.failed, ship.within(0.5)), (1, 0, None));
    }

    #[test]
    fn next_process_goes_on_with_what_was_stored() {
        let mut own = OwnSteps::default();
        begun_and_ended(&mut own, "ship", HOUR, HOUR + 100);
        own.end(
            &"order".into(),
            &"pay".into(),
            Ended::new(Timestamp(2 * HOUR), Ended::FAILED),
        );
        let mut earlier = EarlierSteps::default();
        let now = Timestamp(3 * HOUR);
        let wanted = earlier.to_store(all(&[&own], &earlier), now);
        wanted.iter().for_each(|one| earlier.is_stored(one));
        assert_eq!(earlier.to_store(all(&[&own], &earlier), now), []);
        let texts: Vec<(String, String)> = wanted.into_iter().map(|(flow, text)| (flow, text.unwrap())).collect();
        let mut next = EarlierSteps::default();
        next.take_up(&texts);
        let mut own = OwnSteps::default();
        begun_and_ended(&mut own, "ship", now.0, now.0 + 100);
        let figures = all(&[&own], &next).figures(now, "order");
        let ship = &figures["ship"];
        assert_eq!((ship.attempts, ship.failed, ship.since), (2, 0, Timestamp(HOUR)));
        assert_eq!((figures["pay"].attempts, figures["pay"].failed), (1, 1));
        // After a day it is not kept any more.
        let wanted = next.to_store(all(&[], &next), Timestamp(30 * HOUR));
        assert_eq!(wanted, [("order".to_owned(), None)]);
    }

    #[test]
    fn steps_and_what_is_read_are_bounded() {
        let mut own = OwnSteps::default();
        for step in 0..2 * MAX_STEPS {
            let name = Text::from(format!("s{step}"));
            own.end(&"order".into(), &name, Ended::new(Timestamp(0), Ended::FAILED));
        }
        assert_eq!(all(&[&own], &EarlierSteps::default()).0["order"].len(), MAX_STEPS);
        for odd in [
            "",
            "[]",
            r#"{"a": 1}"#,
            r#"{"a": {"x": "00"}}"#,
            r#"{"a": {"1970-01-01T00:00:00Z": "é0"}}"#,
        ] {
            assert!(read(odd).is_none(), "{odd}");
        }
    }
}
