//! A function that keeps the tokens it receives.

use crate::harness::Running;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// A function that keeps the tokens it receives, by the name of the execution that sent them, and answers when its
/// door is open.
#[derive(Clone)]
pub struct Mailbox {
    pub url: String,
    tokens: Arc<Mutex<BTreeMap<String, String>>>,
    door: Arc<watch::Sender<bool>>,
}

impl Mailbox {
    pub async fn open() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mailbox = Self {
            url: format!("http://{}/", listener.local_addr().unwrap()),
            tokens: Arc::default(),
            door: Arc::new(watch::channel(true).0),
        };
        let router = Router::new().route("/", post(take)).with_state(mailbox.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        mailbox
    }

    /// From now on, what arrives is kept, but not answered until the door is opened again.
    pub fn close_door(&self) {
        self.door.send_replace(false);
    }

    pub fn open_door(&self) {
        self.door.send_replace(true);
    }

    /// A step that sends its token here and waits for the report.
    pub fn ask(&self, name: &str) -> Value {
        json!({"type": "task", "name": name, "resourceArn": self.url, "pattern": "waitForCallback", "inputMappings": [
            {"target": "token", "source": "$context.task.token"},
            {"target": "name", "source": "$context.execution.name"}]})
    }

    /// The token that the execution with this name sent, once it has arrived.
    pub async fn token(&self, name: &str) -> String {
        let kept = || {
            let token = self.tokens.lock().unwrap().get(name).cloned();
            async move { token }
        };
        eventually(&format!("a token of {name}"), kept).await
    }

    pub fn count(&self) -> usize {
        self.tokens.lock().unwrap().len()
    }
}

async fn take(State(mailbox): State<Mailbox>, body: Bytes) -> &'static str {
    let body: Value = serde_json::from_slice(&body).unwrap();
    let text = |key: &str| body[key].as_str().unwrap().to_owned();
    mailbox.tokens.lock().unwrap().insert(text("name"), text("token"));
    let mut door = mailbox.door.subscribe();
    door.wait_for(|open| *open).await.unwrap();
    "{}"
}

/// Waits until `look` finds something.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    for _ in 0..1_500 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("there never was {what}");
}

/// The execution with this name, once it has ended.
pub async fn ended(server: &Running, flow: &str, name: &str) -> Value {
    let shown = server.get(&format!("/v1/flows/{flow}/executions/{name}")).await;
    assert_eq!(shown.status, 200, "{name}: {shown:?}");
    let id = shown.body["id"].as_str().unwrap();
    let ended = server.get(&format!("/v1/executions/{id}?wait=30")).await;
    assert_eq!(ended.status, 200, "{name}: {ended:?}");
    ended.body
}
