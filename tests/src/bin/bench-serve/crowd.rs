//! Many executions put in by the thousand, and functions that answer when they are told to.

use crate::load;
use crate::scenes::put_flow;
use crate::server::Server;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Executions in one request.
const BATCH: usize = 1_000;
/// Requests under way at once.
const CLIENTS: usize = 4;
/// How often is looked whether something is so.
const LOOK: Duration = Duration::from_millis(20);

/// Starts that many executions: `entry` says what of each. Answers how many a second.
pub async fn start_all(
    server: &Server,
    many: usize,
    entry: impl Fn(usize) -> Value + Send + Sync + 'static,
) -> Result<f64, String> {
    let entry = Arc::new(entry);
    let next = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let (entry, next, address) = (entry.clone(), next.clone(), server.address);
        clients.push(tokio::spawn(async move {
            let mut connection = Connection::to(address).await?;
            loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= many {
                    return Ok::<(), String>(());
                }
                let entries: Value = (first..many.min(first + BATCH)).map(|at| entry(at)).collect();
                let wanted = entries.as_array().map_or(0, Vec::len);
                let answer = connection
                    .ask("POST", "/v1/executions/batch", &entries.to_string())
                    .await?;
                let started = answer.matches("\"status\":201").count();
                if started != wanted {
                    let text: String = answer.chars().take(500).collect();
                    return Err(format!("{started} of {wanted} were started: {text}"));
                }
            }
        }));
    }
    for client in clients {
        client.await.map_err(|error| error.to_string())??;
    }
    Ok(many as f64 / begun.elapsed().as_secs_f64())
}

/// A connection over which one request goes after the other.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub async fn to(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
        let _ = stream.set_nodelay(true);
        let buffer = Vec::with_capacity(16 * 1024);
        Ok(Self { stream, buffer })
    }

    /// Asks, and answers the body.
    pub async fn ask(&mut self, method: &str, path: &str, body: &str) -> Result<String, String> {
        let request = load::request(method, path, body);
        self.stream
            .write_all(&request)
            .await
            .map_err(|error| error.to_string())?;
        let status = load::answer(&mut self.stream, &mut self.buffer).await?;
        let text = String::from_utf8_lossy(&self.buffer);
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        match status {
            200..400 => Ok(body.to_owned()),
            _ => Err(format!("{method} {path}: {status}: {body}")),
        }
    }

    /// The same, as a value.
    pub async fn value(&mut self, method: &str, path: &str, body: &str) -> Result<Value, String> {
        let text = self.ask(method, path, body).await?;
        serde_json::from_str(&text).map_err(|error| error.to_string())
    }
}

/// How many executions have succeeded since the server was started.
pub async fn succeeded(server: &Server) -> Result<usize, String> {
    let metrics = server.ask("GET", "/metrics", "").await?;
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("starbridge_executions_ended_total{status=\"Succeeded\"} "));
    Ok(line.and_then(|count| count.parse().ok()).unwrap_or(0))
}

/// Waits until that many executions have succeeded.
pub async fn until_succeeded(server: &Server, many: usize, most: Duration) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let done = succeeded(server).await?;
        if done >= many {
            return Ok(());
        }
        if begun.elapsed() > most {
            return Err(format!("only {done} of {many} have ended after {} s", most.as_secs()));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until that many executions have this status.
pub async fn until_status(server: &Server, status: &str, many: usize) -> Result<(), String> {
    let line = format!("starbridge_executions{{status=\"{status}\"}} ");
    let begun = Instant::now();
    loop {
        let metrics = server.ask("GET", "/metrics", "").await?;
        let count = metrics.lines().find_map(|found| found.strip_prefix(&line));
        let count: usize = count.and_then(|count| count.parse().ok()).unwrap_or(0);
        if count >= many {
            return Ok(());
        }
        if begun.elapsed() > Duration::from_secs(600) {
            return Err(format!("only {count} of {many} are {status}"));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until admission has decided that so many wait in the lines of keys. An execution is `Queued` before.
pub async fn until_in_line(server: &Server, many: usize) -> Result<(), String> {
    until_status(server, "Queued", many).await?;
    let begun = Instant::now();
    loop {
        let counts = server.ask("GET", "/v1/executions/counts", "").await?;
        let counts: Value = serde_json::from_str(&counts).map_err(|error| error.to_string())?;
        let count = counts["reasons"]["key"].as_u64().unwrap_or(0);
        if usize::try_from(count).is_ok_and(|count| count >= many) {
            return Ok(());
        }
        if begun.elapsed() > Duration::from_secs(600) {
            return Err(format!("only {count} of {many} stand in lines"));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// A function that answers once it is let.
pub struct Gate {
    pub address: SocketAddr,
    open: watch::Sender<bool>,
}

impl Gate {
    pub async fn new() -> Result<Self, String> {
        let (open, _) = watch::channel(false);
        let router = Router::new().route("/", post(pass_gate)).with_state(open.clone());
        let address = serve(router).await?;
        Ok(Self { address, open })
    }

    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// A flow of that name that ends when the gate is open.
    pub async fn put(&self, server: &Server, name: &str) -> Result<(), String> {
        let target = format!("http://{}/", self.address);
        let step = json!({"type": "task", "name": "t", "resourceArn": target, "timeoutSeconds": 3_600});
        put_flow(server, name, &json!({"steps": [step]})).await
    }
}

async fn pass_gate(State(open): State<watch::Sender<bool>>) -> &'static str {
    // The sender is there as long as this is.
    let _ = open.subscribe().wait_for(|open| *open).await;
    "{}"
}

/// Serves a function. Answers where.
pub async fn serve(router: Router) -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

/// A function that fails for some items until it is repaired, and only once all others are done.
pub struct Fragile {
    pub address: SocketAddr,
    state: Arc<FragileState>,
}

struct FragileState {
    /// Every item whose number is a multiple of this fails.
    each: usize,
    /// Items that do not fail.
    sound: usize,
    done: watch::Sender<usize>,
    repaired: watch::Sender<bool>,
    /// When those that failed were called again.
    again: std::sync::Mutex<Vec<Instant>>,
}

impl Fragile {
    /// For that many items, of which so many fail.
    pub async fn new(items: usize, failing: usize) -> Result<Self, String> {
        let state = Arc::new(FragileState {
            each: items / failing,
            sound: items - failing,
            done: watch::channel(0).0,
            repaired: watch::channel(false).0,
            again: std::sync::Mutex::default(),
        });
        let router = Router::new()
            .route("/{item}", post(break_some))
            .with_state(state.clone());
        let address = serve(router).await?;
        Ok(Self { address, state })
    }

    pub fn repair(&self) {
        self.state.repaired.send_replace(true);
    }

    /// When those that failed were called again, in order.
    pub fn again(&self) -> Vec<Instant> {
        self.state.again.lock().map(|again| again.clone()).unwrap_or_default()
    }
}

async fn break_some(
    State(state): State<Arc<FragileState>>,
    Path(item): Path<usize>,
    _: Bytes,
) -> (StatusCode, &'static str) {
    if item % state.each != 0 {
        state.done.send_modify(|done| *done += 1);
        return (StatusCode::OK, "{}");
    }
    if *state.repaired.borrow() {
        if let Ok(mut again) = state.again.lock() {
            again.push(Instant::now());
        }
        return (StatusCode::OK, "{}");
    }
    let sound = state.sound;
    // The sender is there as long as this is.
    let _ = state.done.subscribe().wait_for(|done| *done >= sound).await;
    (StatusCode::INTERNAL_SERVER_ERROR, "{\"error\": \"Broken\"}")
}
