//! A worker process: it holds tasks in batches, falls silent now and then, reports, and writes all of it down.

use super::log::{Did, Line, Log, now};
use super::{LEASE, QUEUE};
use crate::campaigns::Chance;
use crate::client;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Tasks of one hold.
const LIMIT: u32 = 20;
/// Of a hundred tasks so many are kept silent beyond their lease, kept by heartbeats, or fail.
const SILENT: u32 = 1;
const KEPT: u32 = 2;
const FAIL: u32 = 3;
/// A server that is away is asked again after this pause.
const AGAIN: Duration = Duration::from_millis(20);

/// How a worker treats a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    AtOnce,
    Kept,
    Silent,
}

struct Holder {
    client: reqwest::Client,
    server: String,
    log: Log,
}

/// Works until it is killed.
pub async fn hold(server: &str, log: &Path, seed: u64) -> Result<(), String> {
    let log = Log::open(log).map_err(|error| error.to_string())?;
    let holder = Arc::new(Holder {
        client: client(),
        server: server.to_owned(),
        log,
    });
    let mut chance = Chance::new(seed);
    let worker = format!("holder-{}", std::process::id());
    loop {
        let body = json!({"worker": worker, "limit": chance.from(1, LIMIT), "waitSeconds": 1});
        let asked = now();
        let Some(answer) = holder.post(&format!("queues/{QUEUE}/hold"), &body).await else {
            tokio::time::sleep(AGAIN).await;
            continue;
        };
        let tasks = answer["tasks"].as_array().cloned().unwrap_or_default();
        if tasks.is_empty() {
            tokio::time::sleep(AGAIN).await;
        }
        holder.took(&tasks, asked)?;
        for way in [Way::AtOnce, Way::Kept, Way::Silent] {
            let mut reports = Vec::new();
            for task in &tasks {
                if way_of(task) == way {
                    reports.push(report(task, chance.of(FAIL)));
                }
            }
            if !reports.is_empty() {
                let wait = Duration::from_millis(u64::from(chance.from(900, 1_900)));
                let treated = holder.clone().treat(way, reports, wait);
                if way == Way::AtOnce {
                    treated.await?;
                } else {
                    tokio::spawn(treated);
                }
            }
        }
    }
}

/// How a task is treated: a number that depends on nothing but its token.
fn way_of(task: &Value) -> Way {
    let token = task["token"].as_str().unwrap_or_default();
    let number = token
        .bytes()
        .fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    match number % 100 {
        0..SILENT => Way::Silent,
        SILENT..KEPT => Way::Kept,
        _ => Way::AtOnce,
    }
}

/// A report: the call, its token, the body, and whether it reports success.
#[derive(Clone)]
struct Report {
    key: String,
    token: String,
    body: Value,
    well: bool,
}

fn report(task: &Value, fails: bool) -> Report {
    let (key, token) = (text(task, "key"), text(task, "token"));
    let body = match fails {
        true => json!({"token": token, "error": "Holder.Failed", "cause": key}),
        false => json!({"token": token, "output": {"by": key}}),
    };
    Report {
        key,
        token,
        body,
        well: !fails,
    }
}

fn text(task: &Value, member: &str) -> String {
    task[member].as_str().unwrap_or_default().to_owned()
}

impl Holder {
    fn write(&self, lines: &[Line]) -> Result<(), String> {
        self.log.write(lines).map_err(|error| error.to_string())
    }

    fn took(&self, tasks: &[Value], asked: u64) -> Result<(), String> {
        let came = now();
        let line = |task: &Value| Line {
            key: text(task, "key"),
            did: Did::Held {
                step: text(task, "stepKey"),
                asked,
                came,
                lease: task["leaseSeconds"].as_u64().unwrap_or(0) * 1_000_000,
            },
        };
        self.write(&tasks.iter().map(line).collect::<Vec<_>>())
    }

    /// The answer, if there is one.
    async fn post(&self, path: &str, body: &Value) -> Option<Value> {
        let request = self
            .client
            .post(format!("{}/v1/{path}", self.server))
            .body(body.to_string());
        let answer = request.timeout(Duration::from_secs(10)).send().await.ok()?;
        if !answer.status().is_success() {
            return None;
        }
        serde_json::from_str(&answer.text().await.ok()?).ok()
    }

    async fn treat(self: Arc<Self>, way: Way, reports: Vec<Report>, wait: Duration) -> Result<(), String> {
        match way {
            Way::AtOnce => {}
            Way::Silent => tokio::time::sleep(wait).await,
            Way::Kept => {
                for _ in 0..5 {
                    tokio::time::sleep(Duration::from_secs(LEASE) / 3).await;
                    self.heartbeat(&reports).await?;
                }
            }
        }
        self.report(reports).await
    }

    async fn heartbeat(&self, reports: &[Report]) -> Result<(), String> {
        let beat = |report: &Report| json!({"token": report.token, "heartbeat": true});
        let body = json!({"reports": reports.iter().map(beat).collect::<Vec<_>>()});
        let sent = now();
        let Some(answer) = self.post("callbacks", &body).await else {
            return Ok(());
        };
        let line = |(report, status): (&Report, u16)| Line {
            key: report.key.clone(),
            did: Did::Beat { sent, status },
        };
        self.write(&reports.iter().zip(statuses(&answer)).map(line).collect::<Vec<_>>())
    }

    /// Reports until the server has answered the outcome of each.
    async fn report(&self, mut reports: Vec<Report>) -> Result<(), String> {
        while !reports.is_empty() {
            let sent = now();
            let about = |report: &Report| Line {
                key: report.key.clone(),
                did: Did::Reports { at: sent },
            };
            self.write(&reports.iter().map(about).collect::<Vec<_>>())?;
            let body = json!({"reports": reports.iter().map(|report| report.body.clone()).collect::<Vec<_>>()});
            let Some(answer) = self.post("callbacks", &body).await else {
                tokio::time::sleep(AGAIN).await;
                continue;
            };
            let came = now();
            let mut lines = Vec::new();
            let mut left = Vec::new();
            for (report, status) in reports.into_iter().zip(statuses(&answer)) {
                match status {
                    429 | 500.. => left.push(report),
                    status => lines.push(Line {
                        key: report.key,
                        did: Did::Reported {
                            sent,
                            came,
                            status,
                            well: report.well,
                        },
                    }),
                }
            }
            self.write(&lines)?;
            reports = left;
        }
        Ok(())
    }
}

/// The status of each report of a batch.
fn statuses(answer: &Value) -> Vec<u16> {
    let results = answer["results"].as_array().cloned().unwrap_or_default();
    let status = |result: &Value| u16::try_from(result["status"].as_u64().unwrap_or(500)).unwrap_or(500);
    results.iter().map(status).collect()
}
