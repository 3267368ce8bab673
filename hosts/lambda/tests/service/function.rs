//! The function under the emulator of Lambda's runtime.

use super::stand::{Message, Stand};
use serde_json::{Value, json};
use starbridge_services::{Kind, Service, ask};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The function, running.
pub struct Function {
    service: Service,
    program: PathBuf,
    _package: tempfile::TempDir,
}

/// The program under test: the one that is shipped, if the environment names it.
pub fn program() -> PathBuf {
    std::env::var_os("STARBRIDGE_BOOTSTRAP").map_or_else(|| env!("CARGO_BIN_EXE_bootstrap").into(), PathBuf::from)
}

impl Function {
    /// Starts it with these flows in its package, this many seconds for an invocation, and this environment.
    pub fn start(flows: &[(&str, Value)], seconds: u32, environment: &[(&str, &str)]) -> Self {
        let package = tempfile::tempdir().unwrap();
        let folder = package.path().join("flows");
        std::fs::create_dir(&folder).unwrap();
        for (name, flow) in flows {
            std::fs::write(folder.join(format!("{name}.json")), flow.to_string()).unwrap();
        }
        // Under a path of its own, so that only this one can be killed.
        let own = package.path().join("bootstrap");
        if std::fs::hard_link(program(), &own).is_err() {
            std::fs::copy(program(), &own).unwrap();
        }
        let seconds = seconds.to_string();
        let root = package.path().to_str().unwrap();
        let mut all = vec![
            ("LAMBDA_TASK_ROOT", root),
            ("AWS_LAMBDA_FUNCTION_TIMEOUT", seconds.as_str()),
            ("STARBRIDGE_HTTP_PRIVATE_ADDRESSES", "true"),
        ];
        all.extend(environment);
        let service = Service::start_in(Kind::Rie, &[own.to_str().unwrap()], &all);
        Self {
            service,
            program: own,
            _package: package,
        }
    }

    /// Starts it over a table and its queues.
    pub fn over(stand: &Stand, flows: &[(&str, Value)], seconds: u32, environment: &[(&str, &str)]) -> Self {
        let endpoint = stand.endpoint();
        let mut all = vec![
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("STARBRIDGE_LAMBDA_TABLE", "flows"),
            ("STARBRIDGE_LAMBDA_QUEUE", stand.queue.as_str()),
            ("STARBRIDGE_LAMBDA_DEAD_LETTERS", stand.letters.as_str()),
        ];
        all.extend(environment);
        Self::start(flows, seconds, &all)
    }

    /// Invokes it; `None` if it was killed.
    pub fn invoked(&self, event: &Value) -> Option<Value> {
        let url = format!("{}/2015-03-31/functions/function/invocations", self.service.url());
        let answer = ask("POST", &url, &[], event.to_string().as_bytes())?;
        serde_json::from_slice(&answer.body).ok()
    }

    /// Invokes it and returns its answer.
    pub fn invoke(&self, event: &Value) -> Value {
        self.invoked(event)
            .unwrap_or_else(|| panic!("no answer; it said:\n{}", self.said()))
    }

    /// The text of its log.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.service.folder().join("log")).unwrap_or_default()
    }

    /// A function that kills it.
    pub fn killer(&self) -> impl Fn() + Send + 'static {
        self.signaller("-KILL")
    }

    /// A function that sends it a signal.
    pub fn signaller(&self, signal: &'static str) -> impl Fn() + Send + 'static {
        let program = self.program.clone();
        move || {
            let mut kill = Command::new("pkill");
            // The emulator has the path among its arguments too; the program's own arguments begin with it.
            let pattern = format!("^{}", program.display());
            let _ = kill.args([signal, "-f", &pattern]).status();
        }
    }

    /// The memory that it uses, in bytes.
    pub fn resident(&self) -> u64 {
        starbridge_services::resident(&self.program)
    }

    /// Gives it the messages of its queue, as Lambda does, and sweeps, as its schedule does, until an execution has
    /// ended.
    pub fn until_ended(&self, stand: &Stand, execution: &str) -> Value {
        let begun = Instant::now();
        let mut looks = 0;
        while begun.elapsed() < Duration::from_secs(180) {
            self.take(stand, stand.received(&stand.queue));
            let seen = self.execution(execution);
            if seen["endedTime"].is_string() {
                return seen;
            }
            looks += 1;
            if looks % 10 == 0 {
                self.invoked(&sweep());
            }
            pause(100);
        }
        panic!("{execution} does not end; the function said:\n{}", self.said());
    }

    /// Gives it these messages, and deletes those it handled.
    pub fn take(&self, stand: &Stand, messages: Vec<Message>) -> Vec<String> {
        if messages.is_empty() {
            return Vec::new();
        }
        let failed = self.invoked(&batch(&messages)).map(|answer| failures(&answer));
        // If it was killed, its result is unknown.
        let Some(failed) = failed.flatten() else {
            return messages.into_iter().map(|message| message.id).collect();
        };
        for message in messages.iter().filter(|message| !failed.contains(&message.id)) {
            stand.delete(&stand.queue, message);
        }
        failed
    }

    /// An execution as the API shows it.
    pub fn execution(&self, id: &str) -> Value {
        self.invoked(&request("GET", &format!("/v1/executions/{id}"), &Value::Null))
            .map(|answer| body(&answer))
            .unwrap_or_default()
    }

    /// The events of an execution.
    pub fn history(&self, id: &str) -> Vec<Value> {
        let answer = self.invoke(&request(
            "GET",
            &format!("/v1/executions/{id}/history?limit=1000"),
            &Value::Null,
        ));
        body(&answer)["items"].as_array().cloned().unwrap_or_default()
    }
}

#[expect(clippy::disallowed_methods, reason = "a queue does not say when it has something")]
pub fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// Messages in the form in which Lambda brings them.
pub fn batch(messages: &[Message]) -> Value {
    let records: Vec<Value> = messages
        .iter()
        .map(|message| {
            json!({"messageId": message.id, "receiptHandle": message.handle, "body": message.body,
                "attributes": {"ApproximateReceiveCount": message.received},
                "messageAttributes": {}, "eventSource": "aws:sqs", "awsRegion": "us-east-1"})
        })
        .collect();
    json!({"Records": records})
}

/// Which messages should arrive again; `None` if the answer is of another kind.
fn failures(answer: &Value) -> Option<Vec<String>> {
    let items = answer["batchItemFailures"].as_array()?;
    let id = |item: &Value| item["itemIdentifier"].as_str().unwrap_or_default().to_owned();
    Some(items.iter().map(id).collect())
}

/// The event of the schedule.
pub fn sweep() -> Value {
    json!({"version": "0", "source": "aws.events", "detail-type": "Scheduled Event", "detail": {}})
}

/// A request of a sender that Lambda has authenticated.
pub fn request(method: &str, path: &str, body: &Value) -> Value {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    json!({"version": "2.0", "rawPath": path, "rawQueryString": query, "isBase64Encoded": false,
        "headers": {"host": "abc.lambda-url.us-east-1.on.aws", "content-type": "application/json"},
        "requestContext": {"http": {"method": method, "path": path, "sourceIp": "203.0.113.7"},
            "authorizer": {"iam": {"userArn": "arn:aws:iam::1:user/u"}}},
        "body": if body.is_null() { Value::Null } else { body.to_string().into() }})
}

/// The body of an answer over HTTP.
pub fn body(answer: &Value) -> Value {
    serde_json::from_str(answer["body"].as_str().unwrap_or_default()).unwrap_or_default()
}
