//! Queues.

use super::{Case, Tried, more, start};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_machine::EventId;
use starbridge_ports::{Append, DeadTask, DeadTasksCleared, Depth, QueuedTask, ShardSet, TaskLease, TaskLeaseChange};

pub(super) const CASES: &[Case] = &[
    ("tasks come in order", tasks_come_in_order),
    ("a task leaves with a turn", a_task_leaves_with_a_turn),
    ("a task that is there stays as it is", a_task_stays_as_it_is),
    ("a refused turn queues nothing", a_refused_turn_queues_nothing),
    ("leases are kept", leases_are_kept),
    (
        "what is withdrawn stays with its worker",
        what_is_withdrawn_stays_with_its_worker,
    ),
    ("who has waited too long", who_has_waited_too_long),
    ("the dead are listed", the_dead_are_listed),
    ("what is cleared is in no queue", what_is_cleared_is_in_no_queue),
];

/// A task of this queue for the call of an execution.
pub fn task(queue: &str, execution: &str, call: u64) -> QueuedTask {
    QueuedTask {
        queue: queue.into(),
        execution: execution.into(),
        call: EventId(call),
        priority: 5,
        virtual_time: 3,
        order: Timestamp(10),
        since: Timestamp(20),
        wait_until: None,
        timeout: Some(Millis(7_000)),
        heartbeat: None,
        message: format!("{{\"call\":{call},\"text\":\"Zoë's\"}}"),
    }
}

/// An append that starts an execution with these tasks.
fn with(execution: &str, tasks: &[QueuedTask]) -> Append {
    Append {
        queued: tasks.to_vec(),
        ..start(execution)
    }
}

fn next(tried: &mut Tried<'_>, queue: &str, limit: usize) -> Vec<(String, u64)> {
    let tasks = tried.store().next_tasks(queue, limit).unwrap();
    tasks
        .into_iter()
        .map(|task| (task.execution.to_string(), task.call.0))
        .collect()
}

fn named(tasks: &[(&str, u64)]) -> Vec<(String, u64)> {
    tasks.iter().map(|(id, call)| ((*id).to_owned(), *call)).collect()
}

pub(super) fn lease(execution: &str, call: u64, worker: Option<&str>) -> TaskLeaseChange {
    TaskLeaseChange {
        execution: execution.into(),
        call: EventId(call),
        lease: worker.map(|worker| TaskLease {
            worker: worker.into(),
            held: Timestamp(500),
            heartbeat: Millis(30_000),
        }),
    }
}

fn tasks_come_in_order(tried: &mut Tried<'_>) {
    let urgent = QueuedTask {
        priority: 9,
        virtual_time: 8,
        ..task("q", "a", 4)
    };
    let early = QueuedTask {
        order: Timestamp(9),
        ..task("q", "b", 3)
    };
    let first = QueuedTask {
        virtual_time: 2,
        ..task("q", "b", 4)
    };
    tried.append(&[with("a", &[task("q", "a", 3), urgent.clone()])]);
    tried.append(&[with("b", &[early, first, task("other", "b", 5)])]);
    let all = named(&[("a", 4), ("b", 4), ("b", 3), ("a", 3)]);
    assert_eq!(next(tried, "q", 9), all);
    assert_eq!(next(tried, "q", 2), all[..2]);
    assert_eq!(next(tried, "none", 2), []);
    assert_eq!(tried.store().next_tasks("q", 1).unwrap(), [urgent]);
    let mut first = |below, each| {
        let tasks = tried.store().first_tasks("q", below, each).unwrap();
        tasks
            .into_iter()
            .map(|task| (task.execution.to_string(), task.call.0))
            .collect::<Vec<_>>()
    };
    assert_eq!(first(10, 2), all[..3]);
    assert_eq!(first(9, 2), all[1..3]);
    assert_eq!(first(9, 1), all[1..2]);
    assert_eq!(first(5, 2), []);
    let depth = |queue: &str, priority, waiting, virtual_time| Depth {
        queue: queue.into(),
        priority,
        waiting,
        virtual_time,
    };
    let depths = tried.store().depths(&ShardSet::ALL).unwrap();
    assert_eq!(
        depths,
        [depth("other", 5, 1, 3), depth("q", 5, 3, 2), depth("q", 9, 1, 8)]
    );
}

