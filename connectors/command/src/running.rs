//! A running program: started directly, or by a supervisor.

use crate::fence::words;
use crate::group::Group;
use crate::settings::Supervisor;
use crate::streams;
use crate::task::{End, Task};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

/// How many bytes a supervisor may answer.
const MAX_ANSWER_BYTES: u64 = 4_096;

/// A running program. Dropping it kills it together with the processes that it started.
pub(crate) enum Running {
    /// The process group is killed. A process that left the group survives.
    Alone { child: Box<Child>, group: Group },
    /// The supervisor ends everything when the socket is closed, by either side and for any reason.
    Supervised { child: Box<Child>, control: UnixStream },
}

impl Running {
    /// Starts a task in a folder.
    pub(crate) fn start(task: &Task, folder: &Path, supervisor: Option<&Supervisor>) -> io::Result<Self> {
        match supervisor {
            None => {
                let mut command = Command::from(task.command());
                command.stdin(Stdio::piped()).kill_on_drop(true);
                let child = Box::new(spawn(command, folder)?);
                let group = Group::led_by(&child);
                Ok(Self::Alone { child, group })
            }
            Some(supervisor) => {
                let (control, theirs) = UnixStream::pair()?;
                let theirs = theirs.into_std()?;
                theirs.set_nonblocking(false)?;
                let mut command = Command::new(&supervisor.program);
                command.arg(&supervisor.argument).env_clear();
                // The supervisor is not killed when this is dropped: it must end the rest first.
                command.stdin(Stdio::from(OwnedFd::from(theirs)));
                let child = Box::new(spawn(command, folder)?);
                Ok(Self::Supervised { child, control })
            }
        }
    }

    /// Its stdout and stderr.
    pub(crate) fn streams(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        let (Self::Alone { child, .. } | Self::Supervised { child, .. }) = self;
        (child.stdout.take(), child.stderr.take())
    }

    /// Sends the task and waits until the program, and with a supervisor everything it started, has ended.
    pub(crate) async fn ended(&mut self, task: &Task) -> Result<End, String> {
        match self {
            Self::Alone { child, group } => {
                let stdin = child.stdin.take();
                let feeding = async {
                    streams::feed(stdin, &task.input).await;
                    std::future::pending().await
                };
                let status = tokio::select! {
                    status = child.wait() => status,
                    never = feeding => never,
                };
                group.end();
                status.map(End::of).map_err(|error| words(&error))
            }
            Self::Supervised { control, .. } => supervised(control, task).await,
        }
    }
}

fn spawn(mut command: Command, folder: &Path) -> io::Result<Child> {
    command.current_dir(folder).process_group(0);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

async fn supervised(control: &mut UnixStream, task: &Task) -> Result<End, String> {
    let (from, mut to) = control.split();
    let telling = async {
        // If the supervisor ends before it has read everything, it gives no answer.
        let _ = to.write_all(&task.write()).await;
        std::future::pending().await
    };
    let mut answer = String::new();
    let mut from = from.take(MAX_ANSWER_BYTES);
    let read = tokio::select! {
        read = from.read_to_string(&mut answer) => read,
        never = telling => never,
    };
    let end = read.ok().and_then(|_| End::read(&answer));
    end.ok_or_else(|| "its supervisor has ended without a word".to_owned())
}
