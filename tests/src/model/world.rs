//! Virtual time, the answers of the world, and what was seen.

use super::{Fault, Run};
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// The order of moments at one instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Order {
    Answer,
    Stop,
    Heartbeat,
    Timer,
}

type Key = (u64, Order, u64);

/// The world around one execution. Times are milliseconds since its start.
pub struct World {
    now: Cell<u64>,
    number: Cell<u64>,
    changes: Cell<u64>,
    waiting: RefCell<BTreeSet<Key>>,
    come: RefCell<BTreeSet<u64>>,
    mocks: Value,
    given: RefCell<BTreeMap<(String, Vec<usize>), usize>>,
    steps: RefCell<Vec<String>>,
    rollbacks: RefCell<Vec<String>>,
    undoing: Cell<u32>,
    broken: RefCell<Option<Fault>>,
    spawned: RefCell<Vec<Run<()>>>,
    /// Lists that became ready while another one ran, in that order.
    turns: RefCell<VecDeque<u64>>,
    /// Visits of a step in one visit of its list.
    pub most_visits: u64,
}

/// A point in time that is waited for. It is forgotten when it is dropped.
pub struct Moment {
    key: Key,
    world: Rc<World>,
}

/// What a resource does with a call.
pub enum Answer {
    Result(Value),
    Fault(Fault),
    Never,
}

impl World {
    pub fn new(mocks: &Value, most_visits: u64) -> Rc<Self> {
        Rc::new(Self {
            now: Cell::default(),
            number: Cell::default(),
            changes: Cell::default(),
            waiting: RefCell::default(),
            come: RefCell::default(),
            mocks: mocks.clone(),
            given: RefCell::default(),
            steps: RefCell::default(),
            rollbacks: RefCell::default(),
            undoing: Cell::default(),
            broken: RefCell::default(),
            spawned: RefCell::default(),
            turns: RefCell::default(),
            most_visits,
        })
    }

    pub fn now(&self) -> u64 {
        self.now.get()
    }

    /// A number larger than all before.
    pub fn number(&self) -> u64 {
        self.number.set(self.number.get() + 1);
        self.number.get()
    }

    /// Something happened: everything that waits checks again.
    pub fn change(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    pub fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// The moment so many milliseconds after the start.
    pub fn at(self: &Rc<Self>, due: u64, order: Order) -> Moment {
        let number = self.number();
        self.at_numbered(due, order, number)
    }

    /// The same, where what it is for has a number already.
    pub fn at_numbered(self: &Rc<Self>, due: u64, order: Order, number: u64) -> Moment {
        let key = (due, order, number);
        self.waiting.borrow_mut().insert(key);
        Moment {
            key,
            world: self.clone(),
        }
    }

    pub fn after(self: &Rc<Self>, millis: u64) -> Moment {
        self.at(self.now() + millis, Order::Timer)
    }

    /// Moves to the next moment that is waited for. Answers whether there is one.
    pub fn pass_time(&self) -> bool {
        let next = self.waiting.borrow_mut().pop_first();
        let Some((due, _, number)) = next else {
            return false;
        };
        self.now.set(self.now.get().max(due));
        self.come.borrow_mut().insert(number);
        self.change();
        true
    }

    /// The next answer to a call of this step, and after how many milliseconds it comes.
    pub fn answer(&self, key: &str, iterations: &[usize]) -> (Answer, u64) {
        let list = self.mocks[key].as_array().cloned().unwrap_or_default();
        let mut given = self.given.borrow_mut();
        let count = given.entry((key.to_owned(), iterations.to_vec())).or_default();
        let Some(mock) = list.get(*count).or(list.last()) else {
            return (Answer::Never, 0);
        };
        *count += 1;
        let delay = super::data::millis(&mock["delaySeconds"]).unwrap_or(0);
        let answer = match (mock.get("result"), mock["error"].as_str()) {
            (Some(result), _) => Answer::Result(result.clone()),
            (_, Some(error)) => Answer::Fault(Fault::new(error, mock["cause"].as_str().unwrap_or_default())),
            _ => Answer::Never,
        };
        (answer, delay)
    }

    pub fn entered(&self, step: &str) {
        self.steps.borrow_mut().push(step.to_owned());
    }

    pub fn undone(&self, step: &str) {
        self.rollbacks.borrow_mut().push(step.to_owned());
    }

    pub fn log(&self) -> (Vec<String>, Vec<String>) {
        (self.steps.borrow().clone(), self.rollbacks.borrow().clone())
    }

    /// How many piles are being undone.
    pub fn undoing(&self) -> u32 {
        self.undoing.get()
    }

    pub fn begin_undoing(&self) {
        self.undoing.set(self.undoing.get() + 1);
    }

    pub fn end_undoing(&self) {
        self.undoing.set(self.undoing.get() - 1);
        self.change();
    }

    /// The failure whose rollback failed.
    pub fn broken(&self) -> Option<Fault> {
        self.broken.borrow().clone()
    }

    pub fn breaks(&self, fault: &Fault) {
        self.broken.borrow_mut().get_or_insert_with(|| fault.clone());
        self.change();
    }

    /// Runs something on its own: it cannot be cancelled.
    pub fn spawn(&self, run: Run<()>) {
        self.spawned.borrow_mut().push(run);
        self.change();
    }

    pub fn poll_spawned(&self, context: &mut Context<'_>) {
        let mut running = std::mem::take(&mut *self.spawned.borrow_mut());
        running.retain_mut(|run| run.as_mut().poll(context).is_pending());
        self.spawned.borrow_mut().extend(running);
    }
}

/// A list's place among those that are ready.
pub struct Turn {
    number: u64,
    world: Rc<World>,
}

impl World {
    /// Waits until the lists that became ready before have had their turn.
    pub fn turn(self: &Rc<Self>) -> Turn {
        let number = self.number();
        self.turns.borrow_mut().push_back(number);
        self.change();
        Turn {
            number,
            world: self.clone(),
        }
    }

    /// Lets the next list continue. Answers whether there is one.
    pub fn next_turn(&self) -> bool {
        self.change();
        self.turns.borrow_mut().pop_front().is_some()
    }
}

impl Turn {
    pub fn has_come(&self) -> bool {
        !self.world.turns.borrow().contains(&self.number)
    }
}

/// The model polls each future again after every change of its world, so nothing has to wake it.
fn poll_once(has_come: bool) -> Poll<()> {
    match has_come {
        true => Poll::Ready(()),
        false => Poll::Pending,
    }
}

impl Future for Turn {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        poll_once(self.has_come())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.world.turns.borrow_mut().retain(|number| *number != self.number);
    }
}

impl Moment {
    pub fn has_come(&self) -> bool {
        self.world.come.borrow().contains(&self.key.2) && !self.world.waiting.borrow().contains(&self.key)
    }
}

impl Future for Moment {
    type Output = ();
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        poll_once(self.has_come())
    }
}

impl Drop for Moment {
    fn drop(&mut self) {
        self.world.waiting.borrow_mut().remove(&self.key);
    }
}
