//! An engine on a thread of its own, as a node runs it, with one connector for `http`.

use starbridge_flow::limits::Limits;
use starbridge_flow::time::Timestamp;
use starbridge_node::system::{EnvironmentSecrets, SystemClock, fresh_token_keys, new_seed};
use starbridge_ports::{Connector, History, Store};
use starbridge_runtime::{
    Command, Connectors, Engine, EngineDeps, EngineSettings, FlowTable, ResourceMap, SecretUse, Shard, StartRequest,
    TokenKeys, Vault, Writer,
};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Starts an engine over a store. It ends when the sender of its commands is dropped.
///
/// # Panics
///
/// If no thread can be started.
pub fn run_engine(store: &Arc<dyn Store>, flows: FlowTable, http: Arc<dyn Connector>) -> mpsc::Sender<Command> {
    let shard = Shard::new(
        flows,
        ResourceMap::default(),
        Arc::new(Limits::default()),
        |request: &StartRequest, _: Timestamp| new_seed(request),
    );
    let history: Arc<dyn History> = store.clone();
    let deps = EngineDeps {
        queues: None,
        leases: None,
        history: history.clone(),
        connectors: Connectors::from([("http", http)]),
        clock: Arc::new(SystemClock),
        vault: Arc::new(Vault::new(
            Arc::new(EnvironmentSecrets),
            SecretUse::default(),
            TokenKeys::new(vec![[1; 32]]),
        )),
        tokens: fresh_token_keys().unwrap(),
    };
    let (commands, inbox) = mpsc::channel(64);
    let writer = Writer::start(history).unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let engine = Engine::new(shard, deps, EngineSettings::default(), inbox, |_, _| {});
        runtime
            .unwrap()
            .block_on(engine.writing_through(&writer).serve())
            .unwrap();
    });
    commands
}
