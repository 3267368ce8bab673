//! `worker`: holds tasks of a server's queues and runs a program for each.

mod held;
mod reporter;
mod signals;
mod task;
mod unsent_reports;
mod worker_loop;

use crate::client::{Client, ServerOptions};
use crate::exit::Exit;
use crate::output::{Output, bad, fault};
use crate::supervisor::{keep_to_itself, own_supervisor, told};
use clap::Args;
use starbridge_node::programs::{CommandConnector, CommandSettings, StderrReceiver};
use starbridge_node::system::reason;
use std::path::Path;
use std::time::Duration;
use worker_loop::WorkerLoop;

/// The largest number of tasks at a time: the server hands out no more at once.
const MAX_TASKS: u64 = 1_000;
/// The prefix of variables that programs do not inherit: the variables about their task have it,
/// and so does the server's token.
const OWN: &str = "STARBRIDGE_";

/// Runs a program for each task of a server's queues
///
/// The program gets the task's input as JSON on stdin and prints its output, a JSON object. Another exit code than 0
/// fails the task. While it runs, heartbeats keep the task; what it came to is reported until the server has it.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  starbridge worker --queue resize -- ./resize.sh --width 800\n  starbridge worker --queue urgent --queue bulk --concurrency 8 --token-file token -- python3 work.py"
)]
pub struct Options {
    /// A queue; may be given several times, those given first are asked first
    #[arg(long = "queue", value_name = "NAME", required = true)]
    pub queues: Vec<String>,
    /// So many programs at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MAX_TASKS))]
    pub concurrency: u64,
    /// Who takes the tasks, in a word people understand; otherwise this machine and process
    #[arg(long, value_name = "WORKER")]
    pub name: Option<String>,
    /// How soon a task is somebody else's after this worker falls silent, where that is less than its flow says
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub lease: Option<u64>,
    /// How long programs may go on after SIGTERM or Ctrl-C
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub drain: u64,
    /// Ends once there is nothing to take and nothing runs
    #[arg(long)]
    pub until_empty: bool,
    /// Says of each task when it starts and ends, as is usual on a terminal, and what its program prints on stderr
    #[arg(long, short)]
    pub verbose: bool,
    #[command(flatten)]
    server: ServerOptions,
    /// The program, and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub command: Vec<String>,
}

/// Runs the command.
pub fn run(options: &Options, output: Output) -> Result<(), Exit> {
    keep_to_itself();
    let client = Client::new(&options.server, output)?;
    find_program(&options.command, output)?;
    let folder = std::env::current_dir();
    let folder = folder.map_err(|error| fault(output, &format!("there is no folder here: {}", reason(&error)), ""))?;
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let programs = CommandConnector::new(CommandSettings {
        inherited: names.filter(|name| !name.starts_with(OWN)).collect(),
        supervisor: own_supervisor(),
        heard: options.verbose.then(|| {
            StderrReceiver::by(move |printed| told(printed.program, printed.text).for_each(|line| output.note(&line)))
        }),
        ..CommandSettings::in_folder(folder)
    });
    client.block_on(async { WorkerLoop::new(options, &client, programs)?.work().await })
}

/// A missing program would fail every task.
fn find_program(command: &[String], output: Output) -> Result<(), Exit> {
    let name = command.first().map(String::as_str).unwrap_or_default();
    let found = match name.contains('/') {
        true => Path::new(name).is_file(),
        false => {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).any(|folder| !name.is_empty() && folder.join(name).is_file())
        }
    };
    if found {
        return Ok(());
    }
    let help = "one in this folder is named `./…`; a line for the shell is given as `-- sh -c '…'`";
    Err(bad(output, &format!("there is no program `{name}`"), help))
}

impl Options {
    /// The name of the worker that takes the tasks.
    fn worker(&self) -> String {
        let own = || {
            let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
            let host = host.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
            let host: String = host.chars().filter(|letter| !letter.is_control()).take(100).collect();
            let host = if host.is_empty() { "worker" } else { &host };
            format!("{host}-{}", std::process::id())
        };
        self.name.clone().unwrap_or_else(own)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.drain)
    }
}
