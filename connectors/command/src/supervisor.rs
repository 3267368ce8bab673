//! The supervisor: a process between a server and one program. It starts the program, ends everything the program
//! started, and ends everything when the server is gone or drops the call.
//!
//! It becomes the parent of processes whose own parents ended (a subreaper), so no started process
//! can escape from it, not even with a session or process group of its own. Its standard input is a
//! socket: the task comes in through it, and the program's end goes out. When the other side closes
//! it, on purpose or because it was killed, everything is ended.

use crate::fence::words;
use crate::task::{End, Task};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, wait};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// How long to wait before checking again whether a process is left.
const PAUSE: Duration = Duration::from_millis(2);
/// How long the report of the program's end waits while the processes that it started are being
/// ended.
const SWEEP: Duration = Duration::from_secs(2);

/// Runs the program that standard input describes. Call it from a process that does nothing else.
pub fn supervise() -> ExitCode {
    match control().and_then(supervised) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn control() -> io::Result<UnixStream> {
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

fn supervised(mut control: UnixStream) -> io::Result<()> {
    let task = Task::read(&mut control)?;
    adopt()?;
    let mut command = task.command();
    command.stdin(Stdio::piped()).process_group(0);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return write_end(&control, &End::NotStarted(words(&error))),
    };
    feed(&mut child, task.input);
    watch(control.try_clone()?);
    let end = wait_for(&child);
    let waits = Instant::now() + SWEEP;
    let mut end = Some(end);
    while !is_alone() {
        end_descendants();
        pause();
        if Instant::now() > waits
            && let Some(end) = end.take()
        {
            write_end(&control, &end)?;
        }
    }
    end.map_or(Ok(()), |end| write_end(&control, &end))
}

/// Makes this process the parent of orphans below it.
fn adopt() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(getpid()))?)
}

fn write_end(mut control: &UnixStream, end: &End) -> io::Result<()> {
    control.write_all(end.write().as_bytes())
}

/// Gives the program its input and closes the stream. It is not an error if the program does not
/// read it.
fn feed(child: &mut Child, input: Vec<u8>) {
    if let Some(mut stdin) = child.stdin.take() {
        std::thread::spawn(move || {
            let _ = stdin.write_all(&input);
        });
    }
}

/// Ends everything once the other side is gone. After the task it sends nothing more.
fn watch(mut control: UnixStream) {
    std::thread::spawn(move || {
        let _ = control.read(&mut [0]);
        // Until nothing is left and the process ends.
        loop {
            end_descendants();
            pause();
        }
    });
}

fn pause() {
    std::thread::park_timeout(PAUSE);
}

/// Waits until the program has ended, even if other processes end first.
fn wait_for(child: &Child) -> End {
    let program = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == program => return end_of(status),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return End::Lost(words(&error.into())),
        }
    }
}

fn end_of(status: WaitStatus) -> End {
    match status.exit_status() {
        Some(code) => End::Code(code),
        None => End::Signal(status.terminating_signal().unwrap_or_default()),
    }
}

/// Whether no child is left, including adopted ones. Reaps those that have ended.
fn is_alone() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return false,
            Err(_) => return true,
        }
    }
}

/// Kills all descendants of this process. Those that are started meanwhile are killed the next time.
fn end_descendants() {
    let parents = parents();
    let mut families = vec![getpid()];
    while let Some(parent) = families.pop() {
        for (child, _) in parents.iter().filter(|(_, of)| *of == parent) {
            // It may already have ended.
            let _ = kill_process(*child, Signal::KILL);
            families.push(*child);
        }
    }
}

/// Every process of this machine, with its parent.
fn parents() -> Vec<(Pid, Pid)> {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    let parent_of = |process: std::fs::DirEntry| {
        let pid: i32 = process.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read(process.path().join("stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name is in parentheses and may contain anything.
        let (_, rest) = stat.rsplit_once(')')?;
        let parent: i32 = rest.split_ascii_whitespace().nth(1)?.parse().ok()?;
        Some((Pid::from_raw(pid)?, Pid::from_raw(parent)?))
    };
    processes.flatten().filter_map(parent_of).collect()
}
