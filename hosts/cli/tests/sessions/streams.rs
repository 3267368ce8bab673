//! Streams that sessions can't show.

use std::io::Read;
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

/// Runs with a reader that closes the stream at once or after this many bytes. Returns the exit
/// code and stderr.
fn with_a_reader_of(bytes: usize, arguments: &[&str]) -> (Option<i32>, String) {
    let mut child = starbridge(arguments).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut read = vec![0; bytes];
    stdout.read_exact(&mut read).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn a_reader_that_goes_away_is_no_fault() {
    for arguments in [
        ["explain"].as_slice(),
        &["explain", "FDL0101"],
        &["schema"],
        &["man"],
        &["completions", "bash"],
        &["--help"],
        &["validate", "--help"],
        &["--version"],
    ] {
        for bytes in [0, 1] {
            assert_eq!(
                with_a_reader_of(bytes, arguments),
                (Some(0), String::new()),
                "{arguments:?}"
            );
        }
    }
}

#[test]
fn a_reader_that_goes_away_does_not_change_what_was_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flow.json");
    std::fs::write(&file, "{}").unwrap();
    let file = file.to_string_lossy();
    for format in ["json", "sarif", "github"] {
        let (code, said) = with_a_reader_of(0, &["validate", &file, "--format", format]);
        assert_eq!((code, said.as_str()), (Some(1), ""), "{format}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_can_not_be_written_is_a_fault() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = starbridge(&["schema"]).stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(said, "error: can't write the result: no space left on device\n");
}

#[test]
fn nobody_at_stderr_is_no_panic() {
    let mut child = starbridge(&["validate", "no such file"]).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(2));
}

#[test]
fn a_program_that_reads_on_sees_all_of_it() {
    let output = starbridge(&["schema"]).output().unwrap();
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(schema.get("$schema").is_some());
}
