//! Records: as JSON, and as the attributes of indexes.

use crate::item::{Item, corrupt, key_of, number, text};
use crate::payload;
use crate::table;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Map, Value, json};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text};
use starbridge_machine::{EventId, Parent};
use starbridge_ports::{Broken, ExecutionRecord, RecordedFailure, RecordedWait, STATUS_CODES, StoreError, code_of};
use std::time::Duration;

fn json_of(record: &ExecutionRecord) -> Value {
    let mut members = Map::new();
    let mut put = |name: &str, value: Value| _ = members.insert(name.to_owned(), value);
    put("flow", json!(&*record.flow));
    put("version", json!(record.version));
    put("name", json!(&*record.name));
    put("status", json!(record.status.as_str()));
    put("started", json!(record.started.0));
    if record.awake {
        put("awake", json!(true));
    }
    if let Some(at) = record.wake_at {
        put("wakeAt", json!(at.0));
    }
    if let Some(at) = record.requested {
        put("requested", json!(at.0));
    }
    if let Some(key) = &record.once_key {
        put("onceKey", json!(&**key));
    }
    if let Some(priority) = record.priority {
        put("priority", json!(priority));
    }
    if let Some(order) = record.order_time {
        put("orderTime", json!(order));
    }
    if let Some(at) = record.ended {
        put("ended", json!(at.0));
    }
    if let Some(labels) = &record.labels {
        put("labels", serde_json::to_value(labels).unwrap_or_default());
    }
    if let Some(parent) = &record.parent {
        put("parent", json!([&*parent.execution, parent.event.0]));
    }
    if let Some(root) = &record.root {
        put("root", json!(&**root));
    }
    if record.depth > 0 {
        put("depth", json!(record.depth));
    }
    if record.awaited {
        put("awaited", json!(true));
    }
    if let Some(failure) = &record.failure {
        put("failure", json!([&*failure.error, &*failure.cause, &*failure.step]));
    }
    if record.attempts > 0 {
        put("attempts", json!(record.attempts));
    }
    if let Some(undo) = &record.rollback {
        put("failedUndo", json!(undo));
    }
    if let Some(forked) = &record.forked {
        put("forked", json!(forked));
    }
    if let Some(broken) = &record.broken {
        put("broken", json!([broken.since.0, &*broken.cause]));
    }
    if let Some(paused) = &record.paused {
        put("paused", json!(paused));
    }
    if let Some(waits) = &record.waits {
        put("waits", json!([waits.reason.number(), &*waits.of]));
    }
    Value::Object(members)
}

/// The number of the reason, and the name of what the execution waits for.
fn waits_of(waits: &Value) -> Option<RecordedWait> {
    let reason = waits.get(0)?.as_u64().and_then(|reason| u8::try_from(reason).ok());
    RecordedWait::read(reason, waits.get(1)?.as_str().map(Text::from))
}

