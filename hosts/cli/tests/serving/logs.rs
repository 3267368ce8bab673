//! The content and the form of a server's log at `info`.

use crate::server::Server;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A folder with a flow that sleeps and one that can't be undone.
fn folder(format: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write(
        "server.toml",
        &format!("[log]\nformat = \"{format}\"\n[commands]\nfolder = \".\"\n"),
    );
    write("ok.sh", "#!/bin/sh\necho '{}'\n");
    let program = folder.path().join("ok.sh");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o755)).unwrap();
    write(
        "sleep.json",
        r#"{"version": "v1", "type": "flow", "steps": [{"type": "task", "name": "t", "resourceArn": "queue:q"}, {"type": "wait", "name": "w", "duration": 3600}]}"#,
    );
    write(
        "saga.json",
        r#"{"version": "v1", "type": "flow", "steps": [
            {"type": "task", "name": "pay", "resourceArn": "cmd:ok.sh", "rollback": {"resourceArn": "http://127.0.0.1:9/undo"}},
            {"type": "fail", "name": "no", "error": "Not.Today", "cause": "rain"}]}"#,
    );
    write(
        "fails.json",
        r#"{"version": "v1", "type": "flow", "steps": [{"type": "fail", "name": "no", "error": "Not.Today", "cause": "rain"}]}"#,
    );
    folder
}

/// The logs of two servers, the first of which is killed.
fn said(here: &Path) -> String {
    let start = || Server::start(here, &["--config", "server.toml"]);
    let first = start();
    for flow in ["sleep", "saga", "fails"] {
        assert!(
            first
                .ask(here, &["flow", "put", &format!("{flow}.json")])
                .status
                .success()
        );
    }
    first.ask(here, &["start", "sleep"]);
    for flow in ["saga", "fails"] {
        let ended = first.ask(here, &["start", flow, "--name", "one", "--wait", "30"]);
        assert_eq!(ended.status.code(), Some(1), "{flow}");
    }
    let mut said = first.before.clone();
    first.send("-KILL");
    said += &first.end().1;
    let second = start();
    said = format!("{said}\n{}", second.before);
    second.send("-TERM");
    said + &second.end().1
}

#[test]
fn all_of_it_is_json_where_that_was_asked_for() {
    let folder = folder("json");
    let said = said(folder.path());
    let lines: Vec<Value> = said
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}\nof\n{said}")))
        .collect();
    let line = |message: &str| {
        let found = |line: &&Value| {
            line["fields"]["message"]
                .as_str()
                .is_some_and(|said| said.contains(message))
        };
        lines
            .iter()
            .find(found)
            .unwrap_or_else(|| panic!("`{message}` in\n{said}"))
    };
    assert_eq!(line("serving")["fields"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(line("store opened")["fields"]["path"], "flows.db");
    for message in ["listening on", "told to stop", "stopped;"] {
        assert_eq!(line(message)["level"], "INFO", "{message}");
    }
    let failed = line("failed");
    assert_eq!(failed["level"], "INFO");
    assert_eq!(
        (
            &failed["fields"]["flow"],
            &failed["fields"]["name"],
            &failed["fields"]["error"]
        ),
        (&"fails".into(), &"one".into(), &"Not.Today".into())
    );
    let undo = line("could not be undone");
    assert_eq!(undo["level"], "WARN");
    assert_eq!(
        (&undo["fields"]["undo"], &undo["fields"]["left"]),
        (&"pay".into(), &"pay".into()),
        "{undo}"
    );
    let crash = line("did not come to its end");
    assert!(crash["fields"]["executions"].is_u64(), "{crash}");
}

#[test]
fn people_are_told_once() {
    let folder = folder("text");
    let said = said(folder.path());
    assert_eq!(said.matches("told to stop").count(), 1, "{said}");
    assert!(!said.contains(" stopping"), "{said}");
    assert!(
        said.contains(" serving ") && said.contains("listening on http://"),
        "{said}"
    );
}

#[test]
fn a_proxy_before_a_server_without_tokens_is_said_once() {
    let folder = folder("text");
    let server = Server::start(folder.path(), &[]);
    for header in ["", "X-Forwarded-For: 203.0.113.7\r\n", "Forwarded: for=203.0.113.7\r\n"] {
        let address = server.address.trim_start_matches("http://");
        let mut connection = TcpStream::connect(address).unwrap();
        let request = format!("GET /v1/flows HTTP/1.1\r\nHost: {address}\r\n{header}Connection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    server.send("-TERM");
    let said = server.end().1;
    assert_eq!(said.matches("a proxy passed a request on").count(), 1, "{said}");
    assert!(said.contains("WARN") && said.contains("[[tokens]]"), "{said}");
}
