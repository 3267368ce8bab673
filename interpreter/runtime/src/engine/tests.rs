//! Tests of an engine over a store that stands still.

mod fencing;

use super::scripted_store::ScriptedStore;
use super::*;
use crate::flows::FlowTable;
use crate::resources::ResourceMap;
use crate::secrets::SecretUse;
use crate::shard::{ExecutionSeed, StartRequest};
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_flow::value::{Object, Value};
use starbridge_machine::{EventId, EventKind};
use starbridge_ports::{Secret, Secrets};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::oneshot;

/// How many commands the channel holds beside those that the engine took.
const CHANNEL: usize = 16;
/// How often a sender that finds the channel full lets the engine run before it gives up.
const PATIENCE: usize = 2_000;

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
}

struct NoSecrets;

impl Secrets for NoSecrets {
    fn get(&self, _: &str) -> Option<Secret> {
        None
    }
}

/// A step that does nothing.
const PASS: &str = r#"{"type": "pass", "name": "p"}"#;
/// Steps that begin two more executions of the flow and wait for neither.
const DOUBLE: &str =
    r#"{"type": "task", "name": "a", "resourceArn": "flow:f"}, {"type": "task", "name": "b", "resourceArn": "flow:f"}"#;

/// A shard with a flow `f` of these steps.
fn shard(steps: &str) -> Shard {
    let text = format!(r#"{{"version": "v1", "type": "flow", "steps": [{steps}]}}"#);
    let checked = starbridge_fdl::check(&Source::new("flow.json", text), &Limits::default());
    let mut flows = FlowTable::default();
    flows.put("f", checked.flow.unwrap());
    let mut seed = 0;
    Shard::new(flows, ResourceMap::default(), Arc::default(), move |_, _| {
        seed += 1;
        ExecutionSeed {
            id: format!("e{seed}").into(),
            seed,
        }
    })
}

fn engine(steps: &str, store: Arc<ScriptedStore>, commands: mpsc::Receiver<Command>) -> Engine {
    engine_of(shard(steps), store, commands, |_, _| {})
}

fn engine_of(
    shard: Shard,
    store: Arc<ScriptedStore>,
    commands: mpsc::Receiver<Command>,
    observer: impl FnMut(&Shard, &Outgoing) + Send + 'static,
) -> Engine {
    Engine::new(shard, deps(store), EngineSettings::default(), commands, observer)
}

fn deps(store: Arc<ScriptedStore>) -> EngineDeps {
    let tokens = TokenKeys::new(vec![[1; 32]]);
    let vault = Vault::new(Arc::new(NoSecrets), SecretUse::default(), tokens.clone());
    EngineDeps {
        history: store,
        connectors: Connectors::new(),
        clock: Arc::new(Still),
        vault: Arc::new(vault),
        tokens,
        queues: None,
        leases: None,
    }
}

type Started = oneshot::Receiver<Result<StartedExecution, StartFailure>>;

fn start(input: &Value) -> (Command, Started) {
    let (reply, answer) = oneshot::channel();
    let request = StartRequest {
        flow: "f".into(),
        input: input.clone(),
        ..StartRequest::default()
    };
    let command = Command::Start {
        request: Box::new(request),
        wait: false,
        reply,
    };
    (command, answer)
}

/// Starts executions with this input until the engine takes no more commands. Returns what answers them.
async fn start_until_refused(commands: &mpsc::Sender<Command>, input: &Value) -> Vec<Started> {
    let mut started = Vec::new();
    loop {
        let (mut command, answer) = start(input);
        let mut tries = 0;
        while let Err(mpsc::error::TrySendError::Full(refused)) = commands.try_send(command) {
            command = refused;
            tries += 1;
            if tries > PATIENCE {
                return started;
            }
            tokio::task::yield_now().await;
        }
        started.push(answer);
        assert!(started.len() < 4 * MAX_BACKLOG, "the engine takes whatever comes");
    }
}

/// Starts executions while the store stands still, lets it go on, and drains the engine. Returns how many starts were
/// taken meanwhile: each of them is answered with an execution.
fn taken_while_the_store_stands_still(input: &Value) -> usize {
    let (store, go) = ScriptedStore::blocked();
    let store = Arc::new(store);
    let writer = Writer::start(store.clone()).unwrap();
    let (sender, commands) = mpsc::channel(CHANNEL);
    let engine = engine(PASS, store.clone(), commands).writing_through(&writer);
    let answered = AtomicUsize::new(0);
    let client = async {
        let started = start_until_refused(&sender, input).await;
        assert_eq!(store.batches().len(), 1, "the store stands still");
        go.send(()).unwrap();
        let count = started.len();
        for answer in started {
            answer.await.unwrap().unwrap();
            answered.fetch_add(1, Ordering::Relaxed);
        }
        sender.send(Command::Drain { until: Timestamp(0) }).await.unwrap();
        count
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let (served, count) = runtime.block_on(async { tokio::join!(engine.serve(), client) });
    served.unwrap();
    assert_eq!(answered.into_inner(), count);
    count
}

#[test]
fn backpressure_bounds_the_turns_decided_ahead_of_the_store() {
    let taken = taken_while_the_store_stands_still(&Object::new().into());
    // Each start is a turn. Some batches are under way, and a round takes up to `BATCH` commands.
    assert!(taken > MAX_BACKLOG, "{taken}");
    assert!(taken <= MAX_BACKLOG + 4 * BATCH, "{taken}");
}

#[test]
fn backpressure_bounds_the_bytes_decided_ahead_of_the_store() {
    const INPUT: usize = 256 << 10;
    let input: Object = [("text".into(), Value::from("x".repeat(INPUT)))].into_iter().collect();
    let taken = taken_while_the_store_stands_still(&input.into());
    assert!(taken * INPUT >= BACKLOG_BYTES, "{taken}");
    // Beside these, a few rounds are under way, and the channel is full.
    assert!(taken * INPUT <= BACKLOG_BYTES + 4 * CHANNEL * INPUT, "{taken}");
}

#[test]
fn fairness_children_without_end_keep_no_command_waiting() {
    const DECIDED: usize = 2 * MAX_BACKLOG;
    let store = Arc::new(ScriptedStore::with_room_for(24 * MAX_BACKLOG));
    let writer = Writer::start(store.clone()).unwrap();
    let (sender, commands) = mpsc::channel(CHANNEL);
    let engine = engine(DOUBLE, store.clone(), commands).writing_through(&writer);
    let serving = std::thread::Builder::new().spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(engine.serve())
    });
    let serving = serving.unwrap();
    let (command, first) = start(&Object::new().into());
    sender.blocking_send(command).unwrap();
    first.blocking_recv().unwrap().unwrap();
    while store.batches().iter().sum::<usize>() < DECIDED {
        std::thread::yield_now();
    }
    // If commands had to wait for the end of the children, the store would have no room before.
    let (command, another) = start(&Object::new().into());
    sender.blocking_send(command).unwrap();
    another.blocking_recv().unwrap().unwrap();
    sender.blocking_send(Command::Drain { until: Timestamp(0) }).unwrap();
    serving.join().unwrap().unwrap();
}

