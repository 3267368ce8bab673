//! Undoing what was done in a list.

use super::data::{Roots, mapped};
use super::retries::Retries;
use super::scope::{Done, Scope};
use super::world::World;
use super::{Fault, Object, Run, task};
use serde_json::{Value, json};
use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Undoes one task after the other because of this failure. It continues even if nothing waits for
/// it any more.
pub fn undo(world: &Rc<World>, scope: Rc<Scope>, pile: Vec<Done>, fault: Fault) -> Run<()> {
    if pile.is_empty() {
        return Box::pin(std::future::ready(()));
    }
    let over = Rc::new(Cell::new(false));
    let told = over.clone();
    world.begin_undoing();
    scope.count_undoing(1);
    let this = world.clone();
    world.spawn(Box::pin(async move {
        for done in pile {
            if this.broken().is_some() {
                break;
            }
            if undo_one(&this, &done, &fault).await.is_err() {
                this.breaks(&fault);
            }
        }
        told.set(true);
        scope.count_undoing(-1);
        this.end_undoing();
    }));
    Box::pin(poll_fn(
        move |_| if over.get() { Poll::Ready(()) } else { Poll::Pending },
    ))
}

async fn undo_one(world: &Rc<World>, done: &Done, fault: &Fault) -> Result<(), Fault> {
    let name = done.step["name"].as_str().unwrap_or_default();
    let rollback = &done.step["rollback"];
    world.undone(name);
    let mut retries = Retries::default();
    loop {
        let failure = match undo_attempt(world, done, rollback, fault).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        match retries.next(&rollback["retry"], &failure) {
            Some(delay) => world.after(delay).await,
            None => return Err(failure),
        }
    }
}

async fn undo_attempt(world: &Rc<World>, done: &Done, rollback: &Value, fault: &Fault) -> Result<(), Fault> {
    let roots = Roots {
        input: &done.input,
        local: &done.result,
        context: &json!({"error": fault.error, "cause": fault.cause}),
    };
    let _: Object = mapped(&rollback["inputMappings"], &roots, "FnF.InvalidInput")?;
    let bound = rollback["timeoutSeconds"].as_u64();
    let name = done.step["name"].as_str().unwrap_or_default();
    let call = task::Call {
        key: format!("{name}.rollback"),
        iterations: done.iterations.clone(),
        heartbeat: None,
    };
    let number = world.number();
    let deadline = bound.map(|seconds| world.after(seconds * 1000));
    task::answered(world, &call, number, deadline.as_ref())
        .await
        .map(|_| ())
}
