//! Programs that this command runs for flows: each has this very program as its supervisor, and none reads what this process
//! was given.

use starbridge_node::escaping::escaped;
use starbridge_node::programs::Supervisor;
use std::ffi::OsString;
use std::process::ExitCode;

/// The only argument of a supervisor. Nobody types it: it is no command.
const SUPERVISE: &str = "supervise-program";

/// Does the work of a supervisor, where the arguments ask for that.
pub fn supervise(arguments: &[OsString]) -> Option<ExitCode> {
    match arguments {
        #[cfg(target_os = "linux")]
        [_, only] if only == SUPERVISE => Some(starbridge_node::programs::supervise()),
        _ => None,
    }
}

/// This program as the supervisor of others, where that can be.
pub fn own_supervisor() -> Option<Supervisor> {
    match cfg!(target_os = "linux") {
        true => Supervisor::this_program(SUPERVISE),
        false => None,
    }
}

/// What a program printed on stderr, a line each, after whose it is.
pub fn told<'a>(whose: &'a str, text: &'a str) -> impl Iterator<Item = String> + 'a {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(move |line| escaped(&format!("| {whose}: {line}")).into_owned())
}

/// From now on memory and environment of this process, with all secrets, are read by root alone, not by every program of
/// the same user. It leaves no core dumps either.
pub fn keep_to_itself() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Where that can't be had, things are as without it.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}
