//! The functions of the example, which can be made to wait.

use serde_json::{Value, json};
use starbridge_services::{Answering, Heard, Said};
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex};

/// The functions, and their calls.
pub struct Functions {
    server: Answering,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Default)]
struct State {
    /// The path whose answer waits; empty: none.
    held: String,
    /// Path, order and key of each call.
    calls: Vec<(String, u64, String)>,
}

impl Functions {
    pub fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let answering = shared.clone();
        let server = Answering::start(move |heard| answering.answer(heard)).unwrap();
        Self { server, shared }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// From now on calls of this path wait; with "", none do.
    pub fn hold(&self, path: &str) {
        path.clone_into(&mut self.shared.state.lock().unwrap().held);
        self.shared.opened.notify_all();
    }

    /// How often a path was called for an order.
    pub fn calls(&self, path: &str, order: u64) -> usize {
        let state = self.shared.state.lock().unwrap();
        state
            .calls
            .iter()
            .filter(|call| (call.0.as_str(), call.1) == (path, order))
            .count()
    }

    /// The keys under which a path was called for an order.
    pub fn keys(&self, path: &str, order: u64) -> BTreeSet<String> {
        let state = self.shared.state.lock().unwrap();
        let calls = state
            .calls
            .iter()
            .filter(|call| (call.0.as_str(), call.1) == (path, order));
        calls.map(|call| call.2.clone()).collect()
    }
}

impl Shared {
    fn answer(&self, heard: &Heard) -> Said {
        let path = heard.head[0].split(' ').nth(1).unwrap().to_owned();
        let input: Value = serde_json::from_slice(&heard.body).unwrap();
        let order = input["order"].as_u64().unwrap();
        let key = heard.header("idempotency-key").unwrap().to_owned();
        let mut state = self.state.lock().unwrap();
        state.calls.push((path.clone(), order, key));
        while state.held == path {
            state = self.opened.wait(state).unwrap();
        }
        let body = match path.as_str() {
            "/price" => json!({"order": order, "price": 42}),
            _ => json!({"number": format!("i-{order}"), "amount": input["amount"]}),
        };
        Said::Answer(
            200,
            vec![("Content-Type", "application/json".to_owned())],
            body.to_string(),
        )
    }
}
