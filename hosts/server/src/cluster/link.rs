//! The link: where other nodes pass requests on to this one.

use super::pins::Identity;
use super::reach::{self, REACH};
use super::role::{FROM, NOT_OWNER, Role};
use axum::body::{Body, Bytes, HttpBody};
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
                let end = End {
                    identity: identity.clone(),
                    cluster: cluster.clone(),
                    role: role.clone(),
                };
                tokio::spawn(connection(stream, from, acceptor.clone(), end));
            }
            Err(error) => {
                tracing::warn!(%error, "no link can be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// This end of a link.
#[derive(Clone)]
struct End {
    identity: Arc<Identity>,
    cluster: Arc<Cluster>,
    role: watch::Receiver<Role>,
}

async fn connection(stream: TcpStream, from: SocketAddr, acceptor: TlsAcceptor, end: End) {
    // Without it an answer in two parts waits for a timer of the other side.
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        refused => {
            // Whoever looks whether somebody listens says nothing at all.
            let silent = matches!(&refused, Ok(Err(error)) if error.kind() == std::io::ErrorKind::UnexpectedEof);
            if !silent {
                end.cluster.counters.strangers.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%from, "a connection to the link without the certificate of a node is refused");
            }
            return;
        }
    };
    let service = service_fn(move |request| answer(request, end.clone()));
    // A node that ends breaks its connections.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>, end: End) -> Result<Response<Body>, Infallible> {
    Ok(match request.headers().get(REACH).and_then(|name| name.to_str().ok()) {
        Some(name) => reach::answer(&end.identity, &end.cluster, name).await,
        None => passed_on(request, &end.role).await,
    })
}

/// A request that another node passes on.
async fn passed_on<B>(mut request: Request<B>, role: &watch::Receiver<Role>) -> Response<Body>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    let from = request.headers_mut().remove(FROM);
    let from = from.and_then(|from| from.to_str().ok()?.parse::<SocketAddr>().ok());
    let now = role.borrow().clone();
    // One hop: a node that does not own the store passes nothing on that came over a link.
    let (Role::Owner(answering), Some(from)) = (now, from) else {
        let mut refused = Response::new(Body::empty());
        *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        refused.headers_mut().insert(NOT_OWNER, HeaderValue::from_static("1"));
        return refused;
    };
    request.extensions_mut().insert(ConnectInfo(from));
    answering.call(request).await
}

#[cfg(test)]
mod tests {
    use super::super::asking::client;
    use super::super::role::{Answering, Peer};
    use super::*;
    use axum::Router;
    use starbridge_node::cluster::{ShownNode, View};

    fn node(name: &str, address: &str, identity: &Identity) -> ShownNode {
        ShownNode {
            name: name.to_owned(),
            address: address.to_owned(),
            certificate: identity.hash(),
            version: String::new(),
            process: name.to_owned(),
            joined: starbridge_flow::time::Timestamp(0),
            silent: 0,
            drained: None,
        }
    }

    /// The node `a` listens at its link; it sees these others.
    struct Stand {
        address: String,
        identity: Arc<Identity>,
        cluster: Arc<Cluster>,
        role: watch::Sender<Role>,
    }

    async fn stand() -> Stand {
        // There may be one already, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (identity, cluster) = (Arc::new(Identity::new().unwrap()), Arc::new(Cluster::new("a")));
        let (role, now) = watch::channel(Role::Nobody);
        tokio::spawn(serve(listener, identity.clone(), cluster.clone(), now));
        Stand {
            address,
            identity,
            cluster,
            role,
        }
    }

    fn sees(cluster: &Cluster, nodes: Vec<ShownNode>) {
        cluster.see(View {
            nodes,
            ..View::default()
        });
    }

