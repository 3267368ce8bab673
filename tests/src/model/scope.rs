//! Scopes: completed tasks of a list, which may have to be undone.

use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A task that may have done something.
#[derive(Clone)]
pub struct Done {
    pub step: Value,
    pub input: Value,
    pub result: Value,
    pub iterations: Vec<usize>,
}

/// One run of a list of steps.
pub struct Scope {
    parent: Option<Rc<Scope>>,
    /// The lists inside the composite that runs here.
    inner: RefCell<Vec<Rc<Scope>>>,
    /// Tasks that have been called and are not over, by visit, with the number of their last call.
    flying: RefCell<BTreeMap<u64, (u64, Done)>>,
    /// Tasks that completed, with a number that grows.
    done: RefCell<Vec<(u64, Done)>>,
    /// The task whose failure left the list.
    failed: RefCell<Option<Done>>,
    /// Piles that are being undone here or inside.
    undoing: Cell<u32>,
}

impl Scope {
    pub fn new(parent: Option<Rc<Self>>) -> Rc<Self> {
        let scope = Rc::new(Self {
            parent: parent.clone(),
            inner: RefCell::default(),
            flying: RefCell::default(),
            done: RefCell::default(),
            failed: RefCell::default(),
            undoing: Cell::default(),
        });
        if let Some(parent) = parent {
            parent.inner.borrow_mut().push(scope.clone());
        }
        scope
    }

    /// A task is called. Answers what an earlier attempt may have done.
    pub fn flies(&self, visit: u64, call: u64, done: Done) -> Option<(u64, Done)> {
        self.flying.borrow_mut().insert(visit, (call, done))
    }

    /// It was not called after all: only the work of an earlier attempt remains.
    pub fn not_sent(&self, visit: u64, earlier: Option<(u64, Done)>) {
        let mut flying = self.flying.borrow_mut();
        match earlier {
            Some(earlier) => flying.insert(visit, earlier),
            None => flying.remove(&visit),
        };
    }

    /// It has this result.
    pub fn answered(&self, visit: u64, result: &Value) {
        if let Some((_, done)) = self.flying.borrow_mut().get_mut(&visit) {
            done.result = result.clone();
        }
    }

    /// Its visit is over: what it did, if it was called.
    pub fn landed(&self, visit: u64) -> Option<Done> {
        self.flying.borrow_mut().remove(&visit).map(|(_, done)| done)
    }

    pub fn completed(&self, number: u64, done: Option<Done>) {
        self.done.borrow_mut().extend(done.map(|done| (number, done)));
    }

    pub fn failed(&self, done: Option<Done>) {
        *self.failed.borrow_mut() = done;
    }

    /// The composite here is over, and what completed inside is part of this list now.
    pub fn absorb(&self) {
        for inner in std::mem::take(&mut *self.inner.borrow_mut()) {
            inner.absorb();
            self.done.borrow_mut().append(&mut inner.done.borrow_mut());
        }
    }

    /// Gives up what still runs here; it is not to be undone.
    pub fn let_go(&self) {
        self.flying.borrow_mut().clear();
        *self.failed.borrow_mut() = None;
        self.inner.borrow().iter().for_each(|inner| inner.let_go());
    }

    /// Whether nothing inside the composite here is being undone.
    pub fn quiet_inside(&self) -> bool {
        self.inner.borrow().iter().all(|inner| inner.undoing.get() == 0)
    }

    /// Takes all there is to undo out of here, in the order of undoing.
    pub fn take_all(&self) -> Vec<Done> {
        let mut pile = Pile::default();
        self.pile_up(&mut pile);
        pile.sorted()
    }

    /// The same, of the composite here only.
    pub fn take_inside(&self) -> Vec<Done> {
        let mut pile = Pile::default();
        for inner in std::mem::take(&mut *self.inner.borrow_mut()) {
            inner.pile_up(&mut pile);
        }
        pile.sorted()
    }

    fn pile_up(&self, pile: &mut Pile) {
        pile.failed.extend(self.failed.borrow_mut().take());
        pile.flying
            .extend(std::mem::take(&mut *self.flying.borrow_mut()).into_values());
        pile.done.append(&mut self.done.borrow_mut());
        self.inner.borrow().iter().for_each(|inner| inner.pile_up(pile));
    }

    pub fn count_undoing(&self, change: i32) {
        self.undoing.set(self.undoing.get().saturating_add_signed(change));
        if let Some(parent) = &self.parent {
            parent.count_undoing(change);
        }
    }
}

#[derive(Default)]
struct Pile {
    failed: Vec<Done>,
    flying: Vec<(u64, Done)>,
    done: Vec<(u64, Done)>,
}

impl Pile {
    /// The failed task first, then what was in flight, then what completed: the last first.
    fn sorted(mut self) -> Vec<Done> {
        self.flying.sort_by_key(|(call, _)| std::cmp::Reverse(*call));
        self.done.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
        let later = self.flying.into_iter().chain(self.done).map(|(_, done)| done);
        let all = self.failed.into_iter().chain(later);
        all.filter(|done| done.step.get("rollback").is_some()).collect()
    }
}
