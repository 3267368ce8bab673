//! Opening connections to Redis: TCP, TLS if the address asks for it, and log-in.

use crate::RedisSettings;
use crate::failure::Failure;
use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_rustls::TlsConnector;

/// How many commands may wait to be written. Beyond that, callers wait.
const MAX_WAITING_COMMANDS: usize = 1_024;

/// An open connection. It is closed when it is dropped everywhere.
pub(crate) struct Open {
    pub connection: MultiplexedConnection,
    driver: AbortHandle,
    given_up: AtomicBool,
}

impl Open {
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) || self.driver.is_finished()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// How to open connections.
pub(crate) struct Dial {
    settings: RedisSettings,
    tls: OnceLock<Result<TlsConnector, String>>,
}

impl Dial {
    pub(crate) fn new(settings: RedisSettings) -> Self {
        Self {
            settings,
            tls: OnceLock::new(),
        }
    }

    /// The name of the server in messages.
    pub(crate) fn server(&self) -> String {
        self.settings.address.to_string()
    }

    pub(crate) async fn open(&self) -> Result<Open, Failure> {
        let opened = tokio::time::timeout(self.settings.connect_timeout, self.connect()).await;
        opened.unwrap_or_else(|_| {
            Err(Failure::connection(
                &self.server(),
                "no connection within the time for it",
            ))
        })
    }

    async fn connect(&self) -> Result<Open, Failure> {
        let address = &self.settings.address;
        let broken = |error: std::io::Error| Failure::of_io(&self.server(), &error);
        let stream = TcpStream::connect((address.host.as_str(), address.port))
            .await
            .map_err(broken)?;
        stream.set_nodelay(true).map_err(broken)?;
        if !address.secure {
            return self.log_in(stream).await;
        }
        let unusable = |reason: &str| Failure::connection(&self.server(), reason);
        let tls = self.tls.get_or_init(|| self.secure());
        let tls = tls.as_ref().map_err(|reason| unusable(reason))?;
        let name = ServerName::try_from(address.host.clone());
        let name = name.map_err(|_| unusable("its name is none a certificate can have"))?;
        self.log_in(tls.connect(name, stream).await.map_err(broken)?).await
    }

    async fn log_in<S>(&self, stream: S) -> Result<Open, Failure>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        // Callers limit the time themselves.
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_pipeline_buffer_size(MAX_WAITING_COMMANDS);
        let made = MultiplexedConnection::new_with_config(&self.settings.address.login, stream, config).await;
        let (connection, driver) = made.map_err(|error| Failure::of(&self.server(), &error))?;
        Ok(Open {
            connection,
            driver: tokio::spawn(driver).abort_handle(),
            given_up: AtomicBool::new(false),
        })
    }

    fn secure(&self) -> Result<TlsConnector, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = self.settings.extra_roots.iter();
        let roots = roots.map(|root| CertificateDer::from(root.clone()));
        let verifier = Verifier::new_with_extra_roots(roots, provider.clone())
            .map_err(|error| format!("the certificates of this system cannot be used: {error}"))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(TlsConnector::from(Arc::new(config)))
    }
}
