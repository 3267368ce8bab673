//! Local programs: input on stdin, a JSON object on stdout (section "tasks", `cmd:`).
//!
//! No shell comes between. Where there is a [`Supervisor`], all that a program started is killed when the program ends, when
//! its call is given up, and when this process ends, however it does; without one only its process group is, and not in the
//! last case. Which programs there are is said by [`Programs`].
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
//! | takes longer than [`CommandSettings::timeout`], where its step sets no time | `FnF.TaskTimeout`, and it is killed |
//! | is none that may be run, cannot be started, or `serviceParams` cannot be understood | `FnF.NoSuchResource`: nothing ran |

mod fence;
mod group;
mod outcome;
mod params;
mod program;
mod running;
mod settings;
mod streams;
#[cfg(target_os = "linux")]
mod supervisor;
mod task;

pub use settings::{CommandSettings, Heard, Programs, Supervisor};
#[cfg(target_os = "linux")]
pub use supervisor::supervise;

use fence::Folder;
use program::Program;
use starbridge_fdl::graph::Pattern;
use starbridge_fdl::value::Value;
use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request, SentMembers};

/// Runs local programs.
#[derive(Debug)]
pub struct CommandConnector {
    settings: CommandSettings,
    folder: Folder,
}

impl CommandConnector {
    /// A connector.
    pub fn new(settings: CommandSettings) -> Self {
        let folder = Folder::of(&settings);
        Self { settings, folder }
    }

    /// Runs the program of a call with any JSON as its input.
    pub async fn run(&self, request: &Request, input: &Value) -> Outcome {
        let program = match Program::of(&self.settings, &self.folder, request, input) {
            Ok(program) => program,
            Err(outcome) => return outcome,
        };
        let name = program.name().to_owned();
        let running = program.run(&self.settings, request);
        // A step's own time that counts until somebody reports is not for the program alone.
        let unbounded = request.timeout_at.is_none() || request.pattern == Pattern::WaitForCallback;
        match self.settings.timeout.filter(|_| unbounded) {
            None => running.await,
            Some(timeout) => match tokio::time::timeout(timeout, running).await {
                Ok(outcome) => outcome,
                Err(_) => outcome::too_late(&name, timeout),
            },
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

    fn sent_members(&self) -> SentMembers {
        SentMembers {
            known: &params::KNOWN,
            sent: &["args", "env"],
        }
    }
}
