//! The fold is compared with a naive one, on random histories and at each of their events.

use super::row::Row;
use super::*;
use starbridge_flow::graph::Pattern;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Failure, ScheduledCall};
use std::collections::BTreeMap;

/// All rows as they are, in one map, and nothing shared: what a fold does to them without blocks, copies and bytes.
#[derive(Clone, Default)]
struct Naive {
    rows: BTreeMap<u64, Row>,
    children: BTreeMap<u64, BTreeMap<u32, (ChildStatus, EventId)>>,
    open: BTreeMap<(String, u32), u64>,
    calls: BTreeMap<u64, u64>,
    undoing: BTreeMap<(String, u32), u64>,
    run: u32,
    paused: Option<Timestamp>,
    time: Timestamp,
}

fn place(items: &[PathItem]) -> String {
    items
        .iter()
        .map(|item| format!("{}:{:?}/", item.step.0, item.child))
        .collect()
}

impl Naive {
    fn give_up(&mut self, number: u64, time: Timestamp) {
        self.rows.get_mut(&number).unwrap().give_up(time);
        for child in self.children.entry(number).or_default().values_mut() {
            if child.0 == ChildStatus::Running {
                child.0 = ChildStatus::Cancelled;
            }
        }
    }

    fn open_rows(&self) -> Vec<u64> {
        let open = self.rows.values().filter(|row| row.is_open());
        open.map(Row::event).collect()
    }

    fn end_inside(&mut self, begin: &str, time: Timestamp) {
        let inside = self.open.iter().filter(|((path, _), _)| path.starts_with(begin));
        let inside: Vec<u64> = inside.map(|(_, number)| *number).collect();
        for number in inside {
            self.give_up(number, time);
        }
    }

    fn see(&mut self, flow: &Flow, event: &Event) {
        let before = std::mem::replace(&mut self.time, event.time);
        match &event.detail {
            EventKind::ExecutionRedriven { .. } | EventKind::RollbackSkipped { .. } => {
                for number in self.open_rows() {
                    self.give_up(number, before);
                }
                self.run += 1;
            }
            EventKind::ExecutionPaused { .. } => self.paused = Some(event.time),
            EventKind::ExecutionResumed { .. } => {
                if let Some(since) = self.paused.take() {
                    let open = self.rows.values_mut().filter(|row| row.is_open());
                    open.for_each(|row| row.end_pause(event.time.since(since)));
                }
            }
            _ => {}
        }
        let Some(step) = event.step else { return };
        let key = (place(event.path.items()), step.0);
        match event.rollback {
            true => self.see_undoing(&key, event),
            false => self.see_step(flow, key, event),
        }
    }

    fn iteration_exited(&mut self, event: &Event, step: StepId, exit: &Exit) {
        let Some((last, around)) = event.path.items().split_last() else {
            return;
        };
        let status = match exit {
            Exit::Done => ChildStatus::Done,
            Exit::Failed(_) => ChildStatus::Failed,
            Exit::Cancelled => ChildStatus::Cancelled,
        };
        if let (Some(number), Child::Iteration(child)) = (self.open.get(&(place(around), step.0)), last.child) {
            let children = self.children.entry(*number).or_default();
            children.insert(child, (status, event.id));
        }
    }

    fn see_undoing(&mut self, key: &(String, u32), event: &Event) {
        if let EventKind::RollbackStarted { of } = &event.detail {
            match self.calls.get(&of.0) {
                Some(number) => drop(self.undoing.insert(key.clone(), *number)),
                None => drop(self.undoing.remove(key)),
            }
        }
        if let Some(number) = self.undoing.get(key) {
            self.rows.get_mut(number).unwrap().see_undoing(event);
        }
    }

