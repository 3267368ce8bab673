//! The background of a session: servers and other commands, and the names recorded from them.

use super::words;
use regex::Regex;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time limit for everything that the test waits for.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

/// The background of a session.
#[derive(Default)]
pub struct Live {
    /// Whether there ever was any: only then are there names for changing values.
    pub used: bool,
    background: Vec<Background>,
    address: Option<String>,
    taken: Vec<(String, String)>,
}

struct Background {
    is_server: bool,
    child: Child,
    stdout: JoinHandle<String>,
    stderr: JoinHandle<String>,
}

/// The result of a command in the background.
pub struct Over {
    pub exit: String,
    pub stdout: String,
    pub stderr: String,
}

impl Drop for Live {
    fn drop(&mut self) {
        for Background { child, .. } in &mut self.background {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Live {
    /// Starts a command, and waits until it prints something.
    pub fn begin(&mut self, line: &str, place: &Path) -> Result<(), String> {
        let lines = self.start(line, place, &[])?;
        let said = lines.recv_timeout(PATIENCE);
        said.map(drop).map_err(|_| format!("`{line}` says nothing"))
    }

    /// Starts a server on a port of this session, and waits until it listens.
    pub fn serve(&mut self, line: &str, place: &Path) -> Result<(), String> {
        let address = self.address()?;
        let lines = self.start(line, place, &["--listen", &address])?;
        loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(line) if line.starts_with("listening on") => return Ok(()),
                Ok(_) => {}
                Err(_) => return Err(format!("`{line}` does not listen")),
            }
        }
    }

    /// An address of this session's own.
    fn address(&mut self) -> Result<String, String> {
        if let Some(address) = &self.address {
            return Ok(address.clone());
        }
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.map_err(|error| error.to_string())?.to_string();
        Ok(self.address.insert(address).clone())
    }

    fn start(&mut self, line: &str, place: &Path, more: &[&str]) -> Result<Receiver<String>, String> {
        self.used = true;
        let mut child = self
            .command(line, place)?
            .args(more)
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| error.to_string())?;
        let (said, lines) = channel();
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        self.background.push(Background {
            is_server: !more.is_empty(),
            child,
            stdout: listen(stdout, said.clone()),
            stderr: listen(stderr, said),
        });
        Ok(lines)
    }

    /// The command of a line, with the recorded values in place of their names.
    pub fn command(&mut self, line: &str, place: &Path) -> Result<Command, String> {
        let mut line = line.to_owned();
        for (name, text) in &self.taken {
            line = line.replace(&format!("[{name}]"), text);
        }
        if line.contains("[ADDRESS]") {
            line = line.replace("[ADDRESS]", &self.address()?);
        }
        let words = words(&line)?;
        let at = words.iter().position(|word| word == "starbridge");
        let (settings, arguments) = words.split_at(at.ok_or("only `starbridge` can be run")?);
        let settings = settings.iter().filter_map(|setting| setting.split_once('='));
        let mut command = Command::new(env!("CARGO_BIN_EXE_starbridge"));
        command
            .args(arguments.iter().skip(1))
            .current_dir(place)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .envs(
                self.address
                    .iter()
                    .map(|address| ("STARBRIDGE_SERVER", format!("http://{address}"))),
            )
            .envs(settings)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(command)
    }

    /// Ends the command that was started last by a signal, or a server if there is none or `server`
    /// is set; 0 is no signal.
    pub fn end(&mut self, how: &str) -> Result<Over, String> {
        let (signal, server) = how
            .strip_suffix(" server")
            .map_or((how, false), |signal| (signal, true));
        let at = self.background.iter().rposition(|running| running.is_server == server);
        let at = at.or(self.background.len().checked_sub(1));
        let Background {
            mut child,
            stdout,
            stderr,
            ..
        } = self.background.remove(at.ok_or("nothing goes on that could be ended")?);
        let kill = format!("kill -{signal} {}", child.id());
        let _ = Command::new("sh").args(["-c", &kill]).status();
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
                break status;
            }
            if begun.elapsed() > PATIENCE {
                let _ = child.kill();
            }
            pause();
        };
        Ok(Over {
            exit: exit(status),
            stdout: stdout.join().unwrap_or_default(),
            stderr: stderr.join().unwrap_or_default(),
        })
    }

    /// Waits for a file with text, and records it under a name.
    pub fn take(&mut self, name: &str, file: &Path) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            if !text.trim().is_empty() {
                self.taken.retain(|(known, _)| known != name);
                self.taken.push((name.to_owned(), text.trim().to_owned()));
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!("`{}` does not come", file.display()));
            }
            pause();
        }
    }

    /// A text with names for values that change from run to run.
    pub fn named(&mut self, text: &str) -> String {
        if !self.used {
            return text.to_owned();
        }
        let mut text = text.to_owned();
        if let Some(address) = &self.address {
            text = text.replace(address.as_str(), "[ADDRESS]");
        }
        for found in patterns().id.find_iter(&text) {
            if !self.taken.iter().any(|(_, known)| known == found.as_str()) {
                let number = self.taken.iter().filter(|(name, _)| name.starts_with("ID")).count() + 1;
                self.taken.push((format!("ID{number}"), found.as_str().to_owned()));
            }
        }
        for (name, taken) in &self.taken {
            text = text.replace(taken.as_str(), &format!("[{name}]"));
        }
        text.split_inclusive('\n').map(steady).collect()
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "files and processes say nothing when they come and go"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// Reads a stream to its end, and passes each line on at once.
fn listen(stream: Option<impl Read + Send + 'static>, said: Sender<String>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        let lines = stream.map(|stream| BufReader::new(stream).lines());
        for line in lines.into_iter().flatten().map_while(Result::ok) {
            text += &line;
            text.push('\n');
            let _ = said.send(line);
        }
        text
    })
}

/// How a command ended.
pub fn exit(status: std::process::ExitStatus) -> String {
    status.code().map_or("by a signal".to_owned(), |code| code.to_string())
}

struct Patterns {
    id: Regex,
    token: Regex,
    time: Regex,
    took: Regex,
    number: Regex,
    process: Regex,
    heads: Regex,
    space: Regex,
}

fn patterns() -> &'static Patterns {
    static PATTERNS: OnceLock<Patterns> = OnceLock::new();
    PATTERNS.get_or_init(|| {
        let pattern = |text: &str| Regex::new(text).unwrap();
        Patterns {
            id: pattern("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}"),
            token: pattern(r"[0-9a-f]{20,}\.[0-9a-f]{64}"),
            time: pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"),
            took: pattern(r"(  |\()\d+(\.\d+)? s"),
            number: pattern(r#""(seed|machine|delaySeconds)":( ?)\d+(\.\d+)?"#),
            process: pattern(r"process \d+"),
            heads: pattern("^[A-Z-]+(  +[A-Z-]+)+\n?$"),
            space: pattern(r"(\S)  +"),
        }
    })
}

fn steady(line: &str) -> String {
    let patterns = patterns();
    let line = patterns.token.replace_all(line, "[A TOKEN]");
    let line = patterns.number.replace_all(&line, "\"$1\":$2[NUMBER]");
    let line = patterns.process.replace_all(&line, "process [PID]");
    let line = patterns.took.replace_all(&line, "$1[TIME]");
    let timed = patterns.time.replace_all(&line, "[TIMESTAMP]");
    // Columns are as wide as the values that change from run to run.
    if *timed != *line || patterns.heads.is_match(&line) {
        return patterns.space.replace_all(&timed, "$1  ").into_owned();
    }
    timed.into_owned()
}
