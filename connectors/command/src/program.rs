//! One run of a program.

use crate::CommandSettings;
use crate::fence::{Folder, words};
use crate::outcome::{self, Ended};
use crate::params;
use crate::running::Running;
use crate::streams::{OutputTooLong, Reading};
use crate::task::{End, Task};
use starbridge_flow::graph::FaultKind;
use starbridge_flow::value::Value;
use starbridge_ports::{CallMetadata, LogTail, Outcome, Request};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// After the program has ended, reading stops when a pipe is quiet for this long.
const QUIET: Duration = Duration::from_millis(100);
/// After the program has ended, reading stops after this time even if another process keeps writing into the pipe.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A program that is ready to run.
pub(super) struct Program {
    name: String,
    task: Task,
    folder: PathBuf,
}

impl Program {
    /// The program that a request names, with arguments, variables and folder from its parameters.
    pub(super) fn of(
        settings: &CommandSettings,
        folder: &Folder,
        request: &Request,
        input: &Value,
    ) -> Result<Self, Outcome> {
        let name = request
            .target
            .strip_prefix("cmd:")
            .unwrap_or(&request.target)
            .to_owned();
        if name.is_empty() || name.contains('\0') {
            return Err(Outcome::not_sent("`cmd:` names no program".to_owned()));
        }
        let params = params::read(request.params.as_ref())?;
        let found = folder.program(&name)?;
        let mut env = inherited(settings);
        for (name, value) in params.env {
            folder.admits_variable(&name)?;
            match value {
                Some(value) => env.insert(name.into(), value.into()),
                None => env.remove(&OsString::from(name)),
            };
        }
        set_metadata(&mut env, request);
        Ok(Self {
            name,
            folder: folder.working(params.cwd.as_deref())?,
            task: Task {
                program: found.program,
                called: found.called,
                args: params.args.into_iter().map(Into::into).collect(),
                env: env.into_iter().collect(),
                input: input.to_json().into_bytes(),
            },
        })
    }

    /// The name by which the flow calls it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Runs the program to its end and returns the outcome. Its stderr is added to the log
    /// meanwhile. If the future is dropped, the program is killed with everything it started.
    pub(super) async fn run(self, settings: &CommandSettings, request: &Request, log: &LogTail) -> Outcome {
        let limit = request.answer_limit;
        match self.printed(settings, limit, log).await {
            Ok(Printed { end, out, err }) => {
                if let (End::Code(0), Some(heard)) = (&end, &settings.heard) {
                    heard.tell(&self.name, request, &err);
                }
                let ended = Ended {
                    name: &self.name,
                    end: &end,
                    out: &out,
                    err: &err,
                };
                outcome::of(&ended, request.pattern)
            }
            Err(Broken::NotStarted(reason)) => Outcome::not_sent(format!("`{}` can't be run: {reason}", self.name)),
            Err(Broken::OutputTooLong) => {
                let cause = format!("`{}` printed more than the {limit} bytes it may", self.name);
                Outcome::failed(FaultKind::TooLarge, cause)
            }
            Err(Broken::Lost(reason)) => outcome::lost(&self.name, &reason),
        }
    }

    async fn printed(&self, settings: &CommandSettings, limit: usize, log: &LogTail) -> Result<Printed, Broken> {
        let started = Running::start(&self.task, &self.folder, settings.supervisor.as_ref());
        let mut running = started.map_err(|error| Broken::NotStarted(words(&error)))?;
        let (out, err) = running.streams();
        let (mut out, mut err) = (Reading::whole(out, limit), Reading::tail(err, log));
        let end = {
            let ended = running.ended(&self.task);
            tokio::pin!(ended);
            loop {
                tokio::select! {
                    end = &mut ended => break end.map_err(Broken::Lost)?,
                    more = out.more(), if !out.is_over() => more?,
                    more = err.more(), if !err.is_over() => more?,
                }
            }
        };
        // If another process holds a pipe open, the call does not wait for it: the program's own
        // output has arrived by now.
        let latest = Instant::now() + LAST_WORDS;
        while !(out.is_over() && err.is_over()) {
            tokio::select! {
                biased;
                () = sleep_until(latest) => break,
                more = out.more(), if !out.is_over() => more?,
                more = err.more(), if !err.is_over() => more?,
                () = sleep(QUIET) => break,
            }
        }
        let (out, err) = (out.bytes, err.bytes);
        Ok(Printed { end, out, err })
    }
}

/// The output of a program that ended.
struct Printed {
    end: End,
    out: Vec<u8>,
    err: Vec<u8>,
}

/// Why there is no regular end.
enum Broken {
    NotStarted(String),
    OutputTooLong,
    Lost(String),
}

impl From<OutputTooLong> for Broken {
    fn from(_: OutputTooLong) -> Self {
        Self::OutputTooLong
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "which variables a program sees is this connector's business"
)]
fn inherited(settings: &CommandSettings) -> BTreeMap<OsString, OsString> {
    let names = settings.inherited.iter().map(OsString::from);
    names
        .filter_map(|name| std::env::var_os(&name).map(|value| (name, value)))
        .collect()
}

/// Sets variables that tell the program which call it runs for (section "tasks"). They replace others of the same
/// name.
fn set_metadata(env: &mut BTreeMap<OsString, OsString>, request: &Request) {
    for (field, value) in CallMetadata::of(request, false).pairs() {
        if let Some(name) = field.variable() {
            env.insert(name.into(), value.replace('\0', "").into());
        }
    }
}
