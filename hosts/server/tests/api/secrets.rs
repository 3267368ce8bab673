//! A canary: a secret that is sent, and must not appear anywhere else.

use crate::harness::Running;
use serde_json::json;
use starbridge_machine::EventId;
use starbridge_ports::{Secret, Secrets, ShardSet};
use starbridge_server::Access;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const CANARY: &str = "canary-5f1d9c";

struct Cage;

impl Secrets for Cage {
    fn get(&self, name: &str) -> Option<Secret> {
        (name == "KEY").then(|| Secret::new(CANARY))
    }
}

/// A function that fails and keeps what it received.
async fn function(seen: Arc<Mutex<Vec<String>>>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = vec![0; 64 * 1024];
            let read = stream.read(&mut bytes).await.unwrap_or(0);
            seen.lock()
                .unwrap()
                .push(String::from_utf8_lossy(&bytes[..read]).into_owned());
            let _ = stream
                .write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .await;
        }
    });
    format!("http://{address}/f")
}

/// Everything that was written to the log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn secret_is_sent_and_is_nowhere_else() {
    let log = Log::default();
    let writer = log.clone();
    let _ = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .try_init();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let target = function(seen.clone()).await;
    let server = Running::with(Access::default(), |settings| settings.secrets = Arc::new(Cage)).await;
    let params = json!({"headers": {"x-key": "secret://KEY"}, "query": {"key": "secret://KEY"}, "body": {"key": "secret://KEY"}});
    // One that answers with an error, and one that can't be reached: the history describes both.
    server
        .flow("f", json!([
            {"type": "task", "name": "bad", "resourceArn": target, "serviceParams": params, "catch": [{"errors": ["FnF.ALL"], "goto": "gone"}]},
            {"type": "task", "name": "gone", "resourceArn": "http://127.0.0.1:1/", "serviceParams": params}]))
        .await;
    let ended = server
        .post("/v1/flows/f/executions?wait=20", json!({"name": "e"}))
        .await;
    assert_eq!(ended.body["status"], "Failed", "{ended:?}");
    let sent = seen.lock().unwrap().join("\n");
    assert!(sent.matches(CANARY).count() >= 3, "it was not sent: {sent}");
    let id = ended.body["id"].as_str().unwrap();
    let mut shown = vec![ended.body.to_string()];
    for path in [
        format!("/v1/executions/{id}/history?limit=1000"),
        format!("/v1/executions/{id}/state"),
        format!("/v1/executions/{id}/steps"),
        "/v1/executions".to_owned(),
        "/v1/flows/f".to_owned(),
        "/metrics".to_owned(),
    ] {
        shown.push(server.get(&path).await.body.to_string());
    }
    let stored = server.node.store().load_whole(id).unwrap().unwrap();
    shown.extend(stored.turns.iter().map(|turn| turn.text.clone()));
    assert!(stored.turns.iter().any(|turn| turn.first > EventId(1)));
    let log = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(log.contains("an attempt failed"), "nothing was logged: {log}");
    shown.push(log);
    for text in shown {
        assert!(!text.contains(CANARY), "{text}");
    }
}

#[tokio::test]
async fn secret_in_the_name_of_a_worker_is_redacted() {
    let server = Running::with(Access::default(), |settings| settings.secrets = Arc::new(Cage)).await;
    let params = json!({"key": "secret://KEY"});
    let work = json!([{"type": "task", "name": "work", "resourceArn": "queue:kept", "serviceParams": params}]);
    server.flow("f", work).await;
    let started = server.post("/v1/flows/f/executions", json!({})).await;
    let id = started.body["id"].as_str().unwrap();
    let hold = json!({"worker": format!("desk {CANARY}"), "limit": 1, "waitSeconds": 20});
    assert_eq!(server.post("/v1/queues/kept/hold", hold).await.status, 200);
    let mut shown = 0;
    for path in [
        "/v1/queues/kept/workers".to_owned(),
        "/v1/queues/kept/tasks?state=held".to_owned(),
        "/v1/executions".to_owned(),
        format!("/v1/executions/{id}"),
        format!("/v1/executions/{id}/steps"),
    ] {
        let answer = server.get(&path).await;
        let text = answer.body.to_string();
        assert!(answer.status == 200 && !text.contains(CANARY), "{path}: {text}");
        shown += text.matches("desk secret://KEY").count();
    }
    assert!(shown >= 3, "the worker is named {shown} times");
    let leases = server.node.store().leased_tasks(&ShardSet::ALL).unwrap();
    assert_eq!(leases[0].1.worker, *"desk secret://KEY");
}

#[tokio::test]
async fn secret_in_the_log_of_a_worker_is_redacted() {
    let server = Running::with(Access::default(), |settings| settings.secrets = Arc::new(Cage)).await;
    let params = json!({"key": "secret://KEY"});
    let work = json!([{"type": "task", "name": "work", "resourceArn": "queue:kept", "serviceParams": params}]);
    server.flow("f", work).await;
    let started = server.post("/v1/flows/f/executions", json!({})).await;
    let id = started.body["id"].as_str().unwrap();
    let hold = json!({"worker": "w", "limit": 1, "waitSeconds": 20});
    let held = server.post("/v1/queues/kept/hold", hold).await;
    let task = &held.body["tasks"][0];
    assert_eq!(task["input"]["key"], CANARY, "{held:?}");
    let token = task["token"].as_str().unwrap();
    let report = json!({"output": {}, "log": format!("curl -H {CANARY}\n")});
    assert_eq!(
        server
            .post(&format!("/v1/callbacks/{token}/succeed"), report)
            .await
            .status,
        204
    );
    let logs = server.get(&format!("/v1/executions/{id}/logs")).await.body;
    let text = logs["items"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("curl -H ") && !text.contains(CANARY), "{text}");
}