    fn see_step(&mut self, flow: &Flow, key: (String, u32), event: &Event) {
        let (items, step) = (event.path.items(), StepId(key.1));
        for (depth, item) in items.iter().enumerate().filter(|_| self.run > 0) {
            let around = (place(&items[..depth]), item.step.0);
            if let Some(number) = self.open.get(&around) {
                self.rows.get_mut(number).unwrap().go_on(self.run + 1);
            }
        }
        match &event.detail {
            EventKind::StepEntered { .. } => {
                if let Some(number) = self.open.get(&key).copied() {
                    self.give_up(number, event.time);
                }
                self.open.insert(key, event.id.0);
                let row = Row::entered(flow, event, step, self.run + 1);
                self.rows.insert(event.id.0, row);
                return;
            }
            EventKind::IterationExited(exit) => {
                self.end_inside(&key.0, event.time);
                return self.iteration_exited(event, step, exit);
            }
            EventKind::StepFailed { .. } | EventKind::StepExited { .. } => {
                self.end_inside(&format!("{}{}:", key.0, step.0), event.time);
            }
            _ => {}
        }
        let Some(number) = self.open.get(&key).copied() else {
            return;
        };
        self.rows.get_mut(&number).unwrap().see(event);
        match &event.detail {
            EventKind::IterationEntered { index, .. } => {
                let children = self.children.entry(number).or_default();
                children.insert(*index, (ChildStatus::Running, event.id));
            }
            EventKind::TaskScheduled(_) => drop(self.calls.insert(event.id.0, number)),
            EventKind::StepExited { .. } => drop(self.open.remove(&key)),
            _ => {}
        }
    }
}

/// Everything that is said of a row.
fn told(flow: &Flow, row: &Row) -> String {
    let spans: Vec<String> = row
        .spans()
        .iter()
        .map(|span| format!("{:?}", span.to_value()))
        .collect();
    let wait = row.open_wait();
    let value = row.clone().into_value(flow, |_, _| None);
    format!("{value:?} {wait:?} {} {spans:?}", row.spans_left_out())
}

fn same(flow: &Flow, visits: &Visits, naive: &Naive, what: &str) {
    let rows: Vec<String> = visits.rows().map(|row| told(flow, &row)).collect();
    let naive_rows: Vec<String> = naive.rows.values().map(|row| told(flow, row)).collect();
    assert_eq!(rows, naive_rows, "{what}");
    for number in naive.rows.keys() {
        let each = visits.children(*number).into_iter().flat_map(Children::each);
        let each: BTreeMap<u32, _> = (0..).zip(each).filter(|(_, child)| child.1 != EventId(0)).collect();
        let naive = naive.children.get(number).cloned().unwrap_or_default();
        assert_eq!(each, naive, "{what}: the children of {number}");
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

const TASK: StepId = StepId(2);

fn flow() -> Arc<Flow> {
    let text = r#"{"version": "v1", "type": "flow", "steps": [
        {"type": "pass", "name": "first"},
        {"type": "foreach", "name": "each", "iterationMapping": {"collection": "$.items", "item": "item"}, "steps": [
            {"type": "task", "name": "work", "resourceArn": "queue:jobs"},
            {"type": "pass", "name": "note"}]}]}"#;
    let checked = starbridge_fdl::check(&Source::new("flow.json", text), &Limits::default());
    let flow = checked.flow.expect("it has no mistake");
    let names: Vec<&str> = flow.steps.iter().map(|step| &*step.name).collect();
    assert_eq!(names, ["first", "each", "work", "note"]);
    flow
}

fn failure(random: &mut Random) -> Failure {
    Failure {
        error: Text::from(["Busy", "Late"][random.below(2) as usize]),
        cause: Text::from(format!("cause {}", random.below(3))),
    }
}

/// Any event about any step, at any place: a fold takes them all.
fn event(random: &mut Random, id: u64, time: i64, calls: &mut Vec<u64>) -> Event {
    let each = StepId(1);
    let child = Child::Iteration(random.below(90) as u32);
    let inside = StepPath::from(vec![PathItem { step: each, child }]);
    let due = Timestamp(time + random.below(50) as i64);
    let (detail, rollback, of_flow) = match random.below(26) {
        0..=20 => (detail(random, due), false, false),
        21..=24 => (undoing(random, calls), true, false),
        _ => (of_flow(random), false, true),
    };
    if let EventKind::TaskScheduled(_) = detail {
        calls.push(id);
    }
    let (step, path) = match (&detail, random.below(8)) {
        (EventKind::IterationEntered { .. }, _) => (each, StepPath::default()),
        (EventKind::IterationExited(_), _) => (each, inside),
        (_, 0) => (StepId(0), StepPath::default()),
        (_, 1) => (each, StepPath::default()),
        (_, 2) => (StepId(3), inside),
        _ => (TASK, inside),
    };
    Event {
        id: EventId(id),
        caused_by: EventId(id.saturating_sub(1)),
        time: Timestamp(time),
        step: (!of_flow).then_some(step),
        path: if of_flow { StepPath::default() } else { path },
        rollback,
        detail,
    }
}

