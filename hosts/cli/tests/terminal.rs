//! The command on a terminal of its own: its display, and the effect of Ctrl-C.
#![cfg(target_os = "linux")]

#[path = "terminal/pty.rs"]
mod pty;

use pty::Terminal;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn write(place: &Path, name: &str, text: &str) {
    std::fs::write(place.join(name), text).unwrap();
}

/// A flow of these steps in `flow.json`.
fn flow(place: &Path, steps: &str) {
    let text = format!(r#"{{"version": "v1", "type": "flow", "name": "f", "steps": [{steps}]}}"#);
    write(place, "flow.json", &text);
}

#[test]
fn a_result_is_indented() {
    let place = tempfile::tempdir().unwrap();
    flow(
        place.path(),
        r#"{"type": "pass", "name": "p", "outputMappings": [{"target": "a", "source": {"b": [1]}}]}"#,
    );
    let over = Terminal::run(&["exec", "flow.json"], place.path()).over();
    assert!(over.said.contains("{\n  \"a\": {\n    \"b\": [\n"), "{}", over.said);
    assert!(over.raw.contains("\x1b[32m✓"), "{}", over.raw);
    assert_eq!(over.code, Some(0));
}

#[test]
fn operator_on_the_terminal_decides() {
    let place = tempfile::tempdir().unwrap();
    flow(
        place.path(),
        r#"{"type": "task", "name": "pay", "resourceArn": "cmd:./pay.sh", "catch": [{"errors": ["FnF.ALL"], "manual": true}]}"#,
    );
    write(
        place.path(),
        "pay.sh",
        "#!/bin/sh\necho tried >> log\necho 'no money' >&2\nexit 1\n",
    );
    let mut permissions = std::fs::metadata(place.path().join("pay.sh")).unwrap().permissions();
    permissions.set_mode(0o755);
    std::fs::set_permissions(place.path().join("pay.sh"), permissions).unwrap();
    let mut terminal = Terminal::run(&["exec", ".", "--allow-commands"], place.path());
    terminal.until("pay failed with CMD.1: no money: answer");
    terminal.type_line("maybe");
    terminal.type_line("retry");
    terminal.until("attempt 2: CMD.1");
    terminal.type_line(r#"succeed {"paid": true}"#);
    let over = terminal.over();
    assert!(over.said.contains("\"paid\": true\n"), "{}", over.said);
    assert_eq!(over.code, Some(0));
    assert_eq!(
        std::fs::read_to_string(place.path().join("log")).unwrap(),
        "tried\ntried\n"
    );
}

#[test]
fn questions_name_the_iteration() {
    let place = tempfile::tempdir().unwrap();
    let pay = r#"{"type": "task", "name": "pay", "resourceArn": "cmd:false", "catch": [{"errors": ["FnF.ALL"], "manual": true}]}"#;
    let each = r#""iterationMapping": {"collection": "$.items", "item": "n"}, "concurrency": 1"#;
    flow(
        place.path(),
        &format!(r#"{{"type": "foreach", "name": "all", {each}, "steps": [{pay}]}}"#),
    );
    let exec = ["exec", ".", "--allow-commands", "--input", r#"{"items": [1, 2]}"#];
    let mut terminal = Terminal::run(&exec, place.path());
    terminal.until("pay (all[0]) failed with CMD.1");
    terminal.type_line("succeed");
    terminal.until("pay (all[1]) failed with CMD.1");
    terminal.type_line("succeed");
    assert_eq!(terminal.over().code, Some(0));
}

#[test]
fn iterations_are_told_with_their_total_and_the_rest() {
    let place = tempfile::tempdir().unwrap();
    let wait = r#"{"type": "wait", "name": "w", "duration": 0.25}"#;
    let each = r#""iterationMapping": {"collection": "$.items", "item": "n"}, "concurrency": 1"#;
    flow(
        place.path(),
        &format!(r#"{{"type": "foreach", "name": "all", {each}, "steps": [{wait}]}}"#),
    );
    let input = r#"{"items": [1, 2, 3, 4, 5, 6, 7, 8]}"#;
    let over = Terminal::run(&["exec", "flow.json", "--input", input], place.path()).over();
    assert!(over.said.contains("all: 4 of 8, about "), "{}", over.said);
    assert!(over.said.contains("8 iterations"), "{}", over.said);
}

#[test]
fn waits_are_told_from_now() {
    let place = tempfile::tempdir().unwrap();
    flow(place.path(), r#"{"type": "wait", "name": "nap", "duration": 1}"#);
    let over = Terminal::run(&["exec", "flow.json"], place.path()).over();
    assert!(over.said.contains("nap waits for 1 s (until "), "{}", over.said);
}

#[test]
fn what_programs_print_on_stderr_is_shown_where_it_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    saga(place.path());
    write(
        place.path(),
        "book.sh",
        "#!/bin/sh\necho 'half way' >&2\necho '{\"said\": true}'\n",
    );
    let mut terminal = Terminal::run(&["exec", ".", "--allow-commands", "-v"], place.path());
    let said = terminal.until("nap waits");
    for line in [" book #1: half way", "book input: {}", "book result: {\"said\":true}"] {
        assert!(said.contains(line), "{said}");
    }
    let mut terminal = Terminal::run(&["exec", ".", "--allow-commands"], place.path());
    let said = terminal.until("nap waits");
    assert!(!said.contains("half way") && !said.contains("input:"), "{said}");
}

const SAGA: &str = r#"
    {"type": "task", "name": "book", "resourceArn": "cmd:./book.sh", "rollback": {"resourceArn": "cmd:./cancel.sh"}},
    {"type": "wait", "name": "nap", "duration": 600}"#;

fn saga(place: &Path) {
    use std::os::unix::fs::PermissionsExt;
    flow(place, SAGA);
    write(place, "book.sh", "#!/bin/sh\necho '{}'\n");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.join("book.sh"), mode).unwrap();
}

#[test]
fn an_interrupted_saga_says_what_stays_done() {
    let place = tempfile::tempdir().unwrap();
    saga(place.path());
    let mut terminal = Terminal::run(&["exec", "flow.json", "--allow-commands"], place.path());
    terminal.until("nap waits");
    terminal.interrupt();
    let over = terminal.over();
    assert_eq!(over.code, Some(130), "{}", over.said);
    for said in [
        "`book` stays done, nothing was undone",
        "book: cmd:./cancel.sh",
        "with `--db FILE`",
    ] {
        assert!(over.said.contains(said), "{}", over.said);
    }
}

#[test]
fn a_run_that_is_taken_up_shows_what_is_open() {
    let place = tempfile::tempdir().unwrap();
    saga(place.path());
    let exec = ["exec", "flow.json", "--allow-commands", "--db", "r.db", "--name", "n"];
    let mut first = Terminal::run(&exec, place.path());
    first.until("nap waits");
    first.interrupt();
    let over = first.over();
    assert_eq!(over.code, Some(130), "{}", over.said);
    assert!(
        over.said.contains("`book` stays done; a server can undo it instead"),
        "{}",
        over.said
    );
    let mut second = Terminal::run(&exec, place.path());
    second.until("goes on where it was");
    second.until("nap (");
    second.interrupt();
    let over = second.over();
    assert_eq!(over.code, Some(130));
    // Steps that were shown before are not shown again.
    assert!(!over.said.contains("✓ book"), "{}", over.said);
}

#[test]
fn a_second_interrupt_ends_a_server_at_once() {
    let place = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    flow(
        place.path(),
        &format!(r#"{{"type": "task", "name": "t", "resourceArn": "http://{at}/"}}"#),
    );
    write(place.path(), "server.toml", "[http]\nprivate_addresses = true\n");
    let serve = [
        "serve",
        "--config",
        "server.toml",
        "--db",
        "s.db",
        "--listen",
        "127.0.0.1:0",
    ];
    let mut server = Terminal::run(&serve, place.path());
    let said = server.until(", everything is kept");
    let address = said.split("listening on ").nth(1).unwrap().split(',').next().unwrap();
    let ask = |words: &[&str]| {
        let words: Vec<&str> = words.iter().chain(&["--server", address]).copied().collect();
        Terminal::run(&words, place.path()).over()
    };
    assert_eq!(ask(&["flow", "put", "flow.json"]).code, Some(0));
    let long = "x".repeat(10_000);
    let input = format!(r#"{{"long": "{long}"}}"#);
    let started = ask(&["start", "f", "--name", "n", "--input", &input]);
    assert_eq!(started.code, Some(0), "{}", started.said);
    let (mut call, _) = silent.accept().unwrap();
    assert!(call.read(&mut [0; 16]).unwrap() > 0);

    // While it runs: a large input is shortened for people.
    let shown = ask(&["show", "f/n"]);
    assert!(
        shown.said.contains("… (10011 bytes, all of them with `--json`)"),
        "{}",
        shown.said
    );
    assert!(!shown.said.contains(&"x".repeat(3_000)), "{}", shown.said);

    // The reader of an export may disconnect.
    let mut export = Command::new(env!("CARGO_BIN_EXE_starbridge"));
    let export = export.args(["history", "f/n", "--export", "-", "--server", address]);
    let mut export = export.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(export.stdout.take());
    let output = export.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");

    server.interrupt();
    server.until("once more stops at once");
    let before = Instant::now();
    server.interrupt();
    let over = server.over();
    assert_eq!(over.code, Some(130), "{}", over.said);
    assert!(before.elapsed() < Duration::from_secs(5), "{:?}", before.elapsed());
    assert!(
        over.said.contains("interrupted again: stopped at once"),
        "{}",
        over.said
    );
}
