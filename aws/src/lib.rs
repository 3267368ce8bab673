//! Shared parts of the connectors and the store for AWS: configuration, connections, one thread
//! that runs all calls, and faults.
//!
//! A connection belongs to the runtime on which it was opened, and each owner of executions has a runtime of its own. So one
//! thread runs all calls to AWS: owners share connections, credentials and batches, and a batch outlives the call that began
//! it.
//!
//! Make one [`Aws`] for the process and clone it. Run work with [`Aws::run`] from asynchronous code, with [`Aws::wait`] from
//! other code, with [`Aws::spawn`] if no caller waits. Inside the work, [`Aws::config`] gives the
//! configuration for a client. [`ServiceError::of`] turns the SDK's errors into a [`ServiceError`], and
//! [`ServiceError::outcome`] a service error into the outcome of a call.
//!
//! ```
//! use starbridge_aws::{Aws, AwsSettings};
//!
//! let aws = Aws::new(AwsSettings { region: Some("eu-central-1".to_owned()), ..AwsSettings::default() });
//! let same = aws.clone();
//! let region = aws.wait(async move {
//!     let config = same.config(None).await?;
//!     Ok::<_, starbridge_aws::ServiceError>(config.region().map(ToString::to_string))
//! })??;
//! assert_eq!(region.as_deref(), Some("eu-central-1"));
//! # Ok::<(), starbridge_aws::ServiceError>(())
//! ```
#![warn(clippy::missing_errors_doc)]

mod by_region;
mod service_error;
mod thread;

pub use aws_smithy_types::base64;
pub use aws_types::SdkConfig;
pub use aws_types::request_id::RequestId;
pub use by_region::ClientsByRegion;
pub use service_error::{ServiceError, ServiceErrorKind};

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

/// How long opening a connection may take. It is short, so that a task with a timeout of a few seconds learns why it
/// failed.
const CONNECT: Duration = Duration::from_secs(2);
/// How often one request is tried. The flow decides about further tries, and sees them.
const MAX_TRIES: u32 = 2;

/// Settings for AWS. A missing setting is found in the usual ways: environment, profile, the
/// machine's own role.
#[derive(Clone, Debug, Default)]
pub struct AwsSettings {
    /// An endpoint for all services, instead of their own.
    pub endpoint: Option<String>,
    /// The region to call, such as `eu-central-1`.
    pub region: Option<String>,
    /// The id and the secret of an access key.
    pub access_key: Option<(String, Secret)>,
}

/// The client for AWS. A clone shares it. Nothing is read and no thread is started before the first call.
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
    /// A client with these settings.
    pub fn new(settings: AwsSettings) -> Self {
        Self {
            shared: Arc::new(Shared {
                settings,
                config: OnceCell::new(),
                thread: OnceLock::new(),
            }),
        }
    }

    /// Runs work on the thread for AWS. Dropping the future cancels the work.
    ///
    /// # Errors
    ///
    /// A [`ServiceError`] of kind `Unavailable` if the thread can't be started or the work ends without a result.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ServiceError> {
        self.thread()?.run(work).await
    }

    /// Runs work on the thread for AWS and blocks the calling thread until it is done. The calling thread may belong
    /// to another runtime, but must not be the thread for AWS itself.
    ///
    /// # Errors
    ///
    /// A [`ServiceError`] of kind `Unavailable` if the thread can't be started or the work ends without a result.
    pub fn wait<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Result<T, ServiceError> {
        self.thread()?.wait(work)
    }

    /// Starts work on the thread for AWS that goes on even if no caller waits for it.
    ///
    /// # Errors
    ///
    /// A [`ServiceError`] of kind `Unavailable` if the thread can't be started.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Result<(), ServiceError> {
        self.thread()?.spawn(work);
        Ok(())
    }

    /// The configuration for this region, or for the configured one. Call it from work that [`Aws::run`] runs.
    ///
    /// # Errors
    ///
    /// [`ServiceErrorKind::RegionMissing`] if no region is known.
    pub async fn config(&self, region: Option<&str>) -> Result<SdkConfig, ServiceError> {
        let config = self.shared.config.get_or_init(|| load(&self.shared.settings)).await;
        match region {
            Some(region) => Ok(config.to_builder().region(Region::new(region.to_owned())).build()),
            None if config.region().is_none() => Err(ServiceError::new(
                ServiceErrorKind::RegionMissing,
                "no region is set: neither AWS_REGION, nor the profile's `region`, nor a machine of AWS's that tells",
            )),
            None => Ok(config.clone()),
        }
    }

    fn thread(&self) -> Result<&Thread, ServiceError> {
        let thread = self.shared.thread.get_or_init(Thread::start);
        thread
            .as_ref()
            .map_err(|problem| ServiceError::new(ServiceErrorKind::Other("Unavailable".to_owned()), problem.clone()))
    }
}

async fn load(settings: &AwsSettings) -> SdkConfig {
    let provider = Provider::Rustls(CryptoMode::Ring);
    let mut loader = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(Builder::new().tls_provider(provider).build_https())
        .retry_config(RetryConfig::standard().with_max_attempts(MAX_TRIES))
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
