//! A server that ends with its test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The time limit for everything that the test waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn starbridge() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starbridge"));
    command.env_clear().stdin(Stdio::null());
    command
}

/// A server that ends with the test.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
    /// Its output before it listened.
    pub(crate) before: String,
    pub(crate) lines: Receiver<String>,
}

impl Server {
    pub(crate) fn start(folder: &Path, more: &[&str]) -> Self {
        let mut command = starbridge();
        command
            .args(["serve", "--db", "flows.db", "--listen", "127.0.0.1:0"])
            .args(more);
        Self::run(folder, &mut command)
    }

    pub(crate) fn run(folder: &Path, command: &mut Command) -> Self {
        let mut child = command.current_dir(folder).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines();
        let (send, lines) = channel();
        std::thread::spawn(move || said.map_while(Result::ok).all(|line| send.send(line).is_ok()));
        let mut server = Self {
            child,
            address: String::new(),
            before: String::new(),
            lines,
        };
        server.before = server.says("listening on ");
        let line = server.before.lines().last().unwrap().to_owned();
        server.address = line
            .split([' ', ','])
            .find(|word| word.starts_with("http://"))
            .unwrap()
            .to_owned();
        server
    }

    /// The output up to the line that contains this.
    pub(crate) fn says(&self, part: &str) -> String {
        let mut said = String::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("it does not say `{part}`, but: {said}"));
            said = said + &line + "\n";
            if line.contains(part) {
                return said;
            }
        }
    }

    pub(crate) fn send(&self, signal: &str) {
        let process = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &process])
                .status()
                .unwrap()
                .success()
        );
    }

    pub(crate) fn ask(&self, folder: &Path, words: &[&str]) -> Output {
        starbridge()
            .args(words)
            .args(["--server", &self.address])
            .current_dir(folder)
            .output()
            .unwrap()
    }

    /// A request over its own connection: the answer with its head.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address.trim_start_matches("http://")).unwrap();
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Its exit code, and its last output.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        (code, self.lines.iter().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
