//! Actions of operators on a server that is killed: stops with rollback, redrives, forks, skips,
//! decisions for steps that ask, and bulk stops. Each is repeated until the server answers with its
//! outcome. At the end, the witness's ledger says for each job whether all of it is done, all
//! undone, or what is left.

use super::ledger::THINGS;
use super::load::definition;
use super::witness::Witness;
use crate::campaigns::Findings;
use crate::client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Operators at work at once.
const OPERATORS: usize = 3;
/// Executions of one bulk job.
const TOGETHER: u64 = 5;
/// A wait is over within this time, across several lives of the server.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// The action on a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// Stopped with rollback while it runs.
    Stop,
    /// Its last step fails once; then it is redriven.
    Redrive,
    /// Its undo fails, and is left so.
    Leave,
    /// Its undo fails; that is repaired, and it is redriven.
    Repair,
    /// Its undo fails, and is skipped.
    Skip,
    /// Its last step fails and asks; the answer is to try again.
    Resolve,
    /// It ends, and is forked in its middle.
    Fork,
    /// Stopped with others by a bulk job.
    Bulk,
}

const ACTS: [Act; 8] = [
    Act::Stop,
    Act::Redrive,
    Act::Leave,
    Act::Repair,
    Act::Skip,
    Act::Resolve,
    Act::Fork,
    Act::Bulk,
];

/// A job, and what was done to it.
#[derive(Clone, Debug)]
struct Job {
    name: String,
    id: String,
    act: Act,
}

/// The actions of operators so far.
#[derive(Debug, Default)]
struct Done {
    jobs: Vec<Job>,
    problems: Vec<String>,
}

/// Operators at work.
pub(super) struct Operators {
    over: Arc<AtomicBool>,
    done: Arc<Mutex<Done>>,
    at_work: Vec<JoinHandle<()>>,
}

/// The state of an operator.
#[derive(Clone)]
struct Desk {
    server: String,
    witness: Arc<Witness>,
    done: Arc<Mutex<Done>>,
}

/// Puts the flows.
pub(super) async fn put_flows(server: &str) -> Result<(), String> {
    for flow in ["made", "asked"] {
        let put = client()
            .put(format!("{server}/v1/flows/{flow}"))
            .header("content-type", "application/json");
        let answer = put.body(definition(flow)).send().await;
        let answer = answer.map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            return Err(format!("the flow `{flow}` is not taken: {}", answer.status()));
        }
    }
    Ok(())
}

impl Operators {
    pub(super) fn start(server: &str, witness: &Arc<Witness>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let next = Arc::new(AtomicU64::new(0));
        let done = Arc::new(Mutex::new(Done::default()));
        let at_work = (0..OPERATORS).map(|_| {
            let (over, next) = (Arc::clone(&over), Arc::clone(&next));
            let desk = Desk {
                server: server.to_owned(),
                witness: Arc::clone(witness),
                done: Arc::clone(&done),
            };
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    desk.serve(next.fetch_add(1, Ordering::Relaxed)).await;
                    tokio::time::sleep(PAUSE).await;
                }
            })
        });
        let at_work = at_work.collect();
        Self { over, done, at_work }
    }

    /// Lets them finish what they do.
    pub(super) async fn finish(self, findings: &mut Findings) -> Operated {
        self.over.store(true, Ordering::Relaxed);
        for operator in self.at_work {
            if operator.await.is_err() {
                findings.problem("an operator panicked");
            }
        }
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        findings.problems.extend(done.problems.iter().cloned());
        Operated {
            jobs: done.jobs.clone(),
        }
    }
}

/// All that operators did.
#[derive(Debug)]
pub(super) struct Operated {
    jobs: Vec<Job>,
}

