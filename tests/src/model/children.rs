//! Branches and iterations.

use super::scope::Scope;
use super::site::Site;
use super::undo::undo;
use super::world::Turn;
use super::{Fault, Object, Run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

type Inside = Result<(Value, Option<String>), Fault>;

/// The outcome of a child.
#[derive(Clone)]
enum Outcome {
    Open,
    Done(Object),
    Failed(Fault),
}

enum Live {
    Running(Run<Result<Object, Fault>>, Rc<Scope>),
    /// Its failure is allowed, and its list is being undone.
    Undoing(Run<()>),
}

/// The result of polling a child.
enum Came {
    Result(Result<Object, Fault>, Rc<Scope>),
    Undone,
}

/// The children of one attempt.
struct Group {
    site: Site,
    outcomes: Vec<Outcome>,
    begun: Vec<bool>,
    live: BTreeMap<usize, Live>,
    /// The failure of the whole.
    verdict: Option<Fault>,
    frozen: bool,
}

/// How a kind of composite treats its children.
trait Rules {
    /// The child to begin next.
    fn next(&self, group: &Group) -> Option<usize>;
    /// Its steps, its input and the iterations it is in.
    fn child(&self, group: &Group, number: usize) -> (Value, Object, Vec<usize>);
    /// Whether all that is wanted is there.
    fn met(&self, group: &Group) -> bool;
    /// The composite's failure where this one is not allowed.
    fn verdict(&self, group: &Group, fault: &Fault) -> Option<Fault>;
}

impl Group {
    fn new(site: Site, count: usize) -> Self {
        Self {
            site,
            outcomes: vec![Outcome::Open; count],
            begun: vec![false; count],
            live: BTreeMap::new(),
            verdict: None,
            frozen: false,
        }
    }

    fn failed(&self) -> usize {
        let failed = self
            .outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Outcome::Failed(_)));
        failed.count()
    }

    fn succeeded(&self) -> usize {
        self.outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Outcome::Done(_)))
            .count()
    }

    async fn run(mut self, rules: &dyn Rules) -> Inside {
        let mut turn: Option<Turn> = None;
        let mut holds_turn = true;
        loop {
            if holds_turn {
                if let Some(fault) = self.verdict.take() {
                    return Err(fault);
                }
                if rules.met(&self) {
                    self.let_go();
                    return Ok((self.local(), None));
                }
                holds_turn = false;
                if let Some(number) = rules.next(&self) {
                    self.begin(number, rules);
                    // A composite that has more to begin keeps its turn.
                    holds_turn = rules.next(&self).is_some();
                    if let Some(came) = self.poll(Some(number), None).await {
                        self.take(came, rules);
                        turn = (!holds_turn).then(|| self.site.world.turn());
                    }
                }
                continue;
            }
            match self.poll(None, turn.as_ref()).await {
                Some(came) => {
                    self.take(came, rules);
                    turn.get_or_insert_with(|| self.site.world.turn());
                }
                None => {
                    turn = None;
                    holds_turn = true;
                }
            }
        }
    }

    fn begin(&mut self, number: usize, rules: &dyn Rules) {
        let (steps, input, iterations) = rules.child(self, number);
        let scope = Scope::new(Some(self.site.scope.clone()));
        let site = Site {
            world: self.site.world.clone(),
            scope: scope.clone(),
            iterations,
        };
        self.begun[number] = true;
        self.live.insert(number, Live::Running(site.run(steps, input), scope));
    }

    /// A child is over, or has been undone.
    fn take(&mut self, (number, came): (usize, Came), rules: &dyn Rules) {
        match came {
            Came::Undone => {}
            Came::Result(Ok(local), _) => self.outcomes[number] = Outcome::Done(local),
            Came::Result(Err(fault), scope) => {
                self.outcomes[number] = Outcome::Failed(fault.clone());
                self.verdict = rules.verdict(self, &fault);
                if self.verdict.is_none() {
                    let pile = scope.take_all();
                    // A child with nothing to undo gives up its place at once.
                    if !pile.is_empty() {
                        let undoing = undo(&self.site.world, scope, pile, fault);
                        self.live.insert(number, Live::Undoing(undoing));
                    }
                }
            }
        }
        // Nothing continues after the result is known.
        self.frozen = self.verdict.is_some() || rules.met(self);
    }

    /// Gives up all children that still run.
    fn let_go(&self) {
        for live in self.live.values() {
            if let Live::Running(_, scope) = live {
                scope.let_go();
            }
        }
    }

    /// Waits until one child is over, or the turn has come: nothing then. If it is `only` that child, it waits for nothing.
    async fn poll(&mut self, only: Option<usize>, turn: Option<&Turn>) -> Option<(usize, Came)> {
        let frozen = self.frozen;
        let over = poll_fn(|context| {
            if turn.is_some_and(Turn::has_come) {
                return Poll::Ready(None);
            }
            let asked = |number: &usize| !frozen && only.is_none_or(|only| only == *number);
            for (number, live) in self.live.iter_mut().filter(|(number, _)| asked(number)) {
                let came = match live {
                    Live::Running(run, scope) => run
                        .as_mut()
                        .poll(context)
                        .map(|result| Came::Result(result, scope.clone())),
                    Live::Undoing(run) => run.as_mut().poll(context).map(|()| Came::Undone),
                };
                if let Poll::Ready(came) = came {
                    return Poll::Ready(Some((*number, came)));
                }
            }
            if only.is_some() {
                Poll::Ready(None)
            } else {
                Poll::Pending
            }
        })
        .await;
        if let Some((number, _)) = &over {
            self.live.remove(number);
        }
        over
    }

    fn local(&self) -> Value {
        let of = |outcome: &Outcome| match outcome {
            Outcome::Open => Value::Null,
            Outcome::Done(local) => Value::Object(local.clone()),
            Outcome::Failed(fault) => fault.to_value(),
        };
        json!(self.outcomes.iter().map(of).collect::<Vec<_>>())
    }
}

