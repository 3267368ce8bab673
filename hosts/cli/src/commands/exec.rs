//! `exec`: runs a flow in this process and prints the result.

mod durable;
mod operator;
mod report_hints;
mod simulate;

use crate::arguments::read_address;
use crate::definitions::{self, flow_file, flow_name, load_flow, read_input};
use crate::exit::Exit;
use crate::output::{Output, bad, fault, finish_value};
use crate::progress::Progress;
use crate::supervisor::{own_supervisor, told};
use crate::table::clock;
use clap::Args;
use operator::Operator;
use report_hints::ReportHints;
use starbridge_flow::limits::Limits;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{Signal, State, Status};
use starbridge_node::callbacks::EngineReports;
use starbridge_node::config::Config;
use starbridge_node::export::export_event;
use starbridge_node::http::callback_listener::{CallbackListener, CallbackSettings};
use starbridge_node::local::{LocalError, LocalRun, LocalSettings, LocalStart};
use starbridge_node::notify::failed_undo;
use starbridge_node::optional_connectors::OptionalConnectors;
use starbridge_node::programs::{CommandSettings, Printed, StderrReceiver};
use starbridge_node::replay::Divergence;
use starbridge_node::stores::open_store;
use starbridge_node::supported_resources::SupportedResources;
use starbridge_node::system::reason;
use starbridge_ports::FailedUndo;
use starbridge_runtime::{Command, FlowTable, Outgoing, ResourceMap};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs a flow in this process
///
/// The output is printed on stdout as JSON; everything else goes to stderr. Local programs (`cmd:`) run only with
/// --allow-commands. With --db every step is kept: killed or interrupted and run again with the same --name, it goes on
/// where it was.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge exec order.json --db runs.db --name order-7\n  starbridge exec order.json --input '{\"id\": 7}' --resource 'acs:fc:*:*:services/{s}/functions/{f}=http://localhost:9000/{s}/{f}'"
)]
pub struct Options {
    /// The flow's file (JSON or YAML), or a folder with `flow.json` in it
    pub flow: PathBuf,
    /// The input: a JSON object, or a file that is there and holds one
    #[arg(long, value_name = "JSON|FILE", conflicts_with = "input_file")]
    pub input: Option<String>,
    /// A file with the input; `-` reads stdin
    #[arg(long, value_name = "FILE")]
    pub input_file: Option<PathBuf>,
    /// Where a resource leads; may be given several times
    #[arg(long = "resource", value_name = "PATTERN=TARGET")]
    pub resources: Vec<String>,
    /// A flow that may be started as a child, under its file's name or NAME; may be given several times
    #[arg(long = "flow", value_name = "[NAME=]FILE")]
    pub flows: Vec<String>,
    /// The bounds of data and histories: the `[limits]` of a server's configuration, a TOML file
    #[arg(long, value_name = "CONFIG", conflicts_with = "mock")]
    pub limits: Option<PathBuf>,
    /// Answers tasks from a test file, in virtual time
    #[arg(long, value_name = "FILE")]
    pub mock: Option<PathBuf>,
    /// The case of that file; the first where none is given
    #[arg(long, value_name = "NAME", requires = "mock")]
    pub case: Option<String>,
    /// Skips waits and retry delays: time jumps ahead while no call is out
    #[arg(long)]
    pub fast_forward: bool,
    /// The execution's name
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Keeps the run in this file, so that it can go on after anything
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mock", "fast_forward"])]
    pub db: Option<PathBuf>,
    /// Keeps the state every so many events at least, so that taking it up reads less
    #[arg(long, value_name = "EVENTS", requires = "db", value_parser = clap::value_parser!(u64).range(1..))]
    pub checkpoint_every: Option<u64>,
    /// Lets the run go on if it failed before, where it failed; the file may have changed since, in what is not done yet
    #[arg(long, requires_all = ["db", "name"])]
    pub redrive: bool,
    /// Writes the history to a file, one event a line; `-` writes it to stdout, before the result
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Lets the flow run local programs (`cmd:PROGRAM`), with paths from the flow's folder
    #[arg(long)]
    pub allow_commands: bool,
    /// Shows inputs and outputs of steps, and what programs print on stderr
    #[arg(long, short)]
    pub verbose: bool,
    /// Where to listen for callbacks
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = read_address)]
    pub callback_listen: SocketAddr,
}

/// The resources that a run of this process can call.
fn reach(options: &Options, resources: &ResourceMap, optional_connectors: &OptionalConnectors) -> SupportedResources {
    let mut reach =
        SupportedResources::of(resources.clone()).without("queue", "worker queues need a server (`starbridge serve`)");
    for (scheme, why) in optional_connectors.unavailable() {
        reach = reach.without(scheme, why);
    }
    if !options.allow_commands {
        reach = reach.without("cmd", "local programs run only with `--allow-commands`");
    }
    reach
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    let prepared = prepare(options, output)?;
    if options.mock.is_some() {
        simulate::run(options, output, prepared)
    } else {
        run_here(options, output, prepared)
    }
}

