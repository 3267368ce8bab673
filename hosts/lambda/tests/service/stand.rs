//! A table and queues in a stand-in for AWS, behind a proxy that counts requests and can cut them off.

use serde_json::{Value, json};
use starbridge_services::{Answer, Answering, Heard, Kind, Said, Service, ask};
use std::sync::{Arc, Mutex};

/// Called with each request: its target, such as `DynamoDB_20120810.PutItem`, and its body. Returns what happens to
/// it.
type Watch = Box<dyn FnMut(&str, &Value) -> Way + Send>;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is passed on, and its answer comes back.
    On,
    /// It is passed on, but its answer is lost.
    AnswerLost,
    /// It is not passed on.
    Cut,
    /// It is refused: access denied.
    Denied,
}

/// The requests that were passed on.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Items that were written to the table.
    pub items: usize,
    /// Messages that were sent to queues.
    pub messages: usize,
    /// All requests.
    pub requests: usize,
}

/// The stand-in.
pub struct Stand {
    service: Service,
    crossing: Answering,
    counts: Arc<Mutex<Counts>>,
    watch: Arc<Mutex<Option<Watch>>>,
    pub queue: String,
    pub letters: String,
}

/// A message of a queue.
#[derive(Clone, Debug)]
pub struct Message {
    pub id: String,
    pub body: String,
    pub handle: String,
    pub received: String,
    pub reason: Option<String>,
}

impl Stand {
    /// Starts it with a table `flows` and queues `onward` and `letters`.
    pub fn start() -> Self {
        let service = Service::start(Kind::Ministack);
        let counts: Arc<Mutex<Counts>> = Arc::default();
        let watch: Arc<Mutex<Option<Watch>>> = Arc::default();
        let (url, counted, watched) = (service.url(), counts.clone(), watch.clone());
        let crossing = Answering::start(move |heard| cross(&url, heard, &counted, &watched)).unwrap();
        let mut stand = Self {
            service,
            crossing,
            counts,
            watch,
            queue: String::new(),
            letters: String::new(),
        };
        stand.asked("DynamoDB_20120810.CreateTable", &table("flows"));
        let made = |queue: &str| stand.asked("AmazonSQS.CreateQueue", &json!({"QueueName": queue}));
        let url = |made: Value| made["QueueUrl"].as_str().unwrap().to_owned();
        let (queue, letters) = (url(made("onward")), url(made("letters")));
        stand.queue = queue;
        stand.letters = letters;
        stand
    }

    /// The endpoint for the function.
    pub fn endpoint(&self) -> String {
        self.crossing.url()
    }

    /// The endpoint of the stand-in itself.
    pub fn url(&self) -> String {
        self.service.url()
    }

    /// Sets what happens to requests from now on.
    pub fn watch(&self, watch: impl FnMut(&str, &Value) -> Way + Send + 'static) {
        *self.watch.lock().unwrap() = Some(Box::new(watch));
    }

    /// Passes on all requests again.
    pub fn unwatch(&self) {
        *self.watch.lock().unwrap() = None;
    }

    /// What was passed on since the last call.
    pub fn counted(&self) -> Counts {
        std::mem::take(&mut *self.counts.lock().unwrap())
    }