/// Branches beside each other.
struct Branches {
    step: Value,
    own: Value,
    branches: Vec<Value>,
}

pub fn parallel(site: Site, step: Value, own: Value) -> Run<Inside> {
    Box::pin(async move {
        let branches = step["branches"].as_array().cloned().unwrap_or_default();
        let group = Group::new(site, branches.len());
        let rules = Branches { step, own, branches };
        group.run(&rules).await
    })
}

impl Branches {
    /// How many must succeed, where it is not all.
    fn wanted(&self) -> Option<usize> {
        match &self.step["waitFor"] {
            Value::String(word) if word == "any" => Some(1),
            Value::Number(number) => number.as_u64().and_then(|number| usize::try_from(number).ok()),
            _ => None,
        }
    }

    /// The branches a branch depends on.
    fn needs(&self, number: usize) -> Vec<usize> {
        let names = self.branches[number]["dependsOn"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let index = |name: &Value| self.branches.iter().position(|branch| branch["name"] == *name);
        names.iter().filter_map(index).collect()
    }

    fn priority(&self, number: usize) -> u64 {
        self.branches[number]["steps"][0]["priority"].as_u64().unwrap_or(5)
    }

    /// Whether a branch has failed or waits for one that has.
    fn is_lost(&self, group: &Group, number: usize) -> bool {
        matches!(group.outcomes[number], Outcome::Failed(_))
            || self.needs(number).into_iter().any(|on| self.is_lost(group, on))
    }
}

impl Rules for Branches {
    fn next(&self, group: &Group) -> Option<usize> {
        let most = self.step["concurrency"]
            .as_u64()
            .and_then(|most| usize::try_from(most).ok());
        if most.is_some_and(|most| group.live.len() >= most) {
            return None;
        }
        let done = |on: usize| matches!(group.outcomes[on], Outcome::Done(_));
        let ready = (0..self.branches.len()).filter(|&n| !group.begun[n] && self.needs(n).into_iter().all(done));
        // The first of the highest priority, where they compete for places.
        ready.min_by_key(|&n| if most.is_some() { 9 - self.priority(n) } else { 0 })
    }

    fn child(&self, group: &Group, number: usize) -> (Value, Object, Vec<usize>) {
        let mut input = self.own.as_object().cloned().unwrap_or_default();
        let needs = self.needs(number);
        if !needs.is_empty() {
            let mut deps = Object::new();
            for on in needs {
                if let Outcome::Done(local) = &group.outcomes[on] {
                    let name = self.branches[on]["name"].as_str().unwrap_or_default();
                    deps.insert(name.to_owned(), Value::Object(local.clone()));
                }
            }
            input.insert("deps".to_owned(), Value::Object(deps));
        }
        (
            self.branches[number]["steps"].clone(),
            input,
            group.site.iterations.clone(),
        )
    }

    fn met(&self, group: &Group) -> bool {
        group.succeeded() >= self.wanted().unwrap_or(self.branches.len())
    }

    fn verdict(&self, group: &Group, fault: &Fault) -> Option<Fault> {
        let Some(wanted) = self.wanted() else {
            return Some(fault.clone());
        };
        let left = (0..self.branches.len()).filter(|&n| !self.is_lost(group, n)).count();
        (left < wanted).then(|| Fault::of_engine("FnF.BranchFailed"))
    }
}

/// A list for each item.
struct Iterations {
    step: Value,
    own: Value,
    items: Vec<Value>,
}

pub fn foreach(site: Site, step: Value, own: Value) -> Run<Inside> {
    Box::pin(async move {
        let path = step["iterationMapping"]["collection"].as_str().unwrap_or_default();
        let found = super::data::find(&own, path.trim_start_matches('$'));
        let Some(items) = found.and_then(|found| found.as_array().cloned()) else {
            return Err(Fault::of_engine("FnF.InvalidInput"));
        };
        let group = Group::new(site, items.len());
        let rules = Iterations { step, own, items };
        group.run(&rules).await
    })
}

impl Rules for Iterations {
    fn next(&self, group: &Group) -> Option<usize> {
        let most = self.step["concurrency"].as_u64().unwrap_or(100);
        if group.live.len() as u64 >= most {
            return None;
        }
        group.begun.iter().position(|begun| !begun)
    }

    fn child(&self, group: &Group, number: usize) -> (Value, Object, Vec<usize>) {
        let mut input = self.own.as_object().cloned().unwrap_or_default();
        let mapping = &self.step["iterationMapping"];
        let key = |name: &str| mapping[name].as_str().map(str::to_owned);
        if let Some(item) = key("item") {
            input.insert(item, self.items[number].clone());
        }
        if let Some(index) = key("index") {
            input.insert(index, json!(number));
        }
        let mut iterations = group.site.iterations.clone();
        iterations.push(number);
        (self.step["steps"].clone(), input, iterations)
    }

    fn met(&self, group: &Group) -> bool {
        group.live.is_empty() && group.begun.iter().all(|begun| *begun)
    }

    fn verdict(&self, group: &Group, fault: &Fault) -> Option<Fault> {
        let Some(tolerance) = self.step.get("tolerance") else {
            return Some(fault.clone());
        };
        let failed = group.failed() as f64;
        let allowed = match (tolerance["count"].as_f64(), tolerance["percent"].as_f64()) {
            (Some(count), _) => failed <= count,
            (_, Some(percent)) => failed * 100.0 <= percent * self.items.len() as f64,
            _ => false,
        };
        (!allowed).then(|| Fault::of_engine("FnF.BranchFailed"))
    }
}
