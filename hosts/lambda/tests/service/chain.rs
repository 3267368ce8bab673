//! The whole chain on the stand-in: a package is uploaded, and queue, function and table run flows to their ends,
//! while the function is killed.

use crate::alone::flow;
use crate::function::{self, pause, request};
use crate::stand::Stand;
use crate::table::functions;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use starbridge_services::{Kind, ask};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// The function that the stand-in runs.
struct Deployed<'a> {
    stand: &'a Stand,
    /// What identifies its processes.
    mark: String,
}

/// How long flows may take, with all the kills.
const PATIENCE: Duration = Duration::from_secs(150);

impl<'a> Deployed<'a> {
    fn new(stand: &'a Stand, flows: &[(&str, Value)], seconds: u32) -> Self {
        let package = tempfile::tempdir().unwrap();
        let mark = format!(
            "m{}-{}",
            std::process::id(),
            stand.queue.len() + package.path().to_str().unwrap().len()
        );
        let mark = format!("{mark}-{}", package.path().file_name().unwrap().to_str().unwrap());
        let zip = zipped(package.path(), flows);
        let environment = json!({
            "STARBRIDGE_LAMBDA_TABLE": "flows", "STARBRIDGE_LAMBDA_QUEUE": stand.queue,
            "STARBRIDGE_LAMBDA_DEAD_LETTERS": stand.letters, "STARBRIDGE_LAMBDA_LINGER_MS": "200",
            "STARBRIDGE_HTTP_PRIVATE_ADDRESSES": "true", "TESTED_AS": mark,
        });
        let asked = json!({"FunctionName": "flow", "Runtime": "provided.al2023", "Handler": "bootstrap", "Timeout": seconds,
            "Role": "arn:aws:iam::000000000000:role/r", "Environment": {"Variables": environment},
            "Code": {"ZipFile": BASE64_STANDARD.encode(zip)}});
        let deployed = Self { stand, mark };
        deployed.rest("POST", "/2015-03-31/functions", &asked);
        let mapped = json!({"FunctionName": "flow", "BatchSize": 10, "FunctionResponseTypes": ["ReportBatchItemFailures"],
            "EventSourceArn": "arn:aws:sqs:us-east-1:000000000000:onward"});
        deployed.rest("POST", "/2015-03-31/event-source-mappings", &mapped);
        deployed
    }

    fn rest(&self, method: &str, path: &str, body: &Value) -> Value {
        let kind = ["Content-Type: application/json".to_owned()];
        let answer = ask(
            method,
            &format!("{}{path}", self.stand.url()),
            &kind,
            body.to_string().as_bytes(),
        )
        .unwrap();
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    fn invoke(&self, event: &Value) -> Value {
        self.rest("POST", "/2015-03-31/functions/flow/invocations", event)
    }

    fn execution(&self, id: &str) -> Value {
        function::body(&self.invoke(&request("GET", &format!("/v1/executions/{id}"), &Value::Null)))
    }

    /// Kills all its processes. Returns how many there were.
    fn kill(&self) -> usize {
        let mark = format!("TESTED_AS={}", self.mark);
        let mut killed = 0;
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let has = std::fs::read(entry.path().join("environ"))
                .is_ok_and(|text| String::from_utf8_lossy(&text).split('\0').any(|line| line == mark));
            if has {
                let id = entry.file_name().into_string().unwrap();
                killed += usize::from(
                    Command::new("kill")
                        .args(["-KILL", &id])
                        .status()
                        .is_ok_and(|status| status.success()),
                );
            }
        }
        killed
    }
}

fn zipped(folder: &Path, flows: &[(&str, Value)]) -> Vec<u8> {
    std::fs::create_dir(folder.join("flows")).unwrap();
    for (name, flow) in flows {
        std::fs::write(folder.join(format!("flows/{name}.json")), flow.to_string()).unwrap();
    }
    std::fs::copy(function::program(), folder.join("bootstrap")).unwrap();
    let service = std::env::var_os(Kind::Ministack.variable()).unwrap();
    let mut zip = Command::new(Path::new(&service).with_file_name("python3"));
    zip.args(["-m", "zipfile", "-c", "code.zip", "bootstrap", "flows"]);
    assert!(zip.current_dir(folder).status().unwrap().success());
    std::fs::read(folder.join("code.zip")).unwrap()
}

