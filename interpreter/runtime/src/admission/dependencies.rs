//! Dependencies: executions that others wait for to end before they begin.

use super::choose::Choice;
use super::circles::{Circle, find};
use starbridge_flow::value::Text;
use starbridge_machine::Status;
use starbridge_ports::{
    DeclineReason, Dependency, ExecutionRecord, MET_EVENT, MessageBody, OpenDependency, StoreError, WATCH_EVENT,
    Waiter, Waiters,
};

fn is_met(dependency: &Dependency, status: Status) -> bool {
    dependency.any_end || status == Status::Succeeded
}

impl Choice<'_> {
    /// Looks for what a waiter waits for. Its row is durable, so a start that is not found here finds the row.
    pub(super) fn look_up(&mut self, mut waiter: Waiter) -> Result<(), StoreError> {
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
                    Some(execution) => match self.watch(execution, &one.dependency)? {
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
        match self.circle(&waiter)? {
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
    fn watch(&mut self, execution: &Text, dependency: &Dependency) -> Result<Watched, StoreError> {
        let record: Option<ExecutionRecord> = self.rows.record(execution)?;
        let status = record.map_or(Status::New, |record| record.status);
        if status != Status::New && !status.is_ended() {
            self.overlay.send(execution, WATCH_EVENT, MessageBody::Watch);
            return Ok(Watched::Open);
        }
        if status != Status::New {
            // Those that have waited for it longer go on first, although its end was not told of yet.
            self.has_ended(execution, status)?;
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

    /// An execution has ended: those who wait for it go on, or are declined.
    pub(super) fn has_ended(&mut self, execution: &Text, status: Status) -> Result<(), StoreError> {
        if !self.overlay.dependencies {
            return Ok(());
        }
        let is_bound = |one: &OpenDependency| one.bound.as_ref() == Some(execution);
        let waiting = self.overlay.all(
            |after| Waiters::BoundTo(execution, after),
            |waiter| waiter.open.iter().any(is_bound),
            self.rows,
        )?;
        waiting
            .into_iter()
            .try_for_each(|waiter| self.bind(&waiter.execution, execution, status, is_bound))
    }

    /// An execution was started under a name that somebody may wait for: those who do are bound to it.
    ///
    /// Nothing else is looked up for them: their other names are told of when they appear. A circle through the execution that
    /// has appeared is found when its own question is taken, which is younger than theirs.
    pub(super) fn has_appeared(&mut self, flow: &Text, name: &Text) -> Result<(), StoreError> {
        let Some(execution) = self.rows.named(flow, name)? else {
            return Ok(());
        };
        let record = self.rows.record(&execution)?;
        let status = record.map_or(Status::New, |record| record.status);
        if status == Status::New {
            return Ok(());
        }
        if status.is_ended() {
            // Those that are bound to it already go on first, although its end was not told of yet.
            self.has_ended(&execution, status)?;
        }
        let is_named = |one: &OpenDependency| {
            one.bound.is_none() && one.dependency.flow.as_ref() == Some(flow) && one.dependency.execution == *name
        };
        let waiting = self.overlay.all(
            |after| Waiters::Named(flow, name, after),
            |waiter| waiter.open.iter().any(is_named),
            self.rows,
        )?;
        let watches = !waiting.is_empty() && !status.is_ended();
        for waiter in waiting {
            self.bind(&waiter.execution, &execution, status, is_named)?;
        }
        if watches {
            self.overlay.send(&execution, WATCH_EVENT, MessageBody::Watch);
        }
        Ok(())
    }

    /// Binds a waiter's dependencies of this kind to an execution that has this status.
    fn bind(
        &mut self,
        waiting: &Text,
        execution: &Text,
        status: Status,
        which: impl Fn(&OpenDependency) -> bool,
    ) -> Result<(), StoreError> {
        // One before may have ended its waiting, or a deadlock in which it had part.
        let Some(mut waiter) = self.overlay.waiter(waiting, self.rows)? else {
            return Ok(());
        };
        if !waiter.open.iter().any(&which) {
            return Ok(());
        }
        // A call waits for its child, and the child would wait for the call.
        if waiter.ask.ancestors.contains(execution) {
            let executions = vec![execution.clone()];
            return self.decline(&waiter, DeclineReason::Cycle { executions });
        }
        if !status.is_ended() {
            for one in waiter.open.iter_mut().filter(|one| which(one)) {
                one.bound = Some(execution.clone());
            }
            return self.keep_dependent(&waiter);
        }
        let (ended, open): (Vec<_>, Vec<_>) = std::mem::take(&mut waiter.open).into_iter().partition(which);
        waiter.open = open;
        if ended.iter().all(|one| is_met(&one.dependency, status)) {
            return self.keep_open(waiter);
        }
        let execution = execution.clone();
        self.decline(&waiter, DeclineReason::Dependency { execution, status })
    }
}

enum Watched {
    Open,
    Met,
    Failed(DeclineReason),
}
