//! Whether an execution continues as fast after a long history.

use crate::load;
use crate::server::Server;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// Reports to each execution.
const REPORTS: usize = 300;
/// Before a report, so that the call it answers is acknowledged and, where nothing is kept hot, the execution has left
/// memory.
const PAUSE: Duration = Duration::from_millis(5);

/// Medians of what a report takes, to an execution with few events and to one with many.
pub async fn measure(folder: &Path, hot: bool) -> Result<[(u64, Duration); 2], String> {
    let (function, mut tokens) = mailbox().await?;
    let kept = if hot { "10000" } else { "0" };
    let server = Server::start_with(folder, &[("STARBRIDGE_RUNTIME_HOT_EXECUTIONS", kept)])?;
    let flow = json!({"version": "v1", "type": "flow", "steps": [
        each("rows", "$.items", &json!([each("columns", "$.items", &json!([{"type": "pass", "name": "p"}]))])),
        each("asked", "$.asks", &json!([{
            "type": "task", "name": "ask", "resourceArn": format!("http://{function}/"), "pattern": "waitForCallback",
            "inputMappings": [{"target": "token", "source": "$context.task.token"}]}]))]});
    server.ask("PUT", "/v1/flows/grown", &flow.to_string()).await?;
    Ok([
        report(&server, 4, &mut tokens).await?,
        report(&server, 130, &mut tokens).await?,
    ])
}

/// A foreach, one iteration after the other.
fn each(name: &str, collection: &str, steps: &Value) -> Value {
    json!({"type": "foreach", "name": name, "iterationMapping": {"collection": collection, "item": name},
        "concurrency": 1, "steps": steps})
}

/// Events when the first report came, and the median of all reports.
async fn report(
    server: &Server,
    items: usize,
    tokens: &mut mpsc::UnboundedReceiver<String>,
) -> Result<(u64, Duration), String> {
    let input = json!({"input": {"items": vec![0; items], "asks": vec![0; REPORTS]}});
    let begun = server
        .ask("POST", "/v1/flows/grown/executions", &input.to_string())
        .await?;
    let begun: Value = serde_json::from_str(&begun).map_err(|error| error.to_string())?;
    let history = format!(
        "/v1/executions/{}/history?limit=1&order=desc",
        begun["id"].as_str().unwrap_or_default()
    );
    let mut stream = TcpStream::connect(server.address)
        .await
        .map_err(|error| error.to_string())?;
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    let (mut events, mut times) = (0, Vec::new());
    while times.len() < REPORTS {
        let token = tokens.recv().await.ok_or("the function is gone")?;
        tokio::time::sleep(PAUSE).await;
        if times.is_empty() {
            let last: Value =
                serde_json::from_str(&server.ask("GET", &history, "").await?).map_err(|error| error.to_string())?;
            events = last["items"][0]["id"].as_u64().unwrap_or_default();
        }
        let request = load::post(&format!("/v1/callbacks/{token}/succeed"), "{\"output\":{}}");
        let begun = Instant::now();
        stream.write_all(&request).await.map_err(|error| error.to_string())?;
        match load::answer(&mut stream, &mut buffer).await? {
            204 => times.push(begun.elapsed()),
            other => return Err(format!("a report was answered with {other}")),
        }
    }
    times.sort();
    Ok((events, times.get(REPORTS / 2).copied().unwrap_or_default()))
}

/// A function that hands on the tokens it is sent.
async fn mailbox() -> Result<(SocketAddr, mpsc::UnboundedReceiver<String>), String> {
    let (sender, tokens) = mpsc::unbounded_channel();
    let router = Router::new().route("/", post(take)).with_state(sender);
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok((address, tokens))
}

async fn take(State(tokens): State<mpsc::UnboundedSender<String>>, body: Bytes) -> &'static str {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    // A receiver that no longer listens needs no token.
    let _ = tokens.send(body["token"].as_str().unwrap_or_default().to_owned());
    "{}"
}
