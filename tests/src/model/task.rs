//! Tasks: a call, or calls until something holds.

use super::Fault;
use super::condition::holds;
use super::data::ceil_millis;
use super::scope::Done;
use super::site::Site;
use super::world::{Answer, Moment, Order, World};
use serde_json::{Value, json};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// A call: the key of its mock, and how long it may be silent.
pub struct Call {
    pub key: String,
    pub iterations: Vec<usize>,
    pub heartbeat: Option<u64>,
}

/// One attempt of a task: its result, an object.
pub async fn attempt(site: &Site, step: &Value, visit: u64, input: &Value) -> Result<Value, Fault> {
    let world = &site.world;
    let poll = &step["poll"];
    let call = Call {
        key: step["name"].as_str().unwrap_or_default().to_owned(),
        iterations: site.iterations.clone(),
        heartbeat: step["heartbeatSeconds"].as_u64().map(|seconds| seconds * 1000),
    };
    let deadline = step["timeoutSeconds"]
        .as_u64()
        .map(|seconds| world.after(seconds * 1000));
    for count in 1.. {
        let number = world.number();
        let done = Done {
            step: step.clone(),
            input: input.clone(),
            result: json!({}),
            iterations: site.iterations.clone(),
        };
        let earlier = site.scope.flies(visit, number, done);
        let result = match answered(world, &call, number, deadline.as_ref()).await {
            Ok(result) => result,
            Err(fault) => {
                if count == 1 && fault.error == "FnF.NoSuchResource" {
                    site.scope.not_sent(visit, earlier);
                }
                return Err(fault);
            }
        };
        if !result.is_object() {
            return Err(Fault::of_engine("FnF.InvalidLocal"));
        }
        site.scope.answered(visit, &result);
        let asked = |condition: &Value| condition.as_str().map(|condition| holds(condition, &result));
        if asked(&poll["failWhen"]) == Some(true) {
            return Err(Fault::of_engine("FnF.PollFailed"));
        }
        if poll.is_null() || asked(&poll["until"]) == Some(true) {
            return Ok(result);
        }
        if poll["maxAttempts"].as_u64().is_some_and(|most| count >= most) {
            return Err(Fault::of_engine("FnF.PollFailed"));
        }
        let pause = world.after(pause(poll, count));
        first(&pause, deadline.as_ref()).await?;
    }
    Err(Fault::of_engine("FnF.PollFailed"))
}

/// The pause after so many calls.
fn pause(poll: &Value, count: u64) -> u64 {
    let number = |key: &str, default: f64| poll[key].as_f64().unwrap_or(default);
    let grown =
        number("intervalSeconds", 5.0) * number("multiplier", 1.5).powi(i32::try_from(count - 1).unwrap_or(i32::MAX));
    ceil_millis(grown.min(number("maxIntervalSeconds", 60.0)))
}

/// Waits for a moment, if the deadline does not come first.
async fn first(moment: &Moment, deadline: Option<&Moment>) -> Result<(), Fault> {
    poll_fn(|_| {
        if moment.has_come() {
            Poll::Ready(Ok(()))
        } else if deadline.is_some_and(Moment::has_come) {
            Poll::Ready(Err(Fault::of_engine("FnF.TaskTimeout")))
        } else {
            Poll::Pending
        }
    })
    .await
}

/// Calls, and waits for the answer.
pub async fn answered(world: &Rc<World>, call: &Call, number: u64, deadline: Option<&Moment>) -> Result<Value, Fault> {
    let (answer, delay) = world.answer(&call.key, &call.iterations);
    let silent = call
        .heartbeat
        .map(|millis| world.at(world.now() + millis, Order::Heartbeat));
    let due = match answer {
        Answer::Never => None,
        _ => Some(world.at_numbered(world.now() + delay, Order::Answer, number)),
    };
    poll_fn(|_| {
        if due.as_ref().is_some_and(Moment::has_come) {
            Poll::Ready(Ok(()))
        } else if silent.as_ref().is_some_and(Moment::has_come) {
            Poll::Ready(Err(Fault::of_engine("FnF.HeartbeatTimeout")))
        } else if deadline.is_some_and(Moment::has_come) {
            Poll::Ready(Err(Fault::of_engine("FnF.TaskTimeout")))
        } else {
            Poll::Pending
        }
    })
    .await?;
    match answer {
        Answer::Result(result) => Ok(result),
        Answer::Fault(fault) => Err(fault),
        Answer::Never => Err(Fault::of_engine("FnF.TaskTimeout")),
    }
}
