//! The link: where other nodes pass requests on to this one.

use super::entry::{Entry, HANDSHAKES, Refused, Seat, full};
use super::ownership_requests::{self, OWNERSHIP_REQUEST, ReceivedRequest};
use super::pins::{Identity, shown};
use super::reach::{self, REACH};
use super::role::{FROM, NOT_OWNER, Role};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use starbridge_node::cluster::Cluster;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::StreamExt;

/// How long a stranger gets to show a certificate.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The pause if the system has no more connections to give.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a link may be quiet. The other end closes it long before, unless its machine is gone.
const QUIET: Duration = Duration::from_secs(60);
/// How long a node is told that there are too many links, and how much of its request is read for that: a close before the end of
/// the request would lose the answer.
const REFUSAL: Duration = Duration::from_secs(1);
const MAX_LINGER_BYTES: usize = 4 * 1024 * 1024;

/// Answers other nodes, over this many links at once. Their requests to this node itself go to `requests`.
pub(super) async fn serve(
    (listener, most): (TcpListener, usize),
    identity: Arc<Identity>,
    cluster: Arc<Cluster>,
    role: watch::Receiver<Role>,
    requests: mpsc::UnboundedSender<ReceivedRequest>,
) {
    let config = match identity.server(cluster.clone()) {
        Ok(config) => Arc::new(config),
        Err(error) => {
            tracing::error!(%error, "the link can't be encrypted: other nodes pass nothing on to this one");
            return std::future::pending().await;
        }
    };
    let acceptor = TlsAcceptor::from(config);
    let entry = Arc::new(Entry::new(most));
    let mut entering = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let end = End {
                    identity: identity.clone(),
                    cluster: cluster.clone(),
                    role: role.clone(),
                    requests: requests.clone(),
                    entry: entry.clone(),
                    certificate: None,
                };
                entering.retain(|(_, task): &(SocketAddr, tokio::task::AbortHandle)| !task.is_finished());
                if entering.len() >= HANDSHAKES
                    && let Some((from, first)) = entering.pop_front()
                {
                    first.abort();
                    entry.refuse(&cluster.counters, from, &Refused::Crowd);
                }
                let task = tokio::spawn(enter(stream, from, acceptor.clone(), end));
                entering.push_back((from, task.abort_handle()));
            }
            Err(error) => {
                entry.fail(&error);
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
    requests: mpsc::UnboundedSender<ReceivedRequest>,
    entry: Arc<Entry>,
    /// The hash of what the other end has shown.
    certificate: Option<String>,
}

/// Lets a node in.
async fn enter(stream: TcpStream, from: SocketAddr, acceptor: TlsAcceptor, mut end: End) {
    // Without it an answer in two parts waits for a timer of the other side.
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            if let Some(why) = Refused::of(&error) {
                end.entry.refuse(&end.cluster.counters, from, &why);
            }
            return;
        }
        Err(_) => return end.entry.refuse(&end.cluster.counters, from, &Refused::Late),
    };
    end.certificate = shown(&stream);
    match end.entry.seat().await {
        Some(Seat::Usual(seat)) => drop(tokio::spawn(async move {
            linked(stream, end).await;
            drop(seat);
        })),
        Some(Seat::Refused(seat)) => drop(tokio::spawn(async move {
            let _ = tokio::time::timeout(2 * REFUSAL, turned_away(stream, end)).await;
            drop(seat);
        })),
        None => {}
    }
}

