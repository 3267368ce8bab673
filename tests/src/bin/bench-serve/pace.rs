//! A function that gives slots back at a pace, and notes how soon each is used again.

use crate::crowd::serve;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use serde_json::Value;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};

/// Keys behind which executions wait.
pub const KEYS: usize = 100;
/// How often slots are given back.
const TICK: Duration = Duration::from_millis(2);

/// A function that answers at a pace.
pub struct Paced {
    pub address: SocketAddr,
    state: Arc<PacedState>,
    pace: f64,
}

struct PacedState {
    /// A permit for each answer.
    answers: Semaphore,
    /// How many calls have come.
    calls: watch::Sender<usize>,
    /// For each key the times at which slots became free that are not used again.
    free: Mutex<Vec<VecDeque<Instant>>>,
    /// Milliseconds from the free slot to the call, of those that are urgent.
    urgent: watch::Sender<Vec<f64>>,
}

impl Paced {
    /// A function that answers nothing before [`Paced::begin`], then so many calls a second.
    pub async fn new(pace: f64) -> Result<Self, String> {
        let state = Arc::new(PacedState {
            answers: Semaphore::new(0),
            calls: watch::channel(0).0,
            free: Mutex::new(vec![VecDeque::new(); KEYS]),
            urgent: watch::channel(Vec::new()).0,
        });
        let router = Router::new().route("/", post(answer)).with_state(state.clone());
        let address = serve(router).await?;
        Ok(Self { address, state, pace })
    }

    /// Gives slots back from now on. First, that many holders of slots must have called.
    pub async fn begin(&self, first: usize) -> Result<(), String> {
        let mut calls = self.state.calls.subscribe();
        let all = calls.wait_for(|calls| *calls >= first);
        let all = tokio::time::timeout(Duration::from_secs(60), all).await;
        all.map_err(|_| "the first ones were not called".to_owned())?
            .map_err(|error| error.to_string())?;
        let (state, pace) = (self.state.clone(), self.pace);
        tokio::spawn(async move {
            let begun = Instant::now();
            let mut given = 0;
            let mut tick = tokio::time::interval(TICK);
            loop {
                tick.tick().await;
                let due = (begun.elapsed().as_secs_f64() * pace) as usize;
                state.answers.add_permits(due - given);
                given = due;
            }
        });
        Ok(())
    }

    /// The times of that many urgent ones, sorted, once they have been called.
    pub async fn urgent(&self, many: usize) -> Result<Vec<f64>, String> {
        let mut seen = self.state.urgent.subscribe();
        let all = seen.wait_for(|times| times.len() >= many);
        let all = tokio::time::timeout(Duration::from_secs(60), all).await;
        let all = all.map_err(|_| {
            let called = self.state.urgent.borrow().len();
            format!("only {called} of {many} urgent ones were called")
        })?;
        let mut times = all.map_err(|error| error.to_string())?.clone();
        times.sort_by(f64::total_cmp);
        Ok(times)
    }
}

async fn answer(State(state): State<Arc<PacedState>>, body: Bytes) -> &'static str {
    let called = Instant::now();
    state.calls.send_modify(|calls| *calls += 1);
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let key = body["key"].as_u64().and_then(|key| usize::try_from(key).ok());
    let key = key.unwrap_or(0) % KEYS;
    // A slot is used again in the order in which slots of its key became free.
    let freed = state.free.lock().ok().and_then(|mut free| free[key].pop_front());
    if let Some(freed) = freed
        && body["urgent"] == true
    {
        let took = (called - freed).as_secs_f64() * 1000.0;
        state.urgent.send_modify(|times| times.push(took));
    }
    if let Ok(permit) = state.answers.acquire().await {
        permit.forget();
    }
    if let Ok(mut free) = state.free.lock() {
        free[key].push_back(Instant::now());
    }
    "{}"
}
