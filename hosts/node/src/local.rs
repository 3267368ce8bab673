//! A flow run in this process: memory or a store, real connectors, real time. What `exec` does.

mod durable;

use crate::system::{EnvironmentSecrets, SystemClock, birth, fresh_token_keys};
use starbridge_connector_command::{CommandConnector, CommandSettings};
use starbridge_connector_http::{HttpConnector, HttpSettings};
use starbridge_fdl::graph::Flow;
use starbridge_fdl::limits::{Limits, is_name};
use starbridge_fdl::value::{Object, Text};
use starbridge_machine::{EventId, State};
use starbridge_memory::MemoryStore;
use starbridge_ports::{Store, StoreError};
use starbridge_runtime::{
    Command, Connectors, Engine, EngineDeps, EngineSettings, FlowTable, Outgoing, ResourceMap, SecretUse, Shard,
    StartError, StartRequest, TokenKeys, Vault,
};
use std::sync::Arc;
use tokio::sync::mpsc;

/// How a flow is run in this process.
#[derive(Default)]
pub struct LocalSettings {
    /// The flow under its name, and the children it may start.
    pub flows: FlowTable,
    /// Where resources lead.
    pub resources: ResourceMap,
    /// The limits in force.
    pub limits: Limits,
    /// Waits and retry delays are skipped.
    pub fast_forward: bool,
    /// How local programs are run, where they may be called.
    pub commands: Option<CommandSettings>,
    /// Connectors there are only when they are configured.
    pub further: crate::optional_connectors::OptionalConnectors,
    /// Where the run is kept; nothing: in memory, as long as it lasts.
    pub store: Option<Arc<dyn Store>>,
    /// States are kept every so many events; nothing: as usual.
    pub checkpoint_every: Option<u64>,
}

/// A flow running in this process.
pub struct LocalRun {
    /// Nothing, once a run was given up in the middle.
    engine: Option<Engine>,
    commands: mpsc::Sender<Command>,
    tokens: TokenKeys,
    kept: Option<durable::Kept>,
}

/// An execution that is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It is new.
    New(Text),
    /// It was begun before, and goes on.
    TakenUp(Text),
    /// It ended before.
    Ended(Text),
}

impl Begun {
    /// Its id.
    pub fn id(&self) -> &Text {
        match self {
            Self::New(id) | Self::TakenUp(id) | Self::Ended(id) => id,
        }
    }
}

