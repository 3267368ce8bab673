//! Bulk jobs: on a server that is killed repeatedly, and their messages in the program.

use crate::server::Server;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// The number of executions of a job.
const EXECUTIONS: usize = 1_500;
/// The number of further executions that are handled before the next kill.
const STEP: u64 = 100;

fn post(server: &Server, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(server.address.trim_start_matches("http://")).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn number(here: &Path, sql: &str) -> usize {
    let store = rusqlite::Connection::open(here.join("flows.db")).unwrap();
    store.query_row(sql, [], |row| row.get(0)).unwrap()
}

/// A member of the newest job, as the server shows it.
fn newest(server: &Server, member: &str) -> serde_json::Value {
    let answer = server.get("/v1/bulk?limit=1");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let page: serde_json::Value = serde_json::from_str(body).unwrap();
    page["items"][0][member].clone()
}

/// Makes a job, and kills the server each time it has made progress, until the job is over.
fn over_kills(here: &Path, mut server: Server, words: &[&str]) -> Server {
    let made = server.ask(here, words);
    assert!(made.status.success(), "{made:?}");
    let (mut kills, mut done) = (0, 0);
    while newest(&server, "state") != "done" {
        let now = newest(&server, "done").as_u64().unwrap();
        if now < done + STEP && now < EXECUTIONS as u64 {
            continue;
        }
        done = now;
        server.child.kill().unwrap();
        server.child.wait().unwrap();
        kills += 1;
        server = Server::start(here, &[]);
    }
    assert!(kills > 3, "the job was over after {kills} kills");
    server
}

#[test]
fn a_bulk_job_deals_with_each_execution_once_over_kills() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let flow = |step: &str| format!(r#"{{"version": "v1", "type": "flow", "steps": [{step}]}}"#);
    let waits = flow(r#"{"type": "wait", "name": "w", "duration": 36000}"#);
    let fails = flow(r#"{"type": "fail", "name": "f", "error": "No.Way"}"#);
    std::fs::write(here.join("waits.json"), waits).unwrap();
    std::fs::write(here.join("fails.json"), fails).unwrap();
    let server = Server::start(here, &[]);
    for flow in ["waits", "fails"] {
        let put = server.ask(here, &["flow", "put", &format!("{flow}.json")]);
        assert!(put.status.success(), "{put:?}");
        for _ in 0..EXECUTIONS / 500 {
            let entries = vec![format!(r#"{{"flow": "{flow}"}}"#); 500];
            let answer = post(&server, "/v1/executions/batch", &format!("[{}]", entries.join(",")));
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
    }
    let stop = ["bulk", "stop", "--flow", "waits", "--cause", "late"];
    let redrive = ["bulk", "redrive", "--flow", "fails", "--status", "failed"];
    let server = over_kills(here, server, &stop);
    let server = over_kills(here, server, &redrive);
    // An execution that was handled twice has two entries, or is refused the second time.
    let done = "SELECT count(*) FROM bulk_items WHERE result = 'done'";
    assert_eq!(number(here, done), 2 * EXECUTIONS);
    for action in ["stop", "redrive"] {
        let of = format!("FROM audit WHERE action = '{action}' AND kind = 'execution'");
        assert_eq!(number(here, &format!("SELECT count(*) {of}")), EXECUTIONS);
        assert_eq!(number(here, &format!("SELECT count(DISTINCT name) {of}")), EXECUTIONS);
    }
    let counted = "SELECT sum(done) + sum(skipped) * 1000000 + sum(failed) * 1000000 FROM bulk_jobs";
    assert_eq!(number(here, counted), 2 * EXECUTIONS);
    let listed = server.ask(here, &["bulk", "list"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(listed.matches("done").count(), 2, "{listed}");
}

#[test]
fn a_bulk_job_pauses_executions_and_another_unpauses_them() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let wait = r#"{"type": "wait", "name": "w", "duration": 36000}"#;
    let flow = format!(r#"{{"version": "v1", "type": "flow", "steps": [{wait}]}}"#);
    std::fs::write(here.join("waits.json"), flow).unwrap();
    let server = Server::start(here, &[]);
    for words in [&["flow", "put", "waits.json"][..], &["start", "waits", "--name", "one"]] {
        let asked = server.ask(here, words);
        assert!(asked.status.success(), "{asked:?}");
    }
    let shown = || {
        let shown = server.ask(here, &["show", "waits/one"]);
        String::from_utf8(shown.stdout).unwrap()
    };
    for (words, paused) in [
        (
            &["bulk", "pause", "--flow", "waits", "--cause", "the bank is down"][..],
            true,
        ),
        (&["bulk", "unpause", "--all"], false),
    ] {
        let made = server.ask(here, words);
        assert!(made.status.success(), "{made:?}");
        while newest(&server, "state") != "done" {}
        assert_eq!(newest(&server, "done"), 1);
        assert_eq!(shown().contains("the bank is down"), paused, "{}", shown());
    }
}

#[test]
fn a_bulk_job_takes_a_list_of_ids() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let wait = r#"{"type": "wait", "name": "w", "duration": 36000}"#;
    let flow = format!(r#"{{"version": "v1", "type": "flow", "steps": [{wait}]}}"#);
    std::fs::write(here.join("waits.json"), flow).unwrap();
    std::fs::write(here.join("ids.txt"), "waits/one\r\n\n  waits/two\n").unwrap();
    std::fs::write(here.join("none.txt"), "\n \n").unwrap();
    let server = Server::start(here, &[]);
    let words = [
        &["flow", "put", "waits.json"][..],
        &["start", "waits", "--name", "one"],
        &["start", "waits", "--name", "two"],
        &["start", "waits", "--name", "three"],
    ];
    for words in words {
        let asked = server.ask(here, words);
        assert!(asked.status.success(), "{asked:?}");
    }
    for wrong in [
        &["bulk", "stop", "--ids", "none.txt"][..],
        &["bulk", "stop", "--ids", "gone.txt"],
        &["bulk", "stop", "--ids", "ids.txt", "--all"],
        &["bulk", "stop", "--name", ""],
        &["bulk", "stop", "--flow", ""],
    ] {
        let refused = server.ask(here, wrong);
        assert!(!refused.status.success(), "{wrong:?}: {refused:?}");
    }
    let made = server.ask(here, &["bulk", "stop", "--ids", "ids.txt"]);
    assert!(made.status.success(), "{made:?}");
    assert_eq!(newest(&server, "items"), 2);
    while newest(&server, "state") != "done" {}
    let shown = |name: &str| String::from_utf8(server.ask(here, &["show", name]).stdout).unwrap();
    assert!(shown("waits/two").contains("Stopped") && shown("waits/three").contains("Running"));
}
