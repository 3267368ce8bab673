//! Starts executions by name, and repeats each start until the server has confirmed it.

use super::witness::Witness;
use crate::{client, data};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;

/// The flows that are started, and how each must end: its status and error.
pub(in crate::campaigns) const FLOWS: [(&str, &str, &str); 6] = [
    ("paced", "Succeeded", ""),
    ("reported", "Succeeded", ""),
    ("many", "Succeeded", ""),
    ("family", "Succeeded", ""),
    ("undone", "Failed", "Broken"),
    ("silent", "Succeeded", ""),
];
/// The number of starters that work at once.
const STARTERS: u64 = 3;
/// Between two starts of one of them.
const PAUSE: Duration = Duration::from_millis(60);

/// One in so many executions is paused, and resumed later.
const PAUSED: u64 = 4;

/// The starts that were made and acknowledged.
#[derive(Clone, Debug, Default)]
pub(in crate::campaigns) struct Started {
    /// Ids by flow and name.
    pub(in crate::campaigns) acknowledged: BTreeMap<(String, String), String>,
    /// Tries that had no answer.
    pub(in crate::campaigns) tries_lost: u64,
    /// Answers that should not have come.
    pub(in crate::campaigns) problems: Vec<String>,
}

/// Starters at work.
pub(in crate::campaigns) struct Load {
    over: Arc<AtomicBool>,
    started: Arc<Mutex<Started>>,
    starters: Vec<JoinHandle<()>>,
}

/// The definition of a flow.
pub(in crate::campaigns) fn definition(flow: &str) -> String {
    let file = data::folder().join("campaigns/flows").join(format!("{flow}.json"));
    std::fs::read_to_string(file).unwrap_or_default()
}

/// Puts all flows.
pub(in crate::campaigns) async fn put_flows(server: &str) -> Result<(), String> {
    let client = client();
    for flow in FLOWS.map(|(flow, ..)| flow).into_iter().chain(["leaf"]) {
        let put = client
            .put(format!("{server}/v1/flows/{flow}"))
            .header("content-type", "application/json")
            .body(definition(flow));
        let answer = put.send().await.map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            let why = answer.text().await.unwrap_or_default();
            return Err(format!("the flow `{flow}` is not taken: {why}"));
        }
    }
    Ok(())
}

/// The URL of the schedule that starts a flow each second.
fn schedule(server: &str) -> String {
    format!("{server}/v1/schedules/beat")
}

/// Lets a schedule start executions, too.
pub(in crate::campaigns) async fn put_schedule(server: &str) -> Result<(), String> {
    let body = json!({"flow": "leaf", "cron": "@every 1s", "overlap": "allow", "catchUp": "last"}).to_string();
    let answer = client().put(schedule(server)).body(body).send().await;
    let answer = answer.map_err(|error| error.to_string())?;
    match answer.status().is_success() {
        true => Ok(()),
        false => Err(answer.text().await.unwrap_or_default()),
    }
}

/// Ends the schedule.
pub(in crate::campaigns) async fn discard_schedule(server: &str) -> Result<(), String> {
    let answer = client().delete(schedule(server)).send().await;
    answer.map(drop).map_err(|error| error.to_string())
}

impl Load {
    pub(in crate::campaigns) fn start(server: &str, witness: &Arc<Witness>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let started = Arc::new(Mutex::new(Started::default()));
        let next = Arc::new(AtomicU64::new(0));
        let starters = (0..STARTERS).map(|_| {
            let (over, started, next) = (Arc::clone(&over), Arc::clone(&started), Arc::clone(&next));
            let (server, witness) = (server.to_owned(), Arc::clone(witness));
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    start_one(&server, next.fetch_add(1, Ordering::Relaxed), &started).await;
                    tokio::time::sleep(PAUSE).await;
                    // A machine that can't keep up gets no more than it can take.
                    let waiting = || witness.book().calls.values().filter(|call| call.answered == 0).count();
                    while waiting() > 500 && !over.load(Ordering::Relaxed) {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            })
        });
        let starters = starters.collect();
        Self {
            over,
            started,
            starters,
        }
    }

    /// Makes no further starts, and answers the acknowledged ones once the last have been
    /// acknowledged.
    pub(in crate::campaigns) async fn finish(self, patience: Duration) -> Started {
        self.over.store(true, Ordering::Relaxed);
        for starter in self.starters {
            if tokio::time::timeout(patience, starter).await.is_err() {
                let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
                started.problems.push("a start was never acknowledged".to_owned());
            }
        }
        self.started.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn start_one(server: &str, number: u64, started: &Mutex<Started>) {
    let which = usize::try_from(number).unwrap_or(0) % FLOWS.len();
    let Some((flow, ..)) = FLOWS.get(which) else { return };
    let name = format!("{flow}-{number}");
    let body = json!({"name": name, "input": {"number": number, "items": [1, 2, 3, 4]}}).to_string();
    let client = client();
    let url = format!("{server}/v1/flows/{flow}/executions");
    loop {
        let answer = client.post(&url).body(body.clone()).send().await;
        let heard = match answer {
            Err(_) => None,
            Ok(answer) => {
                let status = answer.status().as_u16();
                answer.text().await.ok().map(|body| (status, body))
            }
        };
        if let Some(id) = note(started, flow, &name, heard) {
            if number.is_multiple_of(PAUSED) && !id.is_empty() {
                pause_and_resume(server, &id, started).await;
            }
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Pauses an execution, and resumes it a little later. It may have ended before.
async fn pause_and_resume(server: &str, id: &str, started: &Mutex<Started>) {
    for act in ["pause", "resume"] {
        let url = format!("{server}/v1/executions/{id}/{act}");
        loop {
            let answer = client().post(&url).body("{}").send().await;
            match answer.map(|answer| answer.status().as_u16()) {
                Ok(200 | 409) => break,
                Err(_) | Ok(429 | 503) => tokio::time::sleep(Duration::from_millis(10)).await,
                Ok(status) => {
                    let mut started = started.lock().unwrap_or_else(PoisonError::into_inner);
                    started.problems.push(format!("{act} of {id}: {status}"));
                    return;
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Records the server's answer. Answers the id of the execution if the answer was definite; an
/// empty text if the answer should not have come.
fn note(started: &Mutex<Started>, flow: &str, name: &str, heard: Option<(u16, String)>) -> Option<String> {
    let mut started = started.lock().unwrap_or_else(PoisonError::into_inner);
    let (status, body) = match heard {
        None | Some((429 | 503, _)) => {
            started.tries_lost += 1;
            return None;
        }
        Some(heard) => heard,
    };
    let body: Value = serde_json::from_str(&body).unwrap_or_default();
    // It may have ended before the repeated request.
    let id = match status {
        200 | 201 => body["id"].as_str(),
        409 => body["execution"].as_str(),
        _ => None,
    };
    match id {
        Some(id) => {
            let key = (flow.to_owned(), name.to_owned());
            started.acknowledged.insert(key, id.to_owned());
            Some(id.to_owned())
        }
        None => {
            started.problems.push(format!("{name}: {status} {body}"));
            Some(String::new())
        }
    }
}
