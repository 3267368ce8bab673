//! A flow that fills a Redis stream while Redis and the command are killed.

use starbridge_services::{Kind, Service};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const ITEMS: usize = 3_000;

const FLOW: &str = r#"{
  "version": "v1",
  "type": "flow",
  "steps": [{
    "type": "foreach",
    "name": "each",
    "concurrency": 20,
    "iterationMapping": {"collection": "$.items", "item": "item"},
    "steps": [{
      "type": "task",
      "name": "send",
      "resourceArn": "redis:orders",
      "serviceParams": {"body": "$.item"},
      "retry": [{"errors": ["Redis.ConnectionFailed", "Redis.Loading"], "maxAttempts": 10}]
    }],
    "outputMappings": [{"target": "sent", "source": "$local[*].id"}]
  }]
}"#;

/// Sends Redis a command. Returns the answer as lines.
fn ask(service: &Service, words: &str) -> Vec<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", service.port())).unwrap();
    write!(stream, "{words}\r\nQUIT\r\n").unwrap();
    BufReader::new(stream).lines().map(Result::unwrap).collect()
}

fn length(service: &Service) -> usize {
    let answer = ask(service, "XLEN orders");
    answer[0].trim_start_matches(':').parse().unwrap()
}

/// The ids and the fields of all entries, one after the other.
fn entries(service: &Service) -> BTreeSet<String> {
    ask(service, "XRANGE orders - +").into_iter().collect()
}

fn run(service: &Service, folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_starbridge"))
        .args(["exec", "flow.json", "--input-file", "input.json", "--db", "flows.db"])
        .args(["--name", "all", "--quiet"])
        .current_dir(folder)
        .env("STARBRIDGE_REDIS_URL", service.url())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until the stream has this many entries, or the run is over.
#[expect(clippy::disallowed_methods, reason = "a stream does not say when it has grown")]
fn grows_to(service: &Service, entries: usize, run: &mut Child) {
    while length(service) < entries && run.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

#[test]
fn nothing_is_lost_when_redis_is_killed_and_when_we_are() {
    let folder = tempfile::tempdir().unwrap();
    let items: Vec<String> = (0..ITEMS).map(|item| format!("\"item-{item}.\"")).collect();
    std::fs::write(folder.path().join("flow.json"), FLOW).unwrap();
    let input = format!("{{\"items\":[{}]}}", items.join(","));
    std::fs::write(folder.path().join("input.json"), input).unwrap();
    let mut service = Service::start(Kind::Redis);

    let mut first = run(&service, folder.path());
    grows_to(&service, ITEMS / 4, &mut first);
    first.kill().unwrap();
    first.wait().unwrap();
    let before = length(&service);
    assert!(before < ITEMS, "it was over before it was killed");

    let mut second = run(&service, folder.path());
    for part in 2..4 {
        grows_to(&service, ITEMS / 4 * part, &mut second);
        service.kill();
        service.start_again();
    }
    let Output { status, stdout, .. } = second.wait_with_output().unwrap();
    let output = String::from_utf8(stdout).unwrap();
    assert!(status.success(), "{output}");

    let kept = entries(&service);
    for item in items {
        assert!(kept.contains(&item), "{item} is not there");
    }
    let ids: Vec<&str> = output.split('"').filter(|text| text.contains('-')).collect();
    assert_eq!(ids.len(), ITEMS, "{output}");
    for id in ids {
        assert!(kept.contains(id), "{id} was acknowledged and is gone");
    }
}
