//! Tests of an engine over a store that stands still.

use super::scripted_store::ScriptedStore;
use super::*;
use crate::flows::FlowTable;
use crate::resources::ResourceMap;
use crate::secrets::SecretUse;
use crate::shard::{ExecutionSeed, StartRequest};
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::Source;
use starbridge_flow::value::{Object, Value};
use starbridge_ports::{Secret, Secrets};
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
    let tokens = TokenKeys::new(vec![[1; 32]]);
    let vault = Vault::new(Arc::new(NoSecrets), SecretUse::default(), tokens.clone());
    let deps = EngineDeps {
        history: store,
        connectors: Connectors::new(),
        clock: Arc::new(Still),
        vault: Arc::new(vault),
        tokens,
        queues: None,
        leases: None,
    };
    Engine::new(shard(steps), deps, EngineSettings::default(), commands, |_, _| {})
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
