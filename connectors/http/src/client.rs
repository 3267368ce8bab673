//! The HTTP clients: one for each scheme, made when first needed.

use crate::HttpSettings;
use crate::lookup::GuardedLookup;
use reqwest::Client;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls_platform_verifier::Verifier;
use starbridge_ports::Outcome;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Many servers close a connection that was idle for five seconds, without a word before the next request: ours goes first.
const IDLE: Duration = Duration::from_secs(4);

/// How a client is made: the parts of the settings it needs.
struct Plan {
    lookup: Arc<GuardedLookup>,
    connect_timeout: Duration,
    extra_roots: Vec<Vec<u8>>,
}

/// The clients. Reading the system's certificates takes a while, which who only calls `http:` need not wait for.
pub(crate) struct Clients {
    plan: Plan,
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
}

impl Clients {
    pub(crate) fn new(settings: &HttpSettings) -> Self {
        Self {
            plan: Plan {
                lookup: Arc::new(GuardedLookup {
                    guard: settings.guard.clone(),
                    lookup: settings.lookup.clone(),
                }),
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
        self.client(tls)
    }

    /// A client that trusts nobody: it is never asked for a secure connection.
    fn plain(&self) -> Result<Client, String> {
        let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        self.client(tls)
    }

    fn client(&self, tls: ClientConfig) -> Result<Client, String> {
        Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(self.lookup.clone())
            .connect_timeout(self.connect_timeout)
            .pool_idle_timeout(IDLE)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .http1_only()
            .build()
            .map_err(|error| error.to_string())
    }
}
