//! Functions that a stand-in for Lambda runs.

use aws_sdk_lambda::Client;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::{FunctionCode, Runtime};
use starbridge_aws::{Aws, AwsSettings};
use starbridge_connector_lambda::LambdaConnector;
use starbridge_fdl::FAULT_NAMES;
use starbridge_flow::graph::{FaultKind, Pattern};
use starbridge_flow::value::Value;
use starbridge_ports::{CallIds, Connector, Outcome, Request, ResourceFamily, Secret};
use starbridge_services::{Kind, Service};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A runtime and its function: it asks for an event, does what the event says, and returns the answer or the error.
const FUNCTION: &str = r#"
import json, os, time, urllib.request

class NoMoney(Exception):
    pass

def handler(event):
    act = event.get("act") if isinstance(event, dict) else None
    if act == "fail":
        raise NoMoney("too little: \u00fc")
    if act == "sleep":
        time.sleep(event["seconds"])
    if act == "meet":
        open(os.path.join(event["folder"], "here-" + event["name"]), "w").close()
        while sum(file.startswith("here-") for file in os.listdir(event["folder"])) < event["all"]:
            time.sleep(0.02)
    if act == "mark":
        open(event["file"], "a").write(event["text"])
    if act == "nothing":
        return None
    return {"event": event}

api = "http://" + os.environ["AWS_LAMBDA_RUNTIME_API"] + "/2018-06-01/runtime/invocation/"
with urllib.request.urlopen(api + "next") as said:
    call, event = said.headers["Lambda-Runtime-Aws-Request-Id"], json.load(said)
try:
    path, answer = call + "/response", handler(event)
except Exception as error:
    path, answer = call + "/error", {"errorType": type(error).__name__, "errorMessage": str(error)}
urllib.request.urlopen(urllib.request.Request(api + path, json.dumps(answer).encode(), method="POST")).close()
"#;

struct Stand {
    service: Service,
    connector: LambdaConnector,
}

fn way(endpoint: &str) -> Aws {
    Aws::new(AwsSettings {
        endpoint: Some(endpoint.to_owned()),
        region: Some("us-east-1".to_owned()),
        access_key: Some(("test".to_owned(), Secret::new("test"))),
    })
}

/// The function's code in the form that the service takes.
fn zipped(folder: &Path) -> Vec<u8> {
    let program = std::env::var_os(Kind::Ministack.variable()).unwrap();
    let python = Path::new(&program).with_file_name("python3");
    let bootstrap = folder.join("bootstrap");
    std::fs::write(&bootstrap, format!("#!{}\n{FUNCTION}", python.display())).unwrap();
    std::fs::set_permissions(&bootstrap, Permissions::from_mode(0o755)).unwrap();
    let mut zip = Command::new(python);
    zip.args(["-m", "zipfile", "-c", "code.zip", "bootstrap"]);
    assert!(zip.current_dir(folder).status().unwrap().success());
    std::fs::read(folder.join("code.zip")).unwrap()
}

impl Stand {
    /// A stand-in with a function `pay` that may run for this many seconds.
    async fn start(seconds: i32) -> Self {
        let service = Service::start(Kind::Ministack);
        let stand = Self {
            connector: LambdaConnector::new(way(&service.url())),
            service,
        };
        stand.make(None, seconds).await;
        stand
    }

    async fn make(&self, region: Option<&str>, seconds: i32) {
        let code = FunctionCode::builder()
            .zip_file(Blob::new(zipped(self.service.folder())))
            .build();
        let looking = way(&self.service.url());
        let config = looking.config(region).await.unwrap();
        let made = looking.run(async move {
            let request = Client::new(&config)
                .create_function()
                .function_name("pay")
                .runtime(Runtime::Providedal2023);
            let request = request.role("arn:aws:iam::000000000000:role/r").handler("bootstrap");
            request.code(code).timeout(seconds).send().await.map(drop)
        });
        made.await.unwrap().unwrap();
    }

    async fn call(&self, target: &str, input: &str) -> Outcome {
        self.connector.call(request(target, input)).await
    }
}

fn request(target: &str, input: &str) -> Request {
    let input: Value = serde_json::from_str(input).unwrap();
    Request {
        target: target.to_owned(),
        via: ResourceFamily::Direct,
        pattern: Pattern::RequestResponse,
        input,
        params: None,
        keys: CallIds {
            idempotency: "exec/3".to_owned(),
            step_visit: "exec/2".to_owned(),
            execution: "exec".to_owned(),
            flow: "flow".to_owned(),
            step: "zahl ü".to_owned(),
            traceparent: None,
        },
        attempt: 2,
        rollback: false,
        polling: false,
        follow: false,
        timeout_at: None,
        answer_limit: 1 << 20,
    }
}

