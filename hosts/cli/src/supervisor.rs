//! Programs that this command runs for flows. Each has this same program as its supervisor, and
//! none can read the secrets of this process.

use starbridge_node::escaping::escaped;
use starbridge_node::programs::Supervisor;
use std::ffi::OsString;
use std::process::ExitCode;

/// The only argument of a supervisor. It is not a command for users.
const SUPERVISE: &str = "supervise-program";

/// Does the work of a supervisor, if the arguments request it.
pub fn supervise(arguments: &[OsString]) -> Option<ExitCode> {
    match arguments {
        #[cfg(target_os = "linux")]
        [_, only] if only == SUPERVISE => Some(starbridge_node::programs::supervise()),
        _ => None,
    }
}

/// This program as the supervisor of others, if that is possible.
pub fn own_supervisor() -> Option<Supervisor> {
    match cfg!(target_os = "linux") {
        true => Supervisor::this_program(SUPERVISE),
        false => None,
    }
}

/// The stderr of a program, each line with the name of its source in front.
pub fn told<'a>(whose: &'a str, text: &'a str) -> impl Iterator<Item = String> + 'a {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(move |line| escaped(&format!("| {whose}: {line}")).into_owned())
}

/// From now on only root can read the memory and environment of this process, with all secrets, and
/// not every program of the same user. It leaves no core dumps either.
pub fn keep_to_itself() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // If the system refuses, everything works as without it.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
