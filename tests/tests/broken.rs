//! Executions that can't be continued: they are set aside, and the others continue.

use starbridge_fdl::check;
use starbridge_flow::graph::{Fault, Flow, FlowParts, Output, OutputMode, Program, Scope};
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::{Format, Source};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::Text;
use starbridge_machine::{Signal, Status};
use starbridge_memory::MemoryStore;
use starbridge_node::system::SystemClock;
use starbridge_ports::{
    Broken, Connector, ExecutionRecord, Mark, OutcomeFuture, Query, Request, SUSPECT, ShardSet, Store,
};
use starbridge_runtime::{Command, FlowTable, Reply, StartRequest, StartTime, note_end, note_start, note_stopping};
use starbridge_sqlite::SqliteStore;
use starbridge_tests::engine_thread::run_engine;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// The action of a step in place of making its output.
#[derive(Debug)]
struct Poison {
    /// Ends the process in place of a panic.
    abort: bool,
    runs: AtomicUsize,
    /// From so many runs on it is cured.
    cured: AtomicUsize,
}

#[derive(Debug)]
struct Step(Arc<Poison>);

impl Program for Step {
    fn run(&self, _: &Scope<'_>) -> Result<Output, Fault> {
        let run = self.0.runs.fetch_add(1, Ordering::SeqCst);
        if run >= self.0.cured.load(Ordering::SeqCst) {
            return Ok(Output::default());
        }
        if self.0.abort {
            std::process::abort();
        }
        std::panic::resume_unwind(Box::new("a plan of the test".to_owned()));
    }
}

impl Poison {
    fn new(cured: usize, abort: bool) -> Arc<Self> {
        Arc::new(Self {
            abort,
            runs: AtomicUsize::new(0),
            cured: AtomicUsize::new(cured),
        })
    }
}

/// A call that never comes back.
struct Never;

impl Connector for Never {
    fn call(&self, _: Request) -> OutcomeFuture<'_> {
        Box::pin(std::future::pending())
    }
}

