//! What the witness is told of executions: how each ended, at least once, and nothing out of order.

use super::audit::executions;
use super::witness::{Witness, number_of};
use crate::campaigns::Findings;
use crate::client;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A notification that came.
#[derive(Clone, Debug)]
pub(super) struct Told {
    execution: String,
    event: u64,
    status: String,
}

/// Takes a notification. Some are refused the first time, some answered late enough for the server to be killed meanwhile.
pub(super) async fn notified(State(witness): State<Arc<Witness>>, sent: Bytes) -> StatusCode {
    let message: Value = serde_json::from_slice(&sent).unwrap_or_default();
    let text = |member: &str| message[member].as_str().unwrap_or_default();
    let id = text("id");
    let told = Told {
        execution: text("execution").to_owned(),
        event: id.rsplit('/').next().and_then(|event| event.parse().ok()).unwrap_or(0),
        status: text("status").to_owned(),
    };
    let number = number_of(id);
    let first = {
        let mut all = witness.told_of();
        let known = |other: &Told| other.execution == told.execution && other.event == told.event;
        let first = !all.iter().rev().any(known);
        all.push(told);
        first
    };
    if number.is_multiple_of(7) {
        tokio::time::sleep(Duration::from_millis(number % 200)).await;
    }
    match first && number.is_multiple_of(11) {
        true => StatusCode::SERVICE_UNAVAILABLE,
        false => StatusCode::NO_CONTENT,
    }
}

/// Holds what executions the server has against what the witness was told of them.
pub(super) async fn audit(server: &str, witness: &Witness, patience: Duration, findings: &mut Findings) {
    let shown = match executions(server).await {
        Ok(shown) => shown,
        Err(problem) => return findings.problem(problem),
    };
    let begun = Instant::now();
    let untold = loop {
        let ends: BTreeMap<String, String> = witness
            .told_of()
            .iter()
            .map(|told| (told.execution.clone(), told.status.clone()))
            .collect();
        let is_untold = |id: &str, status: &str| ends.get(id).is_none_or(|told| told != status);
        let untold: Vec<_> = shown.iter().filter(|it| is_untold(&it.id, &it.status)).collect();
        if untold.is_empty() || begun.elapsed() > patience {
            break untold;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    for one in untold {
        findings.problem(format!("nobody was told that {} is {}", one.id, one.status));
    }
    if !all_is_taken(server, begun + patience).await {
        findings.problem("some notifications are never taken");
    }
    let told = witness.told_of().clone();
    let mut latest: BTreeMap<&str, u64> = BTreeMap::new();
    for Told { execution, event, .. } in &told {
        let before = latest.insert(execution, *event).unwrap_or(0);
        if before > *event {
            findings.problem(format!("{execution}/{event} was told after {execution}/{before}"));
        }
    }
    let different: BTreeSet<_> = told.iter().map(|told| (&told.execution, told.event)).collect();
    findings.count("notifications", different.len() as u64);
    findings.count("notifications told again", (told.len() - different.len()) as u64);
}

/// Waits until the server keeps nothing more to tell.
async fn all_is_taken(server: &str, until: Instant) -> bool {
    loop {
        let metrics = match client().get(format!("{server}/metrics")).send().await {
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        };
        let nothing = "starbridge_notifications_waiting{target=\"witness\"} 0";
        if metrics.lines().any(|line| line == nothing) || Instant::now() > until {
            return metrics.contains(nothing);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
