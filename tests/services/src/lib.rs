//! Private copies of the services that tests need: Redis, PostgreSQL, stand-ins for services of AWS, and the emulator of Lambda's runtime.
//!
//! A copy listens on a free port of the loopback, keeps its data in its own folder, can be killed
//! and started again in the middle of a test, and ends with the test, whatever its result. The
//! programs are named by the environment ([`Kind::variable`]), as `cargo xtask test` and `cargo
//! xtask services` do; a test that needs one that is not named fails.

mod answering;
mod asking;
mod database;
mod guarded;
mod pooler;
mod ready;
mod resident;

pub use answering::{Answering, Heard, Said};
pub use asking::{Answer, ask};
pub use pooler::Pooler;
pub use resident::resident;

use database::Primary;
use guarded::Guarded;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A service there are private copies of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Redis itself.
    Redis,
    /// PostgreSQL itself.
    Postgres,
    /// SQS, Lambda and more, in one process.
    Ministack,
    /// SQS a second time, by others.
    Moto,
    /// Runs one function as Lambda does. Its calls must come one after the other.
    Rie,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Redis, Self::Postgres, Self::Ministack, Self::Moto, Self::Rie];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Postgres => "postgres",
            Self::Ministack => "ministack",
            Self::Moto => "moto",
            Self::Rie => "rie",
        }
    }

    /// The variable that names its program. None that begins as those of a setting do: such a one would be taken for one.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Redis => "STARBRIDGE_SERVICE_REDIS",
            Self::Postgres => "STARBRIDGE_SERVICE_POSTGRES",
            Self::Ministack => "STARBRIDGE_MINISTACK",
            Self::Moto => "STARBRIDGE_MOTO",
            Self::Rie => "STARBRIDGE_RIE",
        }
    }

    /// The scheme of a copy's URL.
    fn scheme(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Postgres => "postgres",
            Self::Ministack | Self::Moto | Self::Rie => "http",
        }
    }
}

/// A copy of a service. Dropping it ends the copy and deletes its folder.
#[derive(Debug)]
pub struct Service {
    kind: Kind,
    program: PathBuf,
    further: Vec<String>,
    environment: Vec<(String, String)>,
    port: u16,
    folder: PathBuf,
    running: Option<Guarded>,
}

impl Service {
    /// A copy of the service whose program the environment names.
    ///
    /// # Panics
    ///
    /// Panics if no program is named, or if it does not start: a test that needs it can't continue.
    pub fn start(kind: Kind) -> Self {
        Self::start_in(kind, &[], &[])
    }

    /// The same with further arguments for the program.
    ///
    /// # Panics
    ///
    /// As [`Service::start`].
    pub fn start_with(kind: Kind, further: &[&str]) -> Self {
        Self::start_in(kind, further, &[])
    }

    /// The same with further arguments and environment for the program.
    ///
    /// # Panics
    ///
    /// As [`Service::start`].
    pub fn start_in(kind: Kind, further: &[&str], environment: &[(&str, &str)]) -> Self {
        let Some(program) = std::env::var_os(kind.variable()) else {
            panic!(
                "{} names no program: run this through `cargo xtask test`, or with what `cargo xtask services` prints",
                kind.variable()
            );
        };
        Self::of(kind, Path::new(&program), further, environment, None).unwrap_or_else(|problem| panic!("{problem}"))
    }

    /// A standby of this PostgreSQL, which follows it under this name. Dropping it ends it.
    ///
    /// # Errors
    ///
    /// Why it does not come up.
    pub fn standby(&self, name: &str, further: &[&str]) -> Result<Self, String> {
        let from = Primary { port: self.port, name };
        Self::of(self.kind, &self.program, further, &[], Some(from))
    }

    /// Makes this standby a primary, and waits until it is one.
    ///
    /// # Errors
    ///
    /// Why it does not become one.
    pub fn promote(&self) -> Result<(), String> {
        database::promote(&self.program, &self.folder)
    }

    /// A copy of a service with this program. An error says why it does not come up.
    pub fn of_program(kind: Kind, program: &Path, further: &[&str]) -> Result<Self, String> {
        Self::of(kind, program, further, &[], None)
    }

    fn of(
        kind: Kind,
        program: &Path,
        further: &[&str],
        environment: &[(&str, &str)],
        primary: Option<Primary<'_>>,
    ) -> Result<Self, String> {
        const TRIES: u32 = 5;
        let mut problem = String::new();
        // Somebody else may take the port between our asking for it and the program's listening.
        for _ in 0..TRIES {
            let mut service = Self {
                kind,
                program: program.to_path_buf(),
                further: further.iter().map(|&argument| argument.to_owned()).collect(),
                environment: environment
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                port: free_port()?,
                folder: new_folder()?,
                running: None,
            };
            match primary {
                Some(primary) => database::make_standby(program, &service.folder, primary)?,
                None if kind == Kind::Postgres => database::make(program, &service.folder)?,
                None => {}
            }
            match service.run() {
                Ok(()) => return Ok(service),
                Err(why) => problem = why,
            }
        }
        Err(problem)
    }

