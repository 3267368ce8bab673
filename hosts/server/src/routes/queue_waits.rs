//! Why a task waits in a queue.

use starbridge_flow::value::{Object, Value};
use starbridge_ports::{QueuedTask, Store, StoreError, TaskLease};
use starbridge_runtime::QueueView;

/// A position in a queue is counted up to this.
const MAX_POSITION: u64 = 10_000;

/// Why a task is not held by a worker.
pub(super) struct Because {
    /// The word for it.
    pub(super) word: &'static str,
    /// The text for people.
    pub(super) text: String,
    /// The action that helps.
    pub(super) act: String,
}

/// Why a task of an execution in this queue is not held by a worker.
pub(super) fn because(id: &str, view: &QueueView) -> Because {
    let name = &view.name;
    let full = view.settings.max_concurrent.filter(|most| view.held >= *most);
    let first = format!("starbridge order {id} --priority 9");
    let (word, text, act) = match full {
        _ if view.settings.paused => (
            "queuePaused",
            "the queue is paused".to_owned(),
            format!("starbridge queue resume {name}"),
        ),
        _ if view.workers == 0 && view.busy == 0 => (
            "noWorker",
            "no worker asks for tasks".to_owned(),
            format!("starbridge worker --queue {name} -- COMMAND"),
        ),
        Some(most) => (
            "limit",
            format!("workers hold {}, and {most} may be held", tasks(view.held)),
            format!("starbridge queue set {name} --max-concurrent {}", most + 1),
        ),
        None if view.settings.rate_per_second.is_some() && view.workers > 0 => (
            "rate",
            "as many tasks were taken as may be in a second".to_owned(),
            first,
        ),
        None => (
            "behind",
            match view.waiting {
                1 => "1 task waits there".to_owned(),
                waiting => format!("{waiting} tasks wait there"),
            },
            first,
        ),
    };
    Because { word, text, act }
}

fn tasks(count: u64) -> String {
    match count {
        1 => "1 task".to_owned(),
        count => format!("{count} tasks"),
    }
}

/// Adds the state of the queue: who polls for its tasks, and how many may be held.
pub(super) fn tell_queue(view: &QueueView, because: &Because, shape: &mut Object) {
    let mut set = |key: &str, value: Value| drop(shape.insert(key.into(), value));
    set("queue", view.name.clone().into());
    set("because", because.word.into());
    set("waiting", view.waiting.into());
    set("workers", (view.workers as u64).into());
    set("held", view.held.into());
    if let Some(most) = view.settings.max_concurrent {
        set("maxConcurrent", most.into());
    }
    if let Some(rate) = view.settings.rate_per_second {
        set("ratePerSecond", rate.into());
    }
}

/// Adds the place of a task in its queue, and the end of its waiting time.
pub(super) fn tell_place(store: &dyn Store, task: &QueuedTask, shape: &mut Object) -> Result<(), StoreError> {
    if let Some(before) = store.tasks_before(task, MAX_POSITION)? {
        shape.insert("position".into(), (before + 1).into());
    }
    if let Some(until) = task.wait_until {
        shape.insert("waitUntil".into(), until.to_string().into());
    }
    Ok(())
}

/// Adds the holder of a task.
pub(super) fn tell_lease(lease: &TaskLease, shape: &mut Object) {
    shape.insert("worker".into(), lease.worker.clone().into());
    shape.insert("heldTime".into(), lease.held.to_string().into());
}
