//! A Redis, connectors to it, calls, and the entries there.

use redis::aio::MultiplexedConnection;
use redis::{Cmd, FromRedisValue};
use starbridge_connector_redis::{Address, RedisConnector, RedisReplies, RedisSettings, ReplyStream};
use starbridge_fdl::FAULT_NAMES;
use starbridge_flow::graph::Pattern;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Object;
use starbridge_ports::{CallIds, Clock, Connector, Outcome, ReplyMessage, ReplySource, Request, ResourceFamily};
use starbridge_services::{Kind, Service};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A password that must not appear in any message.
pub const PASSWORD: &str = "open-sesame";

pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Timestamp(i64::try_from(since.as_millis()).unwrap())
    }
}

pub fn start(further: &[&str]) -> Service {
    Service::start_with(Kind::Redis, further)
}

/// The default settings for a copy, with user and password as in `user:password@`.
pub fn settings_as(service: &Service, login: &str) -> RedisSettings {
    let url = format!("redis://{login}127.0.0.1:{}", service.port());
    RedisSettings {
        clock: Some(Arc::new(SystemClock)),
        ..RedisSettings::new(Address::parse(&url).unwrap())
    }
}

pub fn settings(service: &Service) -> RedisSettings {
    settings_as(service, "")
}

pub fn connector(service: &Service) -> RedisConnector {
    RedisConnector::new(settings(service))
}

/// Replies from a stream, read with short timeouts.
pub fn replies(service: &Service, stream: &str) -> RedisReplies {
    replies_as(service, ReplyStream::new(stream))
}

pub fn replies_as(service: &Service, plan: ReplyStream) -> RedisReplies {
    let plan = ReplyStream {
        block: Duration::from_millis(300),
        ..plan
    };
    RedisReplies::new(&settings(service), plan)
}

/// A call with the input `{"n": number}` and a key of its own.
pub fn call(target: &str, number: u32) -> Request {
    let mut input = Object::new();
    input.insert("n".into(), number.into());
    Request {
        target: target.to_owned(),
        via: ResourceFamily::Direct,
        pattern: Pattern::RequestResponse,
        input: input.into(),
        params: None,
        keys: CallIds {
            idempotency: format!("execution/{number}"),
            step_visit: "execution/1".to_owned(),
            execution: "execution".to_owned(),
            flow: "flow".to_owned(),
            step: "a step".to_owned(),
            traceparent: None,
        },
        attempt: 1,
        rollback: false,
        polling: false,
        follow: false,
        timeout_at: None,
        answer_limit: 1 << 18,
    }
}

/// A call with this timeout.
pub fn call_within(target: &str, time: Duration) -> Request {
    Request {
        timeout_at: Some(SystemClock.now().plus(time.into())),
        ..call(target, 1)
    }
}

/// Makes a call that succeeds. Returns the entry's id.
pub async fn sent(connector: &RedisConnector, request: Request) -> String {
    match connector.call(request).await {
        Outcome::Result(result) => {
            let id = result.as_object().and_then(|result| result.get("id"));
            id.and_then(|id| id.as_str()).unwrap().to_owned()
        }
        other => panic!("{other:?}"),
    }
}

/// Makes a call that fails. Returns name and cause.
pub async fn failed(connector: &RedisConnector, request: Request) -> (String, String) {
    match connector.call(request).await {
        Outcome::Failed { error, cause, .. } | Outcome::NotSent { error, cause } => {
            assert!(!cause.contains(PASSWORD), "{cause}");
            (FAULT_NAMES.name(&error).to_string(), cause)
        }
        other => panic!("{other:?}"),
    }
}

/// A connection of the test's own.
pub async fn asking(service: &Service) -> MultiplexedConnection {
    let client = redis::Client::open(service.url()).unwrap();
    // A busy machine may take longer than the client library's half second.
    let config = redis::AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None);
    let connected = client.get_multiplexed_async_connection_with_config(&config).await;
    connected.unwrap()
}

/// Sends Redis a command, given as words with blanks between.
pub async fn ask<T: FromRedisValue>(service: &Service, words: &str) -> T {
    let mut command = Cmd::new();
    for word in words.split_whitespace() {
        command.arg(word);
    }
    command.query_async(&mut asking(service).await).await.unwrap()
}

/// How many connections were ever opened, including this one.
pub async fn opened(service: &Service) -> u64 {
    let info: String = ask(service, "INFO stats").await;
    let mut lines = info.lines();
    let number = lines.find_map(|line| line.strip_prefix("total_connections_received:"));
    number.unwrap().trim().parse().unwrap()
}

/// An entry: its id, and its fields in order.
pub type Entry = (String, Vec<(String, String)>);

/// The entries of a stream.
pub async fn entries(service: &Service, stream: &str) -> Vec<Entry> {
    ask(service, &format!("XRANGE {stream} - +")).await
}

/// The fields of the only entry.
pub async fn only_entry(service: &Service, stream: &str) -> BTreeMap<String, String> {
    let mut entries = entries(service, stream).await;
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries.remove(0).1.into_iter().collect()
}

/// Adds an entry with these fields to a stream.
pub async fn put(service: &Service, stream: &str, fields: &[(&str, &str)]) {
    let mut command = redis::cmd("XADD");
    command.arg(stream).arg("*");
    for (name, value) in fields {
        command.arg(name).arg(value);
    }
    let _: String = command.query_async(&mut asking(service).await).await.unwrap();
}

/// Asks until messages come, also through failures of Redis.
pub async fn received(replies: &RedisReplies) -> Vec<ReplyMessage> {
    let asking = async {
        loop {
            match replies.receive().await {
                Ok(messages) if !messages.is_empty() => return messages,
                Ok(_) => {}
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    let asked = tokio::time::timeout(Duration::from_secs(30), asking).await;
    asked.expect("no message came")
}
