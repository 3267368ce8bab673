//! Local programs: input on stdin, a JSON object on stdout (section "tasks", `cmd:`).
//!
//! There is no shell in between. With a [`Supervisor`], everything that a program started is killed
//! when the program ends, when its call is dropped, and when this process ends in any way. Without
//! one, only the program's process group is killed, and not in the last case. [`Programs`] says
//! which programs may run.
//!
//! # Outcomes
//!
//! | the program | the call |
//! |---|---|
//! | ends with 0 | has the JSON on stdout as its result, or `{}` if there is none; under another pattern than `requestResponse` it is accepted with that as receipt |
//! | ends with 0 and something else on stdout | `FnF.InvalidLocal` |
//! | ends with another code | `CMD.<code>`, unless all of stdout, its last line or the last line of stderr is a JSON object with `error` (and `cause`); otherwise the cause is the end of stderr |
//! | is killed | `CMD.Signal<number>` |
//! | prints more than the limit | `FnF.PayloadTooLarge`, and it is killed |
//! | takes longer than [`CommandSettings::timeout`], and its step has no timeout | `FnF.TaskTimeout`, and it is killed |
//! | may not be run, can't be started, or `serviceParams` are wrong | `FnF.NoSuchResource`: nothing ran |
//!
//! # Example
//!
//! `cat` prints its input, so that is the result of the call:
//!
//! ```
//! use starbridge_connector_command::{CommandConnector, CommandSettings};
//! use starbridge_ports::{Connector, Outcome, Request};
//!
//! # use starbridge_flow::{graph::Pattern, value::{Object, Value}};
//! # let input = Value::from(Object::from_iter([("n".into(), 1u32.into())]));
//! # let request = Request {
//! #     target: "cmd:cat".to_owned(),
//! #     via: starbridge_ports::ResourceFamily::Direct,
//! #     pattern: Pattern::RequestResponse,
//! #     input: input.clone(),
//! #     params: None,
//! #     keys: starbridge_ports::CallIds::default(),
//! #     attempt: 1,
//! #     rollback: false,
//! #     polling: false,
//! #     follow: false,
//! #     timeout_at: None,
//! #     answer_limit: 1 << 20,
//! # };
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # runtime.block_on(async {
//! let connector = CommandConnector::new(CommandSettings::in_folder(std::env::temp_dir()));
//! let outcome = connector.call(request).await;
//! assert_eq!(outcome, Outcome::Result(input));
//! # });
//! ```
#![warn(clippy::missing_errors_doc)]

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

pub use settings::{CommandSettings, Printed, Programs, StderrReceiver, Supervisor};
#[cfg(target_os = "linux")]
pub use supervisor::supervise;

use fence::Folder;
use program::Program;
use starbridge_flow::graph::Pattern;
use starbridge_flow::value::Value;
use starbridge_ports::{Connector, LogTail, Outcome, OutcomeFuture, Request, SentMembers};

/// Runs local programs: the connector for `cmd:`.
#[derive(Debug)]
pub struct CommandConnector {
    settings: CommandSettings,
    folder: Folder,
}

impl CommandConnector {
    /// A connector with these settings. Programs are looked up when they are called.
    pub fn new(settings: CommandSettings) -> Self {
        let folder = Folder::of(&settings);
        Self { settings, folder }
    }

    /// Runs the program of a call with any JSON value as its input, and returns the outcome. Its
    /// stderr is added to the log meanwhile.
    pub async fn run(&self, request: &Request, input: &Value, log: &LogTail) -> Outcome {
        let program = match Program::of(&self.settings, &self.folder, request, input) {
            Ok(program) => program,
            Err(outcome) => return outcome,
        };
        let name = program.name().to_owned();
        let running = program.run(&self.settings, request, log);
        // If a step waits for a callback, its timeout is not for the program alone.
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
        self.call_logged(request, LogTail::default())
    }

    fn call_logged(&self, request: Request, log: LogTail) -> OutcomeFuture<'_> {
        Box::pin(async move {
            let input = request.input.clone();
            self.run(&request, &input, &log).await
        })
    }

    fn sent_members(&self) -> SentMembers {
        SentMembers {
            known: &params::KNOWN,
            sent: &["args", "env"],
        }
    }
}
