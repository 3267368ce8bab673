//! Dependencies: executions that others wait for to end before they begin.

use super::choose::Choice;
use super::circles::{Circle, find};
use super::deadlock::CanGoOn;
use super::overlay::{Awaited, unbound_names};
use starbridge_flow::value::Text;
use starbridge_machine::Status;
use starbridge_ports::{
    DeclineReason, Dependency, ExecutionRecord, MET_EVENT, MessageBody, OpenDependency, StoreError, WATCH_EVENT, Waiter,
};
use std::collections::{BTreeMap, BTreeSet};

fn is_met(dependency: &Dependency, status: Status) -> bool {
    dependency.any_end || status == Status::Succeeded
}

impl Choice<'_> {
    /// Looks for what a waiter waits for. Its row is durable, so a start that is not found here finds the row.
    /// Each name is taken from the budget.
    pub(super) fn look_up(&mut self, mut waiter: Waiter, budget: &mut usize) -> Result<(), StoreError> {
        *budget = budget.saturating_sub(waiter.open.len());
        let mut open = Vec::new();
        for mut one in std::mem::take(&mut waiter.open) {
            if one.bound.is_none() {
                one.bound = find(&one.dependency, self.rows)?;
                match &one.bound {
                    // A call waits for its child, and the child would wait for the call.
                    Some(execution) if waiter.ask.ancestors.contains(execution) => {
                        let executions = vec![execution.clone()];
                        return self.decline(&waiter, DeclineReason::Cycle { executions });
                    }
                    Some(execution) => match self.watch(execution, &one.dependency, budget)? {
                        Watched::Open => {}
                        Watched::Met => continue,
                        Watched::Failed(reason) => return self.decline(&waiter, reason),
                    },
                    None if one.dependency.flow.is_none() => {
                        let execution = one.dependency.execution.clone();
                        let status = Status::New;
                        return self.decline(&waiter, DeclineReason::Dependency { execution, status });
                    }
                    None => {}
                }
            }
            open.push(one);
        }
        waiter.open = open;
        match self.circle(&waiter, budget)? {
            Circle::None => {}
            Circle::Of(executions) => {
                tracing::warn!(execution = %waiter.execution, ?executions, "executions wait for one another: this one is declined");
                return self.decline(&waiter, DeclineReason::Cycle { executions });
            }
            Circle::Unknown => return self.decline(&waiter, DeclineReason::TooManyDependencies),
        }
        self.keep_open(waiter)
    }

    /// Asks an execution for its end, unless it is known.
    fn watch(&mut self, execution: &Text, dependency: &Dependency, budget: &mut usize) -> Result<Watched, StoreError> {
        let record: Option<ExecutionRecord> = self.rows.record(execution)?;
        let status = record.map_or(Status::New, |record| record.status);
        if status != Status::New && !status.is_ended() {
            self.watch_once(execution)?;
            return Ok(Watched::Open);
        }
        if status != Status::New {
            // Those that have waited for it longer go on first, although its end was not told of yet. If they are many, some do
            // so when it is.
            self.has_ended(execution, status, budget)?;
        }
        if status != Status::New && is_met(dependency, status) {
            return Ok(Watched::Met);
        }
        let execution = execution.clone();
        Ok(Watched::Failed(DeclineReason::Dependency { execution, status }))
    }

    /// Keeps a waiter whose dependencies changed. If none is open any more, it asks for its keys.
    pub(super) fn keep_open(&mut self, waiter: Waiter) -> Result<(), StoreError> {
        match waiter.open.is_empty() {
            true => {
                let execution = waiter.execution.clone();
                self.has_asked(&waiter)?;
                self.examine(waiter)?;
                if self.overlay.waiter(&execution, self.rows)?.is_some() {
                    self.overlay.send(&execution, MET_EVENT, MessageBody::Met);
                }
                Ok(())
            }
            false => self.keep_dependent(&waiter),
        }
    }

    /// An execution has ended: those who wait for it go on, or are declined. Returns whether all did; where the budget is used up,
    /// the others are still to be told.
    pub(super) fn has_ended(
        &mut self,
        execution: &Text,
        status: Status,
        budget: &mut usize,
    ) -> Result<bool, StoreError> {
        if !self.overlay.dependencies {
            return Ok(true);
        }
        if *budget == 0 {
            return Ok(false);
        }
        let awaited = Awaited::End(execution);
        let (waiting, are_all) = self.overlay.dependents(awaited, *budget, self.rows)?;
        for one in waiting {
            if *budget == 0 {
                return Ok(false);
            }
            self.bind(&one, awaited, execution, status, budget)?;
        }
        Ok(are_all)
    }

    /// An execution was started under a name that somebody may wait for: those who do are bound to it. Returns whether all are.
    ///
    /// Nothing but names that have appeared is looked up for them. A circle through the execution that has appeared is found when
    /// its own question is taken, which is younger than theirs.
    pub(super) fn has_appeared(
        &mut self,
        flow: &Text,
        name: &Text,
        others: &mut Appeared<'_>,
        budget: &mut usize,
    ) -> Result<bool, StoreError> {
        if *budget == 0 {
            return Ok(false);
        }
        let Some((execution, status)) = self.started(flow, name)? else {
            *budget -= 1;
            return Ok(true);
        };
        // Those that are bound to it already go on first, although its end was not told of yet.
        if status.is_ended() && !self.has_ended(&execution, status, budget)? {
            return Ok(false);
        }
        let awaited = Awaited::Name(flow, name);
        let (waiting, mut is_done) = self.overlay.dependents(awaited, *budget, self.rows)?;
        if !waiting.is_empty() && !status.is_ended() {
            self.watch_once(&execution)?;
        }
        for one in waiting {
            if *budget == 0 {
                is_done = false;
                break;
            }
            let is_read_first = !self.overlay.is_changed(&one);
            self.bind(&one, awaited, &execution, status, budget)?;
            if is_read_first {
                self.bind_others(&one, others, budget)?;
            }
        }
        *budget = budget.saturating_sub(1);
        Ok(is_done)
    }

    /// Binds a waiter, whose row is written in any case, also to the other names that have appeared.
    fn bind_others(&mut self, waiting: &Text, others: &mut Appeared<'_>, budget: &mut usize) -> Result<(), StoreError> {
        let known = self.overlay.known(waiting, self.rows)?;
        let unbound = known.into_iter().flat_map(unbound_names);
        let appeared: Vec<_> = unbound.filter(|name| others.names.contains(name)).collect();
        for (flow, name) in appeared {
            let key = (flow, name);
            if !others.running.contains_key(&key) {
                let started = self.started(&key.0, &key.1)?;
                // Those who wait for one that has ended go on in its turn.
                let running = started.filter(|(_, status)| !status.is_ended());
                others.running.insert(key.clone(), running);
            }
            if let Some(Some((execution, status))) = others.running.get(&key) {
                self.watch_once(execution)?;
                self.bind(waiting, Awaited::Name(&key.0, &key.1), execution, *status, budget)?;
            }
        }
        Ok(())
    }

    /// The execution of this name and its status, if there is one.
    fn started(&mut self, flow: &Text, name: &Text) -> Result<Option<(Text, Status)>, StoreError> {
        let Some(execution) = self.rows.named(flow, name)? else {
            return Ok(None);
        };
        let record = self.rows.record(&execution)?;
        let status = record.map_or(Status::New, |record| record.status);
        Ok((status != Status::New).then_some((execution, status)))
    }

    /// Asks an execution for its end, unless somebody who is bound to it did: it tells once, for all.
    fn watch_once(&mut self, execution: &Text) -> Result<(), StoreError> {
        if !self.overlay.is_awaited(execution, self.rows)? {
            self.overlay.send(execution, WATCH_EVENT, MessageBody::Watch);
        }
        Ok(())
    }

    /// Binds a waiter's dependencies of this kind to an execution that has this status.
    fn bind(
        &mut self,
        waiting: &Text,
        awaited: Awaited<'_>,
        execution: &Text,
        status: Status,
        budget: &mut usize,
    ) -> Result<(), StoreError> {
        let is_changed = self.overlay.is_changed(waiting);
        // One before may have ended its waiting, or a deadlock in which it had part.
        let Some(known) = self.overlay.known(waiting, self.rows)? else {
            return Ok(());
        };
        if !known.open.iter().any(|open| awaited.is(open)) {
            return Ok(());
        }
        // The row is written with all its names, once for all that becomes of it now.
        let cost = if is_changed { 1 } else { known.open.len() };
        *budget = budget.saturating_sub(cost);
        let is_child = !known.ask.ancestors.is_empty();
        // A call waits for its child, and the child would wait for the call.
        if known.ask.ancestors.contains(execution) {
            let waiter = known.clone();
            let executions = vec![execution.clone()];
            return self.decline(&waiter, DeclineReason::Cycle { executions });
        }
        if !status.is_ended() {
            self.overlay.bind(waiting, awaited, execution, self.rows)?;
            if is_child && let Some(waiter) = self.overlay.waiter(waiting, self.rows)? {
                self.end_deadlock(&waiter, &mut CanGoOn::default())?;
            }
            return Ok(());
        }
        let mut waiter = known.clone();
        let of_it = |open: &OpenDependency| awaited.is(open);
        let (ended, open): (Vec<_>, Vec<_>) = std::mem::take(&mut waiter.open).into_iter().partition(of_it);
        waiter.open = open;
        if ended.iter().all(|one| is_met(&one.dependency, status)) {
            return self.keep_open(waiter);
        }
        let execution = execution.clone();
        self.decline(&waiter, DeclineReason::Dependency { execution, status })
    }
}

/// Names that were started and whose waiters are still to be bound.
pub(super) struct Appeared<'a> {
    pub(super) names: &'a BTreeSet<(Text, Text)>,
    /// Of those that were looked up, the executions that run.
    pub(super) running: &'a mut BTreeMap<(Text, Text), Option<(Text, Status)>>,
}

enum Watched {
    Open,
    Met,
    Failed(DeclineReason),
}
