//! How many executions there are of each kind. Counting reads everything that waits: where that takes long, a count is told again for
//! a while, and those who ask meanwhile wait for one count.

use crate::App;
use crate::answers::aside;
use axum::extract::State;
use axum::http::StatusCode;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::node::FineReasons;
use starbridge_node::problem::Answer;
use starbridge_ports::{ShardSet, Store, StoreError, WaitingReason};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// A count that takes less is made for each request.
const SHORT: Duration = Duration::from_millis(20);
/// How long a count is told again: so many times as long as it took, up to the latter.
const AGAIN: u32 = 20;
const LONGEST: Duration = Duration::from_secs(10);

type Counts = Vec<(WaitingReason, u64)>;

/// The latest count, if it took long.
#[derive(Default)]
pub struct LatestCount(Mutex<Option<Latest>>);

struct Latest {
    counted: Value,
    until: Instant,
}

impl Latest {
    /// To be kept where counting took this long.
    fn of(counted: &Value, took: Duration, now: Instant) -> Option<Self> {
        (took >= SHORT).then(|| Self {
            counted: counted.clone(),
            until: now + LONGEST.min(took * AGAIN),
        })
    }

    fn at(&self, now: Instant) -> Option<Value> {
        (now < self.until).then(|| self.counted.clone())
    }
}

/// `GET /v1/executions/counts`
pub async fn counts(State(app): State<App>) -> Answer {
    let mut latest = app.counted.0.lock().await;
    let begun = Instant::now();
    let counted = match latest.as_ref().and_then(|latest| latest.at(begun)) {
        Some(counted) => counted,
        None => {
            let counted = count_all(&app).await?;
            let now = Instant::now();
            *latest = Latest::of(&counted, now.duration_since(begun), now);
            counted
        }
    };
    drop(latest);
    app.answers.value(StatusCode::OK, counted).await
}

async fn count_all(app: &App) -> Answer<Value> {
    let (statuses, reasons) = aside(&app.node, |node| {
        let store = node.store();
        let reasons = store.reason_counts()?;
        let reasons = reasons.map(|reasons| tell_held(store.as_ref(), reasons)).transpose()?;
        Ok::<_, StoreError>((store.counts()?, reasons))
    })
    .await??;
    let count = |word: &str, count: u64| (Text::from(word), Value::from(count));
    let statuses = statuses
        .into_iter()
        .map(|(status, number)| count(status.as_str(), number));
    let mut shape = Object::new();
    shape.insert("statuses".into(), statuses.collect::<Object>().into());
    let reasons = reasons.map(|reasons| {
        let reasons = reasons
            .into_iter()
            .map(|(reason, number)| count(reason.as_str(), number));
        Value::from(reasons.collect::<Object>())
    });
    shape.insert("reasons".into(), reasons.unwrap_or_default());
    Ok(shape.into())
}

/// Distinguishes executions whose task a worker holds from those whose task waits: for a store, both tasks are in the queue.
fn tell_held(store: &dyn Store, mut reasons: Counts) -> Result<Counts, StoreError> {
    if !reasons.iter().any(|(reason, _)| *reason == WaitingReason::Queue) {
        return Ok(reasons);
    }
    let executions: BTreeSet<Text> = store
        .leased_tasks(&ShardSet::ALL)?
        .into_iter()
        .map(|(task, _)| task.execution)
        .collect();
    let mut fine = FineReasons::new(store);
    let mut held = 0;
    for id in &executions {
        let why = store.record(id)?.map(|record| fine.of(id, &record)).transpose()?;
        held += u64::from(why.flatten().is_some_and(|why| why.reason == WaitingReason::Worker));
    }
    for (_, count) in reasons.iter_mut().filter(|(reason, _)| *reason == WaitingReason::Queue) {
        // Some may have been taken since the others were counted.
        held = held.min(*count);
        *count -= held;
    }
    reasons.push((WaitingReason::Worker, held));
    reasons.retain(|(_, count)| *count > 0);
    Ok(reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_told_again_as_long_as_it_was_dear() {
        let (now, counted) = (Instant::now(), Value::from("counted"));
        let latest = |millis| Latest::of(&counted, Duration::from_millis(millis), now);
        assert!(latest(19).is_none());
        let dear = latest(100).unwrap();
        assert_eq!(dear.at(now + Duration::from_millis(1_999)), Some(counted.clone()));
        assert_eq!(dear.at(now + Duration::from_millis(2_000)), None);
        assert_eq!(latest(60_000).unwrap().at(now + LONGEST), None);
    }
}
