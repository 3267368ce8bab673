//! Messages through `sqs:` tasks of flows on a server, compared with the bare SDK with batches of ten: the same
//! messages to the same stand-in, alternating in one run.
//!
//! `cargo xtask bench` builds the command with the feature `aws`, names the stand-in and runs this.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use serde_json::{Value, json};
use starbridge_aws::{Aws, AwsSettings};
use starbridge_ports::Secret;
use starbridge_services::{Kind, Service};
use std::error::Error;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const MESSAGES: usize = 20_000;
const ROUNDS: usize = 3;
/// How many messages one request has.
const BATCH: usize = 10;
/// How many requests the bare SDK has in flight, as many as the connector.
const AT_ONCE: usize = 8;
/// How many executions send at the same time.
const FLOWS: usize = 20;

/// The attributes of a task's message.
const ATTRIBUTES: [(&str, &str, &str); 7] = [
    ("Idempotency-Key", "String", "01a1ffbd-55ec-706f-a512-75888fb81704/1600"),
    ("Starbridge-Type", "String", "normal"),
    (
        "Starbridge-Step-Key",
        "String",
        "01a1ffbd-55ec-706f-a512-75888fb81704/1590",
    ),
    ("Starbridge-Execution", "String", "01a1ffbd-55ec-706f-a512-75888fb81704"),
    ("Starbridge-Attempt", "Number", "1"),
    ("Starbridge-Flow", "String", "each"),
    ("Starbridge-Step", "String", "send"),
];

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Done<()> {
    let service = Service::start(Kind::Ministack);
    let server = Server::start(&service)?;
    let aws = Aws::new(AwsSettings {
        endpoint: Some(service.url()),
        region: Some("us-east-1".to_owned()),
        access_key: Some(("test".to_owned(), Secret::new("test"))),
    });
    let way = aws.clone();
    let config = aws.run(async move { way.config(None).await }).await;
    let config = config.and_then(|config| config).map_err(|fault| format!("{fault:?}"))?;
    let client = Client::new(&config);
    let (mut bare, mut ours) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let url = make(&client, &format!("bare-{round}")).await?;
        let begun = Instant::now();
        send_bare(&client, &url).await?;
        bare.push(MESSAGES as f64 / begun.elapsed().as_secs_f64());
        arrived(&client, &url).await?;
        let url = make(&client, "ours").await?;
        let begun = Instant::now();
        server.send_all()?;
        ours.push(MESSAGES as f64 / begun.elapsed().as_secs_f64());
        arrived(&client, &url).await?;
        println!(
            "round {round}: bare {:.0}, through flows {:.0} messages/s",
            bare[round], ours[round]
        );
    }
    let (bare, ours) = (median(bare), median(ours));
    println!(
        "sqs, {MESSAGES} messages: through flows {ours:.0} messages/s, the bare SDK with batches of {BATCH} {bare:.0}: {:.2} times that",
        ours / bare
    );
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

async fn make(client: &Client, name: &str) -> Done<String> {
    let made = client.create_queue().queue_name(name).send().await?;
    Ok(made.queue_url.ok_or("the queue has no URL")?)
}

/// Checks that all messages arrived, and deletes the queue.
async fn arrived(client: &Client, url: &str) -> Done<()> {
    let name = aws_sdk_sqs::types::QueueAttributeName::ApproximateNumberOfMessages;
    let asked = client
        .get_queue_attributes()
        .queue_url(url)
        .attribute_names(name.clone());
    let said = asked.send().await?;
    let count = said.attributes().and_then(|all| all.get(&name)).map(String::as_str);
    if count != Some(MESSAGES.to_string().as_str()) {
        return Err(format!("{url} has {count:?} messages").into());
    }
    client.delete_queue().queue_url(url).send().await?;
    Ok(())
}

async fn send_bare(client: &Client, url: &str) -> Done<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut senders = Vec::new();
    for _ in 0..AT_ONCE {
        let (client, url, next) = (client.clone(), url.to_owned(), next.clone());
        senders.push(tokio::spawn(async move {
            loop {
                let from = next.fetch_add(BATCH, Ordering::Relaxed);
                if from >= MESSAGES {
                    return Ok::<(), Box<dyn Error + Send + Sync>>(());
                }
                let entries = (from..from + BATCH).map(entry).collect::<Done<Vec<_>>>()?;
                let sent = client.send_message_batch().queue_url(&url).set_entries(Some(entries));
                if !sent.send().await?.failed().is_empty() {
                    return Err("a message was refused".into());
                }
            }
        }));
    }
    for sender in senders {
        sender.await??;
    }
    Ok(())
}

fn entry(number: usize) -> Done<SendMessageBatchRequestEntry> {
    let mut entry = SendMessageBatchRequestEntry::builder()
        .id((number % BATCH).to_string())
        .message_body(json!({"n": number}).to_string());
    for (name, kind, text) in ATTRIBUTES {
        let value = MessageAttributeValue::builder().data_type(kind).string_value(text);
        entry = entry.message_attributes(name, value.build()?);
    }
    Ok(entry.build()?)
}

/// A server with the flow.
struct Server {
    child: Child,
    address: String,
    folder: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Server {
    fn start(service: &Service) -> Done<Self> {
        let program = std::env::current_exe()?;
        let program = program.ancestors().nth(2).ok_or("no folder")?.join("starbridge");
        let folder = std::env::temp_dir().join(format!("starbridge-sending-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut child = Command::new(&program)
            .args(["serve", "--listen", "127.0.0.1:0", "--db", "bench.db"])
            .env("AWS_ENDPOINT_URL", service.url())
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test")
            .env("AWS_REGION", "us-east-1")
            .env("STARBRIDGE_LOG_LEVEL", "warn")
            .current_dir(&folder)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let mut lines = BufReader::new(child.stderr.take().ok_or("no stderr")?).lines();
        let listens = lines.find_map(|line| {
            let line = line.ok()?;
            let (_, rest) = line.split_once("http://")?;
            rest.split([',', ' ']).next().map(str::to_owned)
        });
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("{line}")));
        let address = listens.unwrap_or_default();
        let server = Self { child, address, folder };
        let send = json!({"type": "task", "name": "send", "resourceArn": "sqs:ours", "serviceParams": {"MessageBody": {"n": "$.n"}}});
        let each = json!({"type": "foreach", "name": "each", "concurrency": 100, "iterationMapping": {"collection": "$.items", "item": "n"}, "steps": [send]});
        server.ask(
            "PUT",
            "/v1/flows/each",
            &json!({"version": "v1", "type": "flow", "name": "each", "steps": [each]}),
        )?;
        Ok(server)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Done<String> {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address)?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )?;
        let mut said = String::new();
        stream.read_to_string(&mut said)?;
        match said.starts_with("HTTP/1.1 20") {
            true => Ok(said),
            false => Err(format!("{method} {path}: {said}").into()),
        }
    }

    /// Sends all messages from executions that run at the same time.
    fn send_all(&self) -> Done<()> {
        let items: Vec<usize> = (0..MESSAGES / FLOWS).collect();
        let input = json!({"input": {"items": items}});
        std::thread::scope(|scope| {
            let flows: Vec<_> = (0..FLOWS)
                .map(|_| scope.spawn(|| self.ask("POST", "/v1/flows/each/executions?wait=60", &input)))
                .collect();
            for flow in flows {
                let said = flow.join().map_err(|_| "a start panicked")??;
                if !said.contains("\"status\":\"Succeeded\"") {
                    return Err(said.into());
                }
            }
            Ok(())
        })
    }
}