    /// The port it listens on, of the loopback; the same after it was started again.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL; of a PostgreSQL that of its first database.
    pub fn url(&self) -> String {
        match self.kind {
            Kind::Postgres => format!("postgres://{}@127.0.0.1:{}/postgres", database::USER, self.port),
            _ => format!("{}://127.0.0.1:{}", self.kind.scheme(), self.port),
        }
    }

    /// The folder with what it keeps, and with what it says, in `log`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Kills it, with all it has started: it has no time to save anything.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Asks it to end, and waits until it has.
    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop(match self.kind {
                // Otherwise it waits until everybody has gone.
                Kind::Postgres => "-INT",
                _ => "-TERM",
            });
        }
    }

    /// Starts it again on the same port, with what it has kept.
    ///
    /// # Panics
    ///
    /// Panics if it does not start.
    pub fn start_again(&mut self) {
        self.running = None;
        const TRIES: u32 = 20;
        let mut tried = self.run();
        // Processes of a PostgreSQL that was killed end a moment after it, and none begins beside them.
        for _ in 0..TRIES {
            if self.kind != Kind::Postgres || tried.is_ok() {
                break;
            }
            ready::pause();
            tried = self.run();
        }
        tried.unwrap_or_else(|problem| panic!("{problem}"));
    }

    fn run(&mut self) -> Result<(), String> {
        let log = self.folder.join("log");
        let problem = |error: std::io::Error| format!("{}: {error}", self.program.display());
        let out = std::fs::File::options()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(problem)?;
        let mut command = self.command()?;
        command
            .stdin(Stdio::null())
            .stderr(out.try_clone().map_err(problem)?)
            .stdout(out);
        let mut running = Guarded::start(&mut command, &self.folder).map_err(problem)?;
        if ready::wait(self.kind, self.port, || running.is_over()) {
            self.running = Some(running);
            return Ok(());
        }
        drop(running);
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().take(10).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        Err(format!(
            "{} does not come up on port {}; it said last:\n{}",
            self.program.display(),
            self.port,
            last.join("\n")
        ))
    }

    /// The command line it is started with.
    fn command(&self) -> Result<Command, String> {
        let mut command = Command::new(&self.program);
        let port = self.port.to_string();
        command.current_dir(&self.folder);
        match self.kind {
            Kind::Redis => {
                command.args(["--port", &port, "--bind", "127.0.0.1", "--daemonize", "no"]);
                command.args(["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir"]);
                command.arg(&self.folder);
            }
            Kind::Postgres => {
                command.arg("-D").arg(database::data(&self.folder)).args(["-p", &port]);
                command.args(["-c", "listen_addresses=127.0.0.1", "-c", "shared_buffers=32MB", "-c"]);
                command.arg(format!("unix_socket_directories={}", self.folder.display()));
                database::run_as_its_user(&mut command)?;
            }
            Kind::Ministack => {
                // Without an endpoint in its own environment the functions it runs would call the real AWS.
                command.env("AWS_ENDPOINT_URL", self.url());
                command
                    .env("AWS_ACCESS_KEY_ID", "test")
                    .env("AWS_SECRET_ACCESS_KEY", "test");
                command
                    .env("AWS_REGION", "us-east-1")
                    .env("AWS_DEFAULT_REGION", "us-east-1");
                command.env("GATEWAY_PORT", &port).env("BIND_HOST", "127.0.0.1");
                command.env("MINISTACK_HOST", "127.0.0.1");
                command
                    .env("PERSIST_STATE", "1")
                    .env("STATE_DIR", self.folder.join("state"));
            }
            Kind::Moto => {
                command.args(["-H", "127.0.0.1", "-p", &port]);
            }
            Kind::Rie => {
                let inner = free_port().unwrap_or_default();
                command.args(["--runtime-interface-emulator-address", &format!("127.0.0.1:{port}")]);
                command.args(["--runtime-api-address", &format!("127.0.0.1:{inner}")]);
                command.env("AWS_LAMBDA_FUNCTION_NAME", "function");
                command.env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "512");
            }
        }
        command.args(&self.further);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.running = None;
        const TRIES: u32 = 20;
        // Processes of a PostgreSQL that was killed end a moment after it. What can't be deleted stays in the folder for
        // temporary files.
        for _ in 0..TRIES {
            if std::fs::remove_dir_all(&self.folder).is_ok() || !self.folder.exists() {
                break;
            }
            ready::pause();
        }
    }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    listener
        .map(|address| address.port())
        .map_err(|error| format!("there is no free port: {error}"))
}

fn new_folder() -> Result<PathBuf, String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("starbridge-service-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}