/// A flow and its name.
struct LoadedFlow {
    name: String,
    flow: Arc<starbridge_flow::graph::Flow>,
}

/// Reads a flow. If it runs here, all its resources must be answered.
fn load(path: &std::path::Path, reach: Option<&SupportedResources>, output: Output) -> Result<LoadedFlow, Exit> {
    let (source, flow) = load_flow(path, output)?;
    let name = flow_name(&source);
    if let Some(reach) = reach {
        definitions::all_answered(source, reach, output)?;
    }
    Ok(LoadedFlow { name, flow })
}

/// The checked parts of a run.
struct Prepared {
    main: LoadedFlow,
    children: BTreeMap<String, Arc<starbridge_flow::graph::Flow>>,
    input: Option<Object>,
    resources: ResourceMap,
    optional_connectors: OptionalConnectors,
    limits: Limits,
}

fn prepare(options: &Options, output: Output) -> Result<Prepared, Exit> {
    let optional_connectors =
        Config::optional_connectors_of(std::env::vars()).map_err(|error| bad(output, &error, ""))?;
    let mut resources = ResourceMap::default();
    definitions::add_resources(&mut resources, &options.resources, output)?;
    // A mock answers in place of resources, and a run in a store may have ended already.
    let asked = options.mock.is_none() && options.db.is_none();
    let reach = asked.then(|| reach(options, &resources, &optional_connectors));
    let main = load(&options.flow, reach.as_ref(), output)?;
    let mut children = BTreeMap::new();
    for given in &options.flows {
        let (name, file) = match given.split_once('=') {
            Some((name, file)) => (Some(name.to_owned()), file),
            None => (None, given.as_str()),
        };
        let loaded = load(file.as_ref(), reach.as_ref(), output)?;
        children.insert(name.unwrap_or_else(|| loaded.name.clone()), loaded.flow);
    }
    Ok(Prepared {
        main,
        children,
        input: read_input(options.input.as_deref(), options.input_file.as_deref(), output)?,
        resources,
        optional_connectors,
        limits: match &options.limits {
            Some(file) => definitions::limits_of(file, output)?,
            None => Limits::default(),
        },
    })
}

/// The target of the history, and the view of the run.
struct Watch {
    main: Option<Text>,
    history: Option<Box<dyn Write + Send>>,
    progress: Progress,
    report_hints: ReportHints,
    /// Decides for steps that wait for an operator.
    operator: Option<Operator>,
    failed: Option<std::io::Error>,
}

impl Watch {
    fn see(&mut self, shard: &starbridge_runtime::Shard, outgoing: &Outgoing) {
        if let Outgoing::Turn { execution, events } = outgoing
            && let Some(flow) = shard.flow(execution)
        {
            let main = self.main.get_or_insert_with(|| execution.clone());
            if main == execution
                && let Some(history) = &mut self.history
            {
                for event in events {
                    if let Err(error) = writeln!(history, "{}", export_event(flow, event)) {
                        self.failed.get_or_insert(error);
                    }
                }
                // A killed run leaves the history up to here.
                if let Err(error) = history.flush() {
                    self.failed.get_or_insert(error);
                }
            }
            let is_main = self.main.as_ref() == Some(execution);
            self.progress.turn(execution, flow, events, is_main);
            if let (Some(operator), Some(state)) = (&self.operator, shard.state(execution)) {
                let turn = events.iter().map(|event| event.id);
                operator.ask(execution, flow, state, |event| turn.clone().any(|id| id == event));
            }
        }
        if let Outgoing::Send { execution, call } = outgoing {
            self.report_hints.call(execution, call, &self.progress);
        }
    }
}

fn run_here(options: &Options, output: Output, prepared: Prepared) -> Result<(), Exit> {
    let store = match &options.db {
        Some(file) => Some(open_store(file).map_err(|error| fault(output, &error, ""))?),
        None => None,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return Err(fault(output, &format!("the runtime can't be started: {error}"), "")),
    };
    let history = open_history(options, output)?;
    let watch = Arc::new(Mutex::new(Watch {
        main: None,
        history,
        progress: Progress::new(output, options.verbose),
        report_hints: ReportHints::default(),
        operator: None,
        failed: None,
    }));
    let mut flows = FlowTable::default();
    for (name, flow) in &prepared.children {
        flows.put(name, flow.clone());
    }
    flows.put(&prepared.main.name, prepared.main.flow.clone());
    let settings = LocalSettings {
        flows,
        resources: prepared.resources,
        limits: prepared.limits,
        fast_forward: options.fast_forward,
        commands: options.allow_commands.then(|| commands(options, &watch)),
        optional_connectors: prepared.optional_connectors,
        store,
        operator: operator::is_there(options),
        checkpoint_every: options.checkpoint_every,
    };
    let seen = watch.clone();
    let run = LocalRun::new(settings, move |shard, outgoing| {
        seen.lock().unwrap_or_else(PoisonError::into_inner).see(shard, outgoing);
    });
    let exit = match run {
        Ok(run) => runtime.block_on(drive(
            run,
            options,
            output,
            &prepared.main,
            &prepared.children,
            prepared.input,
            &watch,
        )),
        Err(error) => Err(refused(output, &error)),
    };
    // Calls that are still out when the flow ends are cancelled, not waited for.
    runtime.shutdown_background();
    exit
}

