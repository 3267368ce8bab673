//! Clients of all nodes: each writes down what it was told.

use super::checker::{Said, Word};
use super::nodes::ANSWER;
use crate::campaigns::Chance;
use crate::client;
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How many clients start executions at each node.
const STARTERS: u64 = 2;
/// Between two requests of one of them.
const PAUSE: Duration = Duration::from_millis(30);
/// The flows: ten passes, a call, a task in a queue, and one that is stopped.
pub(super) const FLOWS: [&str; 4] = ["quick", "called", "queued", "stopped"];

pub(super) fn definition(flow: &str) -> Value {
    let passes = || {
        (0..10)
            .map(|number| json!({"type": "pass", "name": format!("p{number}")}))
            .collect::<Vec<_>>()
    };
    let steps = match flow {
        "called" => json!([{"type": "task", "name": "t", "resource": "witness:call"}]),
        "queued" => json!([{"type": "task", "name": "t", "resource": "queue:jobs"}]),
        "stopped" => json!([{"type": "wait", "name": "w", "duration": 86_400}]),
        _ => json!(passes()),
    };
    json!({"version": "v1", "type": "flow", "steps": steps})
}

/// What all clients share.
pub(super) struct Book {
    begun: Instant,
    nodes: Vec<(&'static str, String)>,
    said: Mutex<Vec<Said>>,
    /// The keys under which each execution called the witness.
    called: Mutex<BTreeMap<String, BTreeSet<String>>>,
    over: AtomicBool,
    closed: AtomicBool,
    pub(super) refused: AtomicU64,
    pub(super) unanswered: AtomicU64,
}

fn open<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Book {
    pub(super) fn new(nodes: Vec<(&'static str, String)>) -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            nodes,
            said: Mutex::default(),
            called: Mutex::default(),
            over: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
        })
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Workers end, too.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    pub(super) fn said(&self) -> Vec<Said> {
        open(&self.said).clone()
    }

    pub(super) fn called(&self) -> BTreeMap<String, BTreeSet<String>> {
        open(&self.called).clone()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Asks a node once. `None`: nobody knows what became of it, or nothing did.
    async fn ask(&self, node: usize, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
        let (_, url) = self.nodes.get(node % self.nodes.len())?;
        let url = format!("{url}{path}");
        let client = client();
        let request = match method {
            "GET" => client.get(url),
            _ => client
                .post(url)
                .header("content-type", "application/json")
                .body(body.to_string()),
        };
        let Ok(answer) = request.timeout(ANSWER).send().await else {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let status = answer.status().as_u16();
        let Ok(text) = answer.text().await else {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        if status >= 500 {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some((status, serde_json::from_str(&text).unwrap_or_default()))
    }

    fn note(&self, node: usize, asked: u64, word: Word) {
        let answered = self.now();
        let node = self.nodes.get(node % self.nodes.len()).map_or("", |(name, _)| name);
        open(&self.said).push(Said {
            node,
            asked,
            answered,
            word,
        });
    }

    /// Starts one, and asks again until that is acknowledged.
    async fn start(&self, node: usize, flow: &str, name: &str) -> Option<String> {
        let body = json!({"name": name, "input": {}});
        let path = format!("/v1/flows/{flow}/executions");
        loop {
            let asked = self.now();
            let answer = self.ask(node, "POST", &path, &body).await;
            if let Some((status @ (200 | 201), execution)) = answer {
                let id = execution["id"].as_str()?.to_owned();
                let (flow, name) = (flow.to_owned(), name.to_owned());
                let new = status == 201;
                self.note(
                    node,
                    asked,
                    Word::Started {
                        id: id.clone(),
                        flow,
                        name,
                        new,
                    },
                );
                return Some(id);
            }
            if self.is_over() {
                return None;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn stop(&self, node: usize, id: &str) {
        loop {
            let asked = self.now();
            match self
                .ask(node, "POST", &format!("/v1/executions/{id}/stop"), &json!({}))
                .await
            {
                Some((200..=299, _)) => return self.note(node, asked, Word::Stopped { id: id.to_owned() }),
                // An answer before was lost.
                Some((409, _)) => return,
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    async fn read(&self, node: usize, id: &str) {
        let asked = self.now();
        let answer = self
            .ask(
                node,
                "GET",
                &format!("/v1/executions/{id}/history?limit=1000"),
                &Value::Null,
            )
            .await;
        if let Some((200, page)) = answer {
            let events = page["items"].as_array().map(|items| items.iter().map(shown).collect());
            let events = events.unwrap_or_default();
            self.note(
                node,
                asked,
                Word::Read {
                    id: id.to_owned(),
                    events,
                },
            );
        }
    }
}

/// An event by its number and type.
pub(super) fn shown(event: &Value) -> String {
    format!("{} {}", event["id"], event["type"].as_str().unwrap_or_default())
}

/// Starts the clients, and the workers.
pub(super) fn begin(book: &Arc<Book>, seed: u64) -> [Vec<JoinHandle<()>>; 2] {
    let nodes = book.nodes.len();
    let starters = (0..nodes * usize::try_from(STARTERS).unwrap_or(1)).map(|client| {
        let book = Arc::clone(book);
        let mut chance = Chance::new(seed + client as u64);
        tokio::spawn(async move {
            let mut number = 0_usize;
            while !book.is_over() {
                let flow = FLOWS[number % FLOWS.len()];
                if let Some(id) = book.start(client, flow, &format!("{client}-{number}")).await {
                    if flow == "stopped" {
                        book.stop(client + 1, &id).await;
                    }
                    if chance.below(2) == 0 {
                        book.read(chance.below(3) as usize, &id).await;
                    }
                }
                number += 1;
                tokio::time::sleep(PAUSE).await;
            }
        })
    });
    let starters = starters.collect();
    let workers = (0..nodes).map(|worker| {
        let book = Arc::clone(book);
        tokio::spawn(async move { work(&book, worker).await })
    });
    [starters, workers.collect()]
}

/// A worker.
async fn work(book: &Book, worker: usize) {
    let poll = json!({"worker": format!("w{worker}"), "waitSeconds": 1, "limit": 5, "leaseSeconds": 5});
    while !book.closed.load(Ordering::SeqCst) {
        let held = book.ask(worker, "POST", "/v1/queues/jobs/hold", &poll).await;
        let Some((200, held)) = held else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        for task in held["tasks"].as_array().cloned().unwrap_or_default() {
            let (Some(token), Some(id)) = (task["token"].as_str(), task["execution"].as_str()) else {
                continue;
            };
            report(book, worker + 1, token, id).await;
        }
    }
}

async fn report(book: &Book, node: usize, token: &str, id: &str) {
    loop {
        let asked = book.now();
        let path = format!("/v1/callbacks/{token}/succeed");
        match book.ask(node, "POST", &path, &json!({"output": {}})).await {
            Some((200..=299, _)) => return book.note(node, asked, Word::Reported { id: id.to_owned() }),
            // Its lease is over, or an answer before was lost.
            Some(_) => return,
            None => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// The functions that flows call, outside of all nodes.
pub(super) async fn witness(book: Arc<Book>, listener: TcpListener) {
    let router = Router::new().fallback(answer).with_state(book);
    // Ends with the campaign.
    let _ = axum::serve(listener, router).await;
}

pub(super) async fn listen() -> Result<(TcpListener, u16), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(|error| error.to_string())?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    Ok((listener, port))
}

async fn answer(State(book): State<Arc<Book>>, headers: HeaderMap) -> &'static str {
    let text = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (execution, key) = (text("starbridge-execution"), text("idempotency-key"));
    open(&book.called).entry(execution).or_default().insert(key);
    "{}"
}
