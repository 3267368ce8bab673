//! One run of a program.

#![allow(
    clippy::disallowed_methods,
    reason = "a program's environment and folder are this connector's business"
)]

use crate::CommandSettings;
use rustix::process::{Pid, Signal, kill_process_group};
use starbridge_fdl::graph::Pattern;
use starbridge_fdl::value::{Object, Value};
use starbridge_ports::{Outcome, Request};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};

/// How much of stderr a cause keeps, from the end.
const CAUSE: usize = 2_000;

/// A program, ready to run.
pub(super) struct Program {
    name: String,
    command: Command,
}

/// Kills a process group once nobody waits for it any more.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended by itself just now.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Program {
    /// The program a request names, with arguments, variables and folder from its parameters.
    pub(super) fn of(settings: &CommandSettings, request: &Request) -> Result<Self, Outcome> {
        let refused = |cause: String| Outcome::failed("FnF.NoSuchResource", cause);
        let name = request.target.strip_prefix("cmd:").unwrap_or(&request.target).to_owned();
        if name.is_empty() {
            return Err(refused("`cmd:` names no program".to_owned()));
        }
        let folder = settings
            .folder
            .canonicalize()
            .map_err(|error| refused(format!("the folder `{}` can't be used: {error}", settings.folder.display())))?;
        let program = if name.contains('/') { folder.join(&name) } else { PathBuf::from(&name) };
        let params = request.params.as_ref().and_then(Value::as_object);
        let param = |key: &str| params.and_then(|params| params.get(key));
        let mut command = Command::new(program);
        if let Some(args) = param("args").and_then(Value::as_array) {
            command.args(args.values().iter().map(Value::to_plain_text));
        }
        command.env_clear();
        for name in &settings.inherited {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let kind = if request.rollback { "rollback" } else { "normal" };
        let attempt = request.attempt.to_string();
        for (name, value) in [
            ("EXECUTION", request.keys.execution.as_str()),
            ("STEP", &request.keys.step),
            ("ATTEMPT", &attempt),
            ("IDEMPOTENCY_KEY", &request.keys.idempotency),
            ("STEP_KEY", &request.keys.step_visit),
            ("TYPE", kind),
        ] {
            command.env(format!("STARBRIDGE_{name}"), value.replace('\0', ""));
        }
        for (name, value) in param("env").and_then(Value::as_object).unwrap_or(&Object::new()) {
            command.env(name.as_str(), value.to_plain_text());
        }
        let inside = match param("cwd").and_then(Value::as_str) {
            None => folder,
            Some(relative) => folder
                .join(relative)
                .canonicalize()
                .ok()
                .filter(|path| path.starts_with(&folder))
                .ok_or_else(|| refused(format!("`cwd` `{relative}` is no folder inside the flow's own")))?,
        };
        command
            .current_dir(inside)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        Ok(Self { name, command })
    }

    /// Runs it to its end.
    pub(super) async fn run(mut self, request: &Request) -> Outcome {
        let mut child = match self.command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let text = error.to_string();
                let text = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
                return Outcome::failed("FnF.NoSuchResource", format!("`{}` can't be run: {text}", self.name));
            }
        };
        let mut group = Group(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        let input = Value::from(request.input.clone()).to_json();
        let limit = request.answer_limit;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (_, out, err) = tokio::join!(feed(stdin, input), read_to(stdout, limit), tail_of(stderr));
        let Some(out) = out else {
            let cause = format!("`{}` printed more than {limit} bytes", self.name);
            return Outcome::failed("FnF.PayloadTooLarge", cause);
        };
        let status = match child.wait().await {
            Ok(status) => status,
            Err(error) => return Outcome::failed("FnF.RuntimeError", format!("`{}` can't be waited for: {error}", self.name)),
        };
        // What it started and left behind in its group ends with it.
        drop(Group(group.0.take()));
        self.outcome(status, &out, &err, request.pattern)
    }

    fn outcome(&self, status: ExitStatus, out: &[u8], err: &str, pattern: Pattern) -> Outcome {
        if !status.success() {
            if let Some((error, cause)) = told(out) {
                return Outcome::failed(error, cause);
            }
            let error = match (status.code(), status.signal()) {
                (Some(code), _) => format!("CMD.{code}"),
                (None, Some(signal)) => format!("CMD.Signal{signal}"),
                (None, None) => "CMD.Failed".to_owned(),
            };
            return Outcome::failed(error, err.trim());
        }
        let result = if out.iter().all(u8::is_ascii_whitespace) {
            Ok(Object::new().into())
        } else {
            serde_json::from_slice::<Value>(out)
        };
        match (result, pattern) {
            (Ok(result), Pattern::RequestResponse) => Outcome::Result(result),
            (result, _) if pattern != Pattern::RequestResponse => Outcome::Accepted { receipt: result.ok() },
            (Ok(result), _) => Outcome::Result(result),
            (Err(error), _) => {
                let begins: String = String::from_utf8_lossy(out).chars().take(60).collect();
                let cause = format!("what `{}` printed is no JSON: {error}; it begins with `{}`", self.name, begins.trim());
                Outcome::failed("FnF.InvalidLocal", cause)
            }
        }
    }
}

/// Gives the program its input. One that does not read it is fine.
async fn feed(stdin: Option<ChildStdin>, input: String) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input.as_bytes()).await;
    }
}

/// Reads to the end, or nothing where it is longer than the limit.
async fn read_to(stream: Option<impl AsyncRead + Unpin>, limit: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        let _ = stream.take(most).read_to_end(&mut bytes).await;
    }
    (bytes.len() <= limit).then_some(bytes)
}

/// The end of what comes, however much that is.
async fn tail_of(stream: Option<impl AsyncRead + Unpin>) -> String {
    let mut tail: Vec<u8> = Vec::new();
    if let Some(mut stream) = stream {
        let mut chunk = [0; 4096];
        while let Ok(count) = stream.read(&mut chunk).await {
            if count == 0 {
                break;
            }
            tail.extend(chunk.iter().take(count));
            let surplus = tail.len().saturating_sub(4 * CAUSE);
            tail.drain(..surplus);
        }
    }
    let text = String::from_utf8_lossy(&tail).into_owned();
    let surplus = text.chars().count().saturating_sub(CAUSE);
    text.chars().skip(surplus).collect()
}

/// Error and cause, where the last line printed is an object that has them.
fn told(out: &[u8]) -> Option<(String, String)> {
    let text = String::from_utf8_lossy(out);
    let last = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let object: Object = serde_json::from_str(last).ok()?;
    let error = object.get("error")?.as_str()?.to_owned();
    Some((error, object.get("cause").map(Value::to_plain_text).unwrap_or_default()))
}
