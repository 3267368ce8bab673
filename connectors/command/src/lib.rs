//! Local programs: input on stdin, a JSON object on stdout (section "tasks", `cmd:`).
//!
//! No shell comes between. A program runs in a process group of its own, which is killed when its call is given up.

mod program;

use program::Program;
use starbridge_ports::{Connector, OutcomeFuture, Request};
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
}

impl Connector for CommandConnector {
    fn call(&self, request: Request) -> OutcomeFuture<'_> {
        Box::pin(async move {
            match Program::of(&self.settings, &request) {
                Ok(program) => program.run(&request).await,
                Err(outcome) => outcome,
            }
        })
    }
}
