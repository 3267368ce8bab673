//! Programs that do not outlive who started them.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Waits for the end of its input, which is when the process that holds the other end is gone, then kills and deletes.
const GUARD: &str = r#"read -r line; kill -s KILL -- "-$1" 2>/dev/null; rm -rf -- "$2""#;

/// How long a program that was asked to end is waited for.
const STOP: Duration = Duration::from_secs(20);

/// A program in its own process group, so that an interrupt at the terminal reaches only its
/// parent. It is killed with all its child processes when this is dropped, and by a guard when this
/// process ends in any other way.
#[derive(Debug)]
pub(crate) struct Guarded {
    child: Child,
    guard: Child,
}

impl Guarded {
    /// Starts a program; the folder is deleted too if this process is killed.
    pub(crate) fn start(command: &mut Command, folder: &Path) -> std::io::Result<Self> {
        let mut child = command.process_group(0).spawn()?;
        let guard = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .arg(child.id().to_string())
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn();
        match guard {
            Ok(guard) => Ok(Self { child, guard }),
            Err(error) => {
                end(&mut child);
                Err(error)
            }
        }
    }

    /// Whether it has already ended.
    pub(crate) fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end by this signal, and waits until it has; kills it if that takes too long.
    #[expect(
        clippy::disallowed_methods,
        reason = "the standard library can't wait for a program and a time at once"
    )]
    pub(crate) fn stop(mut self, by: &str) {
        signal(by, &self.child.id().to_string());
        let begun = std::time::Instant::now();
        while !self.is_over() && begun.elapsed() < STOP {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // The guard first: after the program is waited for, another process may get its number.
        end(&mut self.guard);
        // The group outlives its first process as long as that has children.
        signal("-KILL", &format!("-{}", self.child.id()));
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // It may have ended in the meantime; either way it is over.
    let _ = child.kill();
    let _ = child.wait();
}

fn signal(which: &str, to: &str) {
    let mut kill = Command::new("kill");
    kill.args([which, "--", to]).stdout(Stdio::null()).stderr(Stdio::null());
    // The process is gone already, as wanted.
    let _ = kill.status();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    /// The state after this process is killed: the guard, whose input ends, and the program.
    #[test]
    fn the_guard_kills_and_deletes() {
        let folder = std::env::temp_dir().join(format!("starbridge-guard-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut guarded = Guarded::start(Command::new("sleep").arg("600"), &folder).unwrap();
        assert!(!guarded.is_over());
        drop(guarded.guard.stdin.take());
        assert_eq!(guarded.child.wait().unwrap().signal(), Some(9));
        guarded.guard.wait().unwrap();
        assert!(!folder.exists());
    }
}
