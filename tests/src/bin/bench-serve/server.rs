//! A separate server, in its own folder.

use crate::database::{self, Done};
use crate::load;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

pub struct Server {
    child: Child,
    pub address: SocketAddr,
    pub folder: PathBuf,
    /// From the start of the process until it listened.
    pub ready: Duration,
    /// What the database had done by then, if the store is in one.
    pub before: Option<Done>,
}

impl Server {
    /// Starts a server over the store in that folder, with its `serve.toml`, if it has one.
    pub fn start(folder: &Path) -> Result<Self, String> {
        Self::start_with(folder, &[])
    }

    /// The same, with these settings.
    pub fn start_with(folder: &Path, settings: &[(&str, &str)]) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let program = program.with_file_name("starbridge");
        if !program.is_file() {
            return Err(format!("`{}` is not there: build it first", program.display()));
        }
        let mut arguments: Vec<OsString> = ["serve", "--listen", "127.0.0.1:0", "--db"].map(OsString::from).into();
        let mut settings = settings.to_vec();
        let place = database::place(folder);
        match &place {
            Some((url, schema)) => {
                arguments.push(url.into());
                settings.push(("STARBRIDGE_STORE_SCHEMA", schema.as_str()));
            }
            None => arguments.push(folder.join("bench.db").into_os_string()),
        }
        let config = folder.join("serve.toml");
        if config.is_file() {
            arguments.extend(["--config".into(), config.into_os_string()]);
        }
        Self::start_program(&program, &arguments, folder, &settings)
    }

    /// Starts a program that says on stderr where it listens.
    pub fn start_program(
        program: &Path,
        arguments: &[OsString],
        folder: &Path,
        settings: &[(&str, &str)],
    ) -> Result<Self, String> {
        let begun = Instant::now();
        let mut child = Command::new(program)
            .args(arguments)
            .env("STARBRIDGE_HTTP_PRIVATE_ADDRESSES", "true")
            .env("STARBRIDGE_LOG_LEVEL", "warn")
            .envs(settings.iter().copied())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let stderr = child.stderr.take().ok_or("no stderr")?;
        let mut lines = BufReader::new(stderr).lines();
        let address = loop {
            let line = lines
                .next()
                .ok_or("the server did not start")?
                .map_err(|error| error.to_string())?;
            if let Some((_, rest)) = line.split_once("http://") {
                let address = rest.split([',', ' ']).next().unwrap_or_default();
                break address.parse().map_err(|_| format!("not an address: {address}"))?;
            }
            eprintln!("{line}");
        };
        let ready = begun.elapsed();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
        Ok(Self {
            child,
            address,
            folder: folder.to_owned(),
            ready,
            before: database::done(),
        })
    }

    /// Kills it.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it, and answers the body.
    pub async fn ask(&self, method: &str, path: &str, body: &str) -> Result<String, String> {
        let mut stream = TcpStream::connect(self.address)
            .await
            .map_err(|error| error.to_string())?;
        let request = load::request(method, path, body);
        stream.write_all(&request).await.map_err(|error| error.to_string())?;
        let mut buffer = Vec::new();
        let status = load::answer(&mut stream, &mut buffer).await?;
        let text = String::from_utf8_lossy(&buffer).into_owned();
        if status >= 400 {
            return Err(format!("{method} {path}: {text}"));
        }
        Ok(text
            .split_once("\r\n\r\n")
            .map(|(_, body)| body.to_owned())
            .unwrap_or_default())
    }

    /// Seconds of processor time used so far.
    pub fn processor(&self) -> f64 {
        let stat = self.proc("stat");
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |index: usize| {
            fields
                .get(index)
                .and_then(|field| field.parse::<f64>().ok())
                .unwrap_or(0.0)
        };
        (ticks(11) + ticks(12)) / 100.0
    }

    /// Seconds of processor time used so far by its threads of that name, or by all where it is empty.
    pub fn busy(&self, name: &str) -> f64 {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.child.id())) else {
            return 0.0;
        };
        let read = |thread: &std::fs::DirEntry, file: &str| {
            // A thread that has ended used what it used: those that are asked for stay.
            std::fs::read_to_string(thread.path().join(file)).unwrap_or_default()
        };
        let nanos = threads
            .filter_map(Result::ok)
            .filter(|thread| name.is_empty() || read(thread, "comm").trim() == name)
            .filter_map(|thread| read(&thread, "schedstat").split(' ').next()?.parse::<f64>().ok());
        nanos.sum::<f64>() / 1e9
    }

    /// Resident memory in MB.
    pub fn memory(&self) -> f64 {
        let status = self.proc("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line
            .and_then(|line| line.split_whitespace().next())
            .and_then(|kb| kb.parse::<f64>().ok());
        kilobytes.unwrap_or(0.0) / 1024.0
    }

    /// Bytes handed to the device so far.
    pub fn written(&self) -> f64 {
        let io = self.proc("io");
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes:"));
        line.and_then(|bytes| bytes.trim().parse().ok()).unwrap_or(0.0)
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap_or_default()
    }

    /// Bytes of the store and its log.
    pub fn size(&self) -> u64 {
        let size = |name: &str| std::fs::metadata(self.folder.join(name)).map_or(0, |file| file.len());
        size("bench.db") + size("bench.db-wal")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
