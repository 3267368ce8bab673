//! Traces reach a collector.
#![cfg(feature = "otel")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// The received requests: the first line of each, and its body.
type Seen = Mutex<Vec<(String, Vec<u8>)>>;

/// Answers every request with `{}` and keeps what it was sent.
fn collector(seen: Arc<Seen>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let seen = seen.clone();
            std::thread::spawn(move || {
                let _ = answer(stream, &seen);
            });
        }
    });
    address
}

fn answer(stream: TcpStream, seen: &Seen) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(given) = line.to_lowercase().strip_prefix("content-length:") {
            length = given.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    seen.lock().unwrap().push((first, body));
    let mut stream = stream;
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}",
    )
}

fn output_of(arguments: &[&str], server: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starbridge"));
    let output = command.args(arguments).args(["--server", server]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn starbridge(arguments: &[&str], server: &str) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starbridge"));
    command.args(arguments).args(["--server", server, "--quiet"]);
    command.stdout(Stdio::null()).status().unwrap().success()
}

#[test]
fn a_call_is_a_span_at_the_collector() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let address = collector(seen.clone());
    let folder = tempfile::tempdir().unwrap();
    let flow = folder.path().join("traced.json");
    let definition = format!(
        r#"{{"version":"v1","type":"flow","steps":[{{"type":"task","name":"traced-step","resourceArn":"http://{address}/function"}}]}}"#
    );
    std::fs::write(&flow, definition).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_starbridge"))
        .args(["serve", "--listen", "127.0.0.1:0", "--db"])
        .arg(folder.path().join("t.db"))
        .env("STARBRIDGE_HTTP_PRIVATE_ADDRESSES", "true")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(server.stderr.take().unwrap());
    let mut lines = said.lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("http://")).unwrap();
    let url = line.split([' ', ',']).find(|word| word.starts_with("http://"));
    let url = url.unwrap().to_owned();
    assert!(starbridge(&["flow", "put", flow.to_str().unwrap()], &url), "{line}");
    assert!(starbridge(&["start", "traced", "--name", "one", "--wait", "20"], &url));
    let shown = output_of(&["history", "traced/one", "--json"], &url);
    let begun = shown.split("\"traceparent\":\"00-").nth(1);
    assert!(begun.is_some_and(|rest| rest.contains("-01\"")), "{shown}");
    let told = Command::new("kill").arg(server.id().to_string()).status().unwrap();
    assert!(told.success() && server.wait().unwrap().success());
    let seen = seen.lock().unwrap();
    let traces: Vec<_> = seen
        .iter()
        .filter(|(first, _)| first.starts_with("POST /v1/traces"))
        .collect();
    let has = |word: &str| {
        traces
            .iter()
            .any(|(_, body)| body.windows(word.len()).any(|part| part == word.as_bytes()))
    };
    assert!(has("traced-step") && has("starbridge"), "{} requests", seen.len());
}
