//! A server on a free port, and requests to it.

use crate::document::{Came, check};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use starbridge_flow::time::Timestamp;
use starbridge_node::config::Config;
use starbridge_node::node::{Node, NodeSettings};
use starbridge_node::stores::in_memory;
use starbridge_ports::{Broken, Mark, Outbox, Store};
use starbridge_server::{Access, Server, ServerSettings};
use std::sync::Arc;
use tokio::net::TcpSocket;
use tokio::sync::oneshot;

/// A running server.
pub struct Running {
    pub base: String,
    pub node: Arc<Node>,
    client: reqwest::Client,
    _end: oneshot::Sender<()>,
}

/// An answer: its status and its body.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

/// A client that reads no certificates of the system, which takes long.
pub fn plain_client() -> reqwest::Client {
    reqwest::Client::builder().tls_certs_only([]).build().unwrap()
}

impl Running {
    pub async fn start() -> Self {
        Self::with(Access::default(), |_| {}).await
    }

    pub async fn with(access: Access, change: impl FnOnce(&mut NodeSettings)) -> Self {
        let settings = ServerSettings {
            access,
            ..ServerSettings::default()
        };
        Self::serving(settings, change).await
    }

    /// A server that trusts these proxies.
    pub async fn behind(access: Access, proxies: &[&str]) -> Self {
        let settings = ServerSettings {
            access,
            trusted_proxies: proxies.iter().map(|proxy| proxy.parse().unwrap()).collect(),
            ..ServerSettings::default()
        };
        Self::serving(settings, |_| {}).await
    }

    /// A server that takes from these outboxes.
    pub async fn taking(outboxes: Vec<Arc<dyn Outbox>>) -> Self {
        Self::taking_with(outboxes, |_| {}).await
    }

    pub async fn taking_with(outboxes: Vec<Arc<dyn Outbox>>, change: impl FnOnce(&mut NodeSettings)) -> Self {
        Self::serving_and_taking(ServerSettings::default(), outboxes, change).await
    }

    pub async fn serving(serving: ServerSettings, change: impl FnOnce(&mut NodeSettings)) -> Self {
        Self::serving_and_taking(serving, Vec::new(), change).await
    }

    async fn serving_and_taking(
        serving: ServerSettings,
        outboxes: Vec<Arc<dyn Outbox>>,
        change: impl FnOnce(&mut NodeSettings),
    ) -> Self {
        // An error means that it is already installed; there is only one.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Config::default();
        config.http.private_addresses = true;
        let mut settings = config.node(in_memory()).unwrap();
        change(&mut settings);
        let node = Arc::new(
            tokio::task::spawn_blocking(|| Node::start(settings))
                .await
                .unwrap()
                .unwrap(),
        );
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), serving).await.unwrap();
        let base = format!("http://{}", server.address().unwrap());
        let (end, ended) = oneshot::channel();
        tokio::spawn(server.taking_from(outboxes).run(node.clone(), ended));
        Self {
            base,
            node,
            client: plain_client(),
            _end: end,
        }
    }

    /// A request, to be sent by [`sent`].
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base))
    }

    pub async fn raw(&self, method: Method, path: &str, body: Option<String>) -> Response {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.body(body);
        }
        sent(request).await
    }

    pub async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        Answer::of(self.raw(method, path, body.map(|body| body.to_string())).await).await
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.ask(Method::POST, path, Some(body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.ask(Method::PUT, path, Some(body)).await
    }

    /// Stores a flow of these steps.
    pub async fn flow(&self, name: &str, steps: Value) {
        let put = self.put(&format!("/v1/flows/{name}"), definition(steps)).await;
        assert_eq!(put.status, 201, "{put:?}");
    }
}

impl Answer {
    pub async fn of(response: Response) -> Self {
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Self { status, body }
    }

    /// Status and code of a problem.
    pub fn code(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or_default())
    }
}

/// Sends a request. The document must name the answer. Its body is read, unless it is a stream.
pub async fn sent(request: RequestBuilder) -> Response {
    let (client, request) = request.build_split();
    let request = request.unwrap();
    let (method, url) = (request.method().to_string(), request.url().clone());
    let response = client.execute(request).await.unwrap();
    let status = response.status().as_u16();
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .map(|kind| kind.to_str().unwrap().to_owned());
    let kind = kind.as_deref();
    if kind == Some("text/event-stream") {
        check(
            &method,
            url.path(),
            &Came {
                status,
                kind,
                body: None,
            },
        );
        return response;
    }
    let mut whole = axum::http::Response::new(String::new());
    *whole.status_mut() = response.status();
    *whole.headers_mut() = response.headers().clone();
    *whole.body_mut() = response.text().await.unwrap();
    let body = Some(whole.body().as_str()).filter(|_| method != "HEAD");
    check(&method, url.path(), &Came { status, kind, body });
    Response::from(whole)
}

/// A socket of the loopback interface that refuses connections, because it does not listen. No
/// other socket can take its port.
pub fn refusing() -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    socket
}

/// Sets an execution aside. No server may run on the store.
pub fn set_aside(store: &Arc<dyn Store>, id: &str) {
    let broken = Broken {
        since: Timestamp(0),
        cause: "it panicked".into(),
    };
    store.mark(&[(id.into(), Mark::Broken(broken))], None).unwrap();
}

pub fn definition(steps: impl Into<Value>) -> Value {
    let steps: Value = steps.into();
    json!({"version": "v1", "type": "flow", "steps": steps})
}

/// A step that waits until it gets a report.
pub fn asleep() -> Value {
    json!([{"type": "wait", "name": "sleep", "duration": 3600}])
}