fn a_task_leaves_with_a_turn(tried: &mut Tried<'_>) {
    tried.append(&[with("a", &[task("q", "a", 1), task("q", "a", 2)])]);
    let over = Append {
        unqueued: vec![EventId(1), EventId(7)],
        queued: vec![task("q", "a", 3)],
        ..more("a", 2, 1)
    };
    tried.append(&[over]);
    assert_eq!(next(tried, "q", 9), named(&[("a", 2), ("a", 3)]));
}

fn a_task_stays_as_it_is(tried: &mut Tried<'_>) {
    tried.append(&[with("a", &[task("q", "a", 1)])]);
    tried.append(&[Append::of_leases(vec![lease("a", 1, Some("w"))])]);
    let again = Append {
        queued: vec![task("elsewhere", "a", 1)],
        turn: None,
        ..more("a", 2, 1)
    };
    tried.append(&[again]);
    assert_eq!(next(tried, "elsewhere", 9), []);
    assert_eq!(tried.store().leased_tasks(&ShardSet::ALL).unwrap().len(), 1);
}

fn a_refused_turn_queues_nothing(tried: &mut Tried<'_>) {
    tried.append(&[with("a", &[task("q", "a", 1)])]);
    let stale = Append {
        queued: vec![task("q", "a", 9)],
        unqueued: vec![EventId(1)],
        dead: vec![dead("q", "a", 1)],
        ..more("a", 1, 1)
    };
    assert_eq!(tried.refused(&[stale]).len(), 1);
    assert_eq!(next(tried, "q", 9), named(&[("a", 1)]));
    assert_eq!(tried.store().dead_counts().unwrap(), []);
}

fn leases_are_kept(tried: &mut Tried<'_>) {
    tried.append(&[with("a", &[task("q", "a", 1), task("q", "a", 2), task("q", "a", 3)])]);
    let leases = vec![
        lease("a", 1, Some("w")),
        lease("a", 2, Some("v")),
        lease("a", 9, Some("w")),
        lease("nobody", 1, Some("w")),
    ];
    tried.append(&[Append::of_leases(leases)]);
    assert_eq!(next(tried, "q", 9), named(&[("a", 3)]));
    assert_eq!(tried.store().depths(&ShardSet::ALL).unwrap()[0].waiting, 1);
    let held = tried.store().leased_tasks(&ShardSet::ALL).unwrap();
    let given = TaskLease {
        worker: "v".into(),
        held: Timestamp(500),
        heartbeat: Millis(30_000),
    };
    assert_eq!(held[1], (task("q", "a", 2), given));
    // Together with a turn in which another one leaves.
    let over = Append {
        unqueued: vec![EventId(1)],
        ..more("a", 2, 1)
    };
    tried.append(&[over, Append::of_leases(vec![lease("a", 2, None), lease("a", 1, None)])]);
    assert_eq!(tried.store().leased_tasks(&ShardSet::ALL).unwrap(), []);
    assert_eq!(next(tried, "q", 9), named(&[("a", 2), ("a", 3)]));
}

fn who_has_waited_too_long(tried: &mut Tried<'_>) {
    let until = |call, until| QueuedTask {
        wait_until: Some(Timestamp(until)),
        ..task("q", "a", call)
    };
    tried.append(&[with(
        "a",
        &[until(1, 300), until(2, 100), until(3, 200), task("q", "a", 4)],
    )]);
    tried.append(&[Append::of_leases(vec![lease("a", 3, Some("w"))])]);
    let overdue = |tried: &mut Tried<'_>, before, limit| -> Vec<u64> {
        let tasks = tried
            .store()
            .overdue_tasks(&ShardSet::ALL, Timestamp(before), limit)
            .unwrap();
        tasks.iter().map(|task| task.call.0).collect()
    };
    assert_eq!(overdue(tried, 300, 9), [2]);
    assert_eq!(overdue(tried, 301, 9), [2, 1]);
    assert_eq!(overdue(tried, 301, 1), [2]);
}