impl Desk {
    fn problem(&self, problem: String) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.problems.push(problem);
    }

    fn note(&self, name: &str, id: &str, act: Act) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.jobs.push(Job {
            name: name.to_owned(),
            id: id.to_owned(),
            act,
        });
    }

    /// Asks until the server gives a definite answer.
    async fn ask(&self, path: &str, body: &Value) -> (u16, Value) {
        loop {
            let sent = client()
                .post(format!("{}/v1/{path}", self.server))
                .header("content-type", "application/json")
                .body(body.to_string());
            if let Ok(answer) = sent.send().await {
                let status = answer.status().as_u16();
                if let (Ok(text), false) = (answer.text().await, matches!(status, 429 | 503)) {
                    return (status, serde_json::from_str(&text).unwrap_or_default());
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Asks for something that may have been done when the answer to an earlier try was lost (409).
    async fn act(&self, path: &str, body: &Value) {
        let (status, said) = self.ask(path, body).await;
        if !matches!(status, 200..=204 | 409) {
            self.problem(format!("{path}: {status} {said}"));
        }
    }

    async fn get(&self, path: &str) -> Value {
        loop {
            if let Some(found) = get(&self.server, path).await {
                return found;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until an execution has one of these statuses. One that is set aside is released.
    async fn until(&self, id: &str, statuses: &[&str]) -> bool {
        let begun = Instant::now();
        loop {
            let shown = self.get(&format!("executions/{id}")).await;
            let status = shown["status"].as_str().unwrap_or_default();
            if statuses.contains(&status) {
                return true;
            }
            if shown["waitingFor"]["reason"] == "broken" {
                self.act(&format!("executions/{id}/redrive"), &json!({})).await;
            }
            if begun.elapsed() > PATIENCE {
                self.problem(format!("{id} does not become {statuses:?}: it is {status}"));
                return false;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn begin(&self, act: Act, name: &str) -> Option<String> {
        let flow = if act == Act::Resolve { "asked" } else { "made" };
        let (fails, stuck) = match act {
            Act::Redrive | Act::Resolve => ("first", false),
            Act::Leave | Act::Repair | Act::Skip => ("always", true),
            Act::Stop | Act::Fork | Act::Bulk => ("never", false),
        };
        let input = json!({"job": name, "fails": fails, "stuck": stuck});
        let body = json!({"name": name, "input": input});
        let (status, said) = self.ask(&format!("flows/{flow}/executions"), &body).await;
        // It ended before the repeated request.
        let id = said["id"].as_str().or(said["execution"].as_str());
        match (status, id) {
            (200 | 201 | 409, Some(id)) => {
                self.note(name, id, act);
                Some(id.to_owned())
            }
            _ => {
                self.problem(format!("{name}: {status} {said}"));
                None
            }
        }
    }

    async fn serve(&self, number: u64) {
        let which = usize::try_from(number).unwrap_or(0) % ACTS.len();
        let Some(&act) = ACTS.get(which) else { return };
        if act == Act::Bulk {
            return self.bulk(number).await;
        }
        let name = format!("job-{number}");
        let Some(id) = self.begin(act, &name).await else { return };
        let path = |rest: &str| format!("executions/{id}/{rest}");
        match act {
            Act::Stop => {
                // From before its first call to after its last.
                tokio::time::sleep(Duration::from_millis(number % 7 * 8)).await;
                self.act(&path("stop"), &json!({"rollback": true})).await;
            }
            Act::Redrive if self.until(&id, &["Failed"]).await => {
                self.act(&path("redrive"), &json!({})).await;
            }
            Act::Repair if self.until(&id, &["RollbackFailed"]).await => {
                self.witness.ledger().repair(&name);
                self.act(&path("redrive"), &json!({})).await;
            }
            Act::Skip if self.until(&id, &["RollbackFailed"]).await => {
                self.act(&path("skip"), &json!({"cause": "done by hand"})).await;
            }
            Act::Resolve if self.until(&id, &["Manual"]).await => {
                if let Some(event) = self.entered(&id, "c").await {
                    let resolve = path(&format!("steps/{event}/resolve"));
                    self.act(&resolve, &json!({"action": "retry"})).await;
                }
            }
            Act::Fork if self.until(&id, &["Succeeded"]).await => self.fork(&id, &name).await,
            _ => {}
        }
    }

    /// The event that entered a step.
    async fn entered(&self, id: &str, step: &str) -> Option<u64> {
        let steps = self.get(&format!("executions/{id}/steps")).await;
        let row = steps["items"].as_array()?.iter().find(|row| row["step"] == step)?;
        row["event"].as_u64()
    }

    async fn fork(&self, id: &str, name: &str) {
        let Some(event) = self.entered(id, "b").await else {
            return self.problem(format!("{id} was never in `b`"));
        };
        let body = json!({"event": event, "name": format!("{name}-again")});
        let (status, said) = self.ask(&format!("executions/{id}/fork"), &body).await;
        match (status, said["id"].as_str().or(said["execution"].as_str())) {
            (200 | 201 | 409, Some(fork)) => self.note(name, fork, Act::Fork),
            _ => self.problem(format!("fork of {id}: {status} {said}")),
        }
    }

    async fn bulk(&self, number: u64) {
        let mut ids = Vec::new();
        for one in 0..TOGETHER {
            ids.extend(self.begin(Act::Bulk, &format!("job-{number}-{one}")).await);
        }
        let body = json!({"action": "stop", "arguments": {"rollback": true}, "executions": ids});
        let (status, said) = self.ask("bulk", &body).await;
        if !matches!(status, 200..=202) {
            self.problem(format!("bulk: {status} {said}"));
        }
    }
}

async fn get(server: &str, path: &str) -> Option<Value> {
    let answer = client().get(format!("{server}/v1/{path}")).send().await.ok()?;
    let answer = answer.error_for_status().ok()?;
    serde_json::from_str(&answer.text().await.ok()?).ok()
}

impl Operated {
    /// Holds how each job ended against what the witness has of it.
    pub(super) async fn audit(&self, server: &str, witness: &Witness, findings: &mut Findings) {
        let stopped = stopped_in_bulk(server, findings).await;
        for job in &self.jobs {
            let Some(shown) = get(server, &format!("executions/{}", job.id)).await else {
                findings.problem(format!("{} ({}) is lost", job.name, job.id));
                continue;
            };
            let status = shown["status"].as_str().unwrap_or_default();
            let left = witness.ledger().left(&job.name);
            let word = match (status, left.as_slice()) {
                ("Succeeded", left) if left == THINGS => "all done",
                ("Failed" | "Stopped", []) => "all undone",
                ("Failed", [left]) if job.act == Act::Skip && left == "b" => "all undone but what was skipped",
                ("RollbackFailed", left) if named(&shown) == left => "not undone, and what is left is named",
                _ => "half done",
            };
            let allowed = match job.act {
                Act::Stop | Act::Bulk => ["all done", "all undone"],
                Act::Redrive | Act::Resolve | Act::Fork => ["all done"; 2],
                Act::Repair => ["all undone"; 2],
                Act::Leave => ["not undone, and what is left is named"; 2],
                Act::Skip => ["all undone but what was skipped"; 2],
            };
            findings.count(&format!("jobs, {:?}: {word}", job.act), 1);
            if !allowed.contains(&word) {
                findings.problem(format!(
                    "{} ({:?}, {}) is {status}, and left is {left:?}",
                    job.name, job.act, job.id
                ));
            }
            let times = stopped.get(&job.id).copied().unwrap_or(0);
            if job.act == Act::Bulk && times != u64::from(status == "Stopped") {
                findings.problem(format!(
                    "{} is {status}, and bulk jobs stopped it {times} times",
                    job.id
                ));
            }
        }
    }
}

/// The tasks that an execution reports as left to undo, in the order they were made.
fn named(shown: &Value) -> Vec<String> {
    let left = shown["rollback"]["left"].as_array().into_iter().flatten();
    let mut left: Vec<String> = left.filter_map(Value::as_str).map(str::to_owned).collect();
    left.sort();
    left
}

/// How often bulk jobs say that they stopped an execution. All of them must come to their end.
async fn stopped_in_bulk(server: &str, findings: &mut Findings) -> BTreeMap<String, u64> {
    let mut stopped = BTreeMap::new();
    let begun = Instant::now();
    let jobs = loop {
        let jobs = get(server, "bulk?limit=1000").await.unwrap_or_default();
        let jobs = jobs["items"].as_array().cloned().unwrap_or_default();
        if jobs.iter().all(|job| job["state"] == "done") {
            break jobs;
        }
        if begun.elapsed() > PATIENCE {
            findings.problem("a bulk job does not come to its end");
            break jobs;
        }
        tokio::time::sleep(PAUSE).await;
    };
    findings.count("bulk jobs", jobs.len() as u64);
    for job in &jobs {
        let id = job["id"].as_str().unwrap_or_default();
        let items = get(server, &format!("bulk/{id}/items?limit=1000"))
            .await
            .unwrap_or_default();
        let items = items["items"].as_array().cloned().unwrap_or_default();
        if items.len() as u64 != TOGETHER {
            findings.problem(format!("the bulk job {id} has {} items", items.len()));
        }
        for item in items {
            match item["result"].as_str() {
                Some("done") => {
                    let execution = item["execution"].as_str().unwrap_or_default().to_owned();
                    *stopped.entry(execution).or_insert(0) += 1;
                }
                Some("skipped") => findings.count("executions that a bulk job skipped", 1),
                _ => findings.problem(format!("the bulk job {id} has {item}")),
            }
        }
    }
    stopped
}