fn result(outcome: Outcome) -> serde_json::Value {
    match outcome {
        Outcome::Result(result) => serde_json::from_str(&result.to_json()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn failure(outcome: Outcome) -> (String, String) {
    match outcome {
        Outcome::NotSent { error, cause } => (FAULT_NAMES.name(&error).to_string(), cause),
        Outcome::Failed { error, cause, .. } => {
            assert_ne!(error, FaultKind::Resource, "who names it so was not called: {cause}");
            (FAULT_NAMES.name(&error).to_string(), cause)
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_function_gets_its_input_and_its_answer_is_the_result() {
    let stand = Stand::start(10).await;
    let said = result(stand.call("lambda:pay", r#"{"name": "Zoë 星"}"#).await);
    assert_eq!(said["event"], serde_json::json!({"name": "Zoë 星"}));
    assert_eq!(
        result(stand.call("lambda:pay", r#"{"act": "nothing"}"#).await),
        serde_json::json!({})
    );
    let arn = "lambda:arn:aws:lambda:us-east-1:000000000000:function:pay:$LATEST";
    assert_eq!(result(stand.call(arn, r#"{"n": 1}"#).await)["event"]["n"], 1);
    let mut waiting = request("lambda:pay", "{}");
    waiting.pattern = Pattern::WaitForCallback;
    let receipt = Some(serde_json::from_str(r#"{"StatusCode": 200}"#).unwrap());
    assert_eq!(stand.connector.call(waiting).await, Outcome::Accepted { receipt });
}

#[tokio::test]
async fn a_functions_error_is_the_tasks() {
    let stand = Stand::start(10).await;
    let failed = failure(stand.call("lambda:pay", r#"{"act": "fail"}"#).await);
    assert_eq!(failed, ("NoMoney".to_owned(), "too little: ü".to_owned()));
}

#[tokio::test]
async fn a_function_that_takes_too_long() {
    let stand = Stand::start(1).await;
    let (error, cause) = failure(stand.call("lambda:pay", r#"{"act": "sleep", "seconds": 20}"#).await);
    assert_eq!(error, "Lambda.Timedout", "{cause}");
}

#[tokio::test]
async fn an_event_is_not_waited_for() {
    let stand = Stand::start(10).await;
    let mark = stand.service.folder().join("mark");
    let mut event = request("lambda:pay", "{}");
    let payload = serde_json::json!({"act": "mark", "file": mark, "text": "done"});
    let params = serde_json::json!({"InvocationType": "Event", "Payload": payload});
    event.params = Some(serde_json::from_value(params).unwrap());
    assert_eq!(
        result(stand.connector.call(event).await),
        serde_json::json!({"StatusCode": 202})
    );
    let begun = Instant::now();
    while std::fs::read_to_string(&mark).unwrap_or_default() != "done" {
        assert!(begun.elapsed() < Duration::from_secs(60), "the function was not run");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn what_is_not_there_and_who_does_not_answer_have_names() {
    let mut stand = Stand::start(10).await;
    let (error, cause) = failure(stand.call("lambda:nobody", "{}").await);
    assert_eq!(error, "Lambda.ResourceNotFoundException");
    assert!(cause.starts_with("function `nobody`: "), "{cause}");
    let elsewhere = "lambda:arn:aws:lambda:eu-west-1:000000000000:function:pay";
    assert_eq!(
        failure(stand.call(elsewhere, "{}").await).0,
        "Lambda.ResourceNotFoundException"
    );
    stand.make(Some("eu-west-1"), 10).await;
    result(stand.call(elsewhere, "{}").await);
    stand.service.kill();
    let failed = failure(stand.call("lambda:pay", "{}").await);
    assert_eq!(
        failed,
        (
            "Lambda.ConnectionFailed".to_owned(),
            "function `pay`: connection refused".to_owned()
        )
    );
    stand.service.start_again();
    stand.make(None, 10).await;
    result(stand.call("lambda:pay", "{}").await);
}

#[tokio::test]
async fn calls_do_not_wait_for_each_other() {
    let stand = Stand::start(120).await;
    let mut calls = tokio::task::JoinSet::new();
    // Each of them ends only when all have begun.
    for name in ["a", "b", "c"] {
        let connector = stand.connector.clone();
        let event = serde_json::json!({"act": "meet", "folder": stand.service.folder(), "name": name, "all": 3});
        let call = request("lambda:pay", &event.to_string());
        calls.spawn(async move { result(connector.call(call).await) });
    }
    assert_eq!(calls.join_all().await.len(), 3);
}
