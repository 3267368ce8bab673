//! Messages of queues: our own continuations, reports of others, starts of flows. Each message is handled separately:
//! those that fail arrive again, and after some tries go to the dead-letter queue with the reason.

use crate::Failure;
use crate::continuations::Continuation;
use crate::environment::{Invocation, Running};
use axum::http::Method;
use starbridge_flow::time::Millis;
use starbridge_flow::value::{Array, Object, Text, Value};
use starbridge_node::problem::{INVALID_TOKEN, SET_ASIDE};
use starbridge_runtime::{Reply, read_entry};
use std::collections::BTreeSet;
use std::time::Duration;

/// When a report arrives again if another process is just giving its execution back.
const SOON: Duration = Duration::from_secs(1);

/// A message of a batch.
struct Record<'a> {
    id: &'a str,
    body: &'a str,
    /// How often it was received, including now.
    received: u32,
    /// Its group, in a queue that keeps an order.
    group: Option<&'a str>,
    /// The trace that its sender gives with it.
    traceparent: Option<&'a str>,
}

impl<'a> Record<'a> {
    fn read(record: &'a Value) -> Self {
        let text = |key: &str| record.get(key).and_then(Value::as_str);
        let attribute = |key: &str| record.get("attributes").and_then(|all| all.get(key)?.as_str());
        Self {
            id: text("messageId").unwrap_or_default(),
            body: text("body").unwrap_or_default(),
            received: attribute("ApproximateReceiveCount")
                .and_then(|count| count.parse().ok())
                .unwrap_or(1),
            group: attribute("MessageGroupId"),
            traceparent: record
                .get("messageAttributes")
                .and_then(|all| all.get("traceparent")?.get("stringValue")?.as_str()),
        }
    }
}

/// Why a message was not handled.
enum Trouble {
    /// It may succeed another time.
    Again(String),
    /// It never can.
    Bad(String),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        let words = format!("{}: {}", failure.kind, failure.words);
        match failure.kind.as_str() {
            "StoreFailed" | "StoreUnavailable" | "SystemFailed" | "Busy" | "Stopping" | "QueueFailed" | "Internal"
            | "ExecutionBusy" => Self::Again(words),
            _ => Self::Bad(words),
        }
    }
}

/// Handles a batch. Returns which of its messages should arrive again.
pub(crate) async fn take(running: &Running, event: &Value, invocation: Invocation) -> Result<Value, Failure> {
    let records = event.get("Records").and_then(Value::as_array);
    let records: Vec<Record> = records
        .map(|records| records.values())
        .unwrap_or_default()
        .iter()
        .map(Record::read)
        .collect();
    let mut failed: Vec<&str> = Vec::new();
    let mut stopped: BTreeSet<&str> = BTreeSet::new();
    for record in &records {
        // After a message that failed, its group keeps its order.
        if record.group.is_some_and(|group| stopped.contains(group)) {
            failed.push(record.id);
            continue;
        }
        if let Err(trouble) = deal_with(running, record).await
            && !is_settled(running, record, trouble).await
        {
            failed.push(record.id);
            stopped.extend(record.group);
        }
    }
    if let Err(failure) = running.quiesce(invocation.until).await {
        // It is unknown which part of it is durable. All of it arrives again, and repetitions
        // change nothing.
        tracing::error!(kind = failure.kind, "{}", failure.words);
        failed = records.iter().map(|record| record.id).collect();
    }
    let failures: Array = failed
        .into_iter()
        .map(|id| {
            Value::from(
                [("itemIdentifier".into(), Value::from(id))]
                    .into_iter()
                    .collect::<Object>(),
            )
        })
        .collect();
    Ok([("batchItemFailures".into(), Value::from(failures))]
        .into_iter()
        .collect::<Object>()
        .into())
}

async fn deal_with(running: &Running, record: &Record<'_>) -> Result<(), Trouble> {
    let read: Result<Object, _> = serde_json::from_str(record.body);
    let message = read.map_err(|error| Trouble::Bad(format!("it is no JSON object: {error}")))?;
    if let Some(continuation) = Continuation::read(&message) {
        return resume(running, continuation).await;
    }
    if message.get("token").is_some() {
        return report(running, record, &message).await;
    }
    if message.get("flow").is_some() {
        return start(running, record, &message).await;
    }
    let words = "it is no report (`token`), no start (`flow`) and no continuation (`continue`)";
    Err(Trouble::Bad(words.to_owned()))
}