fn detail(random: &mut Random, due: Timestamp) -> EventKind {
    let any = failure(random);
    match random.below(22) {
        0..=4 => EventKind::StepEntered { settings: None },
        5..=6 => EventKind::StepStarted {
            attempt: 1 + random.below(3) as u32,
            input: None,
            missing: Vec::new(),
            bounds: None,
        },
        7..=8 => EventKind::TaskScheduled(Box::new(scheduled(random, due))),
        9 => EventKind::TaskSubmitted {
            receipt: None,
            execution: [None, Some(Text::from("child-1"))][random.below(2) as usize].clone(),
            version: None,
        },
        10 => EventKind::StepFailed {
            failure: any,
            attempt: 1,
        },
        11 => EventKind::WaitStarted { until: due },
        12 => EventKind::RetryScheduled {
            policy: 0,
            attempt: 2,
            delay: Millis::ZERO,
            due,
            value: None,
        },
        13..=15 => EventKind::StepExited {
            goto: None,
            caught: None,
            missing: Vec::new(),
        },
        16..=17 => EventKind::IterationEntered {
            index: random.below(90) as u32,
            item: Value::Null,
        },
        18..=19 => {
            let exits = [Exit::Done, Exit::Failed(any), Exit::Cancelled];
            EventKind::IterationExited(exits[random.below(3) as usize].clone())
        }
        20 => EventKind::TaskSucceeded {
            result: Value::Null,
            worker: [None, Some(Text::from("w-1"))][random.below(2) as usize].clone(),
            held_time: Some(due),
        },
        _ => EventKind::ManualRequested(any),
    }
}

fn undoing(random: &mut Random, calls: &[u64]) -> EventKind {
    let at = random.below(calls.len().max(1) as u64) as usize;
    match random.below(4) {
        0 | 1 => EventKind::RollbackStarted {
            of: EventId(calls.get(at).copied().unwrap_or(0)),
        },
        2 => EventKind::RollbackSucceeded,
        _ => EventKind::RollbackFailed {
            failure: failure(random),
            original: None,
        },
    }
}

fn of_flow(random: &mut Random) -> EventKind {
    match random.below(12) {
        0 => EventKind::RollbackSkipped {
            of: EventId(1),
            by: Text::default(),
            cause: Text::default(),
        },
        1..=5 => EventKind::ExecutionPaused {
            by: Text::default(),
            cause: Text::default(),
            with_parent: false,
        },
        _ => EventKind::ExecutionResumed { by: Text::default() },
    }
}

fn scheduled(random: &mut Random, due: Timestamp) -> ScheduledCall {
    let callback = random.below(3) == 0;
    ScheduledCall {
        resource: Text::from(["queue:jobs", "http://localhost/f"][random.below(2) as usize]),
        pattern: if callback {
            Pattern::WaitForCallback
        } else {
            Pattern::RequestResponse
        },
        attempt: 1,
        call: 1,
        params: None,
        timeout_at: [None, Some(due)][random.below(2) as usize],
        timeout: None,
        wait: None,
        heartbeat: None,
        priority: None,
    }
}

#[test]
fn agrees_with_the_naive_fold_at_each_event() {
    let flow = flow();
    for seed in 0..6 {
        let mut random = Random(seed);
        let (mut visits, mut naive) = (Visits::new(usize::MAX), Naive::default());
        let (mut calls, mut time) = (Vec::new(), 1_700_000_000_000_i64);
        let mut copies = Vec::new();
        for id in 1..=500 {
            time += random.below(20) as i64;
            let event = event(&mut random, id, time, &mut calls);
            visits.see(&flow, &event);
            naive.see(&flow, &event);
            if random.below(25) == 0 {
                visits.settle();
            }
            if id < 100 || id % 10 == 0 {
                same(&flow, &visits, &naive, &format!("seed {seed}, event {id}, {event:?}"));
            }
            copies.push((visits.clone(), (id % 60 == 0).then(|| naive.clone())));
        }
        // What came later did not change the copies.
        for (visits, naive) in copies {
            if let Some(naive) = naive {
                same(&flow, &visits, &naive, &format!("a copy of seed {seed}"));
                found(&flow, &visits, &naive);
            }
        }
    }
}

