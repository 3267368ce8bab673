//! A server over the store, while its database ends and comes back.

use crate::stand::Stand;
use reqwest::{Client, Response};
use serde_json::{Value, json};
use starbridge_node::config::Config;
use starbridge_node::node::Node;
use starbridge_postgres::PostgresStore;
use starbridge_server::{Server, ServerSettings};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The database is on a thread that may stand still.
async fn changed(mut stand: Stand, change: impl FnOnce(&mut Stand) + Send + 'static) -> Stand {
    let change = move || {
        change(&mut stand);
        stand
    };
    tokio::task::spawn_blocking(change).await.unwrap()
}

async fn body(answer: Response) -> Value {
    serde_json::from_str(&answer.text().await.unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_says_503_while_its_database_is_away_and_goes_on_by_itself() {
    // An error means that it is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let stand = tokio::task::spawn_blocking(Stand::start).await.unwrap();
    let settings = stand.settings();
    let store = tokio::task::spawn_blocking(move || PostgresStore::open(&settings).unwrap())
        .await
        .unwrap();
    let mut settings = Config::default().node(Arc::new(store.patient())).unwrap();
    settings.asked = Some(Arc::new(store));
    let node = tokio::task::spawn_blocking(|| Node::start(settings).unwrap())
        .await
        .unwrap();
    let node = Arc::new(node);
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), ServerSettings::default())
        .await
        .unwrap();
    let base = format!("http://{}", server.address().unwrap());
    let (end, ended) = oneshot::channel();
    let serving = tokio::spawn(server.run(node.clone(), ended));
    let client = Client::new();
    let flow = json!({"version": "v1", "type": "flow", "steps": [
        {"type": "task", "name": "wait", "resource": "queue:q"}, {"type": "succeed", "name": "done"}]});
    let put = client
        .put(format!("{base}/v1/flows/order"))
        .body(flow.to_string())
        .send()
        .await
        .unwrap();
    assert!(put.status().is_success(), "{}", put.text().await.unwrap());
    let start = || {
        client
            .post(format!("{base}/v1/flows/order/executions"))
            .body(json!({"input": {}}).to_string())
            .send()
    };
    let begun = start().await.unwrap();
    assert!(begun.status().is_success(), "{}", begun.text().await.unwrap());
    let id = body(begun).await["id"].as_str().unwrap().to_owned();
    let stand = changed(stand, |stand| stand.service.kill()).await;
    // Somebody notices first.
    while node.store().record(&id).is_ok() || !node.is_away() {
        tokio::task::yield_now().await;
    }
    for refused in [
        start().await.unwrap(),
        client.get(format!("{base}/readyz")).send().await.unwrap(),
    ] {
        assert_eq!(refused.status(), 503);
        assert_eq!(refused.headers()["retry-after"], "1");
        assert_eq!(body(refused).await["code"], "StoreUnavailable");
    }
    let alive = client.get(format!("{base}/healthz")).send().await.unwrap();
    assert_eq!(alive.status(), 200);
    let stand = changed(stand, |stand| stand.service.start_again()).await;
    while node.is_away() {
        tokio::task::yield_now().await;
    }
    let begun = start().await.unwrap();
    assert!(begun.status().is_success(), "{}", begun.text().await.unwrap());
    let kept = client.get(format!("{base}/v1/executions/{id}")).send().await.unwrap();
    assert_eq!(body(kept).await["status"], "Running");
    node.drain(std::time::Duration::from_secs(1)).await.unwrap();
    end.send(()).unwrap();
    serving.await.unwrap();
    drop(stand);
}
