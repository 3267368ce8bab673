//! The HTTP clients: one for each scheme, made when it is first needed.

use crate::HttpSettings;
use crate::dialer::Dialer;
use crate::informational;
use crate::resolver::GuardedResolver;
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls_platform_verifier::Verifier;
use starbridge_ports::Outcome;
use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// An answer whose body has not been read.
pub(crate) type Response = http::Response<Incoming>;

/// Many servers close a connection after five idle seconds, without notice before the next request.
/// So this client closes it earlier.
const IDLE: Duration = Duration::from_secs(4);

/// Sends requests over HTTP/1.1 and keeps connections for the next ones.
pub(crate) struct Client(legacy::Client<Dialer, String>);

/// The settings that a client needs.
struct Plan {
    resolver: GuardedResolver,
    connect_timeout: Duration,
    extra_roots: Vec<Vec<u8>>,
}

/// The clients. Reading the system's certificates takes a while, and calls to `http:` need not wait for that.
pub(crate) struct Clients {
    plan: Plan,
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
}

impl Clients {
    pub(crate) fn new(settings: &HttpSettings) -> Self {
        Self {
            plan: Plan {
                resolver: GuardedResolver {
                    guard: Arc::new(settings.guard.clone()),
                    resolver: settings.resolver.clone(),
                },
                connect_timeout: settings.connect_timeout,
                extra_roots: settings.extra_roots.clone(),
            },
            plain: OnceLock::new(),
            secure: OnceLock::new(),
        }
    }

    /// The client for `http` or `https`.
    pub(crate) fn of_scheme(&self, scheme: &str) -> Result<&Client, Outcome> {
        let client = match scheme {
            "https" => self.secure.get_or_init(|| self.plan.secure()),
            _ => self.plain.get_or_init(|| self.plan.plain()),
        };
        client.as_ref().map_err(|reason| {
            Outcome::failed(
                "HTTP.ConnectionFailed",
                format!("no HTTP client could be made: {reason}"),
            )
        })
    }
}

impl Plan {
    fn secure(&self) -> Result<Client, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = self.extra_roots.iter().map(|root| CertificateDer::from(root.clone()));
        let verifier = Verifier::new_with_extra_roots(roots, provider.clone())
            .map_err(|error| format!("the certificates of this system cannot be used: {error}"))?;
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        Ok(self.client(tls))
    }

    /// A client that trusts no certificate. It is never asked for a secure connection.
    fn plain(&self) -> Result<Client, String> {
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        Ok(self.client(tls))
    }

    fn client(&self, tls: ClientConfig) -> Client {
        let dialer = Dialer::new(self.resolver.clone(), tls, self.connect_timeout);
        let client = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(dialer);
        Client(client)
    }
}

impl Client {
    /// Sends a request and waits for the head of its answer. If a kept connection turns out to be closed before the
    /// request left, it goes over another one. Nothing else is sent twice.
    pub(crate) async fn send(
        &self,
        mut request: http::Request<String>,
    ) -> Result<Response, Box<dyn Error + Send + Sync>> {
        let informed = informational::count(&mut request);
        let response = self.0.request(request).await?;
        // Informational answers in the same read as the answer count too.
        informed.admit()?;
        Ok(response)
    }
}