/// A task of a queue for each item.
const TASKS: &str = r#"{"type": "foreach", "name": "all", "iterationMapping": {"collection": "$.items", "item": "n"}, "concurrency": 100,
    "steps": [{"type": "task", "name": "t", "resourceArn": "queue:q", "inputMappings": [{"target": "x", "source": "$input.n"}]}]}"#;

/// What has left an engine, in order.
#[derive(Default)]
struct Left {
    /// The messages of the tasks that went into queues, by call.
    queued: Vec<(EventId, String)>,
    started: usize,
    resumed: bool,
    /// How many had started when the execution was resumed.
    started_before: usize,
}

impl Left {
    fn note(&mut self, outgoing: &Outgoing) {
        match outgoing {
            Outgoing::Queued(task) => self.queued.push((task.call, task.message.clone())),
            Outgoing::Started { .. } => self.started += 1,
            Outgoing::Turn { events, .. } => {
                let first = events.first().map(|event| &event.detail);
                if matches!(first, Some(EventKind::ExecutionResumed { .. })) {
                    self.resumed = true;
                    self.started_before = self.started;
                }
            }
            _ => {}
        }
    }
}

fn operate(signal: Signal) -> (Command, oneshot::Receiver<Reply>) {
    let (reply, answer) = oneshot::channel();
    let command = Command::Signal {
        execution: "e1".into(),
        signal: Box::new(signal),
        audit: None,
        reply: Some(reply),
    };
    (command, answer)
}