fn flow(steps: &str) -> Flow {
    let text = format!(r#"{{"version": "v1", "type": "flow", "steps": {steps}}}"#);
    let checked = check(&Source::new("test", text).with_format(Format::Json), &Limits::default());
    Arc::unwrap_or_clone(checked.flow.unwrap())
}

/// `poisoned`: its step `boom` is the poison, after a pause that makes the start durable. `waits`: it has a call out.
fn flows(poison: &Arc<Poison>) -> FlowTable {
    let boom = flow(r#"[{"type": "wait", "name": "pause", "duration": 1}, {"type": "pass", "name": "boom"}]"#);
    let step = boom.step_named("boom").unwrap();
    let mut parts: FlowParts = (*boom).clone();
    parts.steps[step.0 as usize].leave = OutputMode::Program(Arc::new(Step(poison.clone())));
    let mut flows = FlowTable::default();
    flows.put("poisoned", Arc::new(Flow::new(parts).unwrap()));
    let waits = flow(r#"[{"type": "task", "name": "call", "resourceArn": "http://127.0.0.1/never"}]"#);
    flows.put("waits", Arc::new(waits));
    flows.put("passes", Arc::new(flow(r#"[{"type": "pass", "name": "p"}]"#)));
    flows
}

/// A running engine.
struct Running {
    store: Arc<dyn Store>,
    commands: mpsc::Sender<Command>,
}

impl Running {
    fn over(store: &Arc<dyn Store>, poison: &Arc<Poison>) -> Self {
        note_start(store.as_ref(), now()).unwrap();
        let commands = run_engine(store, flows(poison), Arc::new(Never));
        Self {
            store: store.clone(),
            commands,
        }
    }

    fn start(&self, flow: &str) -> Text {
        self.start_at(flow, StartTime::Now)
    }

    fn start_at(&self, flow: &str, time: StartTime) -> Text {
        let (reply, answer) = oneshot::channel();
        let request = StartRequest {
            flow: flow.into(),
            time,
            ..StartRequest::default()
        };
        let command = Command::Start {
            request: Box::new(request),
            wait: false,
            reply,
        };
        self.commands.blocking_send(command).unwrap();
        answer.blocking_recv().unwrap().unwrap().snapshot.execution
    }

    fn signal(&self, execution: &Text, signal: Signal) -> Reply {
        let (reply, answer) = oneshot::channel();
        let command = Command::Signal {
            audit: None,
            execution: execution.clone(),
            signal: Box::new(signal),
            reply: Some(reply),
        };
        self.commands.blocking_send(command).unwrap();
        answer.blocking_recv().unwrap()
    }

    /// Ends the engine, and waits until it has ended.
    fn end(&self) {
        self.commands.blocking_send(Command::Drain { until: now() }).unwrap();
        let begun = Instant::now();
        while !self.commands.is_closed() {
            assert!(begun.elapsed() < Duration::from_secs(60), "the engine goes on");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn record(&self, execution: &Text) -> ExecutionRecord {
        self.store.record(execution).unwrap().unwrap()
    }

    /// Waits for the record to be as wanted.
    fn until(&self, execution: &Text, wanted: impl Fn(&ExecutionRecord) -> bool) -> ExecutionRecord {
        let begun = Instant::now();
        loop {
            let record = self.record(execution);
            if wanted(&record) {
                return record;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{record:?}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    fn broken(&self) -> Vec<Text> {
        let query = Query {
            broken: true,
            limit: 100,
            ..Query::default()
        };
        let page = self.store.list(&query).unwrap();
        page.items.into_iter().map(|listed| listed.id).collect()
    }
}

fn now() -> Timestamp {
    starbridge_ports::Clock::now(&SystemClock)
}

fn stop() -> Signal {
    Signal::Stop {
        error: None,
        cause: "enough".to_owned(),
        by: None,
        rollback: true,
        with_parent: false,
    }
}

fn is_broken(record: &ExecutionRecord) -> bool {
    record.broken.is_some()
}

fn each_store(work: impl Fn(Arc<dyn Store>)) {
    work(Arc::new(MemoryStore::new()));
    let folder = tempfile::tempdir().unwrap();
    work(Arc::new(SqliteStore::open(folder.path().join("store.db")).unwrap()));
}

#[test]
fn what_panics_three_times_in_a_row_is_set_aside_and_others_go_on() {
    each_store(|store| {
        let poison = Poison::new(usize::MAX, false);
        let engine = Running::over(&store, &poison);
        let id = engine.start("poisoned");
        let record = engine.until(&id, is_broken);
        assert_eq!(poison.runs.load(Ordering::SeqCst), 3);
        assert_eq!(record.status, Status::Running);
        let cause = record.broken.unwrap().cause;
        assert!(
            cause.contains("3 times") && cause.contains("a plan of the test"),
            "{cause}"
        );
        assert_eq!(engine.broken(), std::slice::from_ref(&id));
        assert!(!store.awake(&ShardSet::ALL).unwrap().contains(&id));
        let other = engine.start("passes");
        engine.until(&other, |record| record.status == Status::Succeeded);
        // It is not taken up by a start either.
        let next = Running::over(&store, &poison);
        next.start("passes");
        assert_eq!(next.signal(&id, stop()), Reply::Taken);
        assert_eq!(next.record(&id).status, Status::Stopped);
        assert_eq!(poison.runs.load(Ordering::SeqCst), 3);
        assert_eq!(next.broken(), [] as [Text; 0]);
    });
}

#[test]
fn what_panics_twice_and_then_goes_on_is_not_set_aside() {
    each_store(|store| {
        let poison = Poison::new(2, false);
        let engine = Running::over(&store, &poison);
        let id = engine.start("poisoned");
        let record = engine.until(&id, |record| record.ended.is_some());
        assert_eq!((record.status, record.broken), (Status::Succeeded, None));
        assert_eq!(poison.runs.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn an_operator_lets_one_that_was_set_aside_go_on() {
    each_store(|store| {
        let poison = Poison::new(usize::MAX, false);
        let engine = Running::over(&store, &poison);
        let id = engine.start("poisoned");
        engine.until(&id, is_broken);
        poison.cured.store(0, Ordering::SeqCst);
        let redrive = Signal::Redrive {
            by: None,
            inputs: Vec::new(),
            definition: None,
        };
        assert_eq!(engine.signal(&id, redrive), Reply::Taken);
        let record = engine.until(&id, |record| record.ended.is_some());
        assert_eq!((record.status, record.broken), (Status::Succeeded, None));
    });
}

#[test]
fn a_stop_that_took_the_process_along_is_done_without_computing_the_next_time() {
    each_store(|store| {
        let poison = Poison::new(0, false);
        let engine = Running::over(&store, &poison);
        let id = engine.start("waits");
        let broken = Broken {
            since: now(),
            cause: "a plan of the test".into(),
        };
        store
            .mark(&[(id.clone(), Mark::Broken(broken)), (id.clone(), Mark::Failed)], None)
            .unwrap();
        let next = Running::over(&store, &poison);
        next.start("passes");
        assert_eq!(next.signal(&id, stop()), Reply::Taken);
        let record = next.record(&id);
        assert_eq!(
            (record.status, record.attempts, record.broken),
            (Status::Stopped, 0, None)
        );
        // The stop is the last event: no call was given up.
        let turns = store.load_whole(&id).unwrap().unwrap().turns;
        assert_eq!(turns.last().unwrap().events, 1);
    });
}

/// An execution that waits, in a store whose last process ended while it ran the execution alone.
fn ended_while_alone(store: &Arc<dyn Store>, before: &[Mark]) -> Text {
    let engine = Running::over(store, &Poison::new(0, false));
    let id = engine.start("waits");
    let marks = before.iter().chain([&Mark::Alone]);
    let marks: Vec<_> = marks.map(|mark| (id.clone(), mark.clone())).collect();
    store.mark(&marks, None).unwrap();
    id
}

#[test]
fn one_end_of_the_process_while_a_suspect_runs_alone_proves_nothing() {
    each_store(|store| {
        let id = ended_while_alone(&store, &[Mark::Failed, Mark::Failed]);
        let next = Running::over(&store, &Poison::new(0, false));
        next.start("passes");
        assert_eq!(next.record(&id).broken, None);
        // It is remembered until a turn of it is durable: at the second such end it is the cause.
        assert_eq!(next.record(&id).attempts, 3);
        store.mark(&[(id.clone(), Mark::Alone)], None).unwrap();
        let last = Running::over(&store, &Poison::new(0, false));
        last.start("passes");
        let cause = last.until(&id, is_broken).broken.unwrap().cause;
        assert!(cause.contains("4 times"), "{cause}");
    });
}

#[test]
fn ends_of_a_process_that_was_told_to_stop_count_for_nothing() {
    each_store(|store| {
        let id = ended_while_alone(&store, &[Mark::Failed, Mark::Failed]);
        for _ in 0..4 {
            note_stopping(store.as_ref()).unwrap();
            let next = Running::over(&store, &Poison::new(0, false));
            next.start("passes");
            assert_eq!((next.record(&id).broken, next.record(&id).attempts), (None, 2));
            store.mark(&[(id.clone(), Mark::Alone)], None).unwrap();
        }
    });
}

#[test]
fn a_suspect_whose_time_has_come_begins() {
    each_store(|store| {
        let before = Running::over(&store, &Poison::new(0, false));
        let id = before.start_at("passes", StartTime::After(Millis(100)));
        drop(before);
        store
            .mark(&[(id.clone(), Mark::Failed), (id.clone(), Mark::Failed)], None)
            .unwrap();
        let due = store.record(&id).unwrap().unwrap().wake_at;
        while due.is_some_and(|due| now() < due) {
            std::thread::park_timeout(Duration::from_millis(20));
        }
        let next = Running::over(&store, &Poison::new(0, false));
        next.until(&id, |record| record.status == Status::Succeeded);
    });
}

#[test]
fn set_aside_before_it_began_it_can_be_stopped() {
    each_store(|store| {
        let before = Running::over(&store, &Poison::new(0, false));
        let id = before.start_at("passes", StartTime::After(Millis::from_secs(3_600)));
        drop(before);
        let broken = Broken {
            since: now(),
            cause: "a plan of the test".into(),
        };
        store.mark(&[(id.clone(), Mark::Broken(broken))], None).unwrap();
        let next = Running::over(&store, &Poison::new(0, false));
        assert_eq!(next.signal(&id, stop()), Reply::Taken);
        let record = next.until(&id, |record| record.ended.is_some());
        assert_eq!((record.status, record.broken), (Status::Stopped, None));
        let turns = store.load_whole(&id).unwrap().unwrap().turns;
        assert_eq!(turns.iter().map(|turn| turn.events).sum::<u32>(), 2);
    });
}

/// The path of the store of a process that is to be ended.
const STORE: &str = "STARBRIDGE_TEST_POISONED_STORE";

/// The code that the processes of the next test run.
#[test]
fn a_process_with_a_poison() {
    let Some(path) = std::env::var_os(STORE) else {
        return;
    };
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(Path::new(&path)).unwrap());
    let engine = Running::over(&store, &Poison::new(usize::MAX, true));
    if store.counts().unwrap().is_empty() {
        for _ in 0..20 {
            engine.start("waits");
        }
        engine.start("poisoned");
    }
    let poisoned = store.list(&Query {
        flow: Some("poisoned".into()),
        limit: 1,
        ..Query::default()
    });
    let id = poisoned.unwrap().items.first().unwrap().id.clone();
    engine.until(&id, is_broken);
    // A process that ends while it goes on with somebody else is no regular end.
    engine.end();
    note_end(store.as_ref()).unwrap();
}

#[test]
fn what_ends_the_process_again_and_again_is_set_aside_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let mut ends = Vec::new();
    for _ in 0..6 {
        let program = std::env::current_exe().unwrap();
        let run = std::process::Command::new(program)
            .args(["--exact", "a_process_with_a_poison"])
            .env(STORE, &path)
            .output()
            .unwrap();
        ends.push(run.status.code());
        if run.status.success() {
            break;
        }
    }
    assert_eq!(ends, [None, None, None, None, Some(0)]);
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&path).unwrap());
    let all = store.list(&Query {
        limit: 100,
        ..Query::default()
    });
    let all = all.unwrap().items;
    assert_eq!(all.len(), 21);
    for listed in all {
        let (flow, record) = (listed.record.flow.clone(), listed.record);
        assert_eq!(record.broken.is_some(), flow == "poisoned", "{record:?}");
        assert!(record.attempts <= SUSPECT, "{record:?}");
    }
}
