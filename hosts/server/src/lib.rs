//! The HTTP API: requests in, answers out. A node decides everything about flows.
//!
//! [`Server`] listens by itself and describes the order of calls; [`service`] is the API for hosts
//! that receive requests in other ways; [`openapi`] describes it.
//!
//! ```
//! use starbridge_node::{config::Config, node::Node, stores};
//! use starbridge_server::{Server, ServerSettings};
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! # // An error means that it is installed already.
//! # let _ = rustls::crypto::ring::default_provider().install_default();
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! let server = runtime.block_on(Server::bind("127.0.0.1:0".parse()?, ServerSettings::default()))?;
//! let address = server.address()?;
//! let node = Arc::new(Node::start(Config::default().node(stores::in_memory())?)?);
//!
//! # runtime.block_on(async {
//! let (end, ended) = tokio::sync::oneshot::channel();
//! let serving = tokio::spawn(server.run(Arc::clone(&node), ended));
//! let answer = reqwest::get(format!("http://{address}/healthz")).await.unwrap();
//! assert_eq!(answer.status(), 200);
//!
//! node.drain(Duration::from_secs(1)).await.unwrap();
//! end.send(()).unwrap();
//! serving.await.unwrap();
//! # });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(clippy::missing_errors_doc)]

mod access;
mod answers;
mod caller;
#[cfg(feature = "cluster")]
pub mod cluster;
#[cfg(feature = "console")]
mod console;
mod folds;
mod incidents;
#[cfg_attr(
    not(feature = "cluster"),
    allow(dead_code, reason = "only an owner of a cluster waits for them")
)]
mod open_requests;
mod openapi;
mod outboxes;
mod reports;
mod router;
mod routes;
mod scope;
mod shapes;

pub use access::{Access, TokenHash, access_of};
pub use answers::AnswerSettings;
#[cfg(feature = "console")]
pub use console::page_scopes;
pub use openapi::openapi;
pub use scope::Scope;
pub use shapes::execution as execution_shape;

use access::Limiter;
use answers::Answers;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use starbridge_node::cluster::Cluster;
use starbridge_node::config::Network;
pub use starbridge_node::http::body::BodySettings;
use starbridge_node::http::body::{Bodies, Sender, Sent, receive};
use starbridge_node::http::connections;
pub use starbridge_node::http::connections::{ConnectionSettings, MAX_LEAVING, RESERVE_SEATS};
use starbridge_node::node::Node;
use starbridge_node::problem::{Answer, Problem};
use starbridge_node::system::reason;
use starbridge_ports::Outbox;
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Once};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Settings of the API.
#[derive(Clone, Debug, Default)]
pub struct ServerSettings {
    /// The tokens and what they allow. Without tokens, any program on this machine may do everything.
    pub access: Access,
    /// Host names under which the server may be called in addition to those of the loopback interface, if there are
    /// no tokens. Pages from these names may make changes.
    pub hosts: Vec<String>,
    /// The networks of trusted proxies.
    pub trusted_proxies: Vec<Network>,
    /// How many connections there may be, and how long each may take. It only applies to a [`Server`].
    pub connections: ConnectionSettings,
    /// Limits for bodies of requests.
    pub bodies: BodySettings,
    /// Limits for answers.
    pub answers: AnswerSettings,
    /// What a server says about the program and its configuration.
    pub built: Built,
    /// Whether the console's pages are served. Without the feature `console` they never are.
    pub console: bool,
}

/// What a server says about its program and its configuration.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// The features that the program was built with.
    pub features: Vec<&'static str>,
    /// The configuration as TOML, without secrets; `None` where there is none.
    pub config: Option<String>,
}

/// The description of the API: the same for each owner that this process is.
static DESCRIPTION: LazyLock<Bytes> = LazyLock::new(|| openapi().to_string().into());

/// The shared state of handlers. Every request clones it several times.
#[derive(Clone)]
struct App(Arc<AppParts>);

/// The parts of an [`App`].
struct AppParts {
    node: Arc<Node>,
    access: Access,
    hosts: Vec<String>,
    trusted_proxies: Vec<Network>,
    limiter: Limiter,
    built: Built,
    /// Whether it was logged that a proxy stands before a server without tokens.
    proxy_said: Once,
    draining: Arc<AtomicBool>,
    /// The cluster of which the node is a part, if it is.
    cluster: Option<Arc<Cluster>>,
    bodies: Arc<Bodies>,
    answers: Arc<Answers>,
    folds: folds::Folds,
    outboxes: Vec<Arc<outboxes::Taken>>,
    /// What is looked at once for all that watch it.
    looked: routes::Looked,
    counted: routes::LatestCount,
    /// The largest body and the largest report, in bytes.
    largest_body: usize,
    largest_report: usize,
    /// The description of the API.
    openapi: Bytes,
    /// The sessions; `None` if there are no pages.
    #[cfg(feature = "console")]
    sessions: Option<console::Sessions>,
    /// The forms of pages that were sent lately.
    #[cfg(feature = "console")]
    sent_forms: console::SentForms,
    /// The files of the pages, compressed.
    #[cfg(feature = "console")]
    compressed: console::Compressed,
}

