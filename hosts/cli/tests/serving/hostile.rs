//! What others wrote into a server's data, as commands show it: no character of it drives the terminal of an operator.

use crate::server::{Server, starbridge};
use serde_json::Value;
use starbridge_node::escaping::is_control;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

/// What stands for texts that others choose, where the test chooses them.
const SIGN: &str = "EVIL";
/// What a server would answer instead if nothing refused it, in JSON: an override of the direction, an attribute that hides
/// text, a bell, and a line that looks like one of the command.
const HOSTILE: &str = "EVIL\\u202e\\u001b[8m\\u0007\\r\\nFORGED";

/// A server in front of another one. In its answers each text that others choose is hostile, in whatever member it is, so the
/// test does not depend on what the server behind it refuses.
struct Front(String);

impl Front {
    fn of(server: &Server) -> Self {
        let behind = server.address.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        // The thread ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let behind = behind.clone();
                std::thread::spawn(move || pass_on(stream, &behind));
            }
        });
        Self(address)
    }

    fn ask(&self, here: &Path, words: &[&str]) -> Output {
        let mut command = starbridge();
        command.args(words).args(["--server", &self.0]).current_dir(here);
        command.env("CLICOLOR_FORCE", "1").output().unwrap()
    }
}

/// Passes one request on, and its answer back.
fn pass_on(mut stream: TcpStream, behind: &str) -> Option<()> {
    let mut asked = Vec::new();
    let mut byte = [0];
    while !asked.ends_with(b"\r\n\r\n") {
        (stream.read(&mut byte).ok()? == 1).then(|| asked.push(byte[0]))?;
    }
    let head = String::from_utf8(asked).ok()?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse().ok())?
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    // With this version an answer is not in chunks, and the connection ends with it.
    let head = innocent(&head).replacen("HTTP/1.1", "HTTP/1.0", 1);
    let mut ahead = TcpStream::connect(behind).ok()?;
    ahead.write_all(head.as_bytes()).ok()?;
    ahead
        .write_all(innocent(&String::from_utf8(body).ok()?).as_bytes())
        .ok()?;
    let mut answer = String::new();
    ahead.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let head: String = head
        .lines()
        .filter(|line| !line.to_lowercase().starts_with("content-length"))
        .fold(String::new(), |head, line| {
            head + &line.replacen("HTTP/1.0", "HTTP/1.1", 1) + "\r\n"
        });
    let body = body.replace(SIGN, HOSTILE);
    let answer = format!(
        "{head}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).ok()
}

/// A request with what a command has from an answer, as the server behind knows it.
fn innocent(text: &str) -> String {
    let mut parts = text.split(SIGN);
    let mut innocent = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let hostile = part.starts_with("%E2") || part.starts_with('\u{202e}') || part.starts_with("\\u202e");
        let rest = part
            .split_once("FORGED")
            .filter(|_| hostile)
            .map_or(part, |(_, rest)| rest);
        innocent += SIGN;
        innocent += rest;
    }
    innocent
}

fn write(here: &Path, name: &str, text: &str) {
    std::fs::write(here.join(name), text).unwrap();
}

