//! Local programs: input on stdin, a JSON object on stdout (section "tasks", `cmd:`).
//!
//! No shell comes between. A program runs in a process group of its own, and what is left of the group is killed when the
//! program ends or its call is given up.
//!
//! # What comes of it
//!
//! | the program | the call |
//! |---|---|
//! | ends with 0 | has the JSON on stdout as its result, `{}` where there is none; under another pattern than `requestResponse` it is accepted with that as receipt |
//! | ends with 0 and something else on stdout | `FnF.InvalidLocal` |
//! | ends with another code | `CMD.<code>`, unless all of stdout, its last line or the last line of stderr is a JSON object with `error` (and `cause`); the cause is else the end of stderr |
//! | is killed | `CMD.Signal<number>` |
//! | prints more than it may | `FnF.PayloadTooLarge`, and it is killed |
//! | cannot be started, or `serviceParams` cannot be understood | `FnF.NoSuchResource`: nothing ran |

mod group;
mod outcome;
mod params;
mod program;
mod streams;

use program::Program;
use starbridge_fdl::value::Value;
use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request};
use std::path::PathBuf;

/// How local programs are run.
#[derive(Clone, Debug)]
pub struct CommandSettings {
    /// The folder programs run in, and relative paths count from. Nothing outside of it is a working folder.
    pub folder: PathBuf,
    /// Variables of this process that programs see too.
    pub inherited: Vec<String>,
}

impl CommandSettings {
    /// Programs run in this folder, with what they need of the environment and no more.
    pub fn in_folder(folder: PathBuf) -> Self {
        let inherited = ["PATH", "HOME", "LANG", "TMPDIR"];
        Self {
            folder,
            inherited: inherited.into_iter().map(str::to_owned).collect(),
        }
    }
}

/// Runs local programs.
#[derive(Debug)]
pub struct CommandConnector {
    settings: CommandSettings,
}

impl CommandConnector {
    /// A connector.
    pub fn new(settings: CommandSettings) -> Self {
        Self { settings }
    }

    /// Runs the program of a call with any JSON as its input.
    pub async fn run(&self, request: &Request, input: &Value) -> Outcome {
        match Program::of(&self.settings, request) {
            Ok(program) => program.run(request, input).await,
            Err(outcome) => outcome,
        }
    }
}

impl Connector for CommandConnector {
    fn call(&self, request: Request) -> OutcomeFuture<'_> {
        Box::pin(async move {
            let input = Value::from(request.input.clone());
            self.run(&request, &input).await
        })
    }
}
