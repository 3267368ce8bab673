//! A server that gets signals, and a server whose store is taken apart.

use crate::server::{PATIENCE, Server, starbridge};
use std::fs::OpenOptions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// A folder with a flow that passes.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let flow = r#"{"version": "v1", "type": "flow", "steps": [{"type": "pass", "name": "p"}]}"#;
    std::fs::write(folder.path().join("pass.json"), flow).unwrap();
    folder
}

/// A start that is refused: the exit code and the message.
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
        ("-HUP", "the terminal has gone: waiting"),
        ("-QUIT", "told to quit: waiting"),
        ("-TERM", "told to stop: waiting"),
        ("-INT", "interrupted: waiting"),
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
    // The lock is on the file, regardless of the file beside it.
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
    let private = hook.replace("127.0.0.1", "10.1.2.3");
    std::fs::write(here.join("private.toml"), private).unwrap();
    let (code, said) = refused(here, &["--config", "private.toml", "--db", "flows.db"]);
    assert!(code == Some(2) && said.contains("`http.allow`"), "{said}");
    assert!(!here.join("flows.db").exists());
    // A server for this machine only may call it.
    std::fs::write(here.join("server.toml"), hook).unwrap();
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
