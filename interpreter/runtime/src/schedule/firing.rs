//! Which instants of an expression start an execution.

use super::Expression;
use starbridge_flow::limits::is_name;
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Text, Value};

/// How late a trigger may be handled and still be on time. A later one was missed.
pub const ON_TIME: Millis = Millis(60_000);
/// The longest name of a schedule, in characters: the longest name of an execution without the time behind it.
const NAME_CHARS: usize = starbridge_flow::limits::NAME_CHARS - "-20260101T000000Z".len();

/// What happens if a trigger comes while an earlier execution of the schedule still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// The trigger is skipped.
    #[default]
    Skip,
    /// The new execution waits until the earlier ones have ended.
    Queue,
    /// The new execution starts, and both run.
    Allow,
}

/// What happens to missed triggers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// All are skipped.
    #[default]
    None,
    /// The latest one starts, the others are skipped.
    Last,
}

/// A schedule: it starts a flow at certain times.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// The name of the schedule. The rules are those for executions, but it has at most 111 characters.
    pub name: Text,
    /// When it triggers.
    pub expression: Expression,
    /// The name of the flow.
    pub flow: Text,
    /// The payload for the executions' inputs.
    pub payload: Value,
    /// What happens if an earlier execution still runs.
    pub overlap: Overlap,
    /// What happens to missed triggers.
    pub catch_up: CatchUp,
    /// From 0 to 9, 9 first: the priority of the executions, and of their tasks that have none of their own.
    pub priority: Option<u8>,
    /// How long after its trigger an execution may begin at the latest.
    pub start_deadline: Option<Millis>,
    /// Whether the schedule is paused. Triggers that pass meanwhile are not missed.
    pub paused: bool,
}

/// A name that a schedule can't have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleNameError;

/// An execution to start.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// The instant that triggers it. Queued executions start in the order of these instants.
    pub time: Timestamp,
    /// The name of the execution. It is the same whenever this trigger is handled, so an execution started before a
    /// crash is found again.
    pub name: Text,
    /// The input of the execution.
    pub input: Value,
    /// Whether it waits until the earlier executions of the schedule have ended.
    pub queued: bool,
}

/// The result of handling a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Firing {
    /// The executions to start, in order.
    pub starts: Vec<Trigger>,
    /// Triggers that are skipped because an execution still runs.
    pub overlapped: Vec<Timestamp>,
    /// The latest missed trigger, if it is skipped.
    pub missed: Option<Timestamp>,
    /// Up to where triggers are handled, once all starts are durable. Pass it as `last` the next time.
    pub last: Timestamp,
    /// When to handle the schedule again; `None`: never.
    pub next: Option<Timestamp>,
}

impl Overlap {
    /// Reads the word that [`Overlap::as_str`] writes; `None` if there is no such word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Skip, Self::Queue, Self::Allow]
            .into_iter()
            .find(|overlap| overlap.as_str() == word)
    }

    /// The word for this choice in the API and in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Queue => "queue",
            Self::Allow => "allow",
        }
    }
}

impl CatchUp {
    /// Reads the word that [`CatchUp::as_str`] writes; `None` if there is no such word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::None, Self::Last]
            .into_iter()
            .find(|catch_up| catch_up.as_str() == word)
    }

    /// The word for this choice in the API and in stores.
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
            "a schedule's name has 1 to {NAME_CHARS} of `A-Z a-z 0-9 _ -` and begins with a letter or `_`"
        )
    }
}

impl std::error::Error for ScheduleNameError {}

impl Schedule {
    /// A schedule that skips overlapping and missed triggers, with `null` as its payload.
    ///
    /// # Errors
    ///
    /// [`ScheduleNameError`] if no schedule can have that name.
    pub fn new(name: &str, expression: Expression, flow: &str) -> Result<Self, ScheduleNameError> {
        if !is_name(name) || name.len() > NAME_CHARS {
            return Err(ScheduleNameError);
        }
        Ok(Self {
            name: Text::from(name),
            expression,
            flow: Text::from(flow),
            payload: Value::Null,
            overlap: Overlap::default(),
            catch_up: CatchUp::default(),
            priority: None,
            start_deadline: None,
            paused: false,
        })
    }

    /// The triggers that start an execution now.
    ///
    /// `last` is the time up to which triggers were handled: at first the time when the schedule
    /// was made, later [`Firing::last`]; `None` means `now`. `running` is whether an execution of
    /// the schedule still runs. The same arguments give the same answer.
    pub fn fires(&self, last: Option<Timestamp>, now: Timestamp, running: bool) -> Firing {
        let last = last.unwrap_or(now);
        let mut firing = Firing {
            starts: Vec::new(),
            overlapped: Vec::new(),
            missed: None,
            // If the clock was set back, no trigger is handled twice.
            last: last.max(now),
            next: None,
        };
        firing.next = self.expression.next_after(firing.last).filter(|_| !self.paused);
        if self.paused {
            return firing;
        }
        let on_time = last.max(now.minus(ON_TIME));
        let late = self.expression.last_within(last, on_time);
        let mut due = Vec::new();
        let mut at = on_time;
        while let Some(time) = self.expression.next_after(at).filter(|time| *time <= now) {
            due.push(time);
            at = time;
        }
        match (late, self.catch_up) {
            // A trigger that is on time stands for those missed before it.
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

    /// The execution that this instant starts.
    pub fn trigger(&self, time: Timestamp) -> Trigger {
        // RFC 3339 without the milliseconds, which are always zero.
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
