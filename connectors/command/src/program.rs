//! One run of a program.

use crate::group::Group;
use crate::outcome::{self, Ended};
use crate::params;
use crate::{CommandSettings, streams};
use starbridge_fdl::value::Value;
use starbridge_ports::{Outcome, Request};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

/// A program, ready to run.
pub(super) struct Program {
    name: String,
    command: Command,
}

impl Program {
    /// The program a request names, with arguments, variables and folder from its parameters.
    pub(super) fn of(settings: &CommandSettings, request: &Request) -> Result<Self, Outcome> {
        let name = request
            .target
            .strip_prefix("cmd:")
            .unwrap_or(&request.target)
            .to_owned();
        if name.is_empty() || name.contains('\0') {
            return Err(Outcome::not_sent("`cmd:` names no program".to_owned()));
        }
        let params = params::read(request.params.as_ref())?;
        let folder = settings.folder.canonicalize().map_err(|error| {
            let folder = settings.folder.display();
            Outcome::not_sent(format!("the folder `{folder}` can't be used: {}", words(&error)))
        })?;
        let program = if name.contains('/') {
            folder.join(&name)
        } else {
            PathBuf::from(&name)
        };
        let mut command = Command::new(program);
        command.args(&params.args).env_clear();
        inherit(&mut command, settings);
        for (name, value) in &params.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        tell(&mut command, request);
        command
            .current_dir(working_folder(&folder, params.cwd.as_deref())?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        Ok(Self { name, command })
    }

    /// Runs it to its end. Given up before, it is killed with all it started.
    pub(super) async fn run(mut self, request: &Request, input: &Value) -> Outcome {
        let mut child = match self.command.spawn() {
            Ok(child) => child,
            Err(error) => return Outcome::not_sent(format!("`{}` can't be run: {}", self.name, words(&error))),
        };
        let mut group = Group::led_by(&child);
        let input = input.to_json();
        let limit = request.answer_limit;
        let stdin = child.stdin.take();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let reading =
            async { tokio::try_join!(streams::whole(stdout, limit), async { Ok(streams::tail(stderr).await) }) };
        // What the program started and left running ends with it: it would hold the pipes open for ever.
        let ending = async {
            let feeding = async {
                streams::feed(stdin, input).await;
                std::future::pending().await
            };
            let status = tokio::select! {
                status = child.wait() => status,
                never = feeding => never,
            };
            group.end();
            Ok(status)
        };
        let Ok((status, (out, err))) = tokio::try_join!(ending, reading) else {
            let cause = format!("`{}` printed more than the {limit} bytes it may", self.name);
            return Outcome::failed("FnF.PayloadTooLarge", cause);
        };
        match status {
            Ok(status) => {
                let ended = Ended {
                    name: &self.name,
                    status,
                    out: &out,
                    err: &err,
                };
                outcome::of(&ended, request.pattern)
            }
            Err(error) => Outcome::failed(
                "FnF.RuntimeError",
                format!("`{}` can't be waited for: {error}", self.name),
            ),
        }
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "which variables a program sees is this connector's business"
)]
fn inherit(command: &mut Command, settings: &CommandSettings) {
    for name in &settings.inherited {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
}

/// Tells the program which call it is run for (section "tasks"), over whatever else stood there.
fn tell(command: &mut Command, request: &Request) {
    let keys = &request.keys;
    let kind = if request.rollback { "rollback" } else { "normal" };
    let attempt = request.attempt.to_string();
    for (name, value) in [
        ("STARBRIDGE_EXECUTION", keys.execution.as_str()),
        ("STARBRIDGE_FLOW", &keys.flow),
        ("STARBRIDGE_STEP", &keys.step),
        ("STARBRIDGE_ATTEMPT", &attempt),
        ("STARBRIDGE_IDEMPOTENCY_KEY", &keys.idempotency),
        ("STARBRIDGE_STEP_KEY", &keys.step_visit),
        ("STARBRIDGE_TYPE", kind),
    ] {
        command.env(name, value.replace('\0', ""));
    }
    if let Some(parent) = &keys.traceparent {
        command.env("TRACEPARENT", parent.replace('\0', ""));
    }
}

fn working_folder(folder: &Path, relative: Option<&str>) -> Result<PathBuf, Outcome> {
    let Some(relative) = relative else {
        return Ok(folder.to_path_buf());
    };
    let inside = folder.join(relative).canonicalize().ok();
    inside
        .filter(|path| path.starts_with(folder) && path.is_dir())
        .ok_or_else(|| Outcome::not_sent(format!("`cwd` `{relative}` is no folder inside the flow's own")))
}

/// An operating system's error without its number.
fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
