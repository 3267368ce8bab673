//! Connecting: each connection is driven by the store's own thread.

use crate::fault::{Failure, said};
use crate::health::Health;
use crate::session::Session;
use crate::settings::{Target, wants_tls};
use futures_util::future::try_join_all;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use starbridge_ports::StoreError;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// After this silence a connection is checked.
const SILENCE: Duration = Duration::from_secs(10);
/// Between two such questions.
const BETWEEN: Duration = Duration::from_secs(2);
/// Between two tries while the database is away.
const AGAIN: Duration = Duration::from_millis(250);

/// How connections are made.
struct Way {
    config: Config,
    tls: Option<MakeRustlsConnect>,
    schema: String,
    place: String,
    health: Health,
}

/// Makes connections, and drives them.
pub(crate) struct Link {
    /// Present until this is dropped.
    runtime: Option<Runtime>,
    way: Arc<Way>,
}

impl Link {
    pub(crate) fn new(target: Target, schema: &str, node: &str) -> Result<Self, String> {
        let mut config = target.config;
        // This may fail. A runtime must not be dropped within another one, so it is made afterwards.
        let tls = match wants_tls(&config) {
            true => Some(tls(target.roots.as_deref())?),
            false => None,
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("postgres")
            .enable_all()
            .build()
            .map_err(|error| format!("the thread for the database can't be started: {error}"))?;
        config.connect_timeout(CONNECT).tcp_user_timeout(SILENCE);
        config.keepalives_idle(SILENCE);
        config.keepalives_interval(BETWEEN).keepalives_retries(3);
        config.application_name(format!("starbridge {node}").trim_end());
        let way = Way {
            config,
            tls,
            schema: schema.to_owned(),
            place: target.place,
            health: Health::default(),
        };
        Ok(Self {
            runtime: Some(runtime),
            way: Arc::new(way),
        })
    }

    /// What people are shown of where the database is.
    pub(crate) fn place(&self) -> &str {
        &self.way.place
    }

    pub(crate) fn schema(&self) -> &str {
        &self.way.schema
    }

    pub(crate) fn health(&self) -> &Health {
        &self.way.health
    }

    /// A new connection, set up for this store. The thread stands still until it is there.
    pub(crate) fn connect(&self) -> Result<Session, Failure> {
        let way = self.way.clone();
        self.here(async move {
            let session = answered(connect(&way, Some(way.clone()))).await?;
            answered(set_up(&way, &session)).await?;
            Ok(session)
        })
    }

    /// So many new connections at once, each of which has answered. Nothing is set on them: they may turn out to be somebody
    /// else's, too.
    pub(crate) fn connect_bare(&self, count: usize) -> Result<Vec<Session>, Failure> {
        let way = self.way.clone();
        self.here(async move {
            let all = (0..count).map(|_| async {
                let session = answered(connect(&way, Some(way.clone()))).await?;
                answered(session.backend()).await?;
                Ok::<Session, Failure>(session)
            });
            try_join_all(all).await
        })
    }

    /// Makes a connection that was bare one that is set up.
    pub(crate) fn set_up(&self, session: Session) -> Result<Session, Failure> {
        let way = self.way.clone();
        self.here(async move {
            answered(set_up(&way, &session)).await?;
            Ok(session)
        })
    }

    /// Does something on the store's own thread, and stands still until it is done.
    fn here<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<T, Failure> {
        let over = || StoreError::Unavailable("the store is closed".to_owned());
        let runtime = self.runtime.as_ref().ok_or_else(over)?;
        let (done, result) = std::sync::mpsc::sync_channel(1);
        runtime.spawn(async move {
            // Whoever waits goes on when this is sent or dropped.
            let _ = done.send(work.await);
        });
        result.recv().map_err(|_| over())?
    }

    /// Does something that nobody needs, unless it takes long.
    pub(crate) fn briefly(&self, work: impl Future<Output = ()> + Send + 'static) {
        let Some(runtime) = &self.runtime else {
            return;
        };
        let (done, over) = std::sync::mpsc::sync_channel(1);
        runtime.spawn(async move {
            // If it takes long, it is left to the server.
            let _ = tokio::time::timeout(BETWEEN, work).await;
            let _ = done.send(());
        });
        let _ = over.recv();
    }

    /// Notes that the database does not answer, and begins to ask whether it does again.
    pub(crate) fn went(&self, why: &str) {
        if let Some(runtime) = &self.runtime {
            let _within = runtime.enter();
            went(&self.way, why);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.way.health.close();
        // This may be dropped within another runtime, which must not wait for this one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Called within the store's own runtime.
fn went(way: &Arc<Way>, why: &str) {
    if !way.health.went(why) {
        return;
    }
    tracing::warn!(database = %way.place, why, "the database is away: requests are answered with 503 until it is back");
    let way = way.clone();
    tokio::spawn(async move {
        loop {
            if serves(&way).await && way.health.came_back() {
                tracing::info!(database = %way.place, "the database is back");
                return;
            }
            tokio::time::sleep(AGAIN).await;
        }
    });
}

/// Whether the database takes writes now.
async fn serves(way: &Way) -> bool {
    match tokio::time::timeout(CONNECT, connect(way, None)).await {
        Ok(Ok(session)) => matches!(tokio::time::timeout(CONNECT, session.takes_writes()).await, Ok(true)),
        _ => false,
    }
}

/// The first answer on a new connection. A pooler takes a connection also when it has no session for it.
async fn answered<T>(asked: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, Failure> {
    match tokio::time::timeout(CONNECT, asked).await {
        Ok(answer) => answer.map_err(Failure::from),
        Err(_) => Err(Failure::Silent(format!(
            "it takes a connection, and does not answer within {} s",
            CONNECT.as_secs()
        ))),
    }
}

/// A connection. Whoever watches it is told when it ends.
async fn connect(way: &Way, watched: Option<Arc<Way>>) -> Result<Session, tokio_postgres::Error> {
    let client = match &way.tls {
        Some(tls) => {
            let (client, connection) = way.config.connect(tls.clone()).await?;
            drive(connection, watched);
            client
        }
        None => {
            let (client, connection) = way.config.connect(NoTls).await?;
            drive(connection, watched);
            client
        }
    };
    Ok(Session::new(client))
}

/// Whatever a role, a database or a pooler says otherwise. A plan that was made for an empty table is kept all day, so it must
/// be one for a full table.
async fn set_up(way: &Way, session: &Session) -> Result<(), tokio_postgres::Error> {
    let schema = &way.schema;
    let sets = format!(
        "set search_path = {schema}, pg_temp; set synchronous_commit = on; set plan_cache_mode = force_generic_plan; \
         set enable_seqscan = off; set enable_hashjoin = off; set enable_mergejoin = off; set jit = off; \
         set idle_in_transaction_session_timeout = '60s'; set lock_timeout = '20s'; set statement_timeout = 0; \
         set default_transaction_isolation = 'read committed'; set client_min_messages = warning; \
         set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 2; set tcp_keepalives_count = 3"
    );
    session.run(&sets).await
}

fn drive<S, T>(connection: tokio_postgres::Connection<S, T>, watched: Option<Arc<Way>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: TlsStream + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await
            && let Some(way) = watched
        {
            went(&way, &said(&error));
        }
    });
}

/// Certificates are always looked at, those of the file or those that the system trusts.
pub(crate) fn tls(roots: Option<&std::path::Path>) -> Result<MakeRustlsConnect, String> {
    let mut store = RootCertStore::empty();
    match roots {
        Some(file) => {
            let problem = |why: &dyn std::fmt::Display| format!("`sslrootcert`: {}: {why}", file.display());
            let found = CertificateDer::pem_file_iter(file).map_err(|error| problem(&error))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| problem(&error))?;
                store.add(certificate).map_err(|error| problem(&error))?;
            }
            if store.is_empty() {
                return Err(problem(&"there is no certificate in it"));
            }
        }
        // A system without any still reaches databases that are not encrypted.
        None => _ = store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS can't be set up: {error}"))?;
    Ok(MakeRustlsConnect::new(
        config.with_root_certificates(store).with_no_client_auth(),
    ))
}

#[cfg(test)]
mod tests {
    use crate::settings::PostgresSettings;

    #[test]
    fn certificates_that_are_missing_are_told_of_also_within_a_runtime() {
        let url = "postgres://u@localhost/d?sslmode=require&sslrootcert=/nowhere/ca.pem";
        let settings = PostgresSettings {
            url: url.to_owned(),
            ..PostgresSettings::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let made = runtime.block_on(async { super::Link::new(settings.target().unwrap(), "s", "n") });
        let why = made.err().unwrap();
        assert!(why.contains("`sslrootcert`: /nowhere/ca.pem"), "{why}");
    }
}
