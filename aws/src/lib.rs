//! What the connectors to AWS share: configuration found the usual ways, one pool of connections, one thread that works them,
//! and words for what goes wrong.
//!
//! A connection lives on the runtime it was opened on, and each owner of executions has a runtime of its own. So all calls to
//! AWS are carried by one thread: owners share connections, credentials and batches, and a batch outlives the call that began it.

mod fault;
mod thread;

pub use aws_smithy_types::base64;
pub use aws_types::SdkConfig;
pub use aws_types::request_id::RequestId;
pub use fault::{Fault, FaultKind};

use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{AppName, BehaviorVersion, Region};
use aws_credential_types::Credentials;
use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use starbridge_ports::Secret;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use thread::Thread;
use tokio::sync::OnceCell;

/// How long opening a connection may take: short, so that a task with a few seconds learns why it failed.
const CONNECT: Duration = Duration::from_secs(2);
/// Tries of one request. Further ones are the flow's to decide, which sees them.
const TRIES: u32 = 2;

/// What a host decides about AWS. What is not decided is found the usual ways: environment, profile, the machine's own role.
#[derive(Clone, Debug, Default)]
pub struct AwsSettings {
    /// Where all services are reached.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// Id and secret of an access key.
    pub access_key: Option<(String, Secret)>,
}

/// The way to AWS. A clone is the same way. Nothing is read and no thread is started before the first call.
#[derive(Clone)]
pub struct Aws {
    shared: Arc<Shared>,
}

struct Shared {
    settings: AwsSettings,
    config: OnceCell<SdkConfig>,
    thread: OnceLock<Result<Thread, String>>,
}

impl Aws {
    /// A way to AWS with these settings.
    pub fn new(settings: AwsSettings) -> Self {
        Self {
            shared: Arc::new(Shared {
                settings,
                config: OnceCell::new(),
                thread: OnceLock::new(),
            }),
        }
    }

    /// Carries work on the thread for AWS. Dropping the future gives the work up.
    pub async fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T, Fault> {
        self.thread()?.run(work).await
    }

    /// The same for who is not asynchronous: it blocks the calling thread, which may be one of another runtime but never the thread
    /// for AWS itself.
    pub fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T, Fault> {
        self.thread()?.wait(work)
    }

    /// The same for work that goes on whatever becomes of who asked for it.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), Fault> {
        self.thread()?.spawn(work);
        Ok(())
    }

    /// The configuration for this region, or for the one that is configured. To be called from work that [`Aws::run`] carries.
    pub async fn config(&self, region: Option<&str>) -> Result<SdkConfig, Fault> {
        let config = self.shared.config.get_or_init(|| load(&self.shared.settings)).await;
        match region {
            Some(region) => Ok(config.to_builder().region(Region::new(region.to_owned())).build()),
            None if config.region().is_none() => Err(Fault::new(
                FaultKind::RegionMissing,
                "no region is set: neither AWS_REGION, nor the profile's `region`, nor a machine of AWS's that tells",
            )),
            None => Ok(config.clone()),
        }
    }

    fn thread(&self) -> Result<&Thread, Fault> {
        let thread = self.shared.thread.get_or_init(Thread::start);
        thread
            .as_ref()
            .map_err(|problem| Fault::new(FaultKind::Other("Unavailable".to_owned()), problem.clone()))
    }
}

async fn load(settings: &AwsSettings) -> SdkConfig {
    let provider = Provider::Rustls(CryptoMode::Ring);
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(Builder::new().tls_provider(provider).build_https())
        .retry_config(RetryConfig::standard().with_max_attempts(TRIES))
        .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT).build())
        // Each operation has a time limit instead.
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    if let Ok(name) = AppName::new("starbridge") {
        loader = loader.app_name(name);
    }
    if let Some(endpoint) = &settings.endpoint {
        loader = loader.endpoint_url(endpoint);
    }
    if let Some(region) = &settings.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some((id, secret)) = &settings.access_key {
        loader = loader.credentials_provider(Credentials::new(id, secret.reveal(), None, None, "settings"));
    }
    loader.load().await
}