    /// Sends a request to the service itself.
    pub fn asked(&self, target: &str, body: &Value) -> Value {
        let headers = [
            format!("X-Amz-Target: {target}"),
            "Content-Type: application/x-amz-json-1.0".to_owned(),
        ];
        let answer = ask("POST", &self.service.url(), &headers, body.to_string().as_bytes()).unwrap();
        assert_eq!(
            answer.status,
            200,
            "{target}: {}",
            String::from_utf8_lossy(&answer.body)
        );
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// The messages that are visible now, of the queue at this URL.
    pub fn received(&self, queue: &str) -> Vec<Message> {
        let all = json!({"QueueUrl": queue, "MaxNumberOfMessages": 10, "VisibilityTimeout": 20, "WaitTimeSeconds": 0,
            "AttributeNames": ["All"], "MessageSystemAttributeNames": ["All"], "MessageAttributeNames": ["All"]});
        let answer = self.asked("AmazonSQS.ReceiveMessage", &all);
        let messages = answer["Messages"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        messages
            .iter()
            .map(|message| Message {
                id: text(&message["MessageId"]),
                body: text(&message["Body"]),
                handle: text(&message["ReceiptHandle"]),
                received: text(&message["Attributes"]["ApproximateReceiveCount"]),
                reason: message["MessageAttributes"]["reason"]["StringValue"]
                    .as_str()
                    .map(str::to_owned),
            })
            .collect()
    }

    /// Deletes a message that was handled.
    pub fn delete(&self, queue: &str, message: &Message) {
        let done = json!({"QueueUrl": queue, "ReceiptHandle": message.handle});
        self.asked("AmazonSQS.DeleteMessage", &done);
    }

    /// Sends a message to the queue that the function reads.
    pub fn put(&self, body: &Value) {
        let message = json!({"QueueUrl": self.queue, "MessageBody": body.to_string()});
        self.asked("AmazonSQS.SendMessage", &message);
    }
}

fn cross(url: &str, heard: &Heard, counts: &Mutex<Counts>, watch: &Mutex<Option<Watch>>) -> Said {
    let target = heard.header("x-amz-target").unwrap_or_default().to_owned();
    let body: Value = serde_json::from_slice(&heard.body).unwrap_or_default();
    let way = watch
        .lock()
        .unwrap()
        .as_mut()
        .map_or(Way::On, |watch| watch(&target, &body));
    if way == Way::Cut {
        return Said::Nothing;
    }
    if way == Way::Denied {
        let words = format!("User: arn:aws:iam::1:role/flow is not authorized to perform: {target}");
        let body = json!({"__type": "com.amazon.coral.service#AccessDeniedException", "Message": words});
        return Said::Answer(
            400,
            vec![("Content-Type", "application/x-amz-json-1.0".to_owned())],
            body.to_string(),
        );
    }
    count(&mut counts.lock().unwrap(), &target, &body);
    let (method, path) = heard
        .head
        .first()
        .and_then(|line| line.split_once(' '))
        .and_then(|(method, rest)| Some((method, rest.split_once(' ')?.0)))
        .unwrap_or_default();
    let own = ["host", "connection", "content-length", "expect"];
    let headers: Vec<String> = heard
        .head
        .iter()
        .skip(1)
        .filter(|line| {
            line.split_once(':')
                .is_some_and(|(name, _)| !own.contains(&name.to_lowercase().as_str()))
        })
        .cloned()
        .collect();
    let answer = ask(method, &format!("{url}{path}"), &headers, &heard.body);
    let Some(Answer { status, headers, body }) = answer.filter(|_| way == Way::On) else {
        return Said::Nothing;
    };
    let kept = |name: &str| {
        headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.clone())
    };
    let mut shown = Vec::new();
    for name in ["content-type", "x-amzn-requestid", "x-amzn-errortype", "x-amz-crc32"] {
        shown.extend(kept(name).map(|value| (name, value)));
    }
    Said::Answer(status, shown, String::from_utf8_lossy(&body).into_owned())
}

fn count(counts: &mut Counts, target: &str, body: &Value) {
    counts.requests += 1;
    match target.rsplit('.').next().unwrap_or_default() {
        "PutItem" | "UpdateItem" | "DeleteItem" => counts.items += 1,
        "TransactWriteItems" => {
            let items = body["TransactItems"].as_array().map(Vec::as_slice).unwrap_or_default();
            counts.items += items.iter().filter(|item| item.get("ConditionCheck").is_none()).count();
        }
        "BatchWriteItem" => {
            let tables = body["RequestItems"].as_object().into_iter().flatten();
            counts.items += tables
                .map(|(_, items)| items.as_array().map_or(0, Vec::len))
                .sum::<usize>();
        }
        "SendMessage" => counts.messages += 1,
        "SendMessageBatch" => counts.messages += body["Entries"].as_array().map_or(0, Vec::len),
        _ => {}
    }
}

/// The table as a template creates it.
fn table(name: &str) -> Value {
    let attribute = |name: &str| json!({"AttributeName": name, "AttributeType": "S"});
    let keys = |hash: &str, range: &str| json!([{"AttributeName": hash, "KeyType": "HASH"}, {"AttributeName": range, "KeyType": "RANGE"}]);
    let index = |name: &str, hash: &str, range: &str, more: &[&str]| {
        json!({"IndexName": name, "KeySchema": keys(hash, range),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": more}})
    };
    let attributes = ["pk", "sk", "flow", "place", "shard", "due"].map(attribute);
    json!({
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": attributes,
        "KeySchema": keys("pk", "sk"),
        "GlobalSecondaryIndexes": [
            index("executions", "flow", "place", &["record", "ttl", "gone"]),
            index("due", "shard", "due", &["awake", "wake", "until", "ttl", "gone"]),
        ],
    })
}
