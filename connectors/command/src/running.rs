//! A program that runs: by itself, or with a supervisor between.

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

/// Bytes that a supervisor has to say at most.
const ANSWER: u64 = 4_096;

/// A program that runs. Dropped, it is killed with what it started.
pub(crate) enum Running {
    /// Its process group is killed, which is what it started, unless that has left the group.
    Alone { child: Box<Child>, group: Group },
    /// Its supervisor ends everything when the socket is closed, whoever or whatever closes it.
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
                // Not killed when it is dropped: it has the rest to end first.
                command.stdin(Stdio::from(OwnedFd::from(theirs)));
                let child = Box::new(spawn(command, folder)?);
                Ok(Self::Supervised { child, control })
            }
        }
    }

    /// What it prints.
    pub(crate) fn streams(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        let (Self::Alone { child, .. } | Self::Supervised { child, .. }) = self;
        (child.stdout.take(), child.stderr.take())
    }

    /// Gives it the task and waits until it has ended, and all that it started.
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
        // One that does not take it all ends without a word.
        let _ = to.write_all(&task.write()).await;
        std::future::pending().await
    };
    let mut answer = String::new();
    let mut from = from.take(ANSWER);
    let read = tokio::select! {
        read = from.read_to_string(&mut answer) => read,
        never = telling => never,
    };
    let end = read.ok().and_then(|_| End::read(&answer));
    end.ok_or_else(|| "its supervisor has ended without a word".to_owned())
}