/// Lets a worker hold the task of a queue. Returns its token.
fn hold(server: &Server, queue: &str) -> String {
    let body = r#"{"worker": "EVILworker", "waitSeconds": 30}"#;
    let mut stream = TcpStream::connect(server.address.trim_start_matches("http://")).unwrap();
    write!(
        stream,
        "POST /v1/queues/{queue}/hold HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let held: Value = serde_json::from_str(body).unwrap();
    let token = held["tasks"][0]["token"].as_str();
    token.unwrap_or_else(|| panic!("no task is held: {answer}")).to_owned()
}

/// A server with data in which everything that others can choose has the sign.
fn filled(here: &Path) -> Server {
    write(here, "server.toml", "[commands]\nfolder = \".\"\n");
    write(here, "fail.sh", "#!/bin/sh\necho 'EVIL said' >&2\nexit 1\n");
    std::fs::set_permissions(here.join("fail.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let flow = |name: &str, more: &str, steps: &str| {
        let text = format!(r#"{{"version": "v1", "type": "flow", {more} "steps": [{steps}]}}"#);
        write(here, &format!("{name}.json"), &text);
    };
    flow(
        "EVILwait",
        r#""concurrency": [{"key": "$input.k", "limit": 1, "pool": "EVILpool"}],"#,
        r#"{"type": "task", "name": "EVILstep", "resourceArn": "queue:EVILqueue"}"#,
    );
    flow(
        "EVILfail",
        "",
        r#"{"type": "task", "name": "EVILstep", "resourceArn": "cmd:fail.sh"}"#,
    );
    flow(
        "EVILdead",
        "",
        r#"{"type": "task", "name": "EVILstep", "resourceArn": "queue:EVILdead"}"#,
    );
    let server = Server::start(here, &["--config", "server.toml"]);
    let done = |words: &[&str]| {
        let asked = server.ask(here, words);
        assert!(asked.status.success(), "{words:?}: {asked:?}");
    };
    for name in ["EVILwait", "EVILfail", "EVILdead"] {
        done(&["flow", "put", &format!("{name}.json")]);
    }
    let key = r#"{"k": "EVILkey"}"#;
    for name in ["EVILone", "EVILtwo"] {
        let words = [
            "start",
            "EVILwait",
            "--name",
            name,
            "--input",
            key,
            "--label",
            "EVIL=EVIL",
            "--once-key",
        ];
        done(&[&words[..], &[name]].concat());
    }
    hold(&server, "EVILqueue");
    done(&["pause", "EVILwait/EVILtwo", "--cause", "EVIL"]);
    let failed = server.ask(here, &["start", "EVILfail", "--name", "EVILbad", "--wait", "30"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    done(&["start", "EVILdead", "--name", "EVILx"]);
    let token = hold(&server, "EVILdead");
    done(&["callback", &token, "fail", "--error", "EVIL.Error", "--cause", "EVIL"]);
    done(&[
        "schedule",
        "put",
        "EVILnight",
        "--flow",
        "EVILwait",
        "--cron",
        "0 0 1 1 *",
        "--payload",
        key,
    ]);
    done(&["bulk", "redrive", "--flow", "EVILfail"]);
    server
}

/// Checks what a command has said: nothing in it is hostile, and it has said something of others.
fn check(words: &[&str], asked: &Output, shows: bool) {
    let colours = regex::Regex::new("\x1b\\[[0-9;]*m").unwrap();
    for stream in [&asked.stdout, &asked.stderr] {
        let text = String::from_utf8(stream.clone()).unwrap();
        let plain = colours.replace_all(&text, "").into_owned();
        assert!(!text.contains("\x1b[8m"), "{words:?} hides text: {text:?}");
        let bad = plain.chars().find(|c| is_control(*c) && *c != '\n');
        assert_eq!(bad, None, "{words:?}: {plain:?}");
        let forged = plain.lines().find(|line| line.trim_start().starts_with("FORGED"));
        assert_eq!(forged, None, "{words:?}: {plain}");
    }
    let text = String::from_utf8_lossy(&asked.stdout);
    assert!(asked.status.success(), "{words:?}: {asked:?}");
    assert!(
        !shows || text.contains("\\u{202e}"),
        "{words:?} shows nothing of others: {asked:?}"
    );
}

#[test]
fn what_others_wrote_drives_no_terminal_whatever_command_shows_it() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let server = filled(here);
    let front = Front::of(&server);
    let page: Value = serde_json::from_slice(&server.ask(here, &["bulk", "list", "--json"]).stdout).unwrap();
    let job = page["items"][0]["id"].as_str().unwrap().to_owned();
    let steps = server
        .ask(here, &["show", "EVILfail/EVILbad", "--steps", "--json"])
        .stdout;
    let steps: Value = serde_json::from_slice(&steps).unwrap();
    let event = steps
        .pointer("/items/0/event")
        .or(steps.pointer("/0/event"))
        .map(Value::to_string);
    let event = event.unwrap_or_else(|| panic!("{steps}"));
    for words in [
        &["list"][..],
        &["list", "--label", "EVIL=EVIL"],
        &["list", "--flow", "EVILfail"],
        &["show", "EVILwait/EVILone"],
        &["show", "EVILwait/EVILtwo"],
        &["show", "EVILfail/EVILbad"],
        &["show", "EVILfail/EVILbad", "--steps"],
        &["show", "EVILfail/EVILbad", "--tree"],
        &["show", "EVILfail/EVILbad", "--attempts", &event],
        &["why", "EVILwait/EVILone"],
        &["why", "EVILwait/EVILtwo"],
        &["logs", "EVILfail/EVILbad"],
        &["history", "EVILfail/EVILbad"],
        &["history", "EVILwait/EVILone"],
        &["audit"],
        &["queue", "list"],
        &["queue", "show", "EVILqueue"],
        &["queue", "tasks", "EVILqueue", "--state", "held"],
        &["queue", "workers", "EVILqueue"],
        &["queue", "dead", "EVILdead"],
        &["key", "list"],
        &["key", "show", "EVILpool", "EVILkey"],
        &["bulk", "show", &job],
        &["bulk", "stop", "--flow", "EVILwait", "--dry-run"],
        &["flow", "list"],
        &["flow", "versions", "EVILwait"],
        &["schedule", "list"],
        &["schedule", "get", "EVILnight"],
    ] {
        check(words, &front.ask(here, words), true);
    }
    for words in [
        &["stats"][..],
        &["bulk", "list"],
        &["bulk", "items", &job],
        &["flow", "put", "EVILwait.json"],
        &["whoami"],
        &["graph", "EVILfail/EVILbad", "--format", "mermaid"],
        &["order", "EVILwait/EVILtwo", "--priority", "7"],
        &["resume", "EVILwait/EVILtwo"],
        &["queue", "pause", "EVILqueue"],
        &["schedule", "pause", "EVILnight"],
        &["stop", "EVILwait/EVILtwo", "--cause", "EVIL"],
    ] {
        check(words, &front.ask(here, words), false);
    }
}

/// JSON is for programs: they get exactly what others wrote.
#[test]
fn json_has_what_others_wrote_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let server = filled(here);
    let front = Front::of(&server);
    let wanted: Value = serde_json::from_str(&format!("\"{HOSTILE}\"")).unwrap();
    for words in [
        &["list", "--json"][..],
        &["show", "EVILwait/EVILone", "--json"],
        &["why", "EVILwait/EVILone", "--json"],
        &["logs", "EVILfail/EVILbad", "--json"],
        &["key", "list", "--json"],
        &["queue", "list", "--json"],
        &["audit", "--json"],
    ] {
        let asked = front.ask(here, words);
        let text = String::from_utf8(asked.stdout).unwrap();
        let first: Value =
            serde_json::from_str(text.lines().next().unwrap()).unwrap_or_else(|_| panic!("{words:?}: {text}"));
        assert!(
            texts(&first).iter().any(|text| text.contains(wanted.as_str().unwrap())),
            "{words:?}: {text}"
        );
    }
}

/// All texts in a value.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}
