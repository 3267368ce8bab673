//! Settings for local programs.

use starbridge_ports::Request;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Settings of a [`CommandConnector`](crate::CommandConnector).
#[derive(Clone, Debug)]
pub struct CommandSettings {
    /// The folder in which programs run. Relative paths count from it, and working folders are inside it.
    pub folder: PathBuf,
    /// Which programs may be run.
    pub programs: Programs,
    /// The variables that flows may set for programs of the folder; `PREFIX*` stands for all with this prefix. Many
    /// programs run other files if a variable tells them to.
    pub variables: Vec<String>,
    /// The variables of this process that programs inherit.
    pub inherited: Vec<String>,
    /// How long a program may run if its step has no timeout; `None`: without limit.
    pub timeout: Option<Duration>,
    /// The supervisor for each program. Without one, a process that leaves its process group outlives the call, and
    /// every program outlives this process if that is killed.
    pub supervisor: Option<Supervisor>,
    /// Receives the stderr of programs that succeed. The stderr of other programs is their cause.
    pub heard: Option<StderrReceiver>,
}

/// The stderr of a program.
#[derive(Clone, Copy, Debug)]
pub struct Printed<'a> {
    /// The program's name.
    pub program: &'a str,
    /// The step that called it.
    pub step: &'a str,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The end of the output.
    pub text: &'a str,
}

/// A receiver of programs' stderr.
#[derive(Clone)]
pub struct StderrReceiver(Arc<Receive>);

type Receive = dyn Fn(&Printed<'_>) + Send + Sync;

impl StderrReceiver {
    /// A receiver that calls this function.
    pub fn by(told: impl Fn(&Printed<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(told))
    }

    pub(crate) fn tell(&self, program: &str, request: &Request, printed: &[u8]) {
        if !printed.is_empty() {
            (self.0)(&Printed {
                program,
                step: &request.keys.step,
                attempt: request.attempt,
                text: &String::from_utf8_lossy(printed),
            });
        }
    }
}

impl std::fmt::Debug for StderrReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StderrReceiver")
    }
}

/// Which programs may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programs {
    /// Any that this user may run: found in `PATH`, or by a path relative to the folder.
    Any,
    /// Only executable files in the folder and below it.
    OfFolder,
}

/// A command that calls [`supervise`](crate::supervise).
#[derive(Clone, Debug)]
pub struct Supervisor {
    pub(crate) program: PathBuf,
    pub(crate) argument: OsString,
}

impl Supervisor {
    /// This program, which must supervise when it is called with only this argument. `None` if its path is not known.
    pub fn this_program(argument: impl Into<OsString>) -> Option<Self> {
        // The running file, even if its path now leads to a newer one.
        let own = Path::new("/proc/self/exe");
        let program = match own.exists() {
            true => own.to_path_buf(),
            false => std::env::current_exe().ok()?,
        };
        Some(Self::of(program, argument))
    }

    /// Another program that supervises when it is called with this argument.
    pub fn of(program: impl Into<PathBuf>, argument: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            argument: argument.into(),
        }
    }
}

impl CommandSettings {
    /// Settings that run any program in this folder, with only the variables that programs need.
    pub fn in_folder(folder: PathBuf) -> Self {
        let inherited = ["PATH", "HOME", "LANG", "TMPDIR"];
        Self {
            folder,
            programs: Programs::Any,
            variables: Vec::new(),
            inherited: inherited.into_iter().map(str::to_owned).collect(),
            timeout: None,
            supervisor: None,
            heard: None,
        }
    }
}
