//! `$context`: what a program can read about the execution around it (section "data").

use crate::effect::Reference;
use crate::event::{Child, EventId, Failure, StepPath};
use crate::state::{Frame, State};
use starbridge_flow::graph::{CONTEXT_MEMBERS, Context, Step};
use starbridge_flow::value::{Object, Text, Value};

/// The `$context` of one program.
pub(crate) struct View<'a> {
    pub(crate) state: &'a State,
    pub(crate) step: Option<StepView<'a>>,
}

/// The part of `$context` that is about the step the program belongs to.
pub(crate) struct StepView<'a> {
    pub(crate) name: Text,
    pub(crate) path: &'a StepPath,
    pub(crate) entered: EventId,
    pub(crate) visit: u32,
    pub(crate) attempt: u32,
    /// The call whose token the program can read, if the pattern has one.
    pub(crate) call: Option<EventId>,
    /// How many calls a poll has made so far.
    pub(crate) polls: Option<u32>,
    pub(crate) retry_value: Option<Value>,
    /// The failure that is being undone.
    pub(crate) failure: Option<Failure>,
}

impl<'a> StepView<'a> {
    /// A step for programs that run before its first attempt; `entered` is the event that begins the visit.
    pub(crate) fn before_attempts(step: &Step, frame: &'a Frame, entered: EventId, visit: u32) -> Self {
        Self {
            name: step.name.clone(),
            path: &frame.path,
            entered,
            visit,
            attempt: 1,
            call: None,
            polls: None,
            retry_value: None,
            failure: None,
        }
    }
}

fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Option<Value> {
    let object: Object = members
        .into_iter()
        .filter_map(|(key, value)| value.map(|value| (Text::from(key), value)))
        .collect();
    (!object.is_empty()).then(|| object.into())
}

impl Context for View<'_> {
    fn member(&self, name: &str) -> Option<Value> {
        let started = self.state.started();
        let step = self.step.as_ref();
        match name {
            "flow" => object([
                ("name", started.map(|started| started.flow.clone().into())),
                ("version", started.map(|started| started.version.into())),
            ]),
            "execution" => object([
                ("id", Some(self.state.execution().clone().into())),
                ("name", started.map(|started| started.name.clone().into())),
                ("startedTime", Some(Value::from(self.state.started_time().to_string()))),
                (
                    "labels",
                    Some(
                        started
                            .and_then(|started| started.labels.clone())
                            .unwrap_or_default()
                            .into(),
                    ),
                ),
                ("events", Some(self.state.last_event().0.into())),
            ]),
            "step" => step.and_then(|step| {
                object([
                    ("name", Some(step.name.clone().into())),
                    ("eventId", Some(step.entered.0.into())),
                    ("visit", Some(step.visit.into())),
                    ("attempt", Some(step.attempt.into())),
                ])
            }),
            "task" => {
                let call = step?.call?;
                let execution = self.state.execution().clone();
                object([("token", Some(Reference::Token { execution, call }.text().into()))])
            }
            "poll" => object([("count", step?.polls.map(Value::from))]),
            "foreach" => {
                let index = step?.path.items().iter().rev().find_map(|item| match item.child {
                    Child::Iteration(index) => Some(index),
                    _ => None,
                });
                object([("index", index.map(Value::from))])
            }
            "error" => step?.failure.as_ref().map(|failure| failure.error.clone().into()),
            "cause" => step?.failure.as_ref().map(|failure| failure.cause.clone().into()),
            "retry" => object([("value", step?.retry_value.clone())]),
            _ => None,
        }
    }

    fn names(&self) -> Vec<&'static str> {
        let names = CONTEXT_MEMBERS.into_iter();
        names.filter(|name| self.member(name).is_some()).collect()
    }
}
