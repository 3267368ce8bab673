//! What a host decides about local programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How local programs are run.
#[derive(Clone, Debug)]
pub struct CommandSettings {
    /// The folder programs run in, and relative paths count from. Nothing outside of it is a working folder.
    pub folder: PathBuf,
    /// Which programs may be run.
    pub programs: Programs,
    /// Variables that flows may set for programs of the folder; `PREFIX*` stands for all that begin so. Many programs can be
    /// told by variables to run something else.
    pub variables: Vec<String>,
    /// Variables of this process that programs see too.
    pub inherited: Vec<String>,
    /// How long a program may run whose step sets no time of its own; none: as long as it likes.
    pub timeout: Option<Duration>,
    /// Who stands between this process and each program; without, a program that leaves its process group outlives its call,
    /// and every program outlives this process when that is killed.
    pub supervisor: Option<Supervisor>,
    /// Who is told what programs that succeed print on stderr; what the others print is their cause.
    pub heard: Option<Heard>,
}

/// Somebody who is told what programs print on stderr: the program's name and the end of it.
#[derive(Clone)]
pub struct Heard(Arc<Told>);

type Told = dyn Fn(&str, &str) + Send + Sync;

impl Heard {
    /// Calls this.
    pub fn by(told: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(told))
    }

    pub(crate) fn tell(&self, program: &str, printed: &[u8]) {
        if !printed.is_empty() {
            (self.0)(program, &String::from_utf8_lossy(printed));
        }
    }
}

impl std::fmt::Debug for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Heard")
    }
}

/// Which programs may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programs {
    /// Whatever this user may run: found in `PATH`, or by a path that counts from the folder.
    Any,
    /// Executable files in the folder and below it, and nothing else.
    OfFolder,
}

/// A command that does [`supervise`](crate::supervise).
#[derive(Clone, Debug)]
pub struct Supervisor {
    pub(crate) program: PathBuf,
    pub(crate) argument: OsString,
}

impl Supervisor {
    /// This program, which supervises when it is called with that argument alone.
    pub fn this_program(argument: impl Into<OsString>) -> Option<Self> {
        // What runs, also where the file has been replaced since.
        let own = Path::new("/proc/self/exe");
        let program = match own.exists() {
            true => own.to_path_buf(),
            false => std::env::current_exe().ok()?,
        };
        Some(Self::of(program, argument))
    }

    /// Another program.
    pub fn of(program: impl Into<PathBuf>, argument: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            argument: argument.into(),
        }
    }
}

impl CommandSettings {
    /// Any programs run in this folder, with what they need of the environment and no more.
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
