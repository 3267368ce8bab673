//! A flow that runs in this process, for `exec`: in memory or over a store, with real connectors,
//! in real time.

mod durable;

use crate::optional_connectors::OptionalConnectors;
use crate::replay::Divergence;
use crate::system::{EnvironmentSecrets, SystemClock, fresh_token_keys, new_seed};
use starbridge_connector_command::{CommandConnector, CommandSettings};
use starbridge_connector_http::{HttpConnector, HttpSettings};
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::{Limits, is_execution_name};
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{EventId, NewDefinition, Rejection, Signal, State};
use starbridge_memory::MemoryStore;
use starbridge_ports::{ExecutionRecord, Store, StoreError};
use starbridge_runtime::{
    Command, Connectors, Engine, EngineDeps, EngineSettings, FlowTable, Outgoing, ResourceMap, SecretUse, Shard,
    StartError, StartRequest, TokenKeys, Vault,
};
use std::sync::Arc;
use tokio::sync::mpsc;

/// Settings of a run in this process.
#[derive(Default)]
pub struct LocalSettings {
    /// The flow under its name, and the children it may start.
    pub flows: FlowTable,
    /// The resource map.
    pub resources: ResourceMap,
    /// The limits of data and definitions.
    pub limits: Limits,
    /// Whether waits and retry delays are skipped.
    pub fast_forward: bool,
    /// Settings for local programs; `None` if they may not be called.
    pub commands: Option<CommandSettings>,
    /// Connectors that exist only if they are configured.
    pub optional_connectors: OptionalConnectors,
    /// The store of the run; `None`: in memory.
    pub store: Option<Arc<dyn Store>>,
    /// Whether a person decides for steps that wait for an operator.
    pub operator: bool,
    /// After how many events a checkpoint is made; `None`: the default.
    pub checkpoint_every: Option<u64>,
}

/// A flow that runs in this process.
///
/// Call it in this order: [`LocalRun::new`], [`LocalRun::begin`] or [`LocalRun::redrive`], [`LocalRun::run`]. While it runs, send reports and
/// stops to [`LocalRun::commands`]. Afterwards [`LocalRun::state`] has the result.
pub struct LocalRun {
    /// `None` after a run was dropped halfway.
    engine: Option<Engine>,
    commands: mpsc::Sender<Command>,
    tokens: TokenKeys,
    kept: Option<durable::RunStore>,
}

/// An execution to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalStart {
    /// One that begins now, with this id.
    New(Text),
    /// One that began earlier and goes on.
    TakenUp(Text),
    /// One that has ended already.
    Ended(Text),
}

impl LocalStart {
    /// The id of the execution.
    pub fn id(&self) -> &Text {
        match self {
            Self::New(id) | Self::TakenUp(id) | Self::Ended(id) => id,
        }
    }
}

/// Why a flow can't run here.
#[derive(Debug)]
pub enum LocalError {
    /// A flow may ask an operator, and there is none.
    NeedsOperator,
    /// The execution can't be redriven.
    NotRedriven(Rejection),
    /// There is no execution to redrive.
    NothingToRedrive,
    /// The given definition would have done something else.
    DoesNotFit {
        /// The name of the execution.
        name: String,
        /// The first difference.
        divergence: Box<Divergence>,
    },
    /// The start was refused.
    Start(StartError),
    /// The text is not a name for an execution.
    Name(String),
    /// The execution with that name runs another definition.
    OtherDefinition {
        /// The name of the execution.
        name: String,
        /// The version of the flow that it runs.
        version: u64,
    },
    /// The execution with that name was started with another input.
    OtherInput(String),
    /// The system refused something that is needed.
    System(String),
    /// The store failed.
    Store(StoreError),
}

