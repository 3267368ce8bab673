//! The HTTP API: requests in, answers out. It decides nothing about flows; a node does.

mod access;
mod answers;
mod body;
mod budget;
mod caller;
mod connections;
mod openapi;
mod reading;
mod reports;
mod router;
mod routes;
mod scope;
mod shapes;

pub use access::{Access, TokenHash, access_of};
pub use answers::AnswerSettings;
pub use body::BodySettings;
pub use connections::{ConnectionSettings, LEAVING, RESERVE};
pub use openapi::openapi;
pub use scope::Scope;
pub use shapes::execution as execution_shape;

use access::Limiter;
use answers::Answers;
use axum::Router;
use body::Bodies;
use starbridge_node::config::Network;
use starbridge_node::node::Node;
use starbridge_node::system::reason;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// How the API is served.
#[derive(Clone, Debug, Default)]
pub struct ServerSettings {
    /// Who may do what; without tokens, anybody may, but only from this machine.
    pub access: Access,
    /// Host names under which the server may be called beside those of the loopback, which counts only without tokens, and
    /// pages of which may change things.
    pub hosts: Vec<String>,
    /// Proxies that say whom they ask for.
    pub trusted_proxies: Vec<Network>,
    /// How many connections there may be, and how long each may take; counts only where this listens itself.
    pub connections: ConnectionSettings,
    /// What bodies of requests may take.
    pub bodies: BodySettings,
    /// What answers may take.
    pub answers: AnswerSettings,
}

/// What handlers work with.
#[derive(Clone)]
struct App {
    node: Arc<Node>,
    access: Arc<Access>,
    hosts: Arc<Vec<String>>,
    trusted_proxies: Arc<Vec<Network>>,
    limiter: Arc<Limiter>,
    draining: Arc<AtomicBool>,
    bodies: Arc<Bodies>,
    answers: Arc<Answers>,
    /// Bytes of the largest body, and of the largest report.
    largest_body: usize,
    largest_report: usize,
    /// The description of the API.
    openapi: axum::body::Bytes,
}

/// The API as a service, for hosts that get requests in ways of their own. Each request needs an extension
/// `ConnectInfo<SocketAddr>` that says whom it comes from.
pub fn service(node: Arc<Node>, settings: ServerSettings) -> Router {
    api(node, settings, Arc::default())
}

fn api(node: Arc<Node>, settings: ServerSettings, draining: Arc<AtomicBool>) -> Router {
    router::router(App {
        largest_body: routes::largest_body(node.limits()),
        largest_report: reports::largest(node.limits()),
        openapi: openapi().to_string().into(),
        bodies: Bodies::new(settings.bodies),
        answers: Answers::new(settings.answers),
        node,
        access: Arc::new(settings.access),
        hosts: Arc::new(settings.hosts),
        trusted_proxies: Arc::new(settings.trusted_proxies),
        limiter: Arc::default(),
        draining,
    })
}

/// A server that listens.
pub struct Server {
    listener: TcpListener,
    settings: ServerSettings,
    draining: Arc<AtomicBool>,
}

/// Lets a running server come to its end.
#[derive(Clone)]
pub struct Drain(Arc<AtomicBool>);

impl Drain {
    /// From now on the server says that it is not ready.
    pub fn begin(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Why a server does not listen.
#[derive(Debug)]
pub enum BindError {
    /// The address can be reached from other machines, and nobody needs a token.
    Unprotected(SocketAddr),
    /// The system refuses.
    System(SocketAddr, std::io::Error),
}

impl std::fmt::Display for BindError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unprotected(address) => write!(
                f,
                "{address} can be reached from other machines, and no token is set: anybody could run flows"
            ),
            Self::System(address, error) => write!(f, "can't listen on {address}: {}", reason(error)),
        }
    }
}

impl std::error::Error for BindError {}

impl Server {
    /// Listens, but answers nobody yet: who can't have the address is to have touched nothing else.
    pub async fn bind(address: SocketAddr, settings: ServerSettings) -> Result<Self, BindError> {
        if !address.ip().is_loopback() && settings.access.is_open() {
            return Err(BindError::Unprotected(address));
        }
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| BindError::System(address, error))?;
        Ok(Self {
            listener,
            settings,
            draining: Arc::default(),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// What lets it come to its end.
    pub fn drain(&self) -> Drain {
        Drain(self.draining.clone())
    }

    /// Answers for a node until `end` comes; answers under way are still given.
    pub async fn run(self, node: Arc<Node>, end: oneshot::Receiver<()>) {
        let connections = self.settings.connections;
        let router = api(node, self.settings, self.draining);
        connections::serve(self.listener, router, connections, end).await;
    }
}
