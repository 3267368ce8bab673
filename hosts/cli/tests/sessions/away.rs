//! Peers and readers that disconnect.

use std::io::Read;
use std::net::TcpListener;
use std::process::{Command, Stdio};

fn starbridge(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starbridge"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The message about a server that accepts a request and disconnects without an answer.
fn said_of_one_that_goes(arguments: &[&str]) -> String {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", server.local_addr().unwrap());
    let goes = std::thread::spawn(move || {
        let (mut asked, _) = server.accept().unwrap();
        assert!(asked.read(&mut [0; 64]).unwrap() > 0);
    });
    let output = starbridge(arguments).args(["--server", &address]).output().unwrap();
    goes.join().unwrap();
    assert_eq!(output.status.code(), Some(3));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_start_with_a_name_may_be_repeated() {
    let said = said_of_one_that_goes(&["start", "f", "--name", "n"]);
    assert!(said.contains("went away before it answered"), "{said}");
    assert!(
        said.contains("ask the same again: with `--name` nothing is started twice"),
        "{said}"
    );
}

#[test]
fn a_start_without_one_may_not() {
    let said = said_of_one_that_goes(&["start", "f"]);
    assert!(said.contains("look before you ask again"), "{said}");
    let json = said_of_one_that_goes(&["start", "f", "--json"]);
    assert!(json.starts_with(r#"{"error":{"code":"Unreachable","#), "{json}");
}
