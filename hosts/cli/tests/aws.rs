//! The command and a stand-in for AWS: configuration comes in the usual ways, and flows reach
//! queues.

use starbridge_services::{Kind, Service};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const CREDENTIALS: [(&str, &str); 3] = [
    ("AWS_ACCESS_KEY_ID", "test"),
    ("AWS_SECRET_ACCESS_KEY", "test"),
    ("AWS_REGION", "us-east-1"),
];

/// Asks the service by its older protocol, which needs no client.
fn ask(service: &Service, question: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", service.port())).unwrap();
    let scope = "Credential=test/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0";
    write!(
        stream,
        "POST / HTTP/1.0\r\nHost: sqs\r\nAuthorization: AWS4-HMAC-SHA256 {scope}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{question}",
        question.len()
    )
    .unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

fn task(resource: &str) -> String {
    let head = r#"{"version": "v1", "type": "flow", "steps": ["#;
    format!(r#"{head}{{"type": "task", "name": "send", "resourceArn": "{resource}"}}]}}"#)
}

fn command(folder: &Path, flow: &str, environment: &[(&str, &str)]) -> Command {
    std::fs::write(folder.join("flow.json"), flow).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_starbridge"));
    command
        .args(["exec", "flow.json", "--quiet"])
        .current_dir(folder)
        .env_clear()
        // Neither a machine's role nor a user's own profile is used here.
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("HOME", folder)
        .envs(environment.iter().copied())
        .stdin(Stdio::null());
    command
}

fn exec(folder: &Path, flow: &str, environment: &[(&str, &str)]) -> Output {
    command(folder, flow, environment).output().unwrap()
}

/// How many messages a queue has.
fn count(service: &Service, queue: &str) -> usize {
    let name = "ApproximateNumberOfMessages";
    let question = format!("Action=GetQueueAttributes&QueueUrl=/000000000000/{queue}&AttributeName.1={name}");
    let said = ask(service, &question);
    let value = said.split_once("<Value>").and_then(|(_, rest)| rest.split_once('<'));
    value
        .and_then(|(value, _)| value.parse().ok())
        .unwrap_or_else(|| panic!("{said}"))
}

fn said(output: &Output) -> serde_json::Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn a_flow_sends_messages() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(Kind::Ministack);
    assert!(ask(&service, "Action=CreateQueue&QueueName=orders").contains("200"));
    let endpoint = service.url();
    let by_environment = [&CREDENTIALS[..], &[("AWS_ENDPOINT_URL", &endpoint)]].concat();
    let well = exec(
        folder.path(),
        &task("arn:aws:sqs:us-east-1:000000000000:orders"),
        &by_environment,
    );
    assert!(said(&well)["MessageId"].is_string(), "{well:?}");
    std::fs::create_dir(folder.path().join(".aws")).unwrap();
    let profile = format!(
        "[default]\naws_access_key_id = test\naws_secret_access_key = test\nregion = us-east-1\nendpoint_url = {endpoint}\n"
    );
    std::fs::write(folder.path().join(".aws/config"), profile).unwrap();
    let many = r#"{"version": "v1", "type": "flow", "steps": [{"type": "foreach", "name": "each",
        "inputMappings": [{"target": "n", "source": [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]}],
        "iterationMapping": {"collection": "$.n", "item": "n"},
        "outputMappings": [{"target": "sent", "source": "$local[*].MessageId"}],
        "steps": [{"type": "task", "name": "send", "resourceArn": "sqs:orders"}]}]}"#;
    let by_profile = said(&exec(folder.path(), many, &[]));
    assert_eq!(by_profile["sent"].as_array().unwrap().len(), 20, "{by_profile}");
    let only_sqs = [&CREDENTIALS[..], &[("AWS_ENDPOINT_URL_SQS", &endpoint)]].concat();
    let missing = said(&exec(folder.path(), &task("sqs:nobody"), &only_sqs));
    assert_eq!(missing["error"], "SQS.QueueDoesNotExist");
    assert_eq!(count(&service, "orders"), 21);
}

#[test]
fn a_flow_goes_on_when_the_service_was_away() {
    const MESSAGES: usize = 600;
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::start(Kind::Ministack);
    assert!(ask(&service, "Action=CreateQueue&QueueName=orders").contains("200"));
    let numbers: Vec<String> = (0..MESSAGES).map(|n| n.to_string()).collect();
    let flow = r#"{"version": "v1", "type": "flow", "steps": [{"type": "foreach", "name": "each", "concurrency": 2,
        "inputMappings": [{"target": "n", "source": [NUMBERS]}], "iterationMapping": {"collection": "$.n", "item": "n"},
        "outputMappings": [{"target": "sent", "source": "$local[*].MessageId"}],
        "steps": [{"type": "task", "name": "send", "resourceArn": "sqs:orders",
            "retry": [{"errors": ["SQS.ConnectionFailed"], "backoff": "fixed", "maxAttempts": 100}]}]}]}"#;
    let flow = flow.replace("NUMBERS", &numbers.join(","));
    let endpoint = service.url();
    let environment = [&CREDENTIALS[..], &[("AWS_ENDPOINT_URL", &endpoint)]].concat();
    let mut running = command(folder.path(), &flow, &environment);
    let running = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while count(&service, "orders") < 10 {
        std::thread::yield_now();
    }
    // It keeps its data over a restart only if it was asked to end.
    service.stop();
    service.start_again();
    let kept = count(&service, "orders");
    assert!(kept < MESSAGES, "the flow had ended before: {kept}");
    let ended = said(&running.wait_with_output().unwrap());
    assert_eq!(ended["sent"].as_array().map(Vec::len), Some(MESSAGES), "{ended}");
    // A message that was accepted but whose answer was lost is there twice.
    let count = count(&service, "orders");
    assert!((MESSAGES..MESSAGES + 10).contains(&count), "{count}");
}

#[test]
fn what_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let failed = |resource: &str, environment: &[(&str, &str)]| {
        let output = exec(folder.path(), &task(resource), environment);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = said(&output);
        (
            said["error"].as_str().unwrap().to_owned(),
            said["cause"].as_str().unwrap().to_owned(),
        )
    };
    let nowhere = ("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    for (resource, service, about) in [
        ("sqs:orders", "SQS", "queue `orders`"),
        ("lambda:pay", "Lambda", "function `pay`"),
    ] {
        let (error, cause) = failed(resource, &[nowhere, ("AWS_REGION", "us-east-1")]);
        assert_eq!(error, format!("{service}.CredentialsMissing"));
        assert!(
            cause.starts_with(&format!("{about}: no credentials are given")),
            "{cause}"
        );
        let (error, cause) = failed(resource, &[&CREDENTIALS[..2], &[nowhere]].concat());
        assert_eq!(error, format!("{service}.RegionMissing"));
        assert!(cause.starts_with(&format!("{about}: no region is set")), "{cause}");
        let (error, cause) = failed(resource, &[&CREDENTIALS[..], &[nowhere]].concat());
        let expected = (
            format!("{service}.ConnectionFailed"),
            format!("{about}: connection refused"),
        );
        assert_eq!((error, cause), expected);
    }
}