/// How local programs are run: in the flow's folder; with `--verbose`, their stderr is shown.
fn commands(options: &Options, watch: &Arc<Mutex<Watch>>) -> CommandSettings {
    let file = flow_file(&options.flow);
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("."), PathBuf::from);
    let watch = watch.clone();
    let heard = move |printed: &Printed<'_>| {
        let watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
        let whose = format!("{} {} #{}", clock(), printed.step, printed.attempt);
        told(&whose, printed.text).for_each(|line| watch.progress.line(&line));
    };
    CommandSettings {
        supervisor: own_supervisor(),
        heard: options.verbose.then(|| StderrReceiver::by(heard)),
        ..CommandSettings::in_folder(folder)
    }
}

fn open_history(options: &Options, output: Output) -> Result<Option<Box<dyn Write + Send>>, Exit> {
    let Some(file) = &options.history else {
        return Ok(None);
    };
    if file.as_os_str() == "-" {
        return Ok(Some(Box::new(std::io::stdout())));
    }
    match std::fs::File::create(file) {
        Ok(opened) => Ok(Some(Box::new(std::io::BufWriter::new(opened)))),
        Err(error) => Err(bad(
            output,
            &format!("can't write `{}`: {}", file.display(), reason(&error)),
            "",
        )),
    }
}

/// The first interrupt stops the execution, the second one the program.
async fn stop_on_interrupt(commands: tokio::sync::mpsc::Sender<Command>, execution: Text) {
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    let stop = Signal::Stop {
        error: None,
        cause: "interrupted".to_owned(),
        by: None,
        rollback: false,
        with_parent: false,
    };
    let stop = Command::Signal {
        audit: None,
        execution,
        signal: Box::new(stop),
        reply: None,
    };
    // An engine that has ended has nothing to stop.
    let _ = commands.send(stop).await;
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(130);
    }
}

async fn listen(options: &Options, output: Output, run: &LocalRun) -> Result<CallbackListener, Exit> {
    let reports = EngineReports {
        commands: run.commands(),
        tokens: run.tokens().clone(),
    };
    let listener = CallbackListener::start(options.callback_listen, reports, CallbackSettings::default()).await;
    listener.map_err(|error| {
        let message = format!("can't listen for callbacks on {}: {error}", options.callback_listen);
        fault(output, &message, "choose another address with `--callback-listen`")
    })
}

async fn drive(
    mut run: LocalRun,
    options: &Options,
    output: Output,
    main: &LoadedFlow,
    children: &BTreeMap<String, Arc<starbridge_flow::graph::Flow>>,
    input: Option<Object>,
    watch: &Arc<Mutex<Watch>>,
) -> Result<(), Exit> {
    let locked = || watch.lock().unwrap_or_else(PoisonError::into_inner);
    let flows: Vec<_> = [&main.flow].into_iter().chain(children.values()).collect();
    let listener = if report_hints::is_needed(&flows) {
        let listener = listen(options, output, &run).await?;
        locked().report_hints.on(listener.address, run.tokens().clone());
        Some(listener)
    } else {
        None
    };
    // Interrupts are received from here on, not only once the run has begun.
    let mut interrupts = durable::interrupts(options.db.is_some(), output)?;
    locked().operator = operator::is_there(options).then(|| Operator::new(run.commands(), output, watch.clone()));
    let begun = begin(&mut run, options, output, &main.name, input)?;
    let execution = begun.id().clone();
    locked().begin(&run, &begun, main, children, output)?;
    let ended = if let Some(interrupts) = &mut interrupts {
        tokio::select! {
            biased;
            _ = interrupts.recv() => {
                let mut watch = locked();
                watch.progress.end();
                return Err(durable::leave(output, &execution, options.db.as_deref(), &watch.progress));
            }
            ended = run.run(&execution) => ended,
        }
    } else {
        let interrupted = tokio::spawn(stop_on_interrupt(run.commands(), execution.clone()));
        let ended = run.run(&execution).await;
        interrupted.abort();
        ended
    };
    if let Some(listener) = listener {
        listener.close().await;
    }
    let was_interrupted = options.db.is_none()
        && run
            .state(&execution)
            .is_some_and(|state| state.status() == Status::Stopped);
    let mut watch = locked();
    watch.progress.end();
    if let Some(error) = watch.failed.take() {
        return Err(fault(output, &format!("the history can't be written: {error}"), ""));
    }
    if let Err(error) = ended {
        return Err(fault(output, &error.to_string(), ""));
    }
    let Some((state, flow)) = run.state(&execution).zip(run.flow(&execution)) else {
        return Err(fault(output, "the execution is gone", ""));
    };
    let record = run.record(&execution);
    let undo = record.as_ref().and_then(|record| record.rollback.as_ref());
    let exit = print_result(output, state, flow, undo);
    if was_interrupted {
        durable::stopped(output, &watch.progress);
        return Err(Exit::Interrupted);
    }
    exit
}

