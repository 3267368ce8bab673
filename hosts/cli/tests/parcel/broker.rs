//! The target of a flow's messages, and the source of the reports.

use serde_json::{Value, json};
use starbridge_services::{Kind, Service};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A message as its consumer receives it.
pub struct Message {
    pub key: String,
    pub body: Value,
}

/// The broker between a flow and its carrier.
pub trait Broker {
    fn service(&mut self) -> &mut Service;
    /// The prefix of the steps' resources.
    fn scheme(&self) -> &'static str;
    /// The configuration of a server.
    fn config(&self) -> String;
    /// The environment of a server.
    fn environment(&self) -> Vec<(&'static str, String)>;
    /// How many messages there are.
    fn waiting(&self) -> usize;
    /// Takes a message, if there is one.
    fn take(&self) -> Option<Message>;
    /// Puts a report into the reply queue.
    fn reply(&self, report: &Value);
    /// How many reports have not been taken.
    fn replies(&self) -> usize;
}

/// The output of a command that must succeed.
pub fn printed(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The folder of the examples.
pub fn examples() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"))
}

/// Queues of SQS, asked by the program of the example.
pub struct Sqs(Service);

impl Sqs {
    pub fn start() -> Self {
        let sqs = Self(Service::start(Kind::Ministack));
        sqs.make();
        sqs
    }

    /// Makes both queues.
    pub fn make(&self) {
        for queue in ["shipping", "replies"] {
            self.ask("CreateQueue", &json!({"QueueName": queue}));
        }
    }

    pub fn ask(&self, action: &str, question: &Value) -> Value {
        let mut command = Command::new("sh");
        command
            .arg(examples().join("parcel/sqs.sh"))
            .args([action, &question.to_string()])
            .envs(self.environment());
        let said = printed(&mut command);
        serde_json::from_str(&said).unwrap_or(Value::Null)
    }

    fn url(&self, queue: &str) -> String {
        format!("{}/000000000000/{queue}", self.0.url())
    }

    fn count(&self, queue: &str) -> usize {
        const NAMES: [&str; 2] = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
        let question = json!({"QueueUrl": self.url(queue), "AttributeNames": NAMES});
        let said = self.ask("GetQueueAttributes", &question);
        let count = |name| said["Attributes"][name].as_str().unwrap().parse::<usize>().unwrap();
        NAMES.into_iter().map(count).sum()
    }
}

impl Broker for Sqs {
    fn service(&mut self) -> &mut Service {
        &mut self.0
    }

    fn scheme(&self) -> &'static str {
        "sqs"
    }

    fn config(&self) -> String {
        "[sqs]\nreply_queue = \"replies\"\n".to_owned()
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", self.0.url()),
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ]
    }

    fn waiting(&self) -> usize {
        self.count("shipping")
    }

    fn take(&self) -> Option<Message> {
        let queue = self.url("shipping");
        let said = self.ask(
            "ReceiveMessage",
            &json!({"QueueUrl": queue, "MessageAttributeNames": ["All"]}),
        );
        let message = said["Messages"].get(0)?;
        let handle = &message["ReceiptHandle"];
        self.ask("DeleteMessage", &json!({"QueueUrl": queue, "ReceiptHandle": handle}));
        Some(Message {
            key: text(&message["MessageAttributes"]["Idempotency-Key"]["StringValue"]),
            body: serde_json::from_str(message["Body"].as_str().unwrap()).unwrap(),
        })
    }

    fn reply(&self, report: &Value) {
        let message = json!({"QueueUrl": self.url("replies"), "MessageBody": report.to_string()});
        self.ask("SendMessage", &message);
    }

    fn replies(&self) -> usize {
        self.count("replies")
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("{value} is no text"))
        .to_owned()
}

/// Streams of Redis.
pub struct Redis(Service);

impl Redis {
    pub fn start() -> Self {
        Self(Service::start(Kind::Redis))
    }

    fn ask(&self, words: &[&str]) -> Value {
        let mut command = Command::new("redis-cli");
        command.args(["--json", "-p", &self.0.port().to_string()]).args(words);
        serde_json::from_str(&printed(&mut command)).unwrap()
    }

    fn length(&self, stream: &str) -> usize {
        usize::try_from(self.ask(&["XLEN", stream]).as_u64().unwrap()).unwrap()
    }
}

impl Broker for Redis {
    fn service(&mut self) -> &mut Service {
        &mut self.0
    }

    fn scheme(&self) -> &'static str {
        "redis"
    }

    fn config(&self) -> String {
        format!("[redis]\nurl = \"{}\"\nreply_stream = \"replies\"\n", self.0.url())
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn waiting(&self) -> usize {
        self.length("shipping")
    }

    fn take(&self) -> Option<Message> {
        let entries = self.ask(&["XRANGE", "shipping", "-", "+", "COUNT", "1"]);
        let entry = entries.get(0)?;
        self.ask(&["XDEL", "shipping", entry[0].as_str().unwrap()]);
        let fields: Vec<&str> = entry[1].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let field = |name: &str| {
            let found = fields.chunks(2).find(|field| field[0] == name);
            found.unwrap_or_else(|| panic!("there is no `{name}` in {entry}"))[1].to_owned()
        };
        Some(Message {
            key: field("idempotencyKey"),
            body: serde_json::from_str(&field("body")).unwrap(),
        })
    }

    fn reply(&self, report: &Value) {
        self.ask(&["XADD", "replies", "*", "body", &report.to_string()]);
    }

    fn replies(&self) -> usize {
        self.length("replies")
    }
}
