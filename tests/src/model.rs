//! A second, naive interpreter of the language, written from its description and from nothing else: simple recursion over
//! the definition in virtual time. It knows no history and no recovery; it only says what must come of a case.
//!
//! Covered is what random flows ([`crate::random`]) have: all step types, mappings, conditions, retries, catches, timeouts,
//! polls, callbacks with heartbeats, tolerance, `waitFor`, `dependsOn`, rollbacks, stops, the limit of visits.

#[path = "model/attempt.rs"]
mod attempt;
#[path = "model/children.rs"]
mod children;
#[path = "model/condition.rs"]
mod condition;
#[path = "model/data.rs"]
mod data;
#[path = "model/list.rs"]
mod list;
#[path = "model/retries.rs"]
mod retries;
#[path = "model/scope.rs"]
mod scope;
#[path = "model/site.rs"]
mod site;
#[path = "model/task.rs"]
mod task;
#[path = "model/undo.rs"]
mod undo;
#[path = "model/world.rs"]
mod world;

use scope::Scope;
use serde_json::{Map, Value, json};
use starbridge_flow::time::Millis;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use world::{Moment, Order, World};

/// Stands for text which the language leaves open: causes of the engine's own errors.
pub const OPEN: &str = "\u{0}";

/// The expected result of a case.
#[derive(Debug, PartialEq)]
pub struct Told {
    /// The status' word.
    pub status: String,
    /// The output.
    pub output: Option<Value>,
    /// The error's name and cause.
    pub failure: Option<(String, String)>,
    /// Steps in the order entered.
    pub steps: Vec<String>,
    /// Tasks undone, in order.
    pub rollbacks: Vec<String>,
    /// The time from start to end.
    pub elapsed: Millis,
}

/// An error of the flow.
#[derive(Clone, Debug, PartialEq)]
struct Fault {
    error: String,
    cause: String,
    /// No step in the list where it arose may retry or catch it.
    final_here: bool,
}

impl Fault {
    /// An error of the engine, whose cause is left open.
    fn of_engine(error: &str) -> Self {
        Self::new(error, OPEN)
    }

    fn new(error: &str, cause: &str) -> Self {
        Self {
            error: error.to_owned(),
            cause: cause.to_owned(),
            final_here: false,
        }
    }

    fn to_value(&self) -> Value {
        json!({"error": self.error, "cause": self.cause})
    }
}

type Object = Map<String, Value>;
/// A part of the flow that runs.
type Run<T> = Pin<Box<dyn Future<Output = T>>>;

/// The state of the execution as a whole.
enum Doing {
    Running(Run<Result<Object, Fault>>),
    /// Stopped or out of time: what was done is being undone.
    Ending(&'static str, Fault, Run<()>),
    /// A rollback failed: others come to their end.
    Broken(Fault),
}

/// A stop, or the execution's own bound.
struct End {
    status: &'static str,
    fault: Fault,
    undo: bool,
}

/// Says what must come of the one case of a test file.
pub fn tell(file: &Value) -> Told {
    let flow = file["flow"].clone();
    let case = file["cases"][0].clone();
    let world = World::new(&case["mocks"], file["limits"]["stepVisits"].as_u64().unwrap_or(100_000));
    let scope = Scope::new(None);
    let mut driver = Driver::new(world.clone(), scope.clone(), &flow, &case);
    let running = list::flow(world, scope, flow, data::object(&case["input"]));
    driver.drive(Doing::Running(running))
}

/// Lets time pass.
struct Driver {
    world: Rc<World>,
    scope: Rc<Scope>,
    /// Events that may end the execution from outside, with their times.
    ends: Vec<(Moment, End)>,
    /// An end that came while something was being undone.
    late: Option<End>,
}

impl Driver {
    fn new(world: Rc<World>, scope: Rc<Scope>, flow: &Value, case: &Value) -> Self {
        let bound = flow["timeoutSeconds"].as_u64().unwrap_or(365 * 24 * 60 * 60) * 1000;
        let end = End {
            status: "TimedOut",
            fault: Fault::of_engine("FnF.ExecutionTimeout"),
            undo: true,
        };
        let mut ends = vec![(world.at(bound, Order::Timer), end)];
        if let Some(stop) = case.get("stop") {
            let due = data::millis(&stop["atSeconds"]).unwrap_or(0);
            let fault = Fault::new(
                stop["error"].as_str().unwrap_or("FnF.Stopped"),
                stop["cause"].as_str().unwrap_or_default(),
            );
            let end = End {
                status: "Stopped",
                fault,
                undo: stop["rollback"] == true,
            };
            ends.push((world.at(due, Order::Stop), end));
        }
        Self {
            world,
            scope,
            ends,
            late: None,
        }
    }

    fn drive(&mut self, mut doing: Doing) -> Told {
        loop {
            match self.settle(doing) {
                Ok(told) => return told,
                Err(going_on) => doing = going_on,
            }
            assert!(self.world.pass_time(), "the model is stuck");
            let fired = self.ends.iter().position(|(moment, _)| moment.has_come());
            if let Some(fired) = fired
                && let Doing::Running(_) = doing
            {
                let (_, end) = self.ends.remove(fired);
                // A rollback in progress is not interrupted.
                if self.world.undoing() > 0 {
                    self.late.get_or_insert(end);
                } else {
                    doing = self.end(end);
                }
            }
        }
    }

    /// Goes on until nothing changes at this instant.
    fn settle(&mut self, mut doing: Doing) -> Result<Told, Doing> {
        let mut context = Context::from_waker(Waker::noop());
        loop {
            let before = self.world.changes();
            self.world.poll_spawned(&mut context);
            if let Some(fault) = self.world.broken() {
                doing = Doing::Broken(fault);
            } else if self.world.undoing() == 0
                && let Some(late) = self.late.take()
            {
                doing = self.end(late);
            }
            match &mut doing {
                Doing::Broken(fault) if self.world.undoing() == 0 => {
                    return Ok(self.told("RollbackFailed", Err(fault.clone())));
                }
                Doing::Broken(_) => {}
                Doing::Ending(status, fault, undo) => {
                    if undo.as_mut().poll(&mut context).is_ready() && self.world.broken().is_none() {
                        return Ok(self.told(status, Err(fault.clone())));
                    }
                }
                Doing::Running(run) => {
                    if let Poll::Ready(result) = run.as_mut().poll(&mut context) {
                        let status = if result.is_ok() { "Succeeded" } else { "Failed" };
                        return Ok(self.told(status, result));
                    }
                }
            }
            if self.world.changes() == before && !self.world.next_turn() {
                return Err(doing);
            }
        }
    }

    /// Ends the execution from outside: all that runs is given up, and undone where it is to be.
    fn end(&mut self, end: End) -> Doing {
        self.ends.clear();
        let undo: Run<()> = if end.undo {
            let pile = self.scope.take_all();
            undo::undo(&self.world, self.scope.clone(), pile, end.fault.clone())
        } else {
            Box::pin(std::future::ready(()))
        };
        Doing::Ending(end.status, end.fault, undo)
    }

    fn told(&self, status: &str, result: Result<Object, Fault>) -> Told {
        let (steps, rollbacks) = self.world.log();
        let (output, failure) = match result {
            Ok(output) => (Some(Value::Object(output)), None),
            Err(fault) => (None, Some((fault.error, fault.cause))),
        };
        Told {
            status: status.to_owned(),
            output,
            failure,
            steps,
            rollbacks,
            elapsed: Millis(self.world.now()),
        }
    }
}