/// Starts the execution, or finds the one that began before, and redrives it if requested.
fn begin(
    run: &mut LocalRun,
    options: &Options,
    output: Output,
    flow: &str,
    input: Option<Object>,
) -> Result<LocalStart, Exit> {
    let input = input.map(Value::from);
    let name = options.name.as_deref();
    let begun = match options.redrive {
        true => run.redrive(flow, input.as_ref(), name).map(LocalStart::TakenUp),
        false => run.begin(flow, input, name),
    };
    begun.map_err(|error| match error {
        LocalError::NothingToRedrive => {
            let name = name.unwrap_or_default();
            let message = format!("there is no execution `{name}` of `{flow}` to go on with");
            bad(
                output,
                &message,
                "nothing was started: leave `--redrive` out to start it",
            )
        }
        error => refused(output, &error),
    })
}

fn refused(output: Output, error: &LocalError) -> Exit {
    match error {
        LocalError::NeedsOperator => bad(
            output,
            &error.to_string(),
            "nothing was started: run it on a terminal and without `--fast-forward`, or on a server",
        ),
        LocalError::DoesNotFit { divergence, .. } => bad(output, &error.to_string(), &difference(divergence)),
        LocalError::NothingToRedrive | LocalError::NotRedriven(_) => {
            bad(output, &error.to_string(), "leave `--redrive` out to see where it is")
        }
        LocalError::Start(_) => bad(output, &error.to_string(), "nothing was started"),
        LocalError::Name(_) => bad(output, &error.to_string(), "nothing was started"),
        LocalError::OtherDefinition { .. } => bad(
            output,
            &error.to_string(),
            "go on with the definition it was started with, start another one under another `--name`, or let one that failed \
             go on with this one by `--redrive`",
        ),
        LocalError::OtherInput(_) => bad(
            output,
            &error.to_string(),
            "leave the input out to go on, or start another one under another `--name`",
        ),
        LocalError::System(_) | LocalError::Store(_) => fault(output, &error.to_string(), ""),
    }
}

/// The recorded event, and the event of the other definition.
fn difference(divergence: &Divergence) -> String {
    let event = |event: &Option<Object>| {
        let Some(event) = event else {
            return "nothing".to_owned();
        };
        let word = |key: &str| event.get(key).and_then(Value::as_str);
        let kind = word("type").unwrap_or_default();
        match word("step") {
            Some(step) => format!("`{kind}` of `{step}`"),
            None => format!("`{kind}`"),
        }
    };
    match &divergence.refused {
        Some(why) => format!("{why}; nothing is changed"),
        None => format!(
            "what was done is {}, and it would be {}; nothing is changed",
            event(&divergence.recorded),
            event(&divergence.expected)
        ),
    }
}

/// Prints the output on stdout, or the error and what could not be undone.
fn print_result(
    output: Output,
    state: &State,
    flow: &starbridge_flow::graph::Flow,
    undo: Option<&FailedUndo>,
) -> Result<(), Exit> {
    if state.status() == Status::Succeeded {
        let result = state.output().cloned().unwrap_or_else(Value::empty_object);
        return finish_value(output, &result, Ok(()));
    }
    let step = state
        .failed_at()
        .and_then(|step| flow.step(step))
        .map(|step| step.name.clone());
    let failure = state.failure();
    let mut result: Object = [
        ("status".into(), Value::from(state.status().as_str())),
        (
            "error".into(),
            failure.map(|failure| failure.error.clone().into()).unwrap_or_default(),
        ),
        (
            "cause".into(),
            failure.map(|failure| failure.cause.clone().into()).unwrap_or_default(),
        ),
        ("step".into(), step.map(Value::from).unwrap_or_default()),
    ]
    .into_iter()
    .collect();
    if let Some(undo) = undo {
        result.insert("rollback".into(), failed_undo(undo));
    }
    finish_value(output, &result.into(), Err(Exit::Found))
}
