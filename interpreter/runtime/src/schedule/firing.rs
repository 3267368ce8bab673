//! Which of an expression's instants lead to a start.

use super::Expression;
use starbridge_flow::limits::is_name;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};

/// How late a trigger may be looked at and still be on time; what is later was missed.
pub const ON_TIME_MS: u64 = 60_000;
/// Characters of a schedule's name: those of an execution's without the time behind it.
const NAME: usize = starbridge_flow::limits::NAME_CHARS - "-20260101T000000Z".len();

/// What happens when a trigger comes while an execution this schedule has started still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// Nothing is started.
    #[default]
    Skip,
    /// The new execution waits until the earlier ones have ended.
    Queue,
    /// Both run.
    Allow,
}

/// What happens with triggers that nobody looked at in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// They are passed over.
    #[default]
    None,
    /// The latest of them starts, the others are passed over.
    Last,
}

/// A flow that is started by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// What it is called: as executions are, and at most 111 characters.
    pub name: Text,
    /// When it triggers.
    pub expression: Expression,
    /// The flow.
    pub flow: Text,
    /// What its executions are given.
    pub payload: Value,
    /// What an execution that still runs means for the next.
    pub overlap: Overlap,
    /// What becomes of missed triggers.
    pub catch_up: CatchUp,
    /// Whether nothing is started for now. What passes meanwhile is not missed.
    pub paused: bool,
}

/// A name that no schedule can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleNameError;

/// An execution to be started.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// The instant that triggers it; also its place among those that are queued.
    pub time: Timestamp,
    /// The execution's name, the same whenever this trigger is looked at: what was started before a crash is found again.
    pub name: Text,
    /// Its input.
    pub input: Object,
    /// Whether it waits until those started before it by this schedule have ended.
    pub queued: bool,
}

/// What a look at a schedule leads to.
#[derive(Clone, Debug, PartialEq)]
pub struct Firing {
    /// What is to be started, in order.
    pub starts: Vec<Trigger>,
    /// Triggers that are passed over because an execution still runs.
    pub overlapped: Vec<Timestamp>,
    /// The latest missed trigger, if it is passed over.
    pub missed: Option<Timestamp>,
    /// Up to where triggers are dealt with, once all starts are durable: `last` of the next look.
    pub last: Timestamp,
    /// When to look again; never if there is none.
    pub next: Option<Timestamp>,
}

impl Overlap {
    /// What a word means.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Skip, Self::Queue, Self::Allow]
            .into_iter()
            .find(|overlap| overlap.as_str() == word)
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Allow => "allow",
        }
    }
}

impl CatchUp {
    /// What a word means.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::None, Self::Last]
            .into_iter()
            .find(|catch_up| catch_up.as_str() == word)
    }

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Last => "last",
        }
    }
}

impl std::fmt::Display for ScheduleNameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "a schedule's name has 1 to {NAME} of `A-Z a-z 0-9 _ -` and begins with a letter or `_`"
        )
    }
}

impl std::error::Error for ScheduleNameError {}

impl Schedule {
    /// A schedule that skips overlapping and missed triggers, with `null` as its payload.
    pub fn new(name: &str, expression: Expression, flow: &str) -> Result<Self, ScheduleNameError> {
        if !is_name(name) || name.len() > NAME {
            return Err(ScheduleNameError);
        }
        Ok(Self {
            name: Text::from(name),
            expression,
            flow: Text::from(flow),
            payload: Value::Null,
            overlap: Overlap::default(),
            catch_up: CatchUp::default(),
            paused: false,
        })
    }

    /// Which triggers start something now.
    ///
    /// `last` is up to where triggers were dealt with: that of the look before, at first the time when the schedule was
    /// made; without one it is `now`. `running` is whether an execution it has started still runs. Looking again with
    /// the same arguments gives the same answer.
    pub fn fires(&self, last: Option<Timestamp>, now: Timestamp, running: bool) -> Firing {
        let last = last.unwrap_or(now);
        let mut firing = Firing {
            starts: Vec::new(),
            overlapped: Vec::new(),
            missed: None,
            // A clock that was set back deals with nothing twice.
            last: last.max(now),
            next: None,
        };
        firing.next = self.expression.next_after(firing.last).filter(|_| !self.paused);
        if self.paused {
            return firing;
        }
        let on_time = last.max(Timestamp(now.0.saturating_sub_unsigned(ON_TIME_MS)));
        let late = self.expression.last_within(last, on_time);
        let mut due = Vec::new();
        let mut at = on_time;
        while let Some(time) = self.expression.next_after(at).filter(|time| *time <= now) {
            due.push(time);
            at = time;
        }
        match (late, self.catch_up) {
            // What is on time stands for what was missed before it.
            (Some(late), CatchUp::Last) if due.is_empty() => due.push(late),
            (late, _) => firing.missed = late,
        }
        self.overlaps(&mut firing, due, running);
        firing
    }

    fn overlaps(&self, firing: &mut Firing, due: Vec<Timestamp>, mut running: bool) {
        for time in due {
            if running && self.overlap == Overlap::Skip {
                firing.overlapped.push(time);
                continue;
            }
            firing.starts.push(self.trigger(time));
            running = true;
        }
    }

    /// What that instant starts.
    pub fn trigger(&self, time: Timestamp) -> Trigger {
        // RFC 3339 without the milliseconds, which are none.
        let written = time.to_string().replace(".000", "");
        let plain: String = written.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
        let members = [
            ("payload", self.payload.clone()),
            ("triggerTime", Value::from(written.as_str())),
            ("triggerName", Value::String(self.name.clone())),
        ];
        Trigger {
            time,
            name: Text::from(format!("{}-{plain}", self.name)),
            input: members
                .into_iter()
                .map(|(key, value)| (Text::from(key), value))
                .collect(),
            queued: self.overlap == Overlap::Queue,
        }
    }
}