pub(super) fn dead(queue: &str, execution: &str, call: u64) -> DeadTask {
    DeadTask {
        queue: queue.into(),
        execution: execution.into(),
        call: EventId(call),
        step: "s".into(),
        attempt: 2,
        error: "Paper.Jam".into(),
        cause: "tray 2".into(),
        time: Timestamp(700),
    }
}

fn the_dead_are_listed(tried: &mut Tried<'_>) {
    let ends = |id: &str, calls: &[u64]| Append {
        dead: calls.iter().map(|call| dead("q", id, *call)).collect(),
        ..start(id)
    };
    tried.append(&[ends("a", &[1, 2]), ends("b", &[1])]);
    let listed = |tried: &mut Tried<'_>, after, limit| -> Vec<(String, u64)> {
        let tasks = tried.store().dead_tasks("q", after, limit).unwrap();
        tasks
            .iter()
            .map(|task| (task.execution.to_string(), task.call.0))
            .collect()
    };
    assert_eq!(listed(tried, None, 9), named(&[("a", 1), ("a", 2), ("b", 1)]));
    assert_eq!(listed(tried, Some(("a", EventId(1))), 1), named(&[("a", 2)]));
    assert_eq!(tried.store().dead_tasks("q", None, 1).unwrap(), [dead("q", "a", 1)]);
    assert_eq!(tried.store().dead_counts().unwrap(), [("q".into(), 3)]);
    let one = Append {
        dead_cleared: DeadTasksCleared::Calls(vec![EventId(2), EventId(5)]),
        turn: None,
        ..more("a", 2, 1)
    };
    tried.append(&[one]);
    assert_eq!(listed(tried, None, 9), named(&[("a", 1), ("b", 1)]));
    let goes_on = Append {
        dead_cleared: DeadTasksCleared::All,
        ..more("a", 2, 1)
    };
    tried.append(&[goes_on]);
    assert_eq!(listed(tried, None, 9), named(&[("b", 1)]));
}

fn what_is_cleared_is_in_no_queue(tried: &mut Tried<'_>) {
    let mut ended = with("a", &[task("q", "a", 1)]);
    ended.dead = vec![dead("q", "a", 2)];
    if let Some(record) = &mut ended.record {
        record.ended = Some(Timestamp(5));
        record.awake = false;
    }
    tried.append(&[ended]);
    while tried.store().clear(Timestamp(6), 10).unwrap() > 0 {}
    assert_eq!(tried.store().depths(&ShardSet::ALL).unwrap(), []);
    assert_eq!(tried.store().dead_counts().unwrap(), []);
    // No other task has its place.
    tried.append(&[start("b")]);
    assert_eq!(next(tried, "q", 9), []);
}

fn what_is_withdrawn_stays_with_its_worker(tried: &mut Tried<'_>) {
    let tasks = [task("q", "a", 3), task("q", "a", 4)];
    tried.append(&[with("a", &tasks)]);
    tried.append(&[Append::of_leases(vec![lease("a", 4, Some("w"))])]);
    let calls = [EventId(3), EventId(4)];
    tried.append(&[Append {
        withdrawn: calls.to_vec(),
        ..more("a", 2, 1)
    }]);
    assert_eq!(next(tried, "q", 9), named(&[]));
    let leased = |tried: &mut Tried<'_>| tried.store().leased_tasks(&ShardSet::ALL).unwrap();
    assert_eq!(leased(tried).len(), 1);
    // A lease of what is gone changes nothing.
    tried.append(&[Append::of_leases(vec![lease("a", 3, Some("late"))])]);
    assert_eq!(leased(tried).len(), 1);
    let again = tasks.map(|task| QueuedTask {
        since: Timestamp(900),
        ..task
    });
    tried.append(&[Append {
        queued: again.to_vec(),
        ..more("a", 3, 1)
    }]);
    assert_eq!(next(tried, "q", 9), named(&[("a", 3)]));
    let held = leased(tried);
    assert_eq!((held[0].0.call, held[0].0.since), (EventId(4), Timestamp(20)));
}