/// Why it can't be run here.
#[derive(Debug)]
pub enum LocalError {
    /// The flow asks for what only a server can do.
    NeedsServer(&'static str),
    /// Nothing was started.
    Start(StartError),
    /// That is no name of an execution.
    Name(String),
    /// The execution of that name runs another definition: this version.
    OtherDefinition {
        /// The execution's name.
        name: String,
        /// The version of the flow it runs.
        version: u64,
    },
    /// The execution of that name was started with another input.
    OtherInput(String),
    /// The system would not give what is needed.
    System(String),
    /// The store failed.
    Store(StoreError),
}

impl std::fmt::Display for LocalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NeedsServer(what) => write!(f, "the flow has {what}, which this version does not run"),
            Self::Start(error) => error.fmt(f),
            Self::Name(name) => write!(
                f,
                "`{name}` is no name of an execution: 1 to 128 of `A-Z a-z 0-9 _ -`, beginning with a letter or `_`"
            ),
            Self::OtherDefinition { name, version } => write!(
                f,
                "`{name}` was started with another definition, version {version} of its flow"
            ),
            Self::OtherInput(name) => write!(f, "`{name}` was started with another input"),
            Self::System(message) => f.write_str(message),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LocalError {}

fn given_up() -> LocalError {
    LocalError::System("the run was given up in the middle".to_owned())
}

impl LocalRun {
    /// Makes ready to run flows. `observer` sees everything that leaves.
    pub fn new(
        settings: LocalSettings,
        observer: impl FnMut(&Shard, &Outgoing) + Send + 'static,
    ) -> Result<Self, LocalError> {
        for (_, flow) in settings.flows.latest() {
            if let Some(what) = flow.needs_server() {
                return Err(LocalError::NeedsServer(what));
            }
        }
        let kept = match settings.store {
            None => None,
            Some(store) => Some(durable::Kept::open(store, settings.flows.clone(), &settings.limits)?),
        };
        let tokens = match &kept {
            None => fresh_token_keys().map_err(LocalError::System)?,
            Some(kept) => kept.token_keys()?,
        };
        let flows = kept.as_ref().map_or(settings.flows, durable::Kept::flows);
        let mut connectors = Connectors::new();
        let http = HttpConnector::new(HttpSettings {
            clock: Some(Arc::new(SystemClock)),
            ..HttpSettings::default()
        });
        connectors.insert("http", Arc::new(http));
        if let Some(commands) = settings.commands {
            connectors.insert("cmd", Arc::new(CommandConnector::new(commands)));
        }
        settings.further.insert_into(&mut connectors);
        let world = EngineDeps {
            queues: None,
            leases: None,
            history: match &kept {
                None => Arc::new(MemoryStore::new()),
                Some(kept) => kept.history(),
            },
            connectors,
            clock: Arc::new(SystemClock),
            vault: Arc::new(Vault::new(
                Arc::new(EnvironmentSecrets),
                SecretUse::default(),
                tokens.clone(),
            )),
            tokens: tokens.clone(),
        };
        let limits = Arc::new(settings.limits);
        let mut shard = Shard::new(flows, settings.resources, limits, |request, _| birth(request));
        // What is gone with the process is never loaded again.
        let never = kept.is_none().then_some(u64::MAX);
        if let Some(events) = settings.checkpoint_every.or(never) {
            shard.checkpoint_every(events);
        }
        let (commands, inbox) = mpsc::channel(64);
        let engine_settings = EngineSettings {
            fast_forward: settings.fast_forward,
            ..EngineSettings::default()
        };
        Ok(Self {
            engine: Some(Engine::new(shard, world, engine_settings, inbox, observer)),
            commands,
            tokens,
            kept,
        })
    }

    /// Where reports and stops are handed in.
    pub fn commands(&self) -> mpsc::Sender<Command> {
        self.commands.clone()
    }

    /// The token of a call.
    pub fn token(&self, execution: &str, call: EventId) -> String {
        self.tokens.sign(execution, call)
    }

    /// What signs tokens.
    pub fn tokens(&self) -> &TokenKeys {
        &self.tokens
    }

    /// Starts a flow; where the store has an execution of that name, that one goes on instead. No input is any input.
    pub fn begin(&mut self, flow: &str, input: Option<Object>, name: Option<&str>) -> Result<Begun, LocalError> {
        if let Some(begun) = self.take_up(flow, input.as_ref(), name)? {
            return Ok(begun);
        }
        if let Some(name) = name.filter(|name| !is_name(name)) {
            return Err(LocalError::Name(name.to_owned()));
        }
        let request = StartRequest {
            flow: Text::from(flow),
            input: input.unwrap_or_default(),
            name: name.map(Text::from),
            ..StartRequest::default()
        };
        let engine = self.engine.as_mut().ok_or_else(given_up)?;
        let now = engine.now();
        let started = engine.shard_mut().start(request, now);
        started.map(Begun::New).map_err(LocalError::Start)
    }

    /// Runs until it and its children have ended.
    pub async fn run(&mut self, execution: &str) -> Result<(), LocalError> {
        let mut engine = self.engine.take().ok_or_else(given_up)?;
        let execution = execution.to_owned();
        // Beside the calls it sends, not on a thread of its own: most wake-ups then cross no thread.
        let run = tokio::spawn(async move {
            let ended = engine.run_until_ended(&execution).await;
            (engine, ended)
        });
        let (engine, ended) = run.await.map_err(|_| given_up())?;
        self.engine = Some(engine);
        ended.map_err(LocalError::Store)
    }

    /// The state of an execution.
    pub fn state(&self, execution: &str) -> Option<&State> {
        self.engine.as_ref()?.shard().state(execution)
    }

    /// The flow of an execution.
    pub fn flow(&self, execution: &str) -> Option<&Arc<Flow>> {
        self.engine.as_ref()?.shard().flow(execution)
    }
}
