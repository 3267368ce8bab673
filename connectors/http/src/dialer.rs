//! Opens connections: to an address that the guard permits, with TLS if the URL says so, within a time limit.

use crate::resolver::GuardedResolver;
use crate::stream::Stream;
use http::Uri;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::ClientConfig;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tower_service::Service;

/// How long a connection is quiet before a keep-alive probe is sent, and the time between two probes.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// After this many probes without an answer, the connection counts as lost.
const KEEPALIVES: u32 = 3;
/// How long sent data may stay without acknowledgement by the other machine.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// Opens connections to permitted addresses.
#[derive(Clone)]
pub(crate) struct Dialer {
    inner: HttpsConnector<HttpConnector<GuardedResolver>>,
    within: Duration,
}

/// Opening a connection took too long.
#[derive(Debug)]
pub(crate) struct ConnectTimeout;

impl std::fmt::Display for ConnectTimeout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no connection within the time for it")
    }
}

impl Error for ConnectTimeout {}

impl Dialer {
    /// A dialer that takes at most `within` for lookup, connecting and TLS handshake together.
    pub(crate) fn new(resolver: GuardedResolver, tls: ClientConfig, within: Duration) -> Self {
        let mut tcp = HttpConnector::new_with_resolver(resolver);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(within));
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(KEEPALIVE));
        tcp.set_keepalive_interval(Some(KEEPALIVE));
        tcp.set_keepalive_retries(Some(KEEPALIVES));
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
        Self {
            inner: HttpsConnector::from((tcp, tls)),
            within,
        }
    }
}

type BoxError = Box<dyn Error + Send + Sync>;

impl Service<Uri> for Dialer {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let opening = self.inner.call(target);
        let within = self.within;
        Box::pin(async move {
            let opened = tokio::time::timeout(within, opening)
                .await
                .map_err(|_| ConnectTimeout)?;
            Ok(Stream::new(opened?))
        })
    }
}
