//! The link: where other nodes pass requests on to this one.

use super::pins::Identity;
use super::role::{FROM, NOT_OWNER, Role, call};
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use starbridge_node::cluster::Cluster;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// How long a stranger gets to show a certificate.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The pause if the system has no more connections to give.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers other nodes.
pub(super) async fn serve(
    listener: TcpListener,
    identity: Arc<Identity>,
    cluster: Arc<Cluster>,
    role: watch::Receiver<Role>,
) {
    let config = match identity.server(cluster.clone()) {
        Ok(config) => Arc::new(config),
        Err(error) => {
            tracing::error!(%error, "the link can't be encrypted: other nodes pass nothing on to this one");
            return std::future::pending().await;
        }
    };
    let acceptor = TlsAcceptor::from(config);
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let (acceptor, cluster, role) = (acceptor.clone(), cluster.clone(), role.clone());
                tokio::spawn(connection(stream, from, acceptor, cluster, role));
            }
            Err(error) => {
                tracing::warn!(%error, "no link can be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    from: SocketAddr,
    acceptor: TlsAcceptor,
    cluster: Arc<Cluster>,
    role: watch::Receiver<Role>,
) {
    // Without it an answer in two parts waits for a timer of the other side.
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        refused => {
            // Whoever looks whether somebody listens says nothing at all.
            let silent = matches!(&refused, Ok(Err(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof);
            if !silent {
                cluster.counters.strangers.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%from, "a connection to the link without the certificate of a node is refused");
            }
            return;
        }
    };
    let service = service_fn(move |request| answer(request, role.clone()));
    // A node that ends breaks its connections.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(mut request: Request<Incoming>, role: watch::Receiver<Role>) -> Result<Response<Body>, Infallible> {
    let from = request.headers_mut().remove(FROM);
    let from = from.and_then(|from| from.to_str().ok()?.parse::<SocketAddr>().ok());
    let now = role.borrow().clone();
    // One hop: a node that does not own the store passes nothing on that came over a link.
    let (Role::Owner(router), Some(from)) = (now, from) else {
        let mut refused = Response::new(Body::empty());
        *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        refused.headers_mut().insert(NOT_OWNER, HeaderValue::from_static("1"));
        return Ok(refused);
    };
    request.extensions_mut().insert(ConnectInfo(from));
    Ok(call(router, request.map(Body::new)).await)
}
