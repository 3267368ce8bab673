//! What becomes of a server that is sent signals, and whose store somebody takes apart.
#![cfg(unix)]

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longest that something that is to come is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

fn starbridge() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starbridge"));
    command.env_clear().stdin(Stdio::null());
    command
}

/// A server that ends with the test.
struct Server {
    child: Child,
    address: String,
    /// What it said before it listened.
    before: String,
    lines: Receiver<String>,
}

impl Server {
    fn start(folder: &Path, more: &[&str]) -> Self {
        let mut command = starbridge();
        command
            .args(["serve", "--db", "flows.db", "--listen", "127.0.0.1:0"])
            .args(more);
        Self::run(folder, &mut command)
    }

    fn run(folder: &Path, command: &mut Command) -> Self {
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

    /// Everything up to the line that begins so.
    fn says(&self, begin: &str) -> String {
        let mut said = String::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("it does not say `{begin}`, but: {said}"));
            said = said + &line + "\n";
            if line.starts_with(begin) {
                return said;
            }
        }
    }

    fn send(&self, signal: &str) {
        let process = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &process])
                .status()
                .unwrap()
                .success()
        );
    }

    fn ask(&self, folder: &Path, words: &[&str]) -> Output {
        starbridge()
            .args(words)
            .args(["--server", &self.address])
            .current_dir(folder)
            .output()
            .unwrap()
    }

    /// Its exit code, and what it said last.
    fn end(mut self) -> (Option<i32>, String) {
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

/// A folder with a flow that passes.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let flow = r#"{"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "p"}]}"#;
    std::fs::write(folder.path().join("pass.json"), flow).unwrap();
    folder
}

