//! Notifications that the witness gets: the end of each execution, at least once, and nothing out
//! of order.

use super::audit::executions;
use super::witness::{Told, Witness};
use crate::campaigns::Findings;
use crate::client;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Compares the server's executions with the notifications that the witness got.
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