fn of_json(json: &Value) -> Option<ExecutionRecord> {
    let word = |value: &Value| value.as_str().map(Text::from);
    let time = |name| json.get(name).and_then(Value::as_i64).map(Timestamp);
    let labels = json
        .get("labels")
        .map(|labels| serde_json::from_value::<Object>(labels.clone()));
    // Earlier versions stored all ancestors, the parent first, instead of the root and the depth.
    let ancestors = json.get("ancestors").and_then(Value::as_array);
    let oldest = ancestors.and_then(|ancestors| ancestors.last()).and_then(word);
    let awaited = json.get("awaited").is_some();
    let count = ancestors.filter(|_| awaited).map(|ancestors| ancestors.len() as u64);
    let depth = json.get("depth").and_then(Value::as_u64).or(count).unwrap_or(0);
    let parent = json.get("parent").map(|parent| {
        Some(Parent {
            execution: word(parent.get(0)?)?,
            event: EventId(parent.get(1)?.as_u64()?),
        })
    });
    let failure = json.get("failure").map(|failure| {
        Some(RecordedFailure {
            error: word(failure.get(0)?)?,
            cause: word(failure.get(1)?)?,
            step: word(failure.get(2)?)?,
        })
    });
    let broken = json.get("broken").map(|broken| {
        Some(Broken {
            since: Timestamp(broken.get(0)?.as_i64()?),
            cause: word(broken.get(1)?)?,
        })
    });
    let (undo, forked, paused) = (json.get("failedUndo"), json.get("forked"), json.get("paused"));
    let status = json.get("status")?.as_str()?;
    Some(ExecutionRecord {
        flow: word(json.get("flow")?)?,
        version: json.get("version")?.as_u64()?,
        name: word(json.get("name")?)?,
        status: STATUS_CODES.into_iter().find(|known| known.as_str() == status)?,
        awake: json.get("awake").is_some(),
        wake_at: time("wakeAt"),
        started: time("started")?,
        requested: time("requested"),
        once_key: json.get("onceKey").and_then(word),
        priority: json
            .get("priority")
            .and_then(Value::as_u64)
            .and_then(|priority| u8::try_from(priority).ok()),
        order_time: json.get("orderTime").and_then(Value::as_i64),
        ended: time("ended"),
        labels: labels.transpose().ok()?,
        parent: parent.flatten(),
        root: json.get("root").and_then(word).or(oldest),
        depth: u32::try_from(depth).unwrap_or(u32::MAX),
        awaited,
        failure: failure.flatten(),
        rollback: undo.and_then(|undo| serde_json::from_value(undo.clone()).ok()),
        forked: forked.and_then(|forked| serde_json::from_value(forked.clone()).ok()),
        watched: false, // there is no admission here
        attempts: json
            .get("attempts")
            .and_then(Value::as_u64)
            .map_or(0, |attempts| attempts.min(9) as u32),
        broken: broken.flatten(),
        paused: paused.and_then(|paused| serde_json::from_value(paused.clone()).ok()),
        waits: json.get("waits").and_then(waits_of),
    })
}

/// Reads the record in a head, or in an index entry of one.
pub(crate) fn read(item: &Item) -> Result<ExecutionRecord, StoreError> {
    let text = payload::of_attribute(item, "record")?;
    let json = serde_json::from_str(&text).ok();
    json.as_ref()
        .and_then(of_json)
        .ok_or_else(|| corrupt(item, "has a record that can't be read"))
}

/// The id of the execution that an item belongs to.
pub(crate) fn id_of(item: &Item) -> Text {
    Text::from(key_of(item).0.get(2..).unwrap_or_default())
}

/// The lease of an execution: its holder and its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExecutionLease {
    pub owner: String,
    pub until: Timestamp,
}

/// The attributes of a head that follow from record and lease. Those without a value are to be removed.
pub(crate) fn attributes(
    id: &str,
    run_id: &str,
    record: &ExecutionRecord,
    hold: Option<&ExecutionLease>,
    now: Timestamp,
    retention: Option<Duration>,
) -> Vec<(&'static str, Option<AttributeValue>)> {
    let status = code_of(record.status);
    let place = (!record.flow.is_empty()).then(|| text(format!("{status}#{run_id}#{id}")));
    let until = hold.map(|hold| hold.until);
    let due = match (record.ended, record.awake, record.wake_at) {
        (Some(at), _, _) => Some((true, at)),
        (None, true, _) => Some((false, until.unwrap_or(now))),
        // If its holder keeps it while it sleeps, there are messages to handle first.
        (None, false, at) => at.into_iter().chain(until).min().map(|at| (false, at)),
    };
    let ttl = record.ended.zip(retention).map(|(at, kept)| {
        let kept = i64::try_from(kept.as_secs()).unwrap_or(i64::MAX);
        let over = at.0.div_euclid(1_000).saturating_add(kept);
        number(over.saturating_add_unsigned(table::CLEAR_GRACE.0))
    });
    let sleeps = !record.awake && record.ended.is_none();
    vec![
        ("record", Some(payload::attribute(&json_of(record).to_string()))),
        (table::FLOW, place.is_some().then(|| text(&*record.flow))),
        (table::PLACE, place),
        ("named", (record.name != *id).then(|| text(&*record.name))),
        ("owner", hold.map(|hold| text(&hold.owner))),
        ("until", until.map(|until| number(until.0))),
        (table::SHARD, due.map(|(over, _)| text(table::shard(over, id)))),
        (
            table::DUE,
            due.map(|(_, at)| text(format!("{}#{run_id}", table::sortable(at)))),
        ),
        (
            "awake",
            (record.awake && record.ended.is_none()).then_some(AttributeValue::Bool(true)),
        ),
        ("wake", record.wake_at.filter(|_| sleeps).map(|at| number(at.0))),
        (table::TTL, ttl),
    ]
}