/// A flow that fails now and then and is retried, waits for a callback through the queue, and ends.
fn definition(url: &str) -> Value {
    flow(json!([
        {"type": "task", "name": "tried", "resourceArn": format!("{url}/tried"), "inputMappings": [{"target": "try", "source": true}],
            "retry": [{"errors": ["Busy"], "intervalSeconds": 1, "maxAttempts": 9, "multiplier": 1}]},
        {"type": "wait", "name": "pause", "duration": 2},
        {"type": "task", "name": "asked", "resourceArn": format!("{url}/asked"), "pattern": "waitForCallback", "timeoutSeconds": 140,
            "inputMappings": [{"target": "token", "source": "$context.task.token"}]},
        {"type": "task", "name": "last", "resourceArn": format!("{url}/last"), "outputMappings": [{"target": "done", "source": true}]},
    ]))
}

/// The answers of functions. A function that gets a token reports with it, through the queue.
fn said(endpoint: &str, queue: &str, number: usize, asked: &Value) -> (u16, Value) {
    if let Some(token) = asked["token"].as_str() {
        let report = json!({"token": token, "output": {"answer": 42}}).to_string();
        let message = json!({"QueueUrl": queue, "MessageBody": report, "DelaySeconds": 1});
        let headers = [
            "X-Amz-Target: AmazonSQS.SendMessage".to_owned(),
            "Content-Type: application/x-amz-json-1.0".to_owned(),
        ];
        ask("POST", endpoint, &headers, message.to_string().as_bytes());
    }
    match asked["try"] == true && number.is_multiple_of(3) {
        true => (503, json!({"error": "Busy", "cause": "later"})),
        false => (200, json!({})),
    }
}

#[test]
fn flows_come_to_their_ends_while_the_function_is_killed() {
    let stand = Stand::start();
    let (endpoint, queue) = (stand.url(), stand.queue.clone());
    let (server, heard) = functions(move |number, asked| said(&endpoint, &queue, number, asked));
    let deployed = Deployed::new(&stand, &[("f", definition(&server.url()))], 3);
    let begin = |number: u32| {
        let begun = deployed.invoke(&json!({"flow": "f", "name": format!("n{number}"), "async": true}));
        begun["id"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned()
    };
    let ids: Vec<String> = (0..4).map(begin).collect();
    let begun = Instant::now();
    let (mut killed, mut ended) = (0, BTreeMap::new());
    while ended.len() < ids.len() {
        assert!(
            begun.elapsed() < PATIENCE,
            "{} of {} ended, {killed} killed",
            ended.len(),
            ids.len()
        );
        pause(700);
        if killed < 8 {
            killed += deployed.kill();
        }
        deployed.invoke(&function::sweep());
        for id in &ids {
            let seen = deployed.execution(id);
            if seen["endedTime"].is_string() {
                ended.insert(id.clone(), seen);
            }
        }
    }
    for seen in ended.values() {
        assert_eq!(
            (&seen["status"], &seen["output"]["done"]),
            (&"Succeeded".into(), &true.into()),
            "{seen}"
        );
    }
    assert!(killed >= 3, "{killed} killed");
    // Calls are sent again under their keys: each execution has at most nine tries and three
    // further calls.
    let mut keys = heard.lock().unwrap().clone();
    keys.sort();
    keys.dedup();
    assert!(keys.len() >= 4 * 3 && keys.len() <= 4 * 12, "{} calls", keys.len());
    println!(
        "{} flows ended, {killed} processes killed, {} calls under {} keys",
        ids.len(),
        heard.lock().unwrap().len(),
        keys.len()
    );
}
