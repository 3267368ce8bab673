//! Tests of an engine with a shard that another owner got.

use super::*;
use starbridge_ports::{Refusal, ShardSet, shard_of};

/// A flow that waits.
const WAIT: &str = r#"{"type": "wait", "name": "w", "duration": 1000}"#;

fn of_shard(execution: &str) -> ShardSet {
    [shard_of(execution)].into_iter().collect()
}

fn stop(execution: &str) -> (Command, oneshot::Receiver<Reply>) {
    let (reply, answer) = oneshot::channel();
    let stop = Signal::Stop {
        error: None,
        cause: String::new(),
        by: None,
        rollback: false,
        with_parent: false,
    };
    let command = Command::Signal {
        execution: execution.into(),
        signal: Box::new(stop),
        audit: None,
        reply: Some(reply),
    };
    (command, answer)
}

/// Two executions run, `e1` and `e2`, and then somebody else gets the shard of the first one.
async fn lose_a_shard(sender: &mpsc::Sender<Command>, store: &ScriptedStore) {
    let input = Object::new().into();
    for _ in 0..2 {
        let (command, started) = start(&input);
        sender.send(command).await.unwrap();
        started.await.unwrap().unwrap();
    }
    let (reply, end) = oneshot::channel();
    let waits = Command::AwaitEnd {
        execution: "e1".into(),
        reply,
    };
    sender.send(waits).await.unwrap();
    store.refuse(of_shard("e1"), Refusal::Fenced);
    let (command, refused) = stop("e1");
    sender.send(command).await.unwrap();
    assert_eq!(refused.await, Ok(Reply::Held), "it is not acknowledged");
    assert!(end.await.is_err(), "nobody here knows its end");
    // The engine asks the store no more for that shard, and serves the other one.
    let before = store.batches().len();
    let (command, refused) = stop("e1");
    sender.send(command).await.unwrap();
    assert_eq!(refused.await, Ok(Reply::Held));
    assert_eq!(store.batches().len(), before);
    let (command, stopped) = stop("e2");
    sender.send(command).await.unwrap();
    assert_eq!(stopped.await, Ok(Reply::Taken));
    // A start that is fenced is sent again by whoever asked for it.
    store.refuse(of_shard("e3"), Refusal::Fenced);
    let (command, started) = start(&input);
    sender.send(command).await.unwrap();
    assert_eq!(started.await.unwrap().unwrap_err(), StartFailure::Busy);
    sender.send(Command::Drain { until: Timestamp(0) }).await.unwrap();
}

fn losing_a_shard(with_writer: bool) {
    let store = Arc::new(ScriptedStore::default());
    let (sender, commands) = mpsc::channel(CHANNEL);
    let mut engine = engine(WAIT, store.clone(), commands);
    if with_writer {
        engine = engine.writing_through(&Writer::start(store.clone()).unwrap());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let serving = async { tokio::join!(engine.serve(), lose_a_shard(&sender, &store)) };
    assert_eq!(runtime.block_on(serving).0, Ok(()), "it goes on with the others");
}

#[test]
fn an_engine_acknowledges_nothing_of_a_shard_that_it_lost_and_goes_on_with_others() {
    losing_a_shard(false);
    losing_a_shard(true);
}

#[test]
fn a_command_for_an_execution_that_another_process_took_is_not_acknowledged() {
    let store = Arc::new(ScriptedStore::default());
    let (sender, commands) = mpsc::channel(CHANNEL);
    let mut deps = deps(store.clone());
    deps.leases = Some(store.clone());
    let engine = Engine::new(shard(WAIT), deps, EngineSettings::default(), commands, |_, _| {});
    let client = async {
        let (command, started) = start(&Object::new().into());
        sender.send(command).await.unwrap();
        started.await.unwrap().unwrap();
        store.refuse(of_shard("e1"), Refusal::Conflict);
        let (command, refused) = stop("e1");
        sender.send(command).await.unwrap();
        assert_eq!(refused.await, Ok(Reply::Held));
        sender.send(Command::Drain { until: Timestamp(0) }).await.unwrap();
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let served = runtime.block_on(async { tokio::join!(engine.serve(), client).0 });
    assert_eq!(served, Ok(()), "it has the others");
}
