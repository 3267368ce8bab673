//! A terminal with a command on it.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The time limit for everything that the test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal of a hundred columns with a command on it.
pub struct Terminal {
    child: Child,
    keys: File,
    heard: Receiver<Vec<u8>>,
    raw: Vec<u8>,
}

/// The result of a command.
pub struct Over {
    pub code: Option<i32>,
    /// The bytes that the terminal received.
    pub raw: String,
    /// The same without escapes, with ordinary line ends.
    pub said: String,
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Terminal {
    /// Runs the command with these words in a folder.
    pub fn run(words: &[&str], place: &Path) -> Self {
        let (master, slave) = pair();
        let slave = || slave.try_clone().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_starbridge"))
            .args(words)
            .current_dir(place)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("TERM", "xterm-256color")
            .stdin(slave())
            .stdout(slave())
            .stderr(slave())
            .spawn()
            .unwrap();
        Self {
            child,
            keys: master.try_clone().unwrap(),
            heard: listen(master),
            raw: Vec::new(),
        }
    }

    /// Waits until the command has printed this, and returns all its output.
    pub fn until(&mut self, wanted: &str) -> String {
        let begun = Instant::now();
        loop {
            let said = plain(&self.raw);
            if said.contains(wanted) {
                return said;
            }
            let left = PATIENCE.saturating_sub(begun.elapsed());
            match self.heard.recv_timeout(left) {
                Ok(more) => self.raw.extend(more),
                Err(_) => panic!("`{wanted}` is not said: {said}"),
            }
        }
    }

    /// Types a line.
    pub fn type_line(&mut self, line: &str) {
        writeln!(self.keys, "{line}").unwrap();
    }

    /// Ctrl-C.
    pub fn interrupt(&self) {
        let kill = format!("kill -INT {}", self.child.id());
        Command::new("sh").args(["-c", &kill]).status().unwrap();
    }

    /// Waits for its end.
    pub fn over(mut self) -> Over {
        let begun = Instant::now();
        while let Ok(more) = self.heard.recv_timeout(PATIENCE.saturating_sub(begun.elapsed())) {
            self.raw.extend(more);
        }
        let code = self.child.wait().unwrap().code();
        Over {
            code,
            raw: String::from_utf8_lossy(&self.raw).into_owned(),
            said: plain(&self.raw),
        }
    }
}

/// Both sides of a new terminal.
fn pair() -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let size = Winsize {
        ws_row: 40,
        ws_col: 100,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&master, size).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave = OpenOptions::new().read(true).write(true).open(name).unwrap();
    (File::from(master), slave)
}

/// Reads until the other side is closed everywhere.
fn listen(mut master: File) -> Receiver<Vec<u8>> {
    let (said, heard) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = master.read(&mut buffer) {
            if said.send(buffer[..read].to_vec()).is_err() {
                break;
            }
        }
    });
    heard
}

fn plain(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw).replace("\r\n", "\n");
    anstream::adapter::strip_str(&text).to_string()
}