impl std::fmt::Display for LocalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NeedsOperator => f.write_str("the flow has a `catch` with `manual`, and there is nobody to ask"),
            Self::NotRedriven(rejection) => rejection.fmt(f),
            Self::NothingToRedrive => f.write_str("there is no execution of that name to go on with"),
            Self::DoesNotFit { name, divergence } => write!(
                f,
                "the definition does not fit what `{name}` has done: something else would be done from event {} on",
                divergence.event
            ),
            Self::Start(error) => error.fmt(f),
            Self::Name(name) => write!(
                f,
                "`{name}` is no name of an execution: 1 to 128 of `A-Z a-z 0-9 _ -`, not beginning with `-`"
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

/// The connectors of a run.
fn connectors(commands: Option<CommandSettings>, optional: &OptionalConnectors) -> Connectors {
    let mut connectors = Connectors::new();
    let http = HttpConnector::new(HttpSettings {
        clock: Some(Arc::new(SystemClock)),
        ..HttpSettings::default()
    });
    connectors.insert("http", Arc::new(http));
    if let Some(commands) = commands {
        connectors.insert("cmd", Arc::new(CommandConnector::new(commands)));
    }
    optional.insert_into(&mut connectors);
    connectors
}

/// How many answers are taken before the calls that follow leave. While the run decides, functions
/// work on the other calls.
const ANSWERS_AT_ONCE: usize = 8;

fn given_up() -> LocalError {
    LocalError::System("the run was given up in the middle".to_owned())
}

/// A redrive, with another definition if one is named.
fn redriven_with(definition: Option<NewDefinition>) -> Signal {
    Signal::Redrive {
        by: None,
        inputs: Vec::new(),
        definition,
    }
}

impl LocalRun {
    /// Prepares a run. `observer` is called with everything that leaves.
    ///
    /// # Errors
    ///
    /// [`LocalError::NeedsOperator`] if a flow may ask an operator and there is none,
    /// [`LocalError::System`] if the system refuses something, [`LocalError::Store`] if the store
    /// fails.
    pub fn new(
        settings: LocalSettings,
        observer: impl FnMut(&Shard, &Outgoing) + Send + 'static,
    ) -> Result<Self, LocalError> {
        for (_, flow) in settings.flows.latest() {
            if flow.may_ask_operator() && !settings.operator {
                return Err(LocalError::NeedsOperator);
            }
        }
        let kept = match settings.store {
            None => None,
            Some(store) => Some(durable::RunStore::open(
                store,
                settings.flows.clone(),
                &settings.limits,
            )?),
        };
        let tokens = tokens_of(kept.as_ref())?;
        let flows = kept.as_ref().map_or(settings.flows, durable::RunStore::flows);
        let connectors = connectors(settings.commands, &settings.optional_connectors);
        let memory = Arc::new(MemoryStore::new());
        let deps = EngineDeps {
            queues: None,
            leases: None,
            history: match &kept {
                None => memory.clone(),
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
        let mut shard = Shard::new(flows, settings.resources, limits, |request, _| new_seed(request));
        // Without a store nothing is loaded again, so no checkpoint is needed.
        let never = kept.is_none().then_some(u64::MAX);
        if let Some(events) = settings.checkpoint_every.or(never) {
            shard.checkpoint_every(events);
        }
        let (commands, inbox) = mpsc::channel(64);
        let usual = EngineSettings::default();
        let engine_settings = EngineSettings {
            fast_forward: settings.fast_forward,
            // Without a store nothing is flushed.
            together: match &kept {
                None => ANSWERS_AT_ONCE,
                Some(_) => usual.together,
            },
            ..usual
        };
        let engine = Engine::new(shard, deps, engine_settings, inbox, observer);
        // A store may have executions that hold slots but that no process runs now.
        let engine = match kept {
            None => engine.admitting_here(memory)?,
            Some(_) => engine,
        };
        Ok(Self {
            engine: Some(engine),
            commands,
            tokens,
            kept,
        })
    }

    /// The channel for reports and stops.
    pub fn commands(&self) -> mpsc::Sender<Command> {
        self.commands.clone()
    }

    /// The task token of a call.
    pub fn token(&self, execution: &str, call: EventId) -> String {
        self.tokens.sign(execution, call)
    }

    /// The keys of the task tokens.
    pub fn tokens(&self) -> &TokenKeys {
        &self.tokens
    }

    /// Starts a flow. If the store has an execution with that name, that one goes on instead. `input` must then be
    /// the same, or `None`.
    ///
    /// # Errors
    ///
    /// [`LocalError::Start`] if the start is refused, [`LocalError::OtherDefinition`] or [`LocalError::OtherInput`]
    /// if the execution with that name differs, [`LocalError::Name`] if the name is not allowed,
    /// [`LocalError::Store`] if the store fails.
    pub fn begin(&mut self, flow: &str, input: Option<Value>, name: Option<&str>) -> Result<LocalStart, LocalError> {
        if let Some(begun) = self.take_up(flow, input.as_ref(), name, false)? {
            return Ok(begun);
        }
        if let Some(name) = name.filter(|name| !is_execution_name(name)) {
            return Err(LocalError::Name(name.to_owned()));
        }
        let request = StartRequest {
            flow: Text::from(flow),
            input: input.unwrap_or_else(Value::empty_object),
            name: name.map(Text::from),
            ..StartRequest::default()
        };
        let engine = self.engine.as_mut().ok_or_else(given_up)?;
        let now = engine.now();
        let started = engine.shard_mut().start(request, now);
        started.map(LocalStart::New).map_err(LocalError::Start)
    }

    /// Lets the execution with that name go on if it ended without success, in place of [`LocalRun::begin`]. If it was
    /// started with another definition, the given one must fit its history.
    ///
    /// # Errors
    ///
    /// [`LocalError::NothingToRedrive`] if there is none, [`LocalError::NotRedriven`] if it succeeded or has not ended,
    /// [`LocalError::DoesNotFit`] if the definition does not fit, [`LocalError::OtherInput`] if it was started with another
    /// input, [`LocalError::Store`] if the store fails.
    pub fn redrive(&mut self, flow: &str, input: Option<&Value>, name: Option<&str>) -> Result<Text, LocalError> {
        let begun = self.take_up(flow, input, name, true)?;
        let execution = begun.ok_or(LocalError::NothingToRedrive)?.id().clone();
        if let Some(request) = self.redefinition(&execution)? {
            let engine = self.engine.as_mut().ok_or_else(given_up)?;
            let now = engine.now();
            let taken = engine.shard_mut().redefine(request, now);
            return taken.map(|()| execution).map_err(LocalError::NotRedriven);
        }
        let engine = self.engine.as_mut().ok_or_else(given_up)?;
        let now = engine.now();
        let taken = engine.shard_mut().signal(&execution, redriven_with(None), now);
        taken.map(|()| execution).map_err(LocalError::NotRedriven)
    }

    /// Runs until the execution and its children have ended.
    ///
    /// # Errors
    ///
    /// [`LocalError::Store`] if the store fails, [`LocalError::System`] if the run panics or was
    /// dropped halfway before.
    pub async fn run(&mut self, execution: &str) -> Result<(), LocalError> {
        let mut engine = self.engine.take().ok_or_else(given_up)?;
        let execution = execution.to_owned();
        // In a task beside the calls it sends, so that most wake-ups cross no thread.
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

    /// The record of an execution.
    pub fn record(&self, execution: &str) -> Option<ExecutionRecord> {
        self.engine.as_ref()?.shard().record(execution)
    }

    /// The flow that an execution runs.
    pub fn flow(&self, execution: &str) -> Option<&Arc<Flow>> {
        self.engine.as_ref()?.shard().flow(execution)
    }
}

/// The keys of task tokens: those of the store, or fresh ones.
fn tokens_of(kept: Option<&durable::RunStore>) -> Result<TokenKeys, LocalError> {
    match kept {
        None => fresh_token_keys().map_err(LocalError::System),
        Some(kept) => Ok(kept.token_keys()?),
    }
}
