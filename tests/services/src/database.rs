//! The folder of a PostgreSQL: made once by `initdb`, which takes seconds, and copied for each.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// The user of the databases of a copy; nobody asks it for a password.
pub(crate) const USER: &str = "starbridge";

/// The user of the system that runs it, where this process is root: PostgreSQL refuses to run as root.
const RUNNER: &str = "postgres";

/// Whoever runs PostgreSQL, by number.
#[derive(Clone, Copy)]
struct Runner {
    user: u32,
    group: u32,
}

impl Runner {
    /// `None` where this process may run it itself.
    fn found() -> Result<Option<Self>, String> {
        let own = std::fs::metadata("/proc/self").map_err(|error| format!("/proc/self: {error}"))?;
        if own.uid() != 0 {
            return Ok(None);
        }
        let number = |which: &str| {
            let said = Command::new("id").args([which, RUNNER]).output();
            let said = said.ok().filter(|said| said.status.success());
            let number = said.and_then(|said| String::from_utf8_lossy(&said.stdout).trim().parse().ok());
            number.ok_or_else(|| format!("PostgreSQL does not run as root, and there is no user `{RUNNER}`"))
        };
        Ok(Some(Self {
            user: number("-u")?,
            group: number("-g")?,
        }))
    }
}

/// Makes the command that of whoever may run PostgreSQL.
pub(crate) fn run_as_its_user(command: &mut Command) -> Result<(), String> {
    if let Some(runner) = Runner::found()? {
        command.uid(runner.user).gid(runner.group);
    }
    Ok(())
}

/// Where a copy keeps what it keeps.
pub(crate) fn data(folder: &Path) -> PathBuf {
    folder.join("data")
}

/// Fills the folder of a new copy.
pub(crate) fn make(program: &Path, folder: &Path) -> Result<(), String> {
    let template = template(program)?;
    // The socket is made in it.
    give_away(folder)?;
    run(Command::new("cp").arg("-a").arg(&template).arg(data(folder)))
}

/// Whom a standby follows, and under which name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Primary<'a> {
    pub(crate) port: u16,
    pub(crate) name: &'a str,
}

/// Fills the folder of a standby: what its primary has now.
pub(crate) fn make_standby(program: &Path, folder: &Path, primary: Primary<'_>) -> Result<(), String> {
    give_away(folder)?;
    let at = format!(
        "host=127.0.0.1 port={} user={USER} application_name={}",
        primary.port, primary.name
    );
    let mut copy = Command::new(program.with_file_name("pg_basebackup"));
    copy.args([
        "--no-sync",
        "--checkpoint=fast",
        "--wal-method=stream",
        "--write-recovery-conf",
    ]);
    copy.arg("--dbname").arg(at).arg("--pgdata").arg(data(folder));
    run_as_its_user(&mut copy)?;
    run(copy.current_dir(folder))
}

/// Makes a standby a primary.
pub(crate) fn promote(program: &Path, folder: &Path) -> Result<(), String> {
    let mut promote = Command::new(program.with_file_name("pg_ctl"));
    promote
        .args(["promote", "--wait", "--silent", "--pgdata"])
        .arg(data(folder));
    run_as_its_user(&mut promote)?;
    run(promote.current_dir(folder))
}

/// Gives a folder to whoever runs PostgreSQL.
fn give_away(folder: &Path) -> Result<(), String> {
    let Some(runner) = Runner::found()? else {
        return Ok(());
    };
    std::os::unix::fs::chown(folder, Some(runner.user), Some(runner.group))
        .map_err(|error| format!("{}: {error}", folder.display()))
}

/// The folder that is copied. Several processes may make it at once: the first that has finished names it.
fn template(program: &Path) -> Result<PathBuf, String> {
    let program = std::fs::canonicalize(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let seen = std::fs::metadata(&program).map_err(|error| format!("{}: {error}", program.display()))?;
    let name = format!("starbridge-initdb-{}-{}", seen.ino(), seen.mtime());
    let template = std::env::temp_dir().join(&name);
    if template.is_dir() {
        return Ok(template);
    }
    // Threads of one process may, too.
    static MAKING: AtomicU32 = AtomicU32::new(0);
    let number = MAKING.fetch_add(1, Ordering::Relaxed);
    let own = std::env::temp_dir().join(format!("{name}-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&own).map_err(|error| format!("{}: {error}", own.display()))?;
    give_away(&own)?;
    let made = own.join("data");
    let mut initdb = Command::new(program.with_file_name("initdb"));
    initdb.args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]);
    initdb.args(["--wal-segsize=1", "--no-instructions", "--username", USER, "--pgdata"]);
    initdb.arg(&made).current_dir(&own);
    run_as_its_user(&mut initdb)?;
    run(&mut initdb)?;
    let named = std::fs::rename(&made, &template);
    // Nothing is in it any more, unless another process was sooner.
    let _ = std::fs::remove_dir_all(&own);
    match named {
        Ok(()) => Ok(template),
        Err(_) if template.is_dir() => Ok(template),
        Err(error) => Err(format!("{}: {error}", template.display())),
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let said = command.output().map_err(|error| format!("{program}: {error}"))?;
    match said.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{program} does not succeed: {}",
            String::from_utf8_lossy(&said.stderr).trim_end()
        )),
    }
}