    #[tokio::test]
    async fn a_certificate_that_is_in_no_row_is_refused_and_counted() {
        let stand = stand().await;
        let stranger = Identity::new().unwrap();
        let asked = client(&stranger, &stand.identity.hash()).unwrap();
        let url = format!("https://{}/v1/flows", stand.address);
        assert!(asked.get(&url).header(FROM, "127.0.0.1:1").send().await.is_err());
        assert_eq!(stand.cluster.counters.strangers.load(Ordering::Relaxed), 1);
        // With a row it is a node.
        sees(&stand.cluster, vec![node("b", "127.0.0.1:1", &stranger)]);
        let answered = asked.get(&url).header(FROM, "127.0.0.1:1").send().await.unwrap();
        assert!(answered.headers().contains_key(NOT_OWNER));
        assert_eq!(stand.cluster.counters.strangers.load(Ordering::Relaxed), 1);
        // Whoever answers with another certificate than the one in its row is not asked anything.
        let other = client(&stranger, &stranger.hash()).unwrap();
        assert!(other.get(&url).send().await.is_err());
    }

    #[tokio::test]
    async fn what_was_passed_on_is_not_passed_on_again() {
        let stand = stand().await;
        let asker = Identity::new().unwrap();
        sees(&stand.cluster, vec![node("b", "127.0.0.1:1", &asker)]);
        let asked = client(&asker, &stand.identity.hash()).unwrap();
        let url = format!("https://{}/healthz", stand.address);
        // It stands by another one, and says so instead of asking that one.
        stand.role.send_replace(Role::Standby(Peer {
            name: "c".to_owned(),
            address: stand.address.clone(),
            certificate: stand.identity.hash(),
        }));
        let answered = asked.get(&url).header(FROM, "127.0.0.1:1").send().await.unwrap();
        assert!(answered.headers().contains_key(NOT_OWNER));
        assert_eq!(answered.status(), 503);
        // The owner answers; but not what does not say from whom it comes.
        let router = Router::new().route("/healthz", axum::routing::get(|| async { "alive" }));
        stand.role.send_replace(Role::Owner(Answering::new(router)));
        let answered = asked.get(&url).header(FROM, "127.0.0.1:1").send().await.unwrap();
        assert_eq!(answered.text().await.unwrap(), "alive");
        let answered = asked.get(&url).send().await.unwrap();
        assert!(answered.headers().contains_key(NOT_OWNER));
    }

    #[tokio::test]
    async fn nodes_that_do_not_reach_each_other_are_found_when_one_joins() {
        let (a, b) = (stand().await, stand().await);
        let reached = |address: &str| vec![node("a", &a.address, &a.identity), node("b", address, &b.identity)];
        sees(&a.cluster, reached(&b.address));
        let b_cluster = Arc::new(Cluster::new("b"));
        sees(&b_cluster, reached(&b.address));
        // The link of `b` knows `a`, which tries it.
        sees(&b.cluster, reached(&b.address));
        let tried = reach::try_others(b.identity.clone(), b_cluster.clone()).await;
        let [tried] = tried.as_slice() else {
            panic!("{tried:?}");
        };
        assert_eq!(
            (tried.node.as_str(), &tried.there, &tried.back),
            ("a", &Ok(()), &Ok(()))
        );
        // `b` names an address where nobody listens.
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let nowhere = free.local_addr().unwrap().to_string();
        drop(free);
        sees(&a.cluster, reached(&nowhere));
        let tried = reach::try_others(b.identity.clone(), b_cluster.clone()).await;
        assert!(tried[0].there.is_ok() && tried[0].back.is_err(), "{tried:?}");
        // Another node answers at the address that `b` names.
        sees(&a.cluster, reached(&a.address));
        let tried = reach::try_others(b.identity.clone(), b_cluster.clone()).await;
        assert!(tried[0].there.is_ok() && tried[0].back.is_err(), "{tried:?}");
        // `a` names such an address.
        sees(
            &b_cluster,
            vec![node("a", &nowhere, &a.identity), node("b", &b.address, &b.identity)],
        );
        let tried = reach::try_others(b.identity.clone(), b_cluster).await;
        assert!(tried[0].there.is_err(), "{tried:?}");
    }
}
