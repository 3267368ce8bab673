//! A pooler of connections before a PostgreSQL: pgbouncer.

use crate::guarded::Guarded;
use crate::{database, free_port, new_folder, ready};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The variable that names its program.
const PROGRAM: &str = "STARBRIDGE_POOLER";
const PATIENCE: Duration = Duration::from_secs(30);

/// It ends with the test.
#[derive(Debug)]
pub struct Pooler {
    port: u16,
    folder: PathBuf,
    running: Option<Guarded>,
}

impl Pooler {
    /// One before the database at this port of the loopback. `mode`: how long a client keeps a session: `session`,
    /// `transaction` or `statement`; `sessions`: how many there are for each role and database.
    ///
    /// # Panics
    ///
    /// Panics if the environment names no program, or if it does not start: a test that needs it can't continue.
    pub fn before(database: u16, mode: &str, sessions: u32) -> Self {
        Self::start(database, mode, sessions).unwrap_or_else(|problem| panic!("pgbouncer: {problem}"))
    }

    fn start(database: u16, mode: &str, sessions: u32) -> Result<Self, String> {
        let program = std::env::var_os(PROGRAM).ok_or_else(|| format!("{PROGRAM} names no program"))?;
        let (port, folder) = (free_port()?, new_folder()?);
        let problem = |error: std::io::Error| error.to_string();
        let users = folder.join("users");
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={database}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = {mode}\ndefault_pool_size = {sessions}\n",
            users.display()
        );
        let names = format!("\"shop\" \"\"\n\"{}\" \"\"\n", database::USER);
        std::fs::write(&users, names).map_err(problem)?;
        std::fs::write(folder.join("settings.ini"), settings).map_err(problem)?;
        let out = std::fs::File::create(folder.join("log")).map_err(problem)?;
        let mut command = Command::new(program);
        database::run_as_its_user(&mut command)?;
        command.arg(folder.join("settings.ini")).stdin(Stdio::null());
        command.stdout(out.try_clone().map_err(problem)?).stderr(out);
        let running = Guarded::start(&mut command, &folder).map_err(problem)?;
        let mut pooler = Self {
            port,
            folder,
            running: Some(running),
        };
        pooler.wait()?;
        Ok(pooler)
    }

    fn wait(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            if begun.elapsed() > PATIENCE || self.running.as_mut().is_none_or(Guarded::is_over) {
                let said = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                return Err(format!("it does not listen: {said}"));
            }
            ready::pause();
        }
        Ok(())
    }

    /// Where it listens, on the loopback.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.running = None;
        // What can't be deleted stays in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