impl Deref for App {
    type Target = AppParts;

    fn deref(&self) -> &AppParts {
        &self.0
    }
}

/// The API as a service, for hosts that receive requests in other ways. Each request needs an extension
/// `ConnectInfo<SocketAddr>` with its sender.
pub fn service(node: Arc<Node>, settings: ServerSettings) -> Router {
    router::router(app(node, settings, Arc::default(), Vec::new(), None))
}

fn app(
    node: Arc<Node>,
    settings: ServerSettings,
    draining: Arc<AtomicBool>,
    outboxes: Vec<Arc<outboxes::Taken>>,
    cluster: Option<Arc<Cluster>>,
) -> App {
    App(Arc::new(AppParts {
        largest_body: routes::largest_body(node.limits()),
        largest_report: starbridge_node::http::report_body::largest_report(node.limits()),
        openapi: DESCRIPTION.clone(),
        #[cfg(feature = "console")]
        sessions: settings.console.then(|| console::Sessions::of(&node)),
        #[cfg(feature = "console")]
        compressed: console::Compressed::default(),
        #[cfg(feature = "console")]
        sent_forms: console::SentForms::default(),
        bodies: Bodies::new(settings.bodies),
        answers: Answers::new(settings.answers),
        folds: folds::Folds::default(),
        outboxes,
        looked: routes::Looked::default(),
        counted: routes::LatestCount::default(),
        node,
        access: settings.access,
        hosts: settings.hosts,
        trusted_proxies: settings.trusted_proxies,
        limiter: Limiter::default(),
        built: settings.built,
        proxy_said: Once::new(),
        draining,
        cluster,
    }))
}

/// A server that listens.
///
/// Call [`Server::bind`] first, so that nothing else is touched if the address is taken, then start the node, then
/// [`Server::run`]. To stop it, call [`Drain::begin`], drain the node, and send `end`.
pub struct Server {
    listener: TcpListener,
    settings: ServerSettings,
    draining: Arc<AtomicBool>,
    outboxes: Vec<Arc<outboxes::Taken>>,
}

/// Starts the end of a running server.
#[derive(Clone)]
pub struct Drain(Arc<AtomicBool>);

impl Drain {
    /// From now on the server reports that it is not ready.
    pub fn begin(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Why a server can't listen.
#[derive(Debug)]
pub enum BindError {
    /// Other machines can reach the address, and there are no tokens.
    Unprotected(SocketAddr),
    /// The system refuses the address.
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
    /// Listens, but answers nothing yet.
    ///
    /// # Errors
    ///
    /// [`BindError`] if other machines can reach the address and there are no tokens, or if the system refuses the
    /// address.
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
            outboxes: Vec::new(),
        })
    }

    /// Takes starts from these outboxes while it runs.
    #[must_use]
    pub fn taking_from(mut self, outboxes: Vec<Arc<dyn Outbox>>) -> Self {
        self.outboxes = outboxes::all(outboxes);
        self
    }

    /// The address it listens on.
    ///
    /// # Errors
    ///
    /// An I/O error if the system does not tell.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Starts the end of the server.
    pub fn drain(&self) -> Drain {
        Drain(self.draining.clone())
    }

    /// Answers requests for a node until `end` comes. Answers in progress are still given.
    pub async fn run(self, node: Arc<Node>, end: oneshot::Receiver<()>) {
        let connections = self.settings.connections;
        let app = app(node, self.settings, self.draining, self.outboxes, None);
        let mut taking = tokio::task::JoinSet::new();
        for outbox in &app.outboxes {
            taking.spawn(outboxes::keep_taking(app.clone(), outbox.clone()));
        }
        connections::serve(self.listener, router::router(app), connections, end).await;
    }
}

impl FromRequest<App> for Sent {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Answer<Self> {
        // A sender may be slow.
        let _waiting = open_requests::waits();
        receive(request.into_body(), app.largest_body, &app.bodies, Sender::Known).await
    }
}