/// A start that is refused: the exit code and what is said.
fn refused(folder: &Path, more: &[&str]) -> (Option<i32>, String) {
    let output = starbridge()
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(more)
        .current_dir(folder)
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn signals_end_it_in_order_or_not_at_all() {
    let folder = folder();
    for (signal, said) in [
        ("-HUP", "the terminal has gone: finishing"),
        ("-QUIT", "told to quit: finishing"),
        ("-TERM", "told to stop: finishing"),
        ("-INT", "interrupted: finishing"),
    ] {
        let server = Server::start(folder.path(), &[]);
        for ignored in ["-USR1", "-USR2", "-ALRM"] {
            server.send(ignored);
        }
        assert!(server.ask(folder.path(), &["list"]).status.success());
        server.send(signal);
        server.says(said);
        server.says("stopped;");
        assert_eq!(server.end().0, Some(0), "{signal}");
    }
}

#[test]
fn under_nohup_it_outlives_the_terminal() {
    let folder = folder();
    let mut shell = Command::new("sh");
    let line = "trap '' HUP; exec \"$0\" serve --db flows.db --listen 127.0.0.1:0";
    shell.args(["-c", line, env!("CARGO_BIN_EXE_starbridge")]);
    let server = Server::run(folder.path(), &mut shell);
    server.send("-HUP");
    assert!(server.ask(folder.path(), &["list"]).status.success());
    server.send("-TERM");
    server.says("told to stop");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn a_new_store_is_told_from_one_that_was_there() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    assert!(
        server.before.contains("made a new store in flows.db"),
        "{}",
        server.before
    );
    let here = folder.path();
    assert!(server.ask(here, &["flow", "put", "pass.json"]).status.success());
    assert!(server.ask(here, &["start", "pass", "--wait", "30"]).status.success());
    for file in ["flows.db", "flows.db-wal", "flows.db-shm", "flows.db.lock"] {
        let mode = std::fs::metadata(here.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    // The lock is on the file, whatever becomes of the one beside it.
    std::fs::remove_file(here.join("flows.db.lock")).unwrap();
    std::fs::hard_link(here.join("flows.db"), here.join("other.db")).unwrap();
    let process = format!("in use by process {}", server.child.id());
    for name in ["flows.db", "other.db"] {
        let (code, said) = refused(here, &["--db", name]);
        assert!(
            code == Some(3) && (cfg!(not(target_os = "linux")) || said.contains(&process)),
            "{said}"
        );
    }
    server.send("-TERM");
    assert_eq!(server.end().0, Some(0));
    let server = Server::start(here, &[]);
    let said = "opened flows.db; executions in it: 1, not ended: 0";
    assert!(server.before.contains(said), "{}", server.before);
}

#[test]
fn a_log_that_is_cut_ends_it_before_the_next_acknowledgement() {
    let folder = folder();
    let here = folder.path();
    let server = Server::start(here, &[]);
    assert!(server.ask(here, &["flow", "put", "pass.json"]).status.success());
    assert!(server.ask(here, &["start", "pass", "--wait", "30"]).status.success());
    let log = OpenOptions::new().write(true).open(here.join("flows.db-wal")).unwrap();
    log.set_len(0).unwrap();
    let start = server.ask(here, &["start", "pass", "--name", "lost"]);
    assert!(!start.status.success(), "{start:?}");
    let (code, said) = server.end();
    assert_eq!(code, Some(3), "{said}");
    assert!(
        said.contains("became shorter") && said.contains("--accept-lost-log"),
        "{said}"
    );
    assert!(!said.contains("nothing that was acknowledged is lost"), "{said}");
    let (code, said) = refused(here, &["--db", "flows.db"]);
    assert!(code == Some(3) && said.contains("--accept-lost-log"), "{said}");
    let server = Server::start(here, &["--accept-lost-log"]);
    assert!(server.ask(here, &["flow", "put", "pass.json"]).status.success());
    assert!(server.ask(here, &["start", "pass", "--wait", "30"]).status.success());
}

#[test]
fn a_part_of_a_store_is_not_taken_for_a_new_one() {
    let folder = folder();
    let here = folder.path();
    let mut server = Server::start(here, &[]);
    assert!(server.ask(here, &["flow", "put", "pass.json"]).status.success());
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let (file, log, away) = (here.join("flows.db"), here.join("flows.db-wal"), here.join("away"));
    let bytes = std::fs::metadata(&log).unwrap().len();
    assert!(bytes > 0);
    std::fs::rename(&file, &away).unwrap();
    let (code, said) = refused(here, &["--db", "flows.db"]);
    assert!(code == Some(3) && said.contains("put the file back"), "{said}");
    assert_eq!(std::fs::metadata(&log).unwrap().len(), bytes);
    std::fs::rename(&away, &file).unwrap();
    std::fs::rename(&log, &away).unwrap();
    let (code, said) = refused(here, &["--db", "flows.db"]);
    assert!(code == Some(3) && said.contains("put the log back"), "{said}");
    std::fs::rename(&away, &log).unwrap();
    let server = Server::start(here, &[]);
    assert!(server.ask(here, &["start", "pass", "--wait", "30"]).status.success());
}

#[test]
fn a_key_that_is_not_in_the_store_is_changed_where_it_is() {
    let folder = folder();
    let here = folder.path();
    std::fs::write(here.join("key"), "0a".repeat(32)).unwrap();
    let config = "[server]\ntoken_key = \"secret://key\"\n[secrets]\nfolder = \".\"\n";
    std::fs::write(here.join("server.toml"), config).unwrap();
    let configured = ["--config", "server.toml", "--db", "flows.db"];
    let keys = || {
        let store = rusqlite::Connection::open(here.join("flows.db")).unwrap();
        let sql = "SELECT count(*) FROM shelf WHERE kind = 'token-key'";
        store.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let stop = |server: Server| {
        server.send("-TERM");
        assert_eq!(server.end().0, Some(0));
    };
    stop(Server::start(here, &configured[..2]));
    assert_eq!(keys(), 0);
    stop(Server::start(here, &[]));
    stop(Server::start(here, &configured[..2]));
    assert_eq!(keys(), 1);
    let (code, said) = refused(here, &[&configured[..], &["--rotate-token-keys"]].concat());
    assert!(
        code == Some(2) && said.contains("before the others in that secret"),
        "{said}"
    );
    let (code, said) = refused(here, &["--db", "flows.db", "--discard-token-keys"]);
    assert!(code == Some(2) && said.contains("`--rotate-token-keys`"), "{said}");
    stop(Server::start(
        here,
        &["--config", "server.toml", "--discard-token-keys"],
    ));
    assert_eq!(keys(), 0);
}

#[test]
fn a_target_that_can_t_be_told_is_found() {
    let folder = folder();
    let here = folder.path();
    let hook = "[[notifications]]\nname = \"ops\"\nto = \"http://127.0.0.1:1/x\"\n";
    std::fs::write(here.join("private.toml"), hook).unwrap();
    let (code, said) = refused(here, &["--config", "private.toml", "--db", "flows.db"]);
    assert!(code == Some(2) && said.contains("`http.allow`"), "{said}");
    assert!(!here.join("flows.db").exists());
    let allowed = format!("[http]\nallow = [\"127.0.0.1\"]\n{hook}");
    std::fs::write(here.join("server.toml"), allowed).unwrap();
    let server = Server::start(here, &["--config", "server.toml"]);
    assert!(server.ask(here, &["flow", "put", "pass.json"]).status.success());
    for _ in 0..3 {
        assert!(server.ask(here, &["start", "pass", "--wait", "30"]).status.success());
    }
    let line = std::iter::from_fn(|| server.lines.recv_timeout(PATIENCE).ok())
        .find(|line| line.contains("notifications can't be told"))
        .unwrap();
    assert!(
        line.contains("WARN") && line.contains("ops") && line.contains("refused"),
        "{line}"
    );
    server.send("-TERM");
    let (code, said) = server.end();
    assert_eq!(code, Some(0));
    assert!(!said.contains("notifications can't be told"), "{said}");
}
