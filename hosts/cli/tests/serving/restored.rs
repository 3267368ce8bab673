//! A store that was put back from a backup: nothing in it goes on until somebody says so, in queues neither.

use crate::server::{Server, starbridge};
use std::io::{Read, Write};
use std::net::TcpStream;

const FLOW: &str =
    r#"{"version": "v1", "type": "flow", "steps": [{"type": "task", "name": "t", "resourceArn": "queue:jobs"}]}"#;

impl Server {
    /// The body of the answer to a request with this one.
    fn post(&self, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(self.address.trim_start_matches("http://")).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        write!(
            stream,
            "{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    }

    fn hold(&self, seconds: u64) -> String {
        let body = format!(r#"{{"worker": "w", "waitSeconds": {seconds}}}"#);
        self.post("/v1/queues/jobs/hold", &body)
    }
}

/// The token of the one task in an answer to a hold.
fn token(held: &str) -> String {
    let held: serde_json::Value = serde_json::from_str(held).unwrap();
    held.pointer("/tasks/0/token").unwrap().as_str().unwrap().to_owned()
}

#[test]
fn tasks_of_a_restored_store_are_for_no_worker_until_a_redrive() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    std::fs::write(here.join("f.json"), FLOW).unwrap();
    let server = Server::start(here, &[]);
    assert!(server.ask(here, &["flow", "put", "f.json"]).status.success());
    for name in ["held", "waiting"] {
        assert!(server.ask(here, &["start", "f", "--name", name]).status.success());
    }
    let before = token(&server.hold(30));
    drop(server);
    let care = starbridge()
        .args(["store", "restored", "flows.db"])
        .current_dir(here)
        .output()
        .unwrap();
    assert!(care.status.success(), "{care:?}");
    let server = Server::start(here, &[]);
    assert!(!server.hold(0).contains("token"));
    let late = server.post(&format!("/v1/callbacks/{before}/succeed"), "{}");
    assert!(late.contains("ExecutionSetAside"), "{late}");
    for name in ["f/held", "f/waiting"] {
        let redriven = server.ask(here, &["redrive", name]);
        assert!(redriven.status.success(), "{redriven:?}");
        let held = server.hold(30);
        assert!(!server.hold(0).contains("token"), "it is there once");
        server.post(&format!("/v1/callbacks/{}/succeed", token(&held)), "{}");
        let ended = server.ask(here, &["show", name, "--follow"]);
        assert!(ended.status.success(), "{ended:?}");
    }
}