/// Pages have what a look at all rows finds.
fn found(flow: &Flow, visits: &Visits, naive: &Naive) {
    let path = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let filter = VisitFilter::default();
    let status = |status: &str| Some(status.to_owned());
    let inside = |row: &Row| row.path(flow) == path(r#"[{"step": "each", "iteration": 7}]"#);
    type Has<'a> = &'a dyn Fn(&Row) -> bool;
    let filters: [(VisitFilter, Has<'_>); 5] = [
        (filter.clone(), &|_| true),
        (
            VisitFilter {
                status: status("cancelled"),
                ..filter.clone()
            },
            &|row| row.status() == "cancelled",
        ),
        (
            VisitFilter {
                step: status("note"),
                ..filter.clone()
            },
            &|row| row.step() == "note",
        ),
        (
            VisitFilter {
                path: Some(path(r#"[{"step": "each", "iteration": 7}]"#)),
                ..filter.clone()
            },
            &inside,
        ),
        (
            VisitFilter {
                path: Some(path(r#"[{"step": "none", "iteration": 7}]"#)),
                ..filter
            },
            &|_| false,
        ),
    ];
    for (mut filter, has) in filters {
        let mut events = Vec::new();
        loop {
            let (rows, next) = visits.page(flow, &filter, 7);
            events.extend(rows.iter().map(Row::event));
            match next {
                Some(next) => filter.after = next,
                None => break,
            }
        }
        let all = naive.rows.values().filter(|row| has(row)).map(Row::event);
        assert_eq!(events, all.collect::<Vec<_>>(), "{filter:?}");
    }
}

/// A foreach with one `pass`, a hundred iterations at once, as the machine does it.
fn wide(items: u32, mut see: impl FnMut(&Event)) {
    let each = StepId(1);
    let mut id = 0_u64;
    let mut tell = |step, path: StepPath, detail| {
        id += 1;
        see(&Event {
            id: EventId(id),
            caused_by: EventId(id - 1),
            time: Timestamp(1_700_000_000_000 + i64::try_from(id / 1_000).unwrap()),
            step: Some(step),
            path,
            rollback: false,
            detail,
        });
    };
    let entered = || EventKind::StepEntered { settings: None };
    let started = || EventKind::StepStarted {
        attempt: 1,
        input: None,
        missing: Vec::new(),
        bounds: None,
    };
    tell(each, StepPath::default(), entered());
    tell(each, StepPath::default(), started());
    for first in (0..items).step_by(100) {
        let inside = |index| StepPath::default().inside(each, Child::Iteration(index));
        for index in first..first + 100 {
            tell(
                each,
                StepPath::default(),
                EventKind::IterationEntered {
                    index,
                    item: Value::Null,
                },
            );
            tell(StepId(3), inside(index), entered());
        }
        for index in first..first + 100 {
            tell(StepId(3), inside(index), started());
            tell(
                StepId(3),
                inside(index),
                EventKind::StepSucceeded {
                    output: None,
                    missing: Vec::new(),
                },
            );
            tell(
                StepId(3),
                inside(index),
                EventKind::StepExited {
                    goto: None,
                    caught: None,
                    missing: Vec::new(),
                },
            );
            tell(each, inside(index), EventKind::IterationExited(Exit::Done));
        }
    }
}

#[test]
fn wide_foreach_is_small_and_so_are_its_copies() {
    const ITEMS: u32 = 100_000;
    let flow = flow();
    let mut visits = Visits::new(usize::MAX);
    let mut copies = Vec::new();
    wide(ITEMS, |event| {
        visits.see(&flow, event);
        if event.id.0.is_multiple_of(4_096) {
            visits.settle();
            copies.push(visits.clone());
        }
    });
    let mut counted = VisitSet::default();
    let own = visits.bytes(&mut counted);
    let of_copies: usize = copies.iter().map(|copy| copy.bytes(&mut counted)).sum();
    assert!(own < 6 << 20, "{own} bytes");
    assert!(of_copies < 16 << 20, "{of_copies} bytes of {} copies", copies.len());
    let children = visits.children(1).unwrap();
    assert!(children.len() == ITEMS as usize && children.each().all(|(status, _)| status == ChildStatus::Done));
}