/// A link, to its end.
async fn linked(stream: TlsStream<TcpStream>, end: End) {
    let service = service_fn(move |request| answer(request, end.clone()));
    // A node that ends breaks its connections.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(QUIET)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// A link above the bound: what is passed on over it is not carried out.
async fn turned_away(stream: TlsStream<TcpStream>, end: End) {
    let service = service_fn(move |request: Request<Incoming>| {
        let end = end.clone();
        async move {
            // Whether nodes reach each other does not depend on how much they have to do.
            if !request.headers().contains_key(FROM) {
                return answer(request, end).await;
            }
            let mut body = Body::new(request.into_body()).into_data_stream();
            let read = async {
                let mut left = MAX_LINGER_BYTES;
                while let Some(Ok(bytes)) = body.next().await {
                    left = left.saturating_sub(bytes.len());
                    if left == 0 {
                        return;
                    }
                }
            };
            // Who takes longer may miss the answer.
            let _ = tokio::time::timeout(REFUSAL, read).await;
            Ok(full())
        }
    });
    let _ = http1::Builder::new()
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn answer(request: Request<Incoming>, end: End) -> Result<Response<Body>, Infallible> {
    let headers = request.headers();
    let asked = headers.get(REACH).and_then(|name| name.to_str().ok());
    let mut answered = match (asked, headers.get(OWNERSHIP_REQUEST)) {
        (Some(name), _) => reach::answer(&end.identity, &end.cluster, name).await,
        (None, Some(name)) => {
            ownership_requests::answer(name, end.certificate.as_deref(), &end.cluster, &end.requests).await
        }
        (None, None) => passed_on(request, &end.role).await,
    };
    if end.entry.is_short() || answered.headers().contains_key(NOT_OWNER) {
        let close = HeaderValue::from_static("close");
        answered.headers_mut().insert(header::CONNECTION, close);
    }
    Ok(answered)
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
    use super::super::asking::{Front, Sent, client};
    use super::super::ownership_requests::{OwnershipClient, OwnershipRequest};
    use super::super::role::{Answering, Peer};
    use super::*;
    use axum::Router;
    use starbridge_node::cluster::{ClusterView, ShownNode};
    use std::sync::atomic::Ordering;

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
        requests: mpsc::UnboundedReceiver<ReceivedRequest>,
    }

    async fn stand() -> Stand {
        stand_of(16).await
    }

    /// One that takes so many links.
    async fn stand_of(most: usize) -> Stand {
        // There may be one already, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (identity, cluster) = (Arc::new(Identity::new().unwrap()), Arc::new(Cluster::new("a")));
        let (role, now) = watch::channel(Role::Nobody);
        let (said, requests) = mpsc::unbounded_channel();
        tokio::spawn(serve((listener, most), identity.clone(), cluster.clone(), now, said));
        Stand {
            address,
            identity,
            cluster,
            role,
            requests,
        }
    }

    fn sees(cluster: &Cluster, nodes: Vec<ShownNode>) {
        cluster.see(ClusterView {
            nodes,
            ..ClusterView::default()
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

    /// A node that stands by, as long as its role is kept.
    fn front_of(stand: &Stand) -> (Front, watch::Sender<Role>) {
        let identity = Arc::new(Identity::new().unwrap());
        sees(&stand.cluster, vec![node("b", "127.0.0.1:1", &identity)]);
        let peer = Peer {
            name: "a".to_owned(),
            address: stand.address.clone(),
            certificate: stand.identity.hash(),
        };
        let (sender, role) = watch::channel(Role::Standby(peer));
        let front = Front::new(role, Arc::new(Cluster::new("b")), identity, crate::Access::default());
        (front, sender)
    }

    async fn asked(front: &Front, method: &str, path: &str) -> Response<Body> {
        let (parts, ()) = Request::builder()
            .method(method)
            .uri(path)
            .body(())
            .unwrap()
            .into_parts();
        let from = "127.0.0.1:1".parse().unwrap();
        let body = Sent::Kept(Bytes::new());
        front.ask(&parts, from, body, tokio::time::Instant::now()).await
    }

    /// A router with an answer of each of these sizes at `/SIZE`, and one that never answers.
    fn sizes(sizes: &[usize]) -> Router {
        let never = axum::routing::get(std::future::pending::<&'static str>);
        sizes.iter().fold(Router::new().route("/never", never), |router, size| {
            let text = "x".repeat(*size);
            router.route(&format!("/{size}"), axum::routing::any(async move || text))
        })
    }

    #[tokio::test]
    async fn a_link_above_the_bound_is_told_so_and_does_nothing() {
        let stand = stand_of(1).await;
        let (begun, done) = (
            Arc::new(tokio::sync::Notify::new()),
            Arc::new(tokio::sync::Notify::new()),
        );
        let (waits, ends) = (begun.clone(), done.clone());
        let slow = axum::routing::post(async move || {
            waits.notify_one();
            ends.notified().await;
            "done"
        });
        let router = sizes(&[1]).route("/slow", slow);
        stand.role.send_replace(Role::Owner(Answering::new(router)));
        let ((one, _role), (other, _other_role)) = (front_of(&stand), front_of(&stand));
        // Both are nodes.
        let both = [&one, &other].map(|front| node("b", "127.0.0.1:1", front.identity()));
        sees(&stand.cluster, both.to_vec());
        let slow = tokio::spawn(async move { asked(&one, "POST", "/slow").await });
        begun.notified().await;
        for method in ["GET", "POST"] {
            let answered = asked(&other, method, "/1").await;
            assert_eq!(answered.status(), 503);
            assert_eq!(answered.headers()["retry-after"], "1");
            let said = axum::body::to_bytes(answered.into_body(), 10_000).await.unwrap();
            assert!(said.windows(18).any(|word| word == b"TooManyConnections"), "{said:?}");
        }
        assert_eq!(stand.cluster.counters.strangers.load(Ordering::Relaxed), 0);
        // Whether nodes reach each other is still found out.
        let knocked = client(other.identity(), &stand.identity.hash()).unwrap();
        let knocked = knocked.get(format!("https://{}/", stand.address)).send().await.unwrap();
        assert!(knocked.headers().contains_key(NOT_OWNER));
        done.notify_one();
        assert_eq!(slow.await.unwrap().status(), 200);
        // The link closes with its answer, and the next one has its place.
        while asked(&other, "GET", "/1").await.status() != 200 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn an_answer_that_nobody_reads_keeps_a_link_only_if_it_is_large() {
        const SMALL: usize = 100_000;
        const LARGE: usize = 8_000_000;
        let stand = stand_of(8).await;
        stand
            .role
            .send_replace(Role::Owner(Answering::new(sizes(&[SMALL, LARGE]))));
        let (front, _role) = front_of(&stand);
        let mut unread = Vec::new();
        for _ in 0..40 {
            let answered = asked(&front, "GET", &format!("/{SMALL}")).await;
            assert_eq!(answered.status(), 200);
            unread.push(answered);
        }
        for answered in unread {
            let bytes = axum::body::to_bytes(answered.into_body(), usize::MAX).await.unwrap();
            assert_eq!(bytes.len(), SMALL);
        }
        let mut unread = Vec::new();
        let full = loop {
            let answered = asked(&front, "GET", &format!("/{LARGE}")).await;
            if answered.status() != 200 {
                break answered.status();
            }
            unread.push(answered);
        };
        assert!(full == 503 && unread.len() <= 8, "{full} {}", unread.len());
        unread.pop();
        while asked(&front, "HEAD", &format!("/{SMALL}")).await.status() != 200 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_word_of_a_node_is_handed_on_and_what_became_of_it_is_told() {
        const LONG: Duration = Duration::from_secs(600);
        let mut stand = stand().await;
        let other = Identity::new().unwrap();
        sees(&stand.cluster, vec![node("b", "127.0.0.1:1", &other)]);
        let here = node("a", &stand.address, &stand.identity);
        let client = OwnershipClient::to(&other, &here).unwrap();
        for (request, is_done) in [
            (OwnershipRequest::Prepare, true),
            (OwnershipRequest::Take, false),
            (OwnershipRequest::Owns, true),
        ] {
            let (done, ()) = tokio::join!(client.send(request, LONG), async {
                let received = stand.requests.recv().await.unwrap();
                assert_eq!((received.request, received.from.name.as_str()), (request, "b"));
                if is_done {
                    received.done.send(()).unwrap();
                }
            });
            assert_eq!(done, is_done, "{request:?}");
        }
        // A node that has left the cluster has no say, even over a link that is still open.
        sees(&stand.cluster, Vec::new());
        assert!(!client.send(OwnershipRequest::Take, LONG).await);
        assert!(stand.requests.try_recv().is_err());
    }

    #[tokio::test]
    async fn an_answer_that_comes_with_the_next_owner_is_given() {
        let stand = stand().await;
        let go = Arc::new(tokio::sync::Notify::new());
        let (begun, goes) = (Arc::new(tokio::sync::Notify::new()), go.clone());
        let begins = begun.clone();
        let slow = axum::routing::post(async move || {
            begins.notify_one();
            goes.notified().await;
            "done"
        });
        let router = Router::new().route("/slow", slow);
        stand.role.send_replace(Role::Owner(Answering::new(router)));
        let (front, role) = front_of(&stand);
        sees(&stand.cluster, vec![node("b", "127.0.0.1:1", front.identity())]);
        let asked = tokio::spawn(async move { asked(&front, "POST", "/slow").await });
        begun.notified().await;
        role.send_replace(Role::Nobody);
        go.notify_one();
        assert_eq!(asked.await.unwrap().status(), 200);
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