#[test]
fn fairness_others_start_while_a_resume_with_many_tasks_is_prepared() {
    const ITEMS: usize = 64;
    let items = (0..ITEMS).map(|number| Value::from(format!("{number}{}", "x".repeat(100 << 10))));
    let of = |items: Vec<Value>| Value::from(Object::from_iter([("items".into(), Value::from(items))]));
    let left = Arc::new(Mutex::new(Left::default()));
    let noted = left.clone();
    let mut shard = shard(TASKS);
    shard.queue_tasks(Arc::default());
    let (sender, commands) = mpsc::channel(CHANNEL);
    let store = Arc::new(ScriptedStore::with_room_for(MAX_BACKLOG));
    let engine = engine_of(shard, store, commands, move |_, outgoing| {
        noted.lock().unwrap().note(outgoing)
    });
    let client = async {
        let (command, first) = start(&of(items.collect()));
        sender.send(command).await.unwrap();
        first.await.unwrap().unwrap();
        while left.lock().unwrap().queued.len() < ITEMS {
            tokio::task::yield_now().await;
        }
        let (command, paused) = operate(Signal::Pause {
            by: None,
            cause: String::new(),
            with_parent: false,
        });
        sender.send(command).await.unwrap();
        assert_eq!(paused.await.unwrap(), Reply::Taken);
        let before = std::mem::take(&mut left.lock().unwrap().queued);
        let (command, resumed) = operate(Signal::Resume {
            by: None,
            with_parent: false,
        });
        sender.send(command).await.unwrap();
        let (command, another) = start(&of(Vec::new()));
        sender.send(command).await.unwrap();
        another.await.unwrap().unwrap();
        assert_eq!(resumed.await.unwrap(), Reply::Taken);
        sender.send(Command::Drain { until: Timestamp(0) }).await.unwrap();
        before
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let (served, before) = runtime.block_on(async { tokio::join!(engine.serve(), client) });
    served.unwrap();
    let left = left.lock().unwrap();
    assert!(left.resumed);
    assert_eq!(
        left.started_before, 2,
        "the other one started before all tasks were prepared"
    );
    // Each task is there again, once and as it was.
    assert_eq!(left.queued, before);
}

/// Gives an engine so many results of this size for the tasks of one execution, and then a start. Returns how many results were
/// durable before that start was, and in which order all were taken.
fn results_before_a_start(results: usize, bytes: usize) -> (usize, Vec<EventId>) {
    let taken: Arc<Mutex<(Vec<EventId>, usize, usize)>> = Arc::default();
    let noted = taken.clone();
    let mut shard = shard(TASKS);
    shard.queue_tasks(Arc::default());
    let (sender, commands) = mpsc::channel(2 * results);
    let store = Arc::new(ScriptedStore::default());
    let calls: Arc<Mutex<Vec<EventId>>> = Arc::default();
    let queued = calls.clone();
    let engine = engine_of(shard, store, commands, move |_, outgoing| {
        let mut noted = noted.lock().unwrap();
        match outgoing {
            Outgoing::Queued(task) => queued.lock().unwrap().push(task.call),
            Outgoing::Started { .. } => {
                noted.1 += 1;
                noted.2 = noted.0.len();
            }
            Outgoing::Turn { events, .. } => {
                let ended = events
                    .iter()
                    .filter(|event| matches!(event.detail, EventKind::TaskSucceeded { .. }));
                noted.0.extend(ended.map(|event| event.caused_by));
            }
            _ => {}
        }
    });
    let client = async {
        let items = (0..results as u64).map(Value::from);
        let input = Object::from_iter([("items".into(), Value::from(items.collect::<Vec<_>>()))]);
        let (command, first) = start(&input.into());
        sender.send(command).await.unwrap();
        first.await.unwrap().unwrap();
        while calls.lock().unwrap().len() < results {
            tokio::task::yield_now().await;
        }
        let output = Object::from_iter([("text".into(), Value::from("x".repeat(bytes)))]);
        let calls = calls.lock().unwrap().clone();
        let mut answers = Vec::new();
        for call in calls {
            let (reply, answer) = oneshot::channel();
            let command = Command::Report {
                execution: "e1".into(),
                call,
                report: Report::Succeed(output.clone().into()),
                audit: None,
                reply,
            };
            sender.try_send(command).unwrap();
            answers.push(answer);
        }
        let (command, another) = start(&Object::from_iter([("items".into(), Value::from(Vec::<Value>::new()))]).into());
        sender.try_send(command).unwrap();
        another.await.unwrap().unwrap();
        for answer in answers {
            assert_eq!(answer.await.unwrap(), Reply::Taken);
        }
        sender.send(Command::Drain { until: Timestamp(0) }).await.unwrap();
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let (served, ()) = runtime.block_on(async { tokio::join!(engine.serve(), client) });
    served.unwrap();
    let taken = taken.lock().unwrap();
    assert_eq!(taken.1, 2);
    (taken.2, taken.0.clone())
}

#[test]
fn fairness_others_start_before_all_large_results_of_one_execution_are_durable() {
    const RESULTS: usize = 90;
    let (before, order) = results_before_a_start(RESULTS, 100 << 10);
    assert!(before < RESULTS / 2, "{before} of {RESULTS} results came first");
    assert_eq!(order.len(), RESULTS);
    assert!(order.is_sorted(), "results keep their order: {order:?}");
    let (before, order) = results_before_a_start(RESULTS, 10);
    assert_eq!((before, order.len()), (RESULTS, RESULTS), "small ones share a batch");
}