async fn resume(running: &Running, continuation: Continuation) -> Result<(), Trouble> {
    let now = running.node.now();
    if let Some(continuations) = &running.continuations
        && continuation.at > now.plus(Millis(running.settings.linger_ms))
    {
        // The queue could not delay it any longer.
        return Ok(continuations.put(&continuation, now).await?);
    }
    let taken = running
        .node
        .take_up(&continuation.execution)
        .await
        .map_err(Failure::from)?;
    match taken {
        // The process that has it fires its timers. If the execution is gone, there is nothing to do.
        Reply::Held | Reply::NoSuchExecution => {
            tracing::info!(execution = %continuation.execution, "nothing to go on with");
        }
        _ => {}
    }
    Ok(())
}

async fn report(running: &Running, record: &Record<'_>, message: &Object) -> Result<(), Trouble> {
    let entry = Value::from(message.clone());
    let (token, report) = read_entry(&entry).map_err(Trouble::Bad)?;
    let invalid = || Trouble::Bad(INVALID_TOKEN.to_owned());
    let call = running.node.verify(&token).map_err(|_| invalid())?;
    let answer = running.node.report(call, report).await.map_err(Failure::from)?;
    match answer.await {
        // A message that comes twice or too late changes nothing.
        Ok(Reply::Taken | Reply::Left | Reply::AlreadyCompleted | Reply::TimedOut) => Ok(()),
        Ok(Reply::Held | Reply::NoRoom) => match (&running.continuations, record.group) {
            (Some(continuations), None) => Ok(continuations.put_text(record.body.to_owned(), SOON).await?),
            _ => Err(Trouble::Again("the execution is being worked on elsewhere".to_owned())),
        },
        Ok(Reply::SetAside) => Err(Trouble::Bad(SET_ASIDE.to_owned())),
        Ok(Reply::InvalidToken | Reply::NoSuchExecution | Reply::NotEnded | Reply::Rejected(_)) => Err(invalid()),
        Err(_) => Err(Trouble::Again(
            "the interpreter came to its end in the middle of it".to_owned(),
        )),
    }
}

/// Starts an execution. It gets the message's id as name if it has none, so that a message that
/// comes twice starts one execution.
async fn start(running: &Running, record: &Record<'_>, message: &Object) -> Result<(), Trouble> {
    let flow = message
        .get("flow")
        .and_then(Value::as_text)
        .cloned()
        .unwrap_or_default();
    if !starbridge_flow::limits::is_name(&flow) {
        return Err(Trouble::Bad("`flow` must be the name of a flow".to_owned()));
    }
    let rest = message.into_iter().filter(|(key, _)| key.as_str() != "flow");
    let mut message: Object = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
    if message.get("name").is_none() {
        message.insert("name".into(), Text::from(format!("m-{}", record.id)).into());
    }
    let path = format!("/v1/flows/{flow}/executions");
    match running
        .api
        .ask_traced(Method::POST, &path, &message.into(), record.traceparent)
        .await
    {
        Ok(_) => Ok(()),
        // This message, or another one with that name, started it before.
        Err(failure) if failure.kind == "ExecutionAlreadyExists" => Ok(()),
        Err(failure) => Err(failure.into()),
    }
}

/// Whether a message that failed need not arrive again, because it was sent to the dead-letter queue.
async fn is_settled(running: &Running, record: &Record<'_>, trouble: Trouble) -> bool {
    let (bad, reason) = match trouble {
        Trouble::Again(reason) => (false, reason),
        Trouble::Bad(reason) => (true, reason),
    };
    tracing::warn!(
        message = record.id,
        received = record.received,
        reason,
        "a message could not be dealt with"
    );
    let letters = running
        .continuations
        .as_ref()
        .filter(|continuations| continuations.has_dead_letters);
    let Some(letters) = letters.filter(|_| bad && record.received >= running.settings.tries) else {
        return false;
    };
    match letters.dead_letter(record.body.to_owned(), reason).await {
        Ok(()) => true,
        Err(failure) => {
            tracing::error!(message = record.id, "{}", failure.words);
            false
        }
    }
}
