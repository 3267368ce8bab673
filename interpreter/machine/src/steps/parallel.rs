//! Parallel.
//!
//! | children | what comes |
//! |---|---|
//! | one may begin | `BranchEntered` |
//! | all over, or as many as wanted | what runs is closed, `StepSucceeded` |
//! | too many failed, or time over | what runs is closed, undone, `StepFailed` |

use crate::event::EventKind;
use crate::state::{Children, FrameId, Outcome, State};
use crate::turn::Turn;
use starbridge_flow::graph::{Parallel, WaitFor};
use starbridge_flow::value::Object;

impl State {
    pub(super) fn step_parallel(&mut self, turn: &mut Turn<'_>, id: FrameId, parallel: &Parallel) {
        let Some(children) = self.visit_and_step(turn, id).and_then(|(visit, _)| visit.children()) else {
            return;
        };
        if children.closing.is_some() {
            return self.step_closing(turn, id);
        }
        let Some(branch) = next_branch(parallel, children) else {
            return self.complete(turn, id);
        };
        let depends_on = parallel
            .branches
            .get(branch as usize)
            .map(|branch| branch.depends_on.as_slice())
            .unwrap_or_default();
        let deps: Object = depends_on
            .iter()
            .filter_map(|&on| {
                let name = parallel.branches.get(on as usize)?.name.clone()?;
                match children.outcome(on) {
                    Outcome::Done(result) => Some((name, result.clone())),
                    _ => None,
                }
            })
            .collect();
        let deps = (!depends_on.is_empty()).then_some(deps);
        self.emit(turn, self.place(id), EventKind::BranchEntered { branch, deps });
    }
}

/// How many branches may run at once.
pub(super) fn max_running(parallel: &Parallel, children: &Children) -> usize {
    children.most_of(parallel.concurrency.as_ref())
}

/// The branch to begin next: everything it depends on has succeeded. Of several, the one with the highest priority,
/// then the first.
pub(super) fn next_branch(parallel: &Parallel, children: &Children) -> Option<u32> {
    if children.live.len() >= max_running(parallel, children) {
        return None;
    }
    let mut best: Option<(u8, u32)> = None;
    for (number, branch) in (0u32..).zip(&parallel.branches) {
        let begun = children.live.contains_key(&number)
            || children.retained.contains_key(&number)
            || *children.outcome(number) != Outcome::Open;
        // Priorities only matter where branches compete for places. Without a limit all begin in their order.
        let priority = if parallel.concurrency.is_some() {
            branch.priority
        } else {
            0
        };
        if begun || best.is_some_and(|(best, _)| best >= priority) {
            continue;
        }
        let succeeded = |&on: &u32| matches!(children.outcome(on), Outcome::Done(_));
        if branch.depends_on.iter().all(succeeded) {
            best = Some((priority, number));
        }
    }
    best.map(|(_, number)| number)
}

/// Whether as many branches have succeeded as the step wants.
pub(crate) fn is_met(parallel: &Parallel, children: &Children) -> bool {
    match parallel.wait_for {
        WaitFor::All => children.succeeded >= children.total,
        WaitFor::Count(count) => children.succeeded >= count,
    }
}

/// Whether the step goes on although branches failed. `failing` gives the branches whose failure is not among the
/// outcomes yet.
pub(crate) fn tolerates(parallel: &Parallel, children: &Children, failing: impl Fn(u32) -> bool) -> bool {
    match parallel.wait_for {
        WaitFor::All => false,
        WaitFor::Count(count) => can_succeed(parallel, children, failing) >= count,
    }
}

/// How many branches can still succeed, including those that have.
fn can_succeed(parallel: &Parallel, children: &Children, failing: impl Fn(u32) -> bool) -> u32 {
    let lost =
        |number: u32| matches!(children.outcome(number), Outcome::Failed(_) | Outcome::Cancelled) || failing(number);
    let mut dead: Vec<bool> = (0..children.total).map(lost).collect();
    // Dependencies form no cycle, so this ends after at most as many rounds as there are branches. Usually one is
    // enough.
    loop {
        let mut changed = false;
        for (number, branch) in parallel.branches.iter().enumerate() {
            let waits_for_dead = branch
                .depends_on
                .iter()
                .any(|&on| dead.get(on as usize).copied().unwrap_or(true));
            if let Some(mark) = dead.get_mut(number)
                && !*mark
                && waits_for_dead
            {
                *mark = true;
                changed = true;
            }
        }
        if !changed {
            break;
        }
    }
    u32::try_from(dead.iter().filter(|dead| !**dead).count()).unwrap_or(u32::MAX)
}
